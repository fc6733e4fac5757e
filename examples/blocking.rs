//! Locks for code that is not async: no runtime in sight.
//!
//! `cargo run --example blocking --features blocking`; on a Redis of yours with `REDIS_URL`, else on the embedded server.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use bowline::ErrorKind;
use bowline::blocking::{Client, connect};

fn main() -> bowline::Result<()> {
    let client = client()?;

    // Threads that share a lock.
    thread::scope(|scope| {
        let workers = [1, 2, 3].map(|worker| {
            let orders = client.lock("orders");
            scope.spawn(move || {
                let guard = orders.lock().timeout(Duration::from_secs(10)).block()?;
                println!("worker {worker} has the lock, token {}", guard.token());
                // Here it would write, and send the token with every write.
                guard.release()
            })
        });
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })?;

    // A thread may enter again what it holds, as in Java.
    let orders = client.lock("orders");
    let outer = orders.lock().block()?;
    let inner = orders.lock().block()?;
    println!("the same hold twice: {}", outer.token() == inner.token());
    drop(inner);

    // Another thread is somebody else.
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
    println!("no REDIS_URL: on the embedded server");
    let connected = bowline::embedded::Server::new().client(bowline::smol::Smol);
    futures::executor::block_on(connected).map(Client::new)
}
