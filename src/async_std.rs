//! bowline on async-std.
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
//! Without a Redis (feature `embedded`), in place of the line with `connect`:
//!
//! ```
//! # fn main() -> bowline::Result<()> { async_std::task::block_on(async {
//! let client = bowline::embedded::Server::new().client(bowline::async_std::AsyncStd).await?;
//! # client.lock("a").lock().await?.release().await })}
//! ```

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use ::async_std::net::ToSocketAddrs;
use futures::future::BoxFuture;
use tokio_util::compat::FuturesAsyncReadCompatExt;

use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::redis::RedisConnection;
use crate::connection::redis::dial::{Dial, DialError, Dialled, Stream, tune};
use crate::error::Result;
use crate::executor::Executor;
pub use crate::executor::async_std::AsyncStd;

connect_functions!("async-std's global executor", AsyncStd, "");

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = (host, port).to_socket_addrs().await.map_err(DialError::Name)?;
            let addresses: Vec<_> = addresses.collect();
            let stream = ::async_std::net::TcpStream::connect(&addresses[..]).await?;
            tune(&stream)?;
            Ok(Box::new(stream.compat()) as Stream)
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            Ok(Box::new(::async_std::os::unix::net::UnixStream::connect(path).await?.compat()) as Stream)
        })
    }
}
