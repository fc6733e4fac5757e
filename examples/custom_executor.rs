//! An executor of one's own: here a pool of one thread from the `futures` crate, with smol's timers.
//!
//! `cargo run --example custom_executor --features smol`, without a Redis.
#![allow(clippy::disallowed_methods, reason = "this is an adapter")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor};
use futures::FutureExt;
use futures::executor::ThreadPool;
use futures::future::BoxFuture;

/// All that bowline wants of a runtime: tasks, timers, a clock, and a way to wait on a thread.
#[derive(Debug)]
struct Pool(ThreadPool);

impl Executor for Pool {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn_ok(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        smol::Timer::after(duration).map(drop).boxed()
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
    let executor = Arc::new(Pool(ThreadPool::builder().pool_size(1).create()?));
    // On Redis: `bowline::smol::open(executor.clone(), url, &config)`: only the sockets are smol's then.
    let connection = Arc::new(bowline::embedded::Server::new().connect(executor.clone()));
    futures::executor::block_on(async {
        let client = Client::new(executor, connection, Config::builder().build()?).await?;
        let guard = client.lock("orders").lock().await?;
        println!("on an executor of our own: token {}", guard.token());
        guard.release().await?;
        client.close().await;
        Ok(())
    })
}
