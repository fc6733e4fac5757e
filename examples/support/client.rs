//! A client for the examples that can run without a server.

use bowline::Client;
use bowline::embedded::Server;

/// Connects to the server at `REDIS_URL`, else to the embedded server. The examples do the same on both.
pub(crate) async fn connect() -> bowline::Result<Client> {
    if let Ok(url) = std::env::var("REDIS_URL") {
        println!("using the server at REDIS_URL");
        return bowline::tokio::connect(&url).await;
    }
    println!("REDIS_URL is not set: using the embedded server, in this process");
    Server::new().client(bowline::tokio::Tokio::current()?).await
}
