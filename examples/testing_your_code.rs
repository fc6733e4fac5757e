//! Tests of code that locks, without a Redis and with a clock that the test moves.
//!
//! `cargo run --example testing_your_code`, without a Redis. In your project, `main` would be a `#[tokio::test]`, and
//! bowline with the feature `embedded` a dev-dependency.

use std::error::Error;
use std::time::Duration;

use bowline::Client;
use bowline::embedded::Server;

/// The code under test. It does its work unless another program is doing it.
async fn nightly_report(client: &Client) -> bowline::Result<bool> {
    let Some(guard) = client.lock("nightly report").try_lock().await? else { return Ok(false) };
    // The report would be written here.
    guard.release().await?;
    Ok(true)
}

/// A client of its own, as in another program.
async fn program(server: &Server) -> bowline::Result<Client> {
    server.client(bowline::tokio::Tokio::current()?).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::new();
    let (one, two) = (program(&server).await?, program(&server).await?);

    assert!(nightly_report(&one).await?, "the lock is free");

    // A program crashes while it holds the lock. It does not release, and its lease is not renewed.
    let abandoned = one.lock("nightly report").lock().await?;
    assert!(!nightly_report(&two).await?, "the lease has not expired");

    // Its lease of 30 s expires by the server's clock, which the test moves.
    server.advance(Duration::from_secs(31));
    assert!(nightly_report(&two).await?, "a crashed program blocks others for one lease at most");

    drop(abandoned);
    println!("half a minute, tested in no time");
    Ok(())
}
