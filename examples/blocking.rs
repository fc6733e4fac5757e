//! Locks in blocking code, without an async runtime.
//!
//! `cargo run --example blocking --features blocking`; on the Redis at `REDIS_URL`, else on the embedded server.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use bowline::ErrorKind;
use bowline::blocking::{Client, connect};

fn main() -> bowline::Result<()> {
    let client = client()?;

    // Three threads share a lock.
    thread::scope(|scope| {
        let workers = [1, 2, 3].map(|worker| {
            let orders = client.lock("orders");
            scope.spawn(move || {
                let guard = orders.lock().timeout(Duration::from_secs(10)).block()?;
                println!("worker {worker} has the lock, token {}", guard.token());
                // The work would be here. Send the token with every write.
                guard.release()
            })
        });
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;

    // A thread may acquire again what it holds, as with locks in Java.
    let orders = client.lock("orders");
    let outer = orders.lock().block()?;
    let inner = orders.lock().block()?;
    println!("both guards have the same token: {}", outer.token() == inner.token());
    drop(inner);

    // Another thread is another holder.
    thread::scope(|scope| {
        scope.spawn(|| match orders.lock().timeout(Duration::from_millis(100)).block() {
            Err(error) if error.kind() == ErrorKind::TimedOut => println!("another thread has to wait"),
            other => println!("unexpected: {other:?}"),
        });
    });
    outer.release()
}

fn client() -> bowline::Result<Client> {
    if let Ok(url) = std::env::var("REDIS_URL") {
        return connect(&url);
    }
    println!("REDIS_URL is not set: using the embedded server");
    let connected = bowline::embedded::Server::new().client(bowline::smol::Smol);
    futures::executor::block_on(connected).map(Client::new)
}
