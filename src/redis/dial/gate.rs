//! Sockets that take no more bytes once their connection is closed.
//!
//! A runtime that shuts down may still poll the task of a connection on one thread while another thread sends the
//! good-bye, which releases the holds and cancels the tickets. A request that is written then would be executed after
//! the good-bye, and leave a hold or a ticket.

use std::io;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use futures::future::BoxFuture;

use super::{Dial, Dialled, Stream};
use crate::mutex::lock;

/// Locked while bytes are handed to the system, so that none are handed over after [`shut`](Self::shut) has returned.
#[derive(Clone, Debug, Default)]
pub(in crate::redis) struct Gate {
    is_shut: Arc<Mutex<bool>>,
}

impl Gate {
    pub(in crate::redis) fn shut(&self) {
        *lock(&self.is_shut) = true;
    }

    /// Opens the sockets of `dialer`, which take bytes until the gate is shut.
    pub(in crate::redis) fn guard(&self, dialer: Arc<dyn Dial>) -> Arc<dyn Dial> {
        Arc::new(Gated { dialer, gate: self.clone() })
    }

    fn wrap(&self, dialled: Dialled) -> Dialled {
        let gate = self.clone();
        dialled.map(|stream| Box::new(GatedStream { stream, gate }) as Stream)
    }
}

#[derive(Debug)]
struct Gated {
    dialer: Arc<dyn Dial>,
    gate: Gate,
}

impl Dial for Gated {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move { self.gate.wrap(self.dialer.tcp(host, port).await) })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async move { self.gate.wrap(self.dialer.unix(path).await) })
    }
}

struct GatedStream {
    stream: Stream,
    gate: Gate,
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, gate } = &mut *self;
        let is_shut = lock(&gate.is_shut);
        if *is_shut {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        Pin::new(stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::task::Waker;

    use ::tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use futures::FutureExt;

    use super::*;
    use crate::config::Config;
    use crate::redis::link::Link;
    use crate::redis::url::target::Target;
    use crate::runtime::still::Still;

    struct One(Mutex<Option<Stream>>);

    impl fmt::Debug for One {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("One")
        }
    }

    impl Dial for One {
        fn tcp<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Dialled> {
            let stream = lock(&self.0).take().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into());
            Box::pin(async { stream })
        }

        #[cfg(unix)]
        fn unix<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Dialled> {
            self.tcp("", 0)
        }
    }

    async fn dialled(dialer: &dyn Dial) -> Stream {
        dialer.tcp("a", 1).await.unwrap()
    }

    fn is_shut(stream: &mut Stream) -> bool {
        match Pin::new(stream).poll_write(&mut Context::from_waker(Waker::noop()), b"after") {
            Poll::Ready(Err(error)) => error.kind() == io::ErrorKind::NotConnected,
            written => panic!("{written:?}"),
        }
    }

    #[test]
    fn nothing_is_written_after_the_gate_is_shut() {
        let (near, mut far) = duplex(64);
        let gate = Gate::default();
        let dialer = gate.guard(Arc::new(One(Mutex::new(Some(Box::new(near))))));
        let mut stream = dialled(&*dialer).now_or_never().unwrap();
        stream.write_all(b"before").now_or_never().unwrap().unwrap();
        gate.shut();
        assert!(is_shut(&mut stream));
        let mut read = [0; 16];
        assert_eq!(far.read(&mut read).now_or_never().unwrap().unwrap(), 6);
        assert!(far.read(&mut read).now_or_never().is_none());
    }

    /// Also over a link of its own for calls that wait for replicas.
    #[test]
    fn a_link_that_is_closed_sends_nothing_more() {
        let (near, _far) = duplex(64);
        let dialer = Arc::new(One(Mutex::new(Some(Box::new(near)))));
        let target = Arc::new(Target::parse("redis://a:1").unwrap());
        let link = Link::new(Arc::new(Still::new()), dialer, Arc::new(target), &Config::default(), 7);
        let mut stream = dialled(&*link.sibling().dialer).now_or_never().unwrap();
        link.close();
        assert!(is_shut(&mut stream));
    }
}
