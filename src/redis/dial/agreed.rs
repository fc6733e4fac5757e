//! A stream on which redis-rs need not ask for RESP3.
//!
//! redis-rs says `HELLO 3` on each new connection, and waits for the answer before it takes a command. The login would
//! then take a round trip of its own. This stream keeps that `HELLO` to itself and gives the answer. The handshake says
//! another one, with the login, in one write with all that follows.
//!
//! A server that accepts no more clients says so before it has read anything. redis-rs drops what it reads before it
//! has sent a request. So this stream reads nothing until the handshake is written. redis-rs then takes what the server
//! has said for the answer to the handshake's `HELLO`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Stream;

/// What redis-rs says first, if it is given no login.
const ASKED: &[u8] = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";

const AGREED: &[u8] = b"%0\r\n";

pub(super) struct Agreed {
    stream: Stream,
    /// What is left of the question, and of the answer.
    asked: &'static [u8],
    agreed: &'static [u8],
    /// Whether anything was written after the question.
    has_written: bool,
    /// Who waits for the answer, or for the first write.
    reader: Option<Waker>,
}

impl Agreed {
    pub(super) fn on(stream: Stream) -> Self {
        Self { stream, asked: ASKED, agreed: AGREED, has_written: false, reader: None }
    }
}

impl AsyncWrite for Agreed {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.asked.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, bytes);
            if !self.has_written && !written.is_pending() {
                self.has_written = true;
                self.reader.take().into_iter().for_each(Waker::wake);
            }
            return written;
        }
        let kept = bytes.len().min(self.asked.len());
        let (now, later) = self.asked.split_at(kept);
        if bytes[..kept] != *now {
            return Poll::Ready(Err(io::Error::other("redis-rs begins with another command than HELLO 3")));
        }
        self.asked = later;
        if later.is_empty() {
            self.reader.take().into_iter().for_each(Waker::wake);
        }
        Poll::Ready(Ok(kept))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for Agreed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.agreed.is_empty() && self.has_written {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if !self.asked.is_empty() || self.agreed.is_empty() {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let (now, later) = self.agreed.split_at(buffer.remaining().min(self.agreed.len()));
        buffer.put_slice(now);
        self.agreed = later;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use futures::FutureExt;

    use super::*;
    use crate::wakers::woken::Woken;

    /// In whatever parts it is written and read.
    #[test]
    fn the_question_is_answered_and_the_rest_passes() {
        let (near, mut far) = duplex(64);
        let mut agreed = Agreed::on(Box::new(near));
        let wakes = Arc::new(Woken::default());
        let waker = wakes.waker();
        let mut one = [0; 1];
        let mut reading = Box::pin(agreed.read(&mut one));
        assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(reading);
        for part in [&ASKED[..5], &ASKED[5..]] {
            assert_eq!(wakes.count(), 0);
            agreed.write_all(part).now_or_never().unwrap().unwrap();
        }
        assert_eq!(wakes.count(), 1);
        for byte in AGREED {
            agreed.read_exact(&mut one).now_or_never().unwrap().unwrap();
            assert_eq!(one, [*byte]);
        }
        // What the server says before the first request is read after that request.
        far.write_all(b"-").now_or_never().unwrap().unwrap();
        let mut reading = Box::pin(agreed.read(&mut one));
        assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(reading);
        agreed.write_all(b"PING").now_or_never().unwrap().unwrap();
        assert_eq!(wakes.count(), 2);
        agreed.read_exact(&mut one).now_or_never().unwrap().unwrap();
        assert_eq!(&one, b"-");
        let mut passed = [0; 4];
        far.read_exact(&mut passed).now_or_never().unwrap().unwrap();
        assert_eq!(&passed, b"PING", "and nothing before it");
        far.write_all(b"PONG").now_or_never().unwrap().unwrap();
        agreed.read_exact(&mut passed).now_or_never().unwrap().unwrap();
        assert_eq!(&passed, b"PONG");
    }

    /// An update of redis-rs may change what it says.
    #[test]
    fn another_question_is_an_error() {
        let (near, _far) = duplex(64);
        let written = Agreed::on(Box::new(near)).write_all(b"*2\r\n$5\r\nHELLO\r\n$1\r\n4\r\n").now_or_never();
        assert!(written.unwrap().is_err());
    }
}
