//! Signals between links and calls: the map may be old, messages may have been missed, the state has changed.

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
    /// Notified at the first sign that the map is old.
    asked: Event,
    /// The number of events after which messages may have been missed.
    gaps: AtomicU64,
    changed: Event,
}

impl Signals {
    pub(super) fn new(executor: Arc<dyn Executor>, seed: u64) -> Self {
        let refresh = Mutex::new(Refresh::new(executor.now(), Jitter::new(seed)));
        Self { executor, refresh, asked: Event::new(), gaps: AtomicU64::new(0), changed: Event::new() }
    }

    /// Records a sign that the map is old.
    pub(super) fn suspect_map(&self) {
        if lock(&self.refresh).ask(self.executor.now()) {
            self.asked.notify(usize::MAX);
        }
    }

    /// Records that a link to a master was made again, or that the master was replaced.
    pub(super) fn gap(&self) {
        self.gaps.fetch_add(1, Ordering::SeqCst);
        self.change();
    }

    pub(super) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::SeqCst)
    }

    /// Wakes all tasks that wait for a change.
    pub(super) fn change(&self) {
        self.changed.notify(usize::MAX);
    }

    pub(super) fn listen(&self) -> EventListener {
        self.changed.listen()
    }

    /// Waits until a reading of the map is due, or until `early`. Returns whether a reading is due.
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

    /// Records that a reading of the map begins.
    pub(super) fn begin(&self) {
        lock(&self.refresh).begin();
    }

    /// Records that a reading has ended. `news`: it changed the map.
    pub(super) fn done(&self, news: bool) {
        lock(&self.refresh).done(self.executor.now(), news);
    }
}
