//! What must hold after a drop: the others are served, and nothing is left.

use std::time::Duration;

use bowline::ErrorKind;
use bowline::wire::{self, PREFIX, Resource};
use bowline_testkit::memory::is_memory;

use super::NAME;
use super::operation::{Operation, Subject};
use super::polled::Ended;
use super::rivals::Rivals;
use super::scene::{Fault, LEASE, LONGEST, OUTAGE, Scene};

/// A request that lay somewhere may be executed this much later, and what it leaves lasts for a lease; a client that
/// waits behind asks every third of one. The rest is connections that come back, and tries.
pub const LATE: Duration =
    Duration::from_millis(3100).saturating_add(LEASE).saturating_add(Duration::from_secs(1)).saturating_add(OUTAGE);

/// The first pauses between tries.
const TRIES: Duration = Duration::from_millis(100);

impl Scene {
    pub fn others_are_served(&self, operation: &Operation, fault: Fault, rivals: &Rivals, ended: &Ended, robbed: bool) {
        self.within(LATE, "the others begin", || rivals.have_begun());
        // Every hand-over takes two messages: those of the subject, of three others, and of three in its cohort.
        let hand_overs = if operation.cohort { 7 } else { 4 };
        // A waiter finds out by its next heartbeat.
        let left = if operation.leaves { LEASE + LEASE / 2 } else { Duration::ZERO };
        self.within(left + bound(fault, 2 * hand_overs * LONGEST), "the others are served", || rivals.have_ended());
        for (who, kind) in rivals.failed() {
            let expected = match kind {
                ErrorKind::Lost => robbed,
                ErrorKind::Closed => operation.closes,
                _ => false,
            };
            self.must(expected, &format!("{who}: {kind:?}"));
        }
        if let Ended::Done(Err(kind)) = ended {
            let faulty = fault != Fault::None && matches!(kind, ErrorKind::Unavailable);
            self.must(faulty || operation.fails.contains(kind), &format!("it failed: {kind:?}"));
        }
        self.another_client_acquires(operation, left + bound(fault, 4 * LONGEST));
    }

    fn another_client_acquires(&self, operation: &Operation, bound: Duration) {
        let again = self.spawn(operation.on.all(NAME).acquire(self.other.clone(), NAME));
        self.within(bound, "another client acquires", || again.lock().unwrap().is_some());
        let guard = again.lock().unwrap().take().unwrap().unwrap();
        self.run("release", guard.release()).unwrap();
    }

    pub fn nothing_is_left(&self, operation: &Operation, fault: Fault, subject: &Subject, idle: (usize, usize)) {
        let (tasks, timers) = idle;
        // After a cut, the request may arrive late. Its ticket expires, but stays stored until the next request.
        let late = fault == Fault::Cut;
        let clean = || (late || self.keys(operation).is_empty()) && subject.tracking.live().0 <= tasks;
        let cleaned = self.is_within(bound(fault, 4 * LONGEST), clean);
        let (live, keys) = (subject.tracking.live(), self.keys(operation));
        self.must(cleaned, &format!("left: {keys:?}; {live:?} tasks and timers, {idle:?} when idle"));
        // The watchdog may sleep until the next renewal of an ended hold, and a clean-up until its next attempt.
        self.must(
            live.1 <= timers + 1 || fault != Fault::None,
            &format!("{live:?} tasks and timers are left, {idle:?} when idle"),
        );
        // Nothing reappears, and the timer ends.
        self.pass(LEASE + bound(fault, LEASE));
        if late {
            self.another_client_acquires(operation, 4 * LONGEST);
        }
        let (live, keys) = (subject.tracking.live(), self.keys(operation));
        self.must(keys.is_empty() && live <= idle, &format!("in the end: {keys:?}, {live:?} tasks and timers"));
        self.must(self.server.judge.violation().is_none(), &format!("{:?}", self.server.judge.violation()));
    }

    /// After the subject's client nothing at all is left of it.
    pub fn end_client(&mut self) {
        let Some((mut subject, _, tasks_before)) = self.idle.take() else { return };
        if let Some(client) = subject.client.take().filter(|_| self.machine.random(|random| random.one_in(2))) {
            self.run("close", async move { client.close().await });
        }
        subject.guard = None;
        let Subject { tracking, id, connection, .. } = subject;
        // The task that made the connection may have kept it.
        let ended = self.is_within(4 * LONGEST, || tracking.live() == (0, 0));
        self.must(ended, &format!("after the client: {:?} tasks and timers", tracking.live()));
        drop(connection);
        let listeners = || self.server.listeners(&wire::inbox(PREFIX, id));
        self.within(4 * LONGEST, "the inbox is not subscribed", || listeners() == 0);
        // The tasks of the network end, too.
        self.within(2 * LATE, "the link's tasks end", || self.machine.live().0 <= tasks_before);
    }

    /// Keys but the counters and what the operation is to leave.
    fn keys(&self, operation: &Operation) -> Vec<String> {
        let mut keys = self.server.keys();
        // A hold would have a second key with its lease.
        keys.retain(|key| !(operation.limits && *key == operation.on.key(NAME)));
        // A latch remembers calls for as long as copies of them may arrive.
        let [.., calls] = &Resource::latch(PREFIX, NAME).unwrap().keys()[..] else { panic!("a latch has calls") };
        keys.retain(|key| key != calls);
        keys.retain(|key| !is_memory(key));
        keys
    }
}

/// As long as the server can be reached, a few messages and a try or two; else what is documented.
pub fn bound(fault: Fault, calm: Duration) -> Duration {
    match fault {
        Fault::None => calm,
        Fault::RequestLost | Fault::ReplyLost => calm + TRIES,
        Fault::SubscriptionCut => calm + TRIES + OUTAGE,
        Fault::Cut => LATE,
    }
}
