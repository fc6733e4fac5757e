//! Sentinels: processes that watch a master and its replicas, and know which server is the master at present.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, select};

use self::board::{Board, Named};
use super::convert;
use super::dial::deadline::Deadline;
use super::dial::locate::Locate;
use super::failure::Failure;
use super::url::target::Target;

mod blocking;
mod board;
mod builder;
mod query;
mod sentinels;
mod standing;
mod url;
mod watch;

pub use self::builder::SentinelUrl;
pub(super) use self::sentinels::Sentinels;
pub(super) use self::url::SentinelConfig;
pub(super) use self::watch::watch;

/// After one sentinel has named a master, the others have this time to name another one. A frozen sentinel must not
/// delay every dial.
const OTHERS_HAVE: Duration = Duration::from_millis(100);

impl Sentinels {
    /// Starts a new round of questions, and returns the master that follows from the answers.
    async fn ask(&self) -> Result<Named, Failure> {
        let round = self.post(Board::ask);
        let all = pin!(self.until(|board| board.is_complete(round).then_some(())));
        let some = pin!(async {
            self.until(|board| board.has_begun(round).then_some(())).await;
            self.executor.sleep(OTHERS_HAVE).await;
        });
        select(all, some).await;
        self.look(|board| board.master(&self.setup.master))
    }

    fn server(&self, named: Named) -> Result<Arc<Target>, Failure> {
        let target = self.setup.servers.at(named.address).map_err(|error| Failure::Invalid(error.to_string()))?;
        Ok(Arc::new(target))
    }
}

impl Locate for Sentinels {
    fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>> {
        async { self.server(self.ask().await?) }.boxed()
    }

    fn left<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        self.until(|board| board.is_elsewhere(&target.address).then_some(())).boxed()
    }

    fn moved(&self) -> BoxFuture<'_, ()> {
        let before = self.look(|board| board.named().cloned());
        let moved = move |board: &Board| board.named().is_some_and(|now| before.as_ref() != Some(now)).then_some(());
        self.until(moved).boxed()
    }

    fn locate_blocking(&self, deadline: Deadline) -> Option<Arc<Target>> {
        self.server(blocking::ask(self, deadline)?).ok()
    }

    fn explain(&self, target: &Target, failure: Failure) -> Failure {
        let named = format!("{}, which the sentinels name as the master,", target.address);
        match failure {
            Failure::Io(reason) => Failure::Io(format!("{named} cannot be used: {reason}")),
            Failure::Refused(refusal) if convert::is_of_a_replica(&refusal) => {
                Failure::Explained(refusal, format!("{named} is a replica; a failover may be under way"))
            }
            other => other,
        }
    }

    fn moves(&self) -> bool {
        true
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests;
