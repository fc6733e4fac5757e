//! Runs bowline on async-std, which is discontinued ([RUSTSEC-2025-0052]).
//!
//! Its maintainers recommend [`smol`](crate::smol), which works in the same way; [`tokio`](crate::tokio) is the other
//! choice. This module is for programs that still run on async-std. It is tested as the others are.
//!
//! [RUSTSEC-2025-0052]: https://rustsec.org/advisories/RUSTSEC-2025-0052.html
//!
//! ```no_run
//! fn main() -> bowline::Result<()> {
//!     async_std::task::block_on(async {
//!         let client = bowline::async_std::connect("redis://127.0.0.1/").await?;
//!         let guard = client.lock("orders:42").lock().await?;
//!         println!("writing with token {}", guard.token());
//!         guard.release().await
//!     })
//! }
//! ```
//!
//! Without a Redis server (feature `embedded`), replace the line with `connect`:
//!
//! ```
//! # fn main() -> bowline::Result<()> { async_std::task::block_on(async {
//! let client = bowline::embedded::Server::new().client(bowline::async_std::AsyncStd).await?;
//! # client.lock("a").lock().await?.release().await })}
//! ```

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::async_std::net::ToSocketAddrs;
use futures::future::BoxFuture;

use super::{Executor, async_io, clock, must_not_block};
use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::Connection;
use crate::error::Result;
use crate::redis::dial::{Dial, DialError, Dialled};
use crate::redis::{ConnectOptions, RedisConnection};

/// The global executor of async-std. It starts when it is first used and never shuts down.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncStd;

#[expect(clippy::disallowed_methods, reason = "this is the adapter")]
impl Executor for AsyncStd {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(::async_std::task::spawn(task));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // async-std counts from the first poll, but `Executor::sleep` counts from the call.
        let called = Instant::now();
        Box::pin(async move { ::async_std::task::sleep(duration.saturating_sub(called.elapsed())).await })
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        // The future may wait for tasks that only this thread drives.
        if ::async_std::task::try_current().is_some() {
            return Err(must_not_block("async_std::task::spawn_blocking"));
        }
        ::async_std::task::block_on(future);
        Ok(())
    }
}

connect_functions!("async-std's global executor", AsyncStd, "");

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = (host, port).to_socket_addrs().await.map_err(DialError::Name)?;
            async_io::tcp(addresses).await
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async_io::unix(path))
    }
}
