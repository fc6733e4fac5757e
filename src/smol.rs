//! bowline on smol.

use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::compat::FuturesAsyncReadCompatExt;

use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::redis::RedisConnection;
use crate::connection::redis::dial::{Dial, Stream, tune};
use crate::error::Result;
use crate::executor::Executor;
pub use crate::executor::smol::Smol;

connect_functions!("smol's global executor", Smol, "");

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(async move {
            let stream = ::smol::net::TcpStream::connect((host, port)).await?;
            tune(&stream)?;
            Ok(Box::new(stream.compat()) as Stream)
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(async move { Ok(Box::new(::smol::net::unix::UnixStream::connect(path).await?.compat()) as Stream) })
    }
}
