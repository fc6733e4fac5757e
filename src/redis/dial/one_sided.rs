//! TLS on one side only, found out at the first login.
//!
//! The first bytes seldom tell. A plain server waits for the end of a line, which the TLS greeting does not have. A TLS
//! server hangs up at a plain command, but so does a server that is about to stop. So the server is asked once more
//! over another socket: without TLS if the URL asks for TLS, and with TLS if it does not. Only an answer to this
//! question counts, never a silence. The question contains no login.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use futures::future::{Either, select};

use super::super::failure::Failure;
use super::super::url::address::Address;
use super::super::url::target::Target;
use super::Dial;
use super::progress::DialProgress;
use crate::runtime::{self, Executor};

/// The longest silence after a TLS greeting before the server is asked for its plain answer.
const SILENCE: Duration = Duration::from_millis(200);

/// The longest wait for an answer after the server has hung up.
const PATIENCE: Duration = Duration::from_secs(1);

/// A plain server answers in RESP, even if it refuses the command.
const PLAIN: &[u8] = b"PING\r\n";

/// A greeting of TLS 1.2 without extensions, with two common cipher suites. The answer is a greeting or an alert.
const GREETING: &[u8] =
    b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03bowline asks whether this is TLS\x00\x00\x04\xc0\x2f\x00\x9c\x01\x00";

/// The first login to a server, and its time limit.
pub(in crate::redis) struct FirstLogin<'a> {
    pub(in crate::redis) target: &'a Arc<Target>,
    pub(in crate::redis) dialer: &'a dyn Dial,
    pub(in crate::redis) executor: &'a Arc<dyn Executor>,
    pub(in crate::redis) limit: Duration,
}

impl FirstLogin<'_> {
    /// Ends the first login early if only one side uses TLS.
    pub(in crate::redis) async fn watch<T>(
        &self,
        progress: &DialProgress,
        login: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let watch = pin!(self.mute(progress));
        match select(pin!(login), watch).await {
            Either::Left((Err(hung_up @ Failure::Io(_)), _)) if progress.is_unanswered() => {
                let asked = runtime::timeout(self.executor, PATIENCE, self.answers_otherwise()).await;
                Err(if asked == Some(true) { self.one_sided(progress) } else { hung_up })
            }
            Either::Left((login, _)) => login,
            Either::Right((one_sided, _)) => Err(one_sided),
        }
    }

    /// Resolves when a server that is silent after the TLS greeting has answered without TLS.
    async fn mute(&self, progress: &DialProgress) -> Failure {
        while self.target.is_tls() {
            self.executor.sleep(SILENCE.min(self.limit / 3)).await;
            if progress.has_greeted() {
                if self.answers_otherwise().await {
                    return self.one_sided(progress);
                }
                break;
            }
        }
        std::future::pending().await
    }

    fn one_sided(&self, progress: &DialProgress) -> Failure {
        let spelling = progress.spelling();
        Failure::Unsupported(if self.target.is_tls() { spelling.without_tls() } else { spelling.with_tls() })
    }

    /// Whether the server uses TLS although the URL does not, or the other way round.
    async fn answers_otherwise(&self) -> bool {
        let Address::Tcp(host, port) = &self.target.address else { return false };
        let Ok(mut stream) = self.dialer.tcp(host, *port).await else { return false };
        let is_tls = self.target.is_tls();
        let (question, mut answer) = (if is_tls { PLAIN } else { GREETING }, [0; 2]);
        if stream.write_all(question).await.is_err() || stream.flush().await.is_err() {
            return false;
        }
        if stream.read_exact(&mut answer).await.is_err() {
            return false;
        }
        match answer {
            [b'+' | b'-', _] => is_tls,
            // An alert or a greeting, followed by the version of the protocol.
            [0x15 | 0x16, 3] => !is_tls,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
