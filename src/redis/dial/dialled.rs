//! A connection over streams that a test carries itself, for simulations. No part of the public API.

use std::fmt;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;

use ::tokio::io::{AsyncRead, AsyncWrite};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::RedisConnection;
use super::{Dial, DialError, Dialled};
use crate::config::Config;
use crate::error::Result;
use crate::runtime::Executor;

/// A stream of bytes to a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens streams.
pub trait Streams: fmt::Debug + Send + Sync + 'static {
    /// Opens a stream to the server at this address.
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;

    /// Decides every pause and choice of the connection that is otherwise random.
    fn seed(&self) -> u64;
}

/// Opens a connection over these streams.
///
/// # Errors
/// Those of [`RedisConnection`].
pub async fn open(
    executor: Arc<dyn Executor>,
    streams: Arc<dyn Streams>,
    url: &str,
    config: &Config,
) -> Result<RedisConnection> {
    RedisConnection::connect(executor, Arc::new(Dialler(streams)), url.into(), config).await
}

#[derive(Debug)]
struct Dialler(Arc<dyn Streams>);

impl Dial for Dialler {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        async move { Ok(Box::new(self.0.open(host, port).await?) as _) }.boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _path: &'a Path) -> BoxFuture<'a, Dialled> {
        async { Err(DialError::Socket(io::ErrorKind::NotFound.into())) }.boxed()
    }

    fn seed(&self) -> u64 {
        self.0.seed()
    }
}
