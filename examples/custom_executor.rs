//! A custom `Executor`: a pool of one thread from the `futures` crate, with smol's timers.
//!
//! `cargo run --example custom_executor --features smol`, without a Redis.
#![allow(clippy::disallowed_methods, reason = "this is an adapter")]

use std::error::Error;
use std::time::{Duration, Instant};

use bowline::{BoxFuture, Executor};
use futures::executor::ThreadPool;

/// Implements all that bowline needs of a runtime: tasks, timers, a clock, and a way to block a thread.
#[derive(Debug)]
struct Pool(ThreadPool);

impl Executor for Pool {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn_ok(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // The time must count from this call, not from the first poll.
        let timer = smol::Timer::after(duration);
        Box::pin(async {
            timer.await;
        })
    }

    fn now(&self) -> Instant {
        // On Linux it stands still while the machine is suspended. Where that can happen, use CLOCK_BOOTTIME.
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
        // On Redis, use `Client::connect` with `bowline::smol::open(executor, url, &config)`. Only the sockets are
        // smol's then.
        let client = bowline::embedded::Server::new().client(pool).await?;
        let guard = client.lock("orders").lock().await?;
        println!("on a custom executor: token {}", guard.token());
        guard.release().await?;
        client.close().await;
        Ok(())
    })
}
