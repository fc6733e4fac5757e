//! A client for the examples that need no server.

use std::sync::Arc;

use bowline::embedded::Server;
use bowline::{Client, Config};

/// Of the server at `REDIS_URL`, else of one inside this process. What the examples do is the same on both.
pub(crate) async fn connect() -> bowline::Result<Client> {
    if let Ok(url) = std::env::var("REDIS_URL") {
        println!("using the server at REDIS_URL");
        return bowline::tokio::connect(&url).await;
    }
    println!("REDIS_URL is not set: using the embedded server, in this process");
    let executor = Arc::new(bowline::tokio::Tokio::current()?);
    let connection = Server::new().connect(executor.clone());
    Client::new(executor, Arc::new(connection), Config::builder().build()?).await
}
