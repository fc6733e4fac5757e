//! When each lease is renewed, and when it is over. Pure: time comes in as an argument.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::engine::lease::ORDINARY;
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};

mod pace;

use crate::tuning::BATCH;
use pace::Pace;

/// Deadlines and renewals of every hold of a client.
///
/// A renewal call takes the [`BATCH`] holds that are due and have the earliest deadlines. It is filled up with holds
/// that become due within half an interval, so that `n` holds cost about `n / BATCH` calls per interval however they
/// were acquired. Full batches are spread over half an interval, or over half of what the earliest deadline leaves if
/// that is less, and stay apart from then on. One call at a time is under way for a hold.
#[derive(Debug)]
pub(crate) struct Schedule {
    holds: FxHashMap<u64, Times>,
    /// The ends of the leases that are renewed, with the numbers of their holds.
    renewed: BTreeSet<(Instant, u64)>,
    /// The ends of the fixed leases, with the numbers of their holds.
    fixed: BTreeSet<(Instant, u64)>,
    /// Holds that become due later, by the time at which they do.
    later: BTreeSet<(Instant, u64)>,
    /// Holds that are due, earliest deadline first. Those with a fixed lease come last, because they are only checked.
    ready: BTreeSet<(bool, Instant, u64)>,
    pace: Pace,
    /// The last time at which all holds had to be verified. Answers to calls sent before do not verify a hold.
    verified: Option<Instant>,
    /// Whether something may be due sooner than at the last [`take_changed`](Self::take_changed).
    is_changed: bool,
    jitter: Jitter,
}

#[derive(Debug)]
struct Times {
    deadline: Instant,
    turn: Turn,
    /// The time between renewals. `None` for a fixed lease.
    interval: Option<Duration>,
}

/// The next time at which the server is asked about a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Later(Instant),
    Ready,
    UnderWay,
    /// Not asked about, as a fixed lease is.
    Never,
}

/// What is to be done now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Holds whose deadline has passed. The schedule has forgotten them.
    pub(crate) expired: Vec<u64>,
    /// Holds to renew in one call, which is under way until [`Schedule::renewed`] or [`Schedule::unanswered`].
    pub(crate) renew: Vec<u64>,
}

impl Schedule {
    pub(crate) fn new(jitter: Jitter) -> Self {
        Self {
            holds: FxHashMap::default(),
            renewed: BTreeSet::new(),
            fixed: BTreeSet::new(),
            later: BTreeSet::new(),
            ready: BTreeSet::new(),
            pace: Pace::default(),
            verified: None,
            is_changed: false,
            jitter,
        }
    }

    /// Adds a hold whose lease lasts until `deadline`. `interval` is `None` for a fixed lease.
    pub(crate) fn insert(&mut self, id: u64, now: Instant, deadline: Instant, interval: Option<Duration>) {
        let turn = interval.map_or(Turn::Never, |interval| {
            // A third of the lease may already be over if the answer came late, or if the grant came by a message. The
            // renewal needs the other two: its answer may take as long.
            let wait = deadline.saturating_duration_since(now).saturating_sub(2 * interval).min(interval);
            Turn::Later(now + wait - self.jitter.up_to(wait / 10))
        });
        self.put(id, Times { deadline, turn, interval });
    }

    /// Like [`insert`](Self::insert), with the first renewal due at once.
    pub(crate) fn insert_due(&mut self, id: u64, now: Instant, deadline: Instant, interval: Option<Duration>) {
        let turn = if interval.is_some() { Turn::Later(now) } else { Turn::Never };
        self.put(id, Times { deadline, turn, interval });
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.take(id);
    }

    /// Records that the server has these holds, as of a request sent at `sent`.
    pub(crate) fn renewed(&mut self, held: impl IntoIterator<Item = (u64, Instant)>, sent: Instant) {
        for (id, deadline) in held {
            let Some(Times { interval, .. }) = self.take(id) else { continue };
            let turn = match interval {
                _ if self.verified.is_some_and(|since| sent < since) => Turn::Ready,
                // No jitter is added after the first renewal, so that holds renewed together stay together.
                Some(interval) => Turn::Later(sent + interval),
                None => Turn::Never,
            };
            self.put(id, Times { deadline, turn, interval });
        }
    }

    /// Called when the lease reaches the end of the hold. From now on it is treated like a fixed one.
    pub(crate) fn renewed_last(&mut self, id: u64) {
        let Some(times) = self.take(id) else { return };
        let turn = if let Turn::Later(_) = times.turn { Turn::Never } else { times.turn };
        self.put(id, Times { turn, interval: None, ..times });
    }

    /// Moves the end of the lease to `deadline`. An answer to an earlier renewal does not move it back.
    pub(crate) fn lengthen(&mut self, id: u64, deadline: Instant) {
        if let Some(times) = self.take(id) {
            self.put(id, Times { deadline, ..times });
        }
    }

