//! Testing code that locks: no Redis, and a clock that moves when the test says so.
//!
//! `cargo run --example testing_your_code`, without a Redis. In a project of yours, `main` is a `#[tokio::test]`, and bowline a
//! dev-dependency with the feature `embedded`.

use std::error::Error;
use std::time::Duration;

use bowline::Client;
use bowline::embedded::Server;

/// The code under test: does its work unless somebody else is at it.
async fn nightly_report(client: &Client) -> bowline::Result<bool> {
    let Some(guard) = client.lock("nightly report").try_lock().await? else { return Ok(false) };
    // The report would be written here.
    guard.release().await?;
    Ok(true)
}

/// Another program's client, as far as the server can tell.
async fn program(server: &Server) -> bowline::Result<Client> {
    server.client(bowline::tokio::Tokio::current()?).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::new();
    let (one, two) = (program(&server).await?, program(&server).await?);

    assert!(nightly_report(&one).await?, "nobody is in the way");

    // A program that dies while it has the lock: it does not release, and nothing renews its lease.
    let of_the_dead = one.lock("nightly report").lock().await?;
    assert!(!nightly_report(&two).await?, "it could still be at it");

    // Its lease of half a minute ends by the server's clock, and nobody has to wait for it.
    server.advance(Duration::from_secs(31));
    assert!(nightly_report(&two).await?, "a dead program blocks nobody for longer than its lease");

    drop(of_the_dead);
    println!("half a minute, tested in no time");
    Ok(())
}
