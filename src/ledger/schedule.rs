//! When which lease is renewed and when it is over. Pure: time comes in as an argument.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::jitter::Jitter;

/// Most holds in one renewal call: the server spends about a microsecond on each.
pub(crate) const BATCH: usize = 256;

/// Deadlines and renewals of every hold of a client.
///
/// A renewal call takes the [`BATCH`] holds whose turn is next, also those that are not due for up to half an
/// interval, so that `n` holds cost about `n / BATCH` calls per interval however they were acquired. Full batches
/// are spread over half an interval; from then on they stay apart.
#[derive(Debug)]
pub(crate) struct Schedule {
    holds: HashMap<u64, Times>,
    deadlines: BTreeSet<(Instant, u64)>,
    renewals: BTreeSet<(Instant, u64)>,
    /// No renewal before this: a full batch has just been sent.
    paced_until: Option<Instant>,
    jitter: Jitter,
}

#[derive(Debug)]
struct Times {
    deadline: Instant,
    /// When the next renewal is due; `None` while one is under way and for fixed leases.
    renewal: Option<Instant>,
    /// Between renewals; `None` for fixed leases.
    interval: Option<Duration>,
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Holds whose deadline has passed. They are forgotten.
    pub(crate) expired: Vec<u64>,
    /// Holds to renew in one call. They are under way until [`Schedule::renewed`] or [`Schedule::unanswered`].
    pub(crate) renew: Vec<u64>,
}

impl Schedule {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self { holds: HashMap::new(), deadlines: BTreeSet::new(), renewals: BTreeSet::new(), paced_until: None, jitter }
    }

    /// Adds a hold with what is left of its lease. `interval` is `None` for a fixed lease.
    pub(crate) fn insert(&mut self, id: u64, now: Instant, deadline: Instant, interval: Option<Duration>) {
        self.deadlines.insert((deadline, id));
        self.holds.insert(id, Times { deadline, renewal: None, interval });
        if let Some(interval) = interval {
            // A grant that came by message has part of its lease behind it already.
            let left = deadline.saturating_duration_since(now);
            let wait = interval.min(left / 2);
            let early = self.jitter.up_to(wait / 10);
            self.set_renewal(id, Some(now + wait - early));
        }
    }

    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(times) = self.holds.remove(&id) {
            self.deadlines.remove(&(times.deadline, id));
            if let Some(renewal) = times.renewal {
                self.renewals.remove(&(renewal, id));
            }
        }
    }

    /// The server holds these, as of a request sent at `sent`.
    pub(crate) fn renewed(&mut self, held: impl IntoIterator<Item = (u64, Instant)>, sent: Instant) {
        for (id, deadline) in held {
            let Some(times) = self.holds.get_mut(&id) else { continue };
            self.deadlines.remove(&(times.deadline, id));
            times.deadline = deadline;
            self.deadlines.insert((deadline, id));
            if let Some(interval) = times.interval {
                // No jitter from here on: what was renewed together stays together.
                self.set_renewal(id, Some(sent + interval));
            }
        }
    }

    /// No answer came for these: try again soon. Their deadlines stand.
    pub(crate) fn unanswered(&mut self, ids: &[u64], now: Instant) {
        let mut retry = None;
        for &id in ids {
            let Some(interval) = self.holds.get(&id).map(|times| times.interval) else { continue };
            let wait = interval.map_or(Duration::from_secs(1), |interval| (interval / 8).min(Duration::from_secs(1)));
            let jitter = &mut self.jitter;
            let at = *retry.get_or_insert_with(|| now + jitter.spread(wait));
            self.set_renewal(id, Some(at));
        }
    }

    /// Asks the server about every hold as soon as the pace allows, fixed ones too.
    pub(crate) fn verify_all(&mut self, now: Instant) {
        let mut ids: Vec<u64> = self.holds.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.set_renewal(id, Some(now));
        }
    }

    /// When [`due`](Self::due) has something to say next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let renewal = self.renewals.first().map(|(at, _)| self.paced_until.map_or(*at, |paced| paced.max(*at)));
        match (deadline, renewal) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(crate) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        while let Some(&(at, id)) = self.deadlines.first() {
            if at > now {
                break;
            }
            self.remove(id);
            due.expired.push(id);
        }
        if self.paced_until.is_none_or(|paced| paced <= now) {
            self.paced_until = None;
            due.renew = self.take_batch(now);
        }
        due
    }

    fn take_batch(&mut self, now: Instant) -> Vec<u64> {
        let Some(&(first, id)) = self.renewals.first() else { return Vec::new() };
        if first > now {
            return Vec::new();
        }
        let interval = self.holds.get(&id).and_then(|times| times.interval).unwrap_or_default();
        let early = now + interval / 2;
        let batch: Vec<u64> =
            self.renewals.iter().take_while(|(at, _)| *at <= early).take(BATCH).map(|(_, id)| *id).collect();
        for &id in &batch {
            self.set_renewal(id, None);
        }
        if batch.len() == BATCH {
            let batches = u32::try_from(self.holds.len().div_ceil(BATCH)).unwrap_or(u32::MAX);
            self.paced_until = Some(now + interval / 2 / batches.max(1));
        }
        batch
    }

    fn set_renewal(&mut self, id: u64, renewal: Option<Instant>) {
        if let Some(times) = self.holds.get_mut(&id) {
            if let Some(old) = times.renewal.take() {
                self.renewals.remove(&(old, id));
            }
            if let Some(new) = renewal {
                self.renewals.insert((new, id));
            }
            times.renewal = renewal;
        }
    }
}

#[cfg(test)]
mod tests;
