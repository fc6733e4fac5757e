//! bowline on tokio: the example is that of [the crate](crate).
//!
//! In a module with `use bowline::*`, `tokio` would be ambiguous: import [`bowline::prelude::*`](crate::prelude) instead.

#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::redis::RedisConnection;
use crate::connection::redis::dial::{Dial, DialError, Dialled, Stream, tune};
use crate::error::Result;
use crate::executor::Executor;
pub use crate::executor::tokio::Tokio;

connect_functions!(
    "the tokio runtime that this is called in, which needs its timer and sockets (`enable_all`)",
    Tokio::current()?,
    ", and [`InvalidInput`](crate::ErrorKind::InvalidInput) outside of a tokio runtime"
);

#[derive(Debug)]
struct Sockets;

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = ::tokio::net::lookup_host((host, port)).await.map_err(DialError::Name)?;
            let addresses: Vec<_> = addresses.collect();
            let stream = ::tokio::net::TcpStream::connect(&addresses[..]).await?;
            tune(&stream)?;
            Ok(Box::new(stream) as Stream)
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async move { Ok(Box::new(::tokio::net::UnixStream::connect(path).await?) as Stream) })
    }
}
