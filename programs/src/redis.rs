//! A client for programs that can run without a server.

use bowline::Client;
use bowline::embedded::Server;
use bowline::tokio::Tokio;

/// Connects to the server at `REDIS_URL`, else to the embedded server.
///
/// # Errors
/// Those of [`bowline::tokio::connect`].
pub async fn connect() -> bowline::Result<Client> {
    match std::env::var("REDIS_URL") {
        Ok(url) => bowline::tokio::connect(&url).await,
        Err(_) => Server::new().client(Tokio::current()?).await,
    }
}
