//! Which limits of a semaphore were in force when, as operators change them.

use std::collections::HashMap;
use std::time::Duration;

use super::Judge;
use super::view::limit;

/// By key: from when on which limit was in force. Before the first, that of the call sites.
#[derive(Default)]
pub struct Limits(HashMap<String, Vec<(Duration, u64)>>);

impl Limits {
    pub fn note(&mut self, key: &str, in_force: u64, now: Duration) {
        let changes = self.0.entry(key.to_owned()).or_insert_with(|| vec![(Duration::ZERO, limit(key))]);
        if changes.last().is_none_or(|(_, last)| *last != in_force) {
            changes.push((now, in_force));
        }
    }

    /// Those in force at some time since then.
    fn since(&self, key: &str, since: Duration) -> Vec<u64> {
        let Some(changes) = self.0.get(key) else { return vec![limit(key)] };
        let last = changes.iter().rev().find(|(from, _)| *from < since);
        last.into_iter().chain(changes.iter().filter(|(from, _)| *from >= since)).map(|(_, limit)| *limit).collect()
    }

    /// Since when it has been less than that; `None` if it is not.
    fn less_since(&self, key: &str, units: u64) -> Option<Duration> {
        let changes = self.0.get(key)?;
        changes.iter().rev().take_while(|(_, limit)| *limit < units).last().map(|(from, _)| *from)
    }
}

impl Judge {
    /// The largest limit since then: what was granted meanwhile was granted under one of them.
    pub fn most(&self, key: &str, since: Duration) -> u64 {
        self.lock().limits.since(key, since).into_iter().max().unwrap_or_else(|| limit(key))
    }

    /// Whether so many units were more than the limit at some time since then.
    pub fn was_less(&self, key: &str, units: u64, since: Duration) -> bool {
        let state = self.lock();
        let was_less = state.limits.since(key, since).into_iter().any(|limit| limit < units);
        was_less || state.forsaken.was_less(key, units)
    }

    /// For how long the limit has been less than that.
    pub fn less_for(&self, key: &str, units: u64) -> Option<Duration> {
        let since = self.lock().limits.less_since(key, units)?;
        Some(self.machine.now() - since)
    }
}
