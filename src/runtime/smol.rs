//! Runs bowline on smol.
//!
//! ```no_run
//! fn main() -> bowline::Result<()> {
//!     smol::block_on(async {
//!         let client = bowline::smol::connect("redis://127.0.0.1/").await?;
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
//! # fn main() -> bowline::Result<()> { smol::block_on(async {
//! let client = bowline::embedded::Server::new().client(bowline::smol::Smol).await?;
//! # client.lock("a").lock().await?.release().await })}
//! ```

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::{Executor, async_io, clock, must_not_block};
use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::Connection;
use crate::error::Result;
use crate::redis::dial::{Dial, DialError, Dialled};
use crate::redis::{ConnectOptions, RedisConnection};

/// The global executor of smol. It starts when it is first used and never shuts down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smol;

#[expect(clippy::disallowed_methods, reason = "this is the adapter")]
impl Executor for Smol {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        ::smol::spawn(task).detach();
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        ::smol::Timer::after(duration).map(drop).boxed()
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        // The future may wait for tasks that only this thread drives. smol marks its threads by their names only.
        if std::thread::current().name().is_some_and(|name| name.starts_with("smol-")) {
            return Err(must_not_block("smol::unblock"));
        }
        ::smol::block_on(future);
        Ok(())
    }
}

connect_functions!("smol's global executor", Smol, "");

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = ::smol::net::resolve((host, port)).await.map_err(DialError::Name)?;
            async_io::tcp(addresses).await
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async_io::unix(path))
    }
}
