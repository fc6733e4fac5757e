//! What calls and tasks wait for: a change of the map, or the end of a time limit.

use std::future::Future;
use std::time::Duration;

use super::super::super::link::limit::Limit;
use super::super::map::SlotMap;
use super::{Router, RouterState};
use crate::connection::Call;
use crate::mutex::lock;
use crate::runtime;
use crate::until::until;

impl Router {
    /// Resolves when the map has another version, or the connection is closed.
    pub(in super::super) async fn other_than(&self, version: u64) {
        self.until(|state| state.version != version).await;
    }

    /// Resolves when there have been more than `gaps` gaps, or a node is no longer the right one.
    pub(in super::super) async fn disturbed(&self, gaps: u64, is_right: impl Fn(&SlotMap) -> bool) {
        self.until(|state| self.signals.gaps() != gaps || !is_right(&state.map)).await;
    }

    pub(in super::super) async fn closed(&self) {
        self.until(|_| false).await;
    }

    async fn until(&self, holds: impl Fn(&RouterState) -> bool) {
        let holds = move |state: &RouterState| state.closed || holds(state);
        until(&self.signals.changed, move || holds(&lock(&self.state)).then_some(())).await;
    }

    /// The time limit of calls that begin now.
    pub(in super::super) fn limit(&self, calls: &[Call<'_>]) -> Limit {
        Limit::of(calls, self.executor.now(), self.patient(), self.config.command_timeout)
    }

    /// Whether a wait within `limit` has ended because of a shutdown: a sleep ends early only when the runtime is shut
    /// down.
    pub(in super::super) fn is_shut_down(&self, limit: Limit) -> bool {
        self.is_closed() || !limit.left(self.executor.now()).is_zero()
    }

    /// Runs `future`. `None` after `timeout`.
    pub(in super::super) async fn within<F: Future>(&self, timeout: Duration, future: F) -> Option<F::Output> {
        runtime::timeout(&self.executor, timeout, future).await
    }
}