    /// Records that a renewal of these holds got no answer. It is retried soon and as long as their leases last. Their
    /// deadlines stay the same.
    pub(crate) fn unanswered(&mut self, ids: &[u64], now: Instant) {
        let tried: Vec<u64> = ids.iter().copied().filter(|id| self.turn(*id) == Some(Turn::UnderWay)).collect();
        let of_those = || tried.iter().filter_map(|id| self.holds.get(id));
        let interval = of_those().filter_map(|times| times.interval).min();
        let deadline = of_those().filter(|times| times.interval.is_some()).map(|times| times.deadline).min();
        let longest = interval.map_or(Duration::from_secs(1), |interval| (interval / 8).min(Duration::from_secs(1)));
        let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now));
        // The pause has a lower limit, because otherwise a server that refuses at once would be asked without end.
        let shortest = longest.min(ORDINARY / 4);
        let at = now + self.jitter.spread(longest.min(left / 4).max(shortest));
        for id in tried {
            self.set_turn(id, Turn::Later(at));
        }
    }

    /// Makes every hold due for a check, fixed ones too: as soon as the pace allows, or after the call that is under
    /// way.
    pub(crate) fn verify_all(&mut self, now: Instant) {
        self.verified = Some(now);
        self.is_changed = true;
        let fixed: Vec<u64> = self.fixed.iter().map(|(_, id)| *id).collect();
        let later = std::mem::take(&mut self.later).into_iter().map(|(_, id)| id);
        let mut ready = Vec::new();
        for id in later.chain(fixed) {
            if let Some(times) = self.holds.get_mut(&id).filter(|times| times.turn != Turn::UnderWay) {
                times.turn = Turn::Ready;
                ready.push(times.urgency(id));
            }
        }
        self.ready.extend(ready);
    }

    /// The same for one hold, at once.
    pub(crate) fn verify(&mut self, id: u64, now: Instant) {
        match self.turn(id) {
            // What is under way may be answered as of before.
            Some(Turn::UnderWay) => self.verified = Some(now),
            _ => self.set_turn(id, Turn::Later(now)),
        }
    }

    /// When [`due`](Self::due) must be called next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let gate = self.gate();
        let renewal = if self.ready.is_empty() {
            self.later.first().map(|(at, _)| gate.map_or(*at, |gate| gate.max(*at)))
        } else {
            gate.or(self.verified)
        };
        let ends = sooner(self.renewed.first().map(|(at, _)| *at), self.fixed.first().map(|(at, _)| *at));
        sooner(ends, renewal)
    }

    /// Whether [`next`](Self::next) may be sooner than at the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    pub(crate) fn due(&mut self, now: Instant) -> Due {
        let mut due = Due::default();
        while let Some(id) = self.over(now) {
            self.remove(id);
            due.expired.push(id);
        }
        if self.gate().is_none_or(|gate| gate <= now) {
            self.pace.clear();
            due.renew = self.take_batch(now);
        }
        due
    }

    fn over(&self, now: Instant) -> Option<u64> {
        let ends = [&self.renewed, &self.fixed].into_iter().filter_map(BTreeSet::first);
        ends.min().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    /// The earliest time of the next renewal call.
    fn gate(&self) -> Option<Instant> {
        self.pace.gate(self.renewed.first().map(|(deadline, _)| *deadline), self.ready.len())
    }

    fn take_batch(&mut self, now: Instant) -> Vec<u64> {
        while let Some(&(_, id)) = self.later.first().filter(|(at, _)| *at <= now) {
            self.set_turn(id, Turn::Ready);
        }
        let Some(&(.., first)) = self.ready.first() else { return Vec::new() };
        let interval = self.holds.get(&first).and_then(|times| times.interval);
        let early = now + interval.unwrap_or_default() / 2;
        let ready = self.ready.iter().map(|(.., id)| *id);
        let later = self.later.iter().take_while(|(at, _)| *at <= early).map(|(_, id)| *id);
        let mut batch: Vec<u64> = ready.chain(later).take(BATCH).collect();
        if mutant::on(Mutant::TiesById) {
            batch = self.ready.iter().map(|(.., id)| *id).collect();
            batch.sort_unstable();
            batch.truncate(BATCH);
        }
        for &id in &batch {
            self.set_turn(id, Turn::UnderWay);
        }
        if batch.len() == BATCH {
            self.pace.is_full(now, interval, self.holds.len());
        }
        batch
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let Self { holds, renewed, fixed, later, ready, .. } = self;
        holds.is_empty() && renewed.is_empty() && fixed.is_empty() && later.is_empty() && ready.is_empty()
    }

    fn turn(&self, id: u64) -> Option<Turn> {
        self.holds.get(&id).map(|times| times.turn)
    }

    fn set_turn(&mut self, id: u64, turn: Turn) {
        if let Some(times) = self.take(id) {
            self.put(id, Times { turn, ..times });
        }
    }

    fn put(&mut self, id: u64, times: Times) {
        self.take(id);
        self.is_changed = true;
        let ends = if times.interval.is_some() { &mut self.renewed } else { &mut self.fixed };
        ends.insert((times.deadline, id));
        match times.turn {
            Turn::Later(at) => drop(self.later.insert((at, id))),
            Turn::Ready => drop(self.ready.insert(times.urgency(id))),
            Turn::UnderWay | Turn::Never => {}
        }
        self.holds.insert(id, times);
    }

    fn take(&mut self, id: u64) -> Option<Times> {
        let times = self.holds.remove(&id)?;
        self.is_changed = true;
        let ends = if times.interval.is_some() { &mut self.renewed } else { &mut self.fixed };
        ends.remove(&(times.deadline, id));
        match times.turn {
            Turn::Later(at) => drop(self.later.remove(&(at, id))),
            Turn::Ready => drop(self.ready.remove(&times.urgency(id))),
            Turn::UnderWay | Turn::Never => {}
        }
        Some(times)
    }
}

impl Times {
    fn urgency(&self, id: u64) -> (bool, Instant, u64) {
        (self.interval.is_none(), self.deadline, id)
    }
}

/// The first of the times that there are.
pub(crate) fn sooner(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
