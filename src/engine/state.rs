//! The tables of the engine.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::engine::cleanups::Cleanups;
use crate::engine::cohorts::{CohortId, Cohorts};
use crate::engine::heartbeats::Heartbeats;
use crate::engine::lease::{Hold, Loss};
use crate::engine::passing::Turn;
use crate::engine::schedule::Schedule;
use crate::engine::silence::Silence;
use crate::engine::{Cleanup, Outcome};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::reply::ServerMillis;
use crate::stats::Stats;

/// A client whose acquisition is given up this soon after it queued up cancels from the queue's tail.
const NEAR_TAIL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct State {
    pub(super) open: HashMap<u64, Attempt>,
    pub(super) holds: HashMap<u64, Arc<Hold>>,
    pub(super) schedule: Schedule,
    pub(super) heartbeats: Heartbeats,
    pub(super) silence: Silence,
    pub(super) cohorts: Cohorts<Turn>,
    pub(super) cleanups: Cleanups,
    /// Releases and changes that somebody waits for.
    pub(super) ending_holds: BTreeMap<u64, Arc<Hold>>,
    pub(super) last_ending: u64,
    pub(super) last_id: u64,
    /// Of what is counted, what is not in the other tables.
    pub(super) counted: Stats,
    /// When messages may have been missed last.
    pub(super) last_gap: Option<Instant>,
    /// When the watchdog wakes by itself.
    pub(super) armed: Option<Instant>,
    pub(super) closed: bool,
    /// The watchdog runs until this is set and nothing is left to clean up.
    pub(super) ending: bool,
    /// The watchdog is gone.
    pub(super) dead: bool,
}

/// What a change of the tables sets off. It happens once they are unlocked: wakers and events run foreign code.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) wakers: Vec<Waker>,
    pub(super) losses: Vec<(Arc<Hold>, Loss)>,
    /// The watchdog has something to do sooner than it believes.
    pub(super) work: bool,
    /// The last clean-up is done.
    pub(super) idle: bool,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) keys: Arc<Keys>,
    /// The last part of its ticket.
    pub(super) amount: u32,
    pub(super) lease: Duration,
    /// When the last request was sent that the server answered with "waiting": no grant can be older.
    pub(super) counted_from: Instant,
    pub(super) queued_at: Option<Instant>,
    /// When it waited for certain, by the server's clock: no grant of the ticket that waits is older.
    pub(super) waiting_at: ServerMillis,
    /// Of whoever asks for it, in a cohort.
    pub(super) member: Option<u64>,
    /// How often it was asked for when it was queued.
    pub(super) asked: u32,
    /// The hold that its request releases.
    pub(super) before: Option<Arc<Hold>>,
    /// When the first heartbeat was sent that got no answer, since the last one that did.
    pub(super) unanswered_since: Option<Instant>,
    pub(super) revoked: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) waker: Option<Waker>,
}

