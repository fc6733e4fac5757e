//! Signals between links and calls: the map may be old, messages may have been missed, the state has changed.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use event_listener::{Event, EventListener};
use futures::future::select;

use super::refresh::{Found, Refresh};
use crate::jitter::Jitter;
use crate::mutex::lock;
use crate::runtime::Executor;

pub(super) struct Signals {
    executor: Arc<dyn Executor>,
    refresh: Mutex<Refresh>,
    /// Notified at the first sign that the map is old, and when there is a new link that must be closed once it is
    /// idle.
    pub(super) asked: Event,
    /// The number of events after which messages may have been missed.
    gaps: AtomicU64,
    pub(super) changed: Event,
    /// Whether the last reading found no node that accepts calls.
    down: AtomicBool,
    /// Notified after each reading, and when the connection is closed.
    pub(super) read: Event,
}

impl Signals {
    pub(super) fn new(executor: Arc<dyn Executor>, seed: u64) -> Self {
        let refresh = Mutex::new(Refresh::new(executor.now(), Jitter::new(seed)));
        let [asked, changed, read] = [(); 3].map(|()| Event::new());
        let (gaps, down) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { executor, refresh, asked, gaps, changed, down, read }
    }

    /// Records a sign that the map is old.
    pub(super) fn suspect_map(&self) {
        if lock(&self.refresh).ask(self.executor.now()) {
            self.asked.notify(usize::MAX);
        }
    }

    /// Records that there is a new link that must be closed once it is idle.
    pub(super) fn idle_later(&self) {
        self.asked.notify(usize::MAX);
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

    /// Whether the last reading found no node that accepts calls. Also asks for another reading.
    pub(super) fn is_down(&self) -> bool {
        self.suspect_map();
        self.down.load(Ordering::SeqCst)
    }

    /// Waits until a reading of the map is due, or until `early`. Returns whether a reading is due.
    pub(super) async fn due(&self, asked: EventListener, early: Option<Instant>) -> bool {
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

    /// Records that a reading has ended.
    pub(super) fn done(&self, found: Found) {
        lock(&self.refresh).done(self.executor.now(), found);
        self.down.store(found == Found::Down, Ordering::SeqCst);
        self.read.notify(usize::MAX);
    }
}
