//! Logs a living connection in again before its login ends.

use std::sync::Arc;
use std::time::Instant;

use ::redis::aio::MultiplexedConnection;
use futures::future::pending;

use super::super::convert;
use super::super::failure::Failure;
use super::super::login::{self, Login};
use super::super::url::target::Target;
use crate::backoff::Backoff;
use crate::error::ErrorKind;
use crate::jitter::Jitter;
use crate::runtime::{self, Executor};
use crate::tuning::{RENEWAL, SHORTEST_LOGIN};

/// What is logged in, and since when.
pub(super) struct Renewal {
    pub(super) target: Arc<Target>,
    pub(super) executor: Arc<dyn Executor>,
    pub(super) connection: MultiplexedConnection,
    pub(super) login: Login,
    /// The time at which the provider was asked.
    pub(super) asked: Instant,
    pub(super) seed: u64,
}

impl Renewal {
    /// Never ends. A failed renewal is repeated for as long as the server keeps the connection.
    pub(super) async fn run(mut self) {
        let mut jitter = Jitter::new(self.seed);
        loop {
            let Some(time) = self.login.time() else { return pending().await };
            let after = (time / 4 * 3).saturating_sub(jitter.up_to(time / 10)).max(SHORTEST_LOGIN);
            let Some(due) = self.asked.checked_add(after) else { return pending().await };
            self.executor.sleep(due.saturating_duration_since(self.executor.now())).await;
            // An attempt without an answer leaves time for another one.
            let limit = (time / 8).clamp(SHORTEST_LOGIN, RENEWAL.longest);
            let (executor, mut backoff) = (Arc::clone(&self.executor), Backoff::new(RENEWAL, self.seed));
            while runtime::timeout(&executor, limit, self.renew()).await != Some(true) {
                executor.sleep(backoff.pause()).await;
            }
        }
    }

    /// Returns whether the connection has a new login. Asks once more after a refusal.
    async fn renew(&mut self) -> bool {
        let refused = match self.log_in(None).await {
            Ok(None) => return true,
            Ok(Some(refused)) => refused,
            Err(_) => return false,
        };
        matches!(self.log_in(Some(&refused)).await, Ok(None))
    }

    /// Returns the login that the server has refused, if it has.
    async fn log_in(&mut self, refused: Option<&Login>) -> Result<Option<Login>, Failure> {
        let (source, asked) = (self.target.login(), self.executor.now());
        let Some(login) = source.next(refused).await? else { return Ok(None) };
        let mut auth = ::redis::cmd("AUTH");
        auth.arg(&login::words(&login));
        let answer = self.connection.send_packed_command(&auth).await;
        match convert::reply(answer.map_err(|error| Failure::Io(error.to_string()))?) {
            Ok(_) => {
                source.accepted(&login);
                (self.login, self.asked) = (login, asked);
                Ok(None)
            }
            Err(refusal) if refusal.kind() == ErrorKind::Denied => Ok(Some(login)),
            Err(refusal) => Err(Failure::Refused(refusal)),
        }
    }
}

#[cfg(test)]
mod tests;