impl State {
    pub(super) fn next(&self) -> Option<Instant> {
        match (self.schedule.next(), self.heartbeats.next()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the number of its attempt id.
    pub(super) fn open(&mut self, attempt: Attempt) -> u64 {
        self.last_id += 1;
        if mutant::on(Mutant::AttemptIdReused) {
            self.last_id = (1..).find(|id| !self.open.contains_key(id) && !self.holds.contains_key(id)).unwrap_or(1);
        }
        self.open.insert(self.last_id, attempt);
        self.last_id
    }

    pub(super) fn is_idle(&self) -> bool {
        let waited_for = !self.ending_holds.is_empty() && !self.dead && !mutant::on(Mutant::ReleaseCutOff);
        self.cleanups.is_empty() && !waited_for
    }

    /// Whoever waits for the attempt is woken, and finds it gone.
    pub(super) fn remove_open(&mut self, id: u64, effects: &mut Effects) -> Option<Attempt> {
        let mut attempt = self.open.remove(&id)?;
        if attempt.queued_at.is_some() {
            self.heartbeats.remove(&attempt.keys, id);
        }
        effects.wakers.extend(attempt.waker.take());
        Some(attempt)
    }

    /// Nobody waits for the attempt any more. What it has in Redis is cleaned up; what it was to release, first: a late
    /// request finds nothing to release, and queues up nothing.
    pub(super) fn give_up(&mut self, id: AttemptId, now: Instant, effects: &mut Effects) {
        let queued_at = self.open.get(&id.n).and_then(|attempt| attempt.queued_at);
        let from_tail = queued_at.is_some_and(|at| now.saturating_duration_since(at) < NEAR_TAIL);
        self.give_up_from(id, from_tail, now, effects);
    }

    /// As [`give_up`](Self::give_up), with the end of the queue that its ticket is nearer to.
    pub(super) fn give_up_from(&mut self, id: AttemptId, from_tail: bool, now: Instant, effects: &mut Effects) {
        let Some(mut attempt) = self.remove_open(id.n, effects) else { return };
        if let Some(before) = attempt.before.take() {
            self.unheard(&attempt.keys, now);
            self.clean_up(Cleanup::of(&before, now), effects);
        }
        self.clean_up(attempt.cleanup(id, from_tail, now), effects);
    }

    /// The tickets of the name are touched at once, and those that the client does not know yet to wait as soon as it does.
    pub(super) fn unheard(&mut self, keys: &Arc<Keys>, now: Instant) {
        if !mutant::on(Mutant::UnreadReplyForgotten) {
            self.last_gap = Some(now);
            self.heartbeats.heartbeat_soon(keys, now);
        }
    }

    pub(super) fn keep(&mut self, hold: &Arc<Hold>, deadline: Instant, now: Instant) {
        self.holds.insert(hold.id.n, hold.clone());
        self.schedule.insert(hold.id.n, now, deadline, hold.term.interval(hold.lease, deadline));
    }

    pub(super) fn remove_hold(&mut self, id: u64) -> Option<Arc<Hold>> {
        self.schedule.remove(id);
        let hold = self.holds.remove(&id)?;
        self.cohorts.ends(&CohortId::of(&hold.keys, hold.amount), id);
        Some(hold)
    }

    /// As [`remove_hold`](Self::remove_hold), and whoever waits in its cohort for that is to ask the server.
    pub(super) fn end_hold(&mut self, id: u64, effects: &mut Effects) -> Option<Arc<Hold>> {
        let hold = self.remove_hold(id)?;
        self.cohorts.settle(&CohortId::of(&hold.keys, hold.amount), &mut effects.wakers);
        Some(hold)
    }

    /// The client is closed, and its hold with it.
    pub(super) fn close_hold(&mut self, id: u64, now: Instant, effects: &mut Effects) {
        if let Some(hold) = self.lose(id, Loss::Closed, effects) {
            self.clean_up(Cleanup::of(&hold, now), effects);
        }
    }

    /// The hold, if there was such a one, is lost. What a late renewal, or a server that is not the one that it was, may have
    /// left of it is cleaned up.
    pub(super) fn lose_and_clean_up(&mut self, id: u64, loss: Loss, now: Instant, effects: &mut Effects) {
        if let Some(hold) = self.lose(id, loss, effects)
            && !mutant::on(Mutant::NoCleanUpOnExpiry)
        {
            self.clean_up(Cleanup::of(&hold, now), effects);
        }
    }

    /// The hold, if there was such a one, is lost.
    pub(super) fn lose(&mut self, id: u64, loss: Loss, effects: &mut Effects) -> Option<Arc<Hold>> {
        let hold = match mutant::on(Mutant::LostHoldKeepsTheLine) {
            true => self.holds.remove(&id),
            false => self.end_hold(id, effects),
        }?;
        self.counted.lost += u64::from(loss != Loss::Closed);
        effects.losses.push((hold.clone(), loss));
        Some(hold)
    }

    pub(super) fn clean_up(&mut self, cleanup: Cleanup, effects: &mut Effects) {
        if !self.dead {
            self.cleanups.push(cleanup);
            effects.work = true;
        }
    }

    pub(super) fn wake_if_sooner(&mut self, effects: &mut Effects) {
        let Some(next) = self.next() else { return };
        if self.armed.is_none_or(|armed| next < armed) {
            self.armed = Some(next);
            effects.work = true;
        }
    }
}

impl Attempt {
    pub(super) fn new(keys: &Arc<Keys>, amount: u32, lease: Duration, now: Instant) -> Self {
        Self {
            keys: keys.clone(),
            amount,
            lease,
            counted_from: now,
            queued_at: None,
            waiting_at: 0,
            member: None,
            asked: 0,
            before: None,
            unanswered_since: None,
            revoked: false,
            outcome: None,
            waker: None,
        }
    }

    /// Whether a grant of that time is of an earlier ticket of the same attempt id, which a second copy of its request has queued
    /// up anew. In the same millisecond it is not: between the two lies a lease.
    pub(super) fn is_outdated(&self, granted_at: ServerMillis) -> bool {
        granted_at < self.waiting_at && !mutant::on(Mutant::GrantTrustedAfterResend)
    }

    /// The first outcome stays until it is taken.
    pub(super) fn decide(&mut self, outcome: Outcome, effects: &mut Effects) {
        if self.outcome.is_none() {
            self.outcome = Some(outcome);
            effects.wakers.extend(self.waker.take());
        }
    }

    fn cleanup(self, id: AttemptId, from_tail: bool, now: Instant) -> Cleanup {
        let ticket = self.keys.kind.ticket(id, self.lease, self.amount);
        Cleanup { keys: self.keys, ticket, from_tail, until: now + self.lease }
    }
}

impl Cleanup {
    pub(super) fn of(hold: &Hold, now: Instant) -> Self {
        Self {
            keys: hold.keys.clone(),
            ticket: hold.keys.kind.ticket(hold.id, hold.lease, hold.amount),
            from_tail: false,
            until: now + hold.longest(),
        }
    }
}
