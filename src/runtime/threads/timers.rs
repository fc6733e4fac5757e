//! Wakes sleeps when they are over.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

use super::super::clock;
use crate::mutex::lock;

/// The end of a sleep, and its number among those that end at the same time.
pub(super) type Deadline = (Instant, u64);

#[derive(Default)]
pub(super) struct Timers {
    sleeps: Mutex<Sleeps>,
    /// Told when there is a new first sleep, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct Sleeps {
    wakers: BTreeMap<Deadline, Waker>,
    next: u64,
    is_shut_down: bool,
}

impl Timers {
    /// A deadline that no other sleep has.
    pub(super) fn deadline(&self, end: Instant) -> Deadline {
        let mut sleeps = lock(&self.sleeps);
        sleeps.next += 1;
        (end, sleeps.next)
    }

    /// Wakes the sleep at its end. `false`: the pool was shut down.
    pub(super) fn set(&self, deadline: Deadline, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut sleeps = lock(&self.sleeps);
        if sleeps.is_shut_down {
            return false;
        }
        let replaced = sleeps.wakers.insert(deadline, waker);
        let is_first = sleeps.wakers.first_key_value().is_some_and(|(first, _)| *first == deadline);
        drop(sleeps);
        // Wakers are cloned and dropped while the mutex is free: the last one of a task drops the task, and its sleeps
        // with it.
        drop(replaced);
        if is_first {
            self.changed.notify_one();
        }
        true
    }

    pub(super) fn forget(&self, deadline: Deadline) {
        let removed = lock(&self.sleeps).wakers.remove(&deadline);
        // The mutex is free by now, as in `set`.
        drop(removed);
    }

    /// Wakes those whose time has come, until the end.
    pub(super) fn run(&self) {
        let mut sleeps = lock(&self.sleeps);
        while !sleeps.is_shut_down {
            let now = clock::now();
            sleeps = match sleeps.wakers.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(sleeps);
                    waker.wake();
                    lock(&self.sleeps)
                }
                Some(first) => {
                    let left = first.key().0.saturating_duration_since(now);
                    self.changed.wait_timeout(sleeps, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(sleeps).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Wakes all of them.
    pub(super) fn shut_down(&self) {
        let mut sleeps = lock(&self.sleeps);
        sleeps.is_shut_down = true;
        let wakers = mem::take(&mut sleeps.wakers);
        drop(sleeps);
        self.changed.notify_one();
        wakers.into_values().for_each(Waker::wake);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.sleeps).wakers.len()
    }
}
