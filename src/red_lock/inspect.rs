//! The state of a name on all masters, and who holds it there.

use std::sync::OnceLock;

use futures::future::try_join;

use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{HolderState, Labels, clients_of};
use crate::lock::LockState;
use crate::protocol::dispatch::Failure;
use crate::protocol::kind::Kind;
use crate::protocol::mutex::reply::Inspected;
use crate::red_lock::masters::Masters;
use crate::red_lock::state::{MasterState, RedLockState};
use crate::red_lock::together::together;

impl Masters {
    pub(super) async fn inspect(&self, operation: &'static str, name: &str) -> Result<RedLockState> {
        let keys = |kind| self.keys(kind, name).map_err(|error| error.during(operation));
        let (turns, votes) = (keys(Kind::Turn)?, keys(Kind::Vote)?);
        let answers: Vec<OnceLock<_>> = turns.iter().map(|_| OnceLock::new()).collect();
        let names = turns.iter().zip(&votes).zip(&answers);
        let read = self.all.iter().zip(names).map(async |(master, ((turn, vote), answer))| {
            if let Some((kind, reason)) = master.unusable() {
                let _ = answer.set(Err(Error::because(kind, operation, reason)));
                return Labels::default();
            }
            let scripts = master.context().scripts();
            let failed = |failure: Failure| failure.into_error(operation);
            // Sent together: the two are of nearly the same moment, and take one round trip.
            let both = try_join(scripts.inspect_lock(turn, 0), scripts.inspect_lock(vote, 0)).await.map_err(failed);
            // A master that is slow to answer what follows has voted all the same.
            let Ok((turn, vote)) = answer.get_or_init(|| both) else { return Labels::default() };
            let ids = [turn, vote].into_iter().filter_map(Inspected::holder_id);
            Labels::read(master.context(), clients_of(ids, &[])).await
        });
        let limit = self.settings.node_timeout.min(self.patience());
        let labels = together(self.executor(), limit, read).await;
        let now = self.now();
        let mut state = RedLockState { masters: Vec::new() };
        for (n, (answer, labels)) in answers.into_iter().zip(labels).enumerate() {
            let counts = self.counts_from(n).is_none_or(|from| from <= now);
            let silent = || Error::new(ErrorKind::Unavailable, operation);
            let answer = answer.into_inner().unwrap_or_else(|| Err(silent()));
            let answer = answer.and_then(|answer| self.check_alone(n, operation).map(|()| answer));
            let answer = answer.map_err(|error| error.with_name(name));
            state.masters.push(match answer {
                Ok((turn, vote)) => {
                    let labels = labels.unwrap_or_default();
                    let LockState { holder: turn, waiters, .. } = LockState::of(turn, &labels, None);
                    let vote = LockState::of(vote, &labels, None).holder;
                    MasterState { vote, turn, waiters, counts, error: None }
                }
                Err(error) => MasterState { vote: None, turn: None, waiters: 0, counts, error: Some(error) },
            });
        }
        Ok(state)
    }

    /// Who holds the lock by a majority. `None`: nobody can, whatever those masters say that were not heard.
    pub(super) async fn holder(&self, operation: &'static str, name: &str) -> Result<Option<HolderState>> {
        let mut state = self.inspect(operation, name).await?;
        if state.holder().is_none() && state.is_free() && state.has_votes() {
            // The masters were not read at one moment: a vote may have ended at one before another one was read, where
            // it is asked for again. The second look finds it there.
            state = self.inspect(operation, name).await?;
        }
        if let Some(holder) = state.holder() {
            return Ok(Some(holder));
        }
        if state.is_free() {
            return Ok(None);
        }
        let mut errors = state.masters.into_iter().filter_map(|master| master.error);
        Err(errors.next().unwrap_or_else(|| {
            Error::because(ErrorKind::Unavailable, operation, "too few masters have votes that count").with_name(name)
        }))
    }
}
