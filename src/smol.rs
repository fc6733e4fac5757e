//! bowline on smol.
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
//! Without a Redis (feature `embedded`), in place of the line with `connect`:
//!
//! ```
//! # fn main() -> bowline::Result<()> { smol::block_on(async {
//! let client = bowline::embedded::Server::new().client(bowline::smol::Smol).await?;
//! # client.lock("a").lock().await?.release().await })}
//! ```

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::compat::FuturesAsyncReadCompatExt;

use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::redis::RedisConnection;
use crate::connection::redis::dial::{Dial, DialError, Dialled, Stream, tune};
use crate::error::Result;
use crate::executor::Executor;
pub use crate::executor::smol::Smol;

connect_functions!("smol's global executor", Smol, "");

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = ::smol::net::resolve((host, port)).await.map_err(DialError::Name)?;
            let stream = ::smol::net::TcpStream::connect(&addresses[..]).await?;
            tune(&stream)?;
            Ok(Box::new(stream.compat()) as Stream)
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async move { Ok(Box::new(::smol::net::unix::UnixStream::connect(path).await?.compat()) as Stream) })
    }
}
