//! An executor of one's own: here a pool of one thread from the `futures` crate, with smol's timers.
//!
//! `cargo run --example custom_executor --features smol`, without a Redis.
#![allow(clippy::disallowed_methods, reason = "this is an adapter")]

use std::error::Error;
use std::time::{Duration, Instant};

use bowline::{BoxFuture, Executor};
use futures::executor::ThreadPool;

/// All that bowline wants of a runtime: tasks, timers, a clock, and a way to wait on a thread.
#[derive(Debug)]
struct Pool(ThreadPool);

impl Executor for Pool {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn_ok(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // It counts from here, and not from the first poll.
        let timer = smol::Timer::after(duration);
        Box::pin(async {
            timer.await;
        })
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        futures::executor::block_on(future);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool(ThreadPool::builder().pool_size(1).create()?);
    futures::executor::block_on(async {
        // On Redis: `Client::connect` with `bowline::smol::open(executor, url, &config)`: only the sockets are smol's then.
        let client = bowline::embedded::Server::new().client(pool).await?;
        let guard = client.lock("orders").lock().await?;
        println!("on an executor of our own: token {}", guard.token());
        guard.release().await?;
        client.close().await;
        Ok(())
    })
}
