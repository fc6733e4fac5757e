//! A model of a client that renews its leases on one server, over a link with outages.

use super::*;
use crate::engine::lease::answer_within;
use crate::runtime::an_instant;

/// The longest time for which the client waits for an answer.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

/// The time from the client to the server, or back.
const TRAVEL: Duration = Duration::from_millis(2);

/// The server's time for one call. It executes one call at a time.
const WORK: Duration = Duration::from_millis(1);

pub(super) struct Model {
    pub(super) schedule: Schedule,
    pub(super) start: Instant,
    lease: Duration,
    deadlines: Vec<Instant>,
    /// The outages, each from one time to another.
    down: Vec<(Instant, Instant)>,
    /// The times at which everything has to be verified, in order.
    gaps: Vec<Instant>,
    /// The calls under way, by the time at which they end.
    under_way: BTreeSet<(Instant, u64)>,
    calls: FxHashMap<u64, Call>,
    server_busy: Instant,
    /// The number of calls.
    pub(super) sent: u64,
    pub(super) lost: Vec<u64>,
}

struct Call {
    sent: Instant,
    holds: Vec<u64>,
    answered: bool,
}

impl Model {
    /// A client with this number of holds, acquired one after the other within that time.
    pub(super) fn new(holds: u64, lease: Duration, acquired_in: Duration) -> Self {
        let start = an_instant();
        let mut schedule = Schedule::new(Jitter::new(7));
        let each = acquired_in / u32::try_from(holds).unwrap();
        let deadlines = (0..holds)
            .map(|id| {
                let at = start + each * u32::try_from(id).unwrap();
                schedule.insert(id, at, at + lease, Some(lease / 3));
                at + lease
            })
            .collect();
        Self {
            schedule,
            start,
            lease,
            deadlines,
            down: Vec::new(),
            gaps: Vec::new(),
            under_way: BTreeSet::new(),
            calls: FxHashMap::default(),
            server_busy: start,
            sent: 0,
            lost: Vec::new(),
        }
    }

    /// Adds a gap at regular intervals until `until`.
    pub(super) fn gaps(mut self, every: Duration, until: Duration) -> Self {
        let gaps = (1..).map(|n| every * n).take_while(|at| *at < until);
        self.gaps.extend(gaps.map(|at| self.start + at));
        self.gaps.sort_unstable();
        self
    }

    /// Adds an outage. At its end, the subscription is restored.
    pub(super) fn outage(mut self, from: Duration, to: Duration) -> Self {
        self.down.push((self.start + from, self.start + to));
        self.gaps.push(self.start + to);
        self.gaps.sort_unstable();
        self
    }

    /// Does not tell the schedule about gaps.
    pub(super) fn forget_gaps(&mut self) {
        self.gaps.clear();
    }

    fn is_down(&self, from: Instant, to: Instant) -> bool {
        self.down.iter().any(|(down, up)| *down < to && from < *up)
    }

    /// Lets time pass. Panics if the schedule asks for work without end at one moment.
    pub(super) fn run(mut self, until: Duration) -> Self {
        let until = self.start + until;
        let mut gaps = std::mem::take(&mut self.gaps).into_iter().peekable();
        let (mut last, mut steps) = (self.start, 0_u32);
        loop {
            let call = self.under_way.first().map(|(at, _)| *at);
            let Some(now) = [self.schedule.next(), call, gaps.peek().copied()].into_iter().flatten().min() else {
                break;
            };
            if now >= until {
                break;
            }
            // Work that was due earlier is done now.
            let now = now.max(last);
            steps = if now == last { steps + 1 } else { 0 };
            assert!(steps < 2000, "a busy loop");
            last = now;
            if gaps.next_if(|gap| *gap <= now).is_some() {
                self.schedule.verify_all(now);
            }
            while let Some(&(at, call)) = self.under_way.first().filter(|(at, _)| *at <= now) {
                self.under_way.remove(&(at, call));
                self.end(call, now);
            }
            let due = self.schedule.due(now);
            self.lost.extend(due.expired);
            if !due.renew.is_empty() {
                self.send(due.renew, now);
            }
        }
        self
    }

    fn send(&mut self, holds: Vec<u64>, now: Instant) {
        self.sent += 1;
        let deadline = |id: &u64| self.deadlines[usize::try_from(*id).unwrap()];
        let left = holds.iter().map(deadline).min().unwrap().saturating_duration_since(now);
        let within = now + answer_within(left, COMMAND_TIMEOUT);
        let mut ends = within;
        if !self.is_down(now, now + TRAVEL) {
            self.server_busy = self.server_busy.max(now + TRAVEL) + WORK;
            ends = self.server_busy + TRAVEL;
        }
        let answered = ends < within && !self.is_down(now, ends);
        let ends = if answered { ends } else { within };
        self.under_way.insert((ends, self.sent));
        self.calls.insert(self.sent, Call { sent: now, holds, answered });
    }

    fn end(&mut self, call: u64, now: Instant) {
        let Call { sent, holds, answered } = self.calls.remove(&call).unwrap();
        if !answered {
            return self.schedule.unanswered(&holds, now);
        }
        let deadline = sent + self.lease;
        for id in &holds {
            self.deadlines[usize::try_from(*id).unwrap()] = deadline;
        }
        self.schedule.renewed(holds.into_iter().map(|id| (id, deadline)), sent);
    }
}
