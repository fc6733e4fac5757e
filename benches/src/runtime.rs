//! The four runtimes, each with its executor and its sockets.

use std::future::Future;
use std::sync::Arc;

use bowline::{Client, Config, Connection, Executor, RedisConnection};
use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::compat::FuturesAsyncReadCompatExt;

use crate::Result;

/// Where a bench runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// tokio on one thread.
    TokioCurrent,
    /// tokio on as many threads as there are processors.
    TokioMulti,
    /// smol's global executor.
    Smol,
    /// async-std's global executor.
    AsyncStd,
}

/// The bytes to and from a server.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::TokioCurrent, Self::TokioMulti, Self::Smol, Self::AsyncStd];

    /// What it is called in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokioCurrent => "tokio-current",
            Self::TokioMulti => "tokio-multi",
            Self::Smol => "smol",
            Self::AsyncStd => "async-std",
        }
    }

    /// Runs `body` as a task like any other: on a thread of the runtime, where the library's own tasks are.
    pub fn run<T, F>(self, body: impl FnOnce(Arc<dyn Executor>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        match self {
            Self::TokioCurrent | Self::TokioMulti => {
                let mut builder = match self {
                    Self::TokioMulti => tokio::runtime::Builder::new_multi_thread(),
                    _ => tokio::runtime::Builder::new_current_thread(),
                };
                let runtime = builder.enable_all().build()?;
                let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
                runtime.block_on(runtime.spawn(body(executor)))?
            }
            Self::Smol => smol::block_on(smol::spawn(body(Arc::new(bowline::smol::Smol)))),
            Self::AsyncStd => {
                async_std::task::block_on(async_std::task::spawn(body(Arc::new(bowline::async_std::AsyncStd))))
            }
        }
    }

    /// bowline's connection.
    pub async fn open(self, executor: Arc<dyn Executor>, url: &str, config: &Config) -> Result<RedisConnection> {
        Ok(match self {
            Self::TokioCurrent | Self::TokioMulti => bowline::tokio::open(executor, url, config).await?,
            Self::Smol => bowline::smol::open(executor, url, config).await?,
            Self::AsyncStd => bowline::async_std::open(executor, url, config).await?,
        })
    }

    /// A client, as the function `connect_with` of the runtime makes it.
    pub async fn connect(self, executor: Arc<dyn Executor>, url: &str, config: Config) -> Result<Client> {
        let wrap = |connection| -> Arc<dyn Connection> { Arc::new(connection) };
        Ok(match self {
            Self::TokioCurrent | Self::TokioMulti => bowline::tokio::connect_over(executor, url, config, wrap).await?,
            Self::Smol => bowline::smol::connect_over(executor, url, config, wrap).await?,
            Self::AsyncStd => bowline::async_std::connect_over(executor, url, config, wrap).await?,
        })
    }

    /// A bare socket to the server, with the options that bowline gives its own, and how to log in there.
    pub async fn dial(self, url: &str) -> Result<(Box<dyn Duplex>, RedisConnectionInfo)> {
        let info = url.into_connection_info()?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(format!("{url}: the floor is measured over TCP without TLS only").into());
        };
        let address = (host.as_str(), *port);
        let stream: Box<dyn Duplex> = match self {
            Self::TokioCurrent | Self::TokioMulti => {
                let stream = tokio::net::TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Smol => {
                let stream = smol::net::TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream.compat())
            }
            Self::AsyncStd => {
                let stream = async_std::net::TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream.compat())
            }
        };
        Ok((stream, info.redis_settings().clone()))
    }
}
