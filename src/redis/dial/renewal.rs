//! Logs a living connection in again before its login ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use futures::future::pending;

use super::super::convert;
use super::super::failure::Failure;
use super::super::login::{self, Login};
use super::super::url::target::Target;
use crate::backoff::Backoff;
use crate::error::ErrorKind;
use crate::jitter::Jitter;
use crate::runtime::Executor;
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
            let mut early = |time: Duration| (time / 4 * 3).saturating_sub(jitter.up_to(time / 10)).max(SHORTEST_LOGIN);
            let due = self.login.time().and_then(|time| self.asked.checked_add(early(time)));
            let Some(due) = due else { return pending().await };
            self.executor.sleep(due.saturating_duration_since(self.executor.now())).await;
            let mut backoff = Backoff::new(RENEWAL, self.seed);
            while self.renew().await.is_err() {
                self.executor.sleep(backoff.pause()).await;
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Failure> {
        match self.log_in(None).await {
            Err(Failure::Refused(refusal)) if refusal.kind() == ErrorKind::Denied => {
                let refused = self.target.login().last();
                self.log_in(refused.as_ref()).await
            }
            done => done,
        }
    }

    async fn log_in(&mut self, refused: Option<&Login>) -> Result<(), Failure> {
        let asked = self.executor.now();
        let Some(login) = self.target.login().next(refused).await? else { return Ok(()) };
        let mut auth = ::redis::cmd("AUTH");
        auth.arg(&login::words(&login));
        let answer = self.connection.send_packed_command(&auth).await;
        convert::reply(answer.map_err(|error| Failure::Io(error.to_string()))?).map_err(Failure::Refused)?;
        (self.login, self.asked) = (login, asked);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
