//! How far one attempt to connect has come. The meaning of its failure depends on this.
//!
//! | what is seen | what it means |
//! |---|---|
//! | the first bytes are a TLS alert | a plain connection to a TLS port |
//! | the server hangs up before its first bytes | possibly the same: [`one_sided`](super::one_sided) asks once more |
//! | the first bytes are no RESP | a server of another protocol, such as HTTP |
//! | rustls cannot read the answer to its greeting | a TLS connection to a plain port |
//! | the time is over | depends on the [stage](Stage): address, TLS or login |

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::failure::Failure;
use super::super::url::Spelling;
#[cfg(feature = "tls")]
use super::super::url::tls;
use super::{DialError, Stream};
use crate::mutex::lock;

/// The current stage of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::redis) enum Stage {
    /// Asking for the address of the server.
    Locate,
    /// Asking the provider of credentials.
    Credentials,
    #[default]
    Dial,
    #[cfg(feature = "tls")]
    Tls,
    Login,
}

/// The progress that an attempt shares with the stream that it opens.
#[derive(Debug, Default)]
pub(in crate::redis) struct DialProgress(Mutex<DialState>);

#[derive(Debug, Default)]
struct DialState {
    stage: Stage,
    spelling: Spelling,
    tls: bool,
    /// The first bytes from the server, after decryption if TLS is used.
    first: Vec<u8>,
    /// Why the stream ended, if this says more than the error of redis-rs.
    failure: Option<Failure>,
}

/// The number of first bytes that tell one protocol from another.
const FIRST: usize = 8;

impl DialProgress {
    pub(in crate::redis) fn enter(&self, stage: Stage) {
        let mut state = lock(&self.0);
        state.stage = stage;
        #[cfg(feature = "tls")]
        {
            state.tls |= stage == Stage::Tls;
        }
    }

    /// Whether the address is known, so that a failure is one of the server.
    pub(in crate::redis) fn has_located(&self) -> bool {
        lock(&self.0).stage != Stage::Locate
    }

    /// Sets how the user asks for the server that is being dialled.
    pub(in crate::redis) fn spell(&self, spelling: Spelling) {
        lock(&self.0).spelling = spelling;
    }

    pub(in crate::redis) fn spelling(&self) -> Spelling {
        lock(&self.0).spelling
    }

    /// Whether the TLS handshake has begun and is not complete.
    pub(in crate::redis) fn has_greeted(&self) -> bool {
        #[cfg(feature = "tls")]
        return lock(&self.0).stage == Stage::Tls;
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Whether the server was reached, but has sent nothing that can be read.
    pub(in crate::redis) fn is_unanswered(&self) -> bool {
        let state = lock(&self.0);
        let is_silent = state.stage == Stage::Login && state.first.is_empty() && !state.tls;
        drop(state);
        is_silent || self.has_greeted()
    }

    /// The failure of an attempt that took longer than `limit`.
    pub(in crate::redis) fn late(&self, limit: Duration) -> Failure {
        let state = lock(&self.0);
        let Spelling { plain, tls } = state.spelling;
        #[cfg(not(feature = "tls"))]
        let _ = plain;
        Failure::Io(match state.stage {
            Stage::Locate => format!("the address of the server was not learned within {limit:?}"),
            Stage::Credentials => format!("the provider of credentials gave no login within {limit:?}"),
            Stage::Dial => format!("unreachable: no connection within {limit:?}"),
            #[cfg(feature = "tls")]
            Stage::Tls => {
                format!("no answer to the TLS greeting within {limit:?}; for a port without TLS use {plain}")
            }
            Stage::Login if state.first.is_empty() && !state.tls => {
                format!("connected, but no answer within {limit:?}; for a port with TLS use {tls}")
            }
            Stage::Login => format!("no answer within {limit:?}"),
        })
    }

    /// Replaces the failure of a login if the stream knows a better reason.
    pub(in crate::redis) fn explain(&self, failure: Failure) -> Failure {
        let Failure::Io(reason) = &failure else { return failure };
        let mut state = lock(&self.0);
        if let Some(better) = state.failure.take() {
            return better;
        }
        if state.first.is_empty() && !state.tls {
            // Redis does this on its TLS port.
            let hint = format!("if the port is for TLS, use {}", state.spelling.tls);
            return Failure::Io(format!("the server hung up before its first answer; {hint} ({reason})"));
        }
        foreign(&state.first, state.spelling).map_or(failure, Failure::Unsupported)
    }

    /// Reads along with the stream until the protocol is known.
    pub(in crate::redis) fn watch(self: &Arc<Self>, stream: Stream) -> Stream {
        self.enter(Stage::Login);
        Box::new(Watched { stream, progress: Some(Arc::clone(self)) })
    }
}

/// The protocol of the first bytes, if it is not that of Redis.
fn foreign(first: &[u8], spelling: Spelling) -> Option<String> {
    match first {
        [] => None,
        // A TLS alert: its type, followed by the version of the protocol.
        [0x15, 3, ..] => Some(spelling.with_tls()),
        [b'H', b'T', b'T', b'P', ..] | [b'<', ..] => Some("this is a web server (HTTP), not Redis".to_owned()),
        [
            b'+' | b'-' | b':' | b'$' | b'*' | b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'|' | b'>',
            ..,
        ] => None,
        _ => Some("the server does not speak the Redis protocol".to_owned()),
    }
}

/// The failure of a dial.
pub(in crate::redis) fn dial_failure(error: DialError) -> Failure {
    Failure::Io(match error {
        DialError::Name(error) => format!("the name is not resolved: {error}"),
        DialError::Socket(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused: nothing listens at this address".to_owned(),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::TimedOut => {
                format!("unreachable: {error}")
            }
            io::ErrorKind::NotFound => "there is no such socket".to_owned(),
            _ => error.to_string(),
        },
    })
}

struct Watched {
    stream: Stream,
    /// `None` after enough bytes were read.
    progress: Option<Arc<DialProgress>>,
}

impl Watched {
    /// A write may notice earlier than the reader that the server has hung up. Until the protocol is known, such a
    /// write counts as done. The reader then finds what the server has said, and the end of the stream behind it.
    fn written<T>(&self, written: Poll<io::Result<T>>, done: T) -> Poll<io::Result<T>> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match written {
            Poll::Ready(Err(error))
                if self.progress.is_some()
                    && matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) =>
            {
                Poll::Ready(Ok(done))
            }
            written => written,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        if let Some(progress) = &self.progress {
            let mut state = lock(&progress.0);
            match &read {
                Ok(()) => {
                    let missing = FIRST - state.first.len();
                    state.first.extend(buffer.filled()[before..].iter().take(missing));
                }
                #[cfg(feature = "tls")]
                Err(error) => state.failure = tls::failure(error, state.spelling),
                #[cfg(not(feature = "tls"))]
                Err(_) => {}
            }
            let enough = state.first.len() == FIRST;
            drop(state);
            if enough {
                self.progress = None;
            }
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(written, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(flushed, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(written, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
