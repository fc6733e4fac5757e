//! The sockets of async-io, on which smol and async-std are built.
//!
//! After each answer, redis-rs looks for another one. The sockets of smol and async-std then ask the system, and ask it
//! again before the next command is written. These sockets know whether they have read everything that has arrived. If
//! so, they wait for the reactor, as the sockets of tokio do. A command costs one read instead of four.
//!
//! redis-rs offers 64 KiB of room that was never written, for an answer of a few bytes. A socket must clear such room
//! before it reads into it, or read into a buffer of its own and copy. These sockets have a buffer.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::async_io::{Async, Timer};
use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use futures::AsyncWrite as _;
use socket2::SockRef;

use crate::redis::dial::{Dialled, addresses, tune};

#[cfg(unix)]
#[cfg(test)]
mod tests;

/// Connects to the first of these addresses that accepts.
pub(super) async fn tcp(addresses: impl IntoIterator<Item = SocketAddr>) -> Dialled {
    let pause = || Timer::after(addresses::PAUSE);
    Ok(Box::new(Socket::new(addresses::first(addresses, connect, pause).await?)))
}

async fn connect(address: SocketAddr) -> io::Result<Async<TcpStream>> {
    let socket = Async::<TcpStream>::connect(address).await?;
    tune(socket.get_ref())?;
    Ok(socket)
}

/// Connects to a unix socket.
#[cfg(unix)]
pub(super) async fn unix(path: &Path) -> Dialled {
    Ok(Box::new(Socket::new(Async::<UnixStream>::connect(path).await?)))
}

/// The bytes of one read. Some four hundred answers to locks fit.
const CHUNK: usize = 8 << 10;

struct Socket<S> {
    inner: Async<S>,
    chunk: Box<[u8]>,
    /// Everything that had arrived was read. The next read waits until the reactor reports more.
    is_empty: bool,
}

impl<S> Socket<S> {
    fn new(inner: Async<S>) -> Self {
        Self { inner, chunk: vec![0; CHUNK].into(), is_empty: false }
    }
}

impl<S: Unpin> AsyncRead for Socket<S>
where
    for<'a> &'a S: Read,
{
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.is_empty {
                // The reactor also reports what has arrived since the last read, and the end of the stream.
                ready!(self.inner.poll_readable(cx))?;
                self.is_empty = false;
            }
            let Self { inner, chunk, is_empty } = &mut *self;
            let space = buffer.remaining().min(CHUNK);
            match inner.get_ref().read(&mut chunk[..space]) {
                Ok(read) => {
                    *is_empty = read < space;
                    buffer.put_slice(&chunk[..read]);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => *is_empty = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<S: Unpin> AsyncWrite for Socket<S>
where
    for<'a> &'a S: Write,
    for<'a> SockRef<'a>: From<&'a S>,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &self.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(self.inner.get_ref()).shutdown(Shutdown::Write))
    }
}
