//! The state that the connections to the sentinels share with the connections to the master.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use event_listener::Event;

use super::super::dial::Dial;
use super::board::Board;
use super::url::SentinelConfig;
use crate::config::Config;
use crate::mutex::lock;
use crate::runtime::{self, Executor};
use crate::until::until;

/// The master that the sentinels name. It is up to date only while [`watch`](super::watch::watch) is polled.
pub(in super::super) struct Sentinels {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) dialer: Arc<dyn Dial>,
    pub(super) setup: SentinelConfig,
    /// The master and the sentinels as the user has named them.
    pub(super) shown: String,
    /// The time limit for a login at a sentinel, and for one answer.
    pub(super) limit: Duration,
    pub(super) seed: u64,
    board: Mutex<Board>,
    pub(super) changed: Event,
}

impl Sentinels {
    pub(in super::super) fn new(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        mut setup: SentinelConfig,
        config: &Config,
        seed: u64,
    ) -> Self {
        let shown = setup.to_string();
        let board = Mutex::new(Board::new(std::mem::take(&mut setup.sentinels)));
        // Shorter than an attempt to connect, so that the attempt can still report why the sentinels gave no master.
        let limit = config.upkeep() * 3 / 4;
        Self { executor, dialer, setup, shown, limit, seed, board, changed: Event::new() }
    }

    pub(super) async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        runtime::timeout(&self.executor, self.limit, future).await
    }

    pub(super) fn look<T>(&self, at: impl FnOnce(&Board) -> T) -> T {
        at(&lock(&self.board))
    }

    pub(super) fn post<T>(&self, what: impl FnOnce(&mut Board) -> T) -> T {
        let posted = what(&mut lock(&self.board));
        self.changed.notify(usize::MAX);
        posted
    }

    pub(super) async fn until<T>(&self, found: impl Fn(&Board) -> Option<T>) -> T {
        until(&self.changed, move || self.look(&found)).await
    }
}
