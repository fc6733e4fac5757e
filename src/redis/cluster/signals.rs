//! What links and calls tell each other: the map may be old, messages may have been missed, something has changed.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use event_listener::{Event, EventListener};
use futures::future::select;

use super::refresh::Refresh;
use crate::jitter::Jitter;
use crate::mutex::lock;
use crate::runtime::Executor;

pub(super) struct Signals {
    executor: Arc<dyn Executor>,
    refresh: Mutex<Refresh>,
    /// Announces the first sign that the map is old.
    asked: Event,
    /// Counts the events after which messages may have been missed.
    gaps: AtomicU64,
    changed: Event,
}

impl Signals {
    pub(super) fn new(executor: Arc<dyn Executor>, seed: u64) -> Self {
        let refresh = Mutex::new(Refresh::new(executor.now(), Jitter::new(seed)));
        Self { executor, refresh, asked: Event::new(), gaps: AtomicU64::new(0), changed: Event::new() }
    }

    /// There is a sign that the map is old.
    pub(super) fn suspect_map(&self) {
        if lock(&self.refresh).ask(self.executor.now()) {
            self.asked.notify(usize::MAX);
        }
    }

    /// A link to a master was made anew, or the master was replaced.
    pub(super) fn gap(&self) {
        self.gaps.fetch_add(1, Ordering::SeqCst);
        self.change();
    }

    pub(super) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::SeqCst)
    }

    /// Wakes all who wait for a change.
    pub(super) fn change(&self) {
        self.changed.notify(usize::MAX);
    }

    pub(super) fn listen(&self) -> EventListener {
        self.changed.listen()
    }

    /// Waits until the map is to be read, or until `early` at the latest if there is one. Returns whether it is time to read.
    pub(super) async fn due(&self, early: Option<Instant>) -> bool {
        let asked = self.asked.listen();
        let (due, now) = (lock(&self.refresh).due(), self.executor.now());
        if now >= due {
            return true;
        }
        let until = early.map_or(due, |early| early.min(due));
        select(self.executor.sleep(until.saturating_duration_since(now)), pin!(asked)).await;
        false
    }

    /// A reading of the map begins.
    pub(super) fn begin(&self) {
        lock(&self.refresh).begin();
    }

    /// A reading has ended. `news`: it changed the map.
    pub(super) fn done(&self, news: bool) {
        lock(&self.refresh).done(self.executor.now(), news);
    }
}
