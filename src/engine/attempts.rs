//! The open attempts: their request is sent, or they wait in a queue in Redis.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use uuid::Uuid;

use crate::engine::attempt::{Attempt, Outcome, Queued, Unanswered};
use crate::engine::heartbeats::Heartbeats;
use crate::engine::inboxes::Inboxes;
use crate::engine::silence::Silence;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::ticket::ticket_ttl;
use crate::wakers::Wakers;

/// An attempt that is given up this soon after it was queued is searched from the tail of the queue.
const NEAR_TAIL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Attempts {
    client: Uuid,
    open: FxHashMap<u64, Attempt>,
    last_id: u64,
    pub(super) heartbeats: Heartbeats,
    pub(super) silence: Silence,
    pub(super) inboxes: Inboxes,
    /// The last time at which a message may have been missed.
    last_gap: Option<Instant>,
    /// The wakers of futures whose attempt was decided or removed. The caller wakes them after the tables are unlocked.
    woken: Wakers,
}

impl Attempts {
    pub(super) fn new(client: Uuid, heartbeats: Heartbeats, inboxes: Inboxes) -> Self {
        let silence = Silence::default();
        Self {
            client,
            open: FxHashMap::default(),
            last_id: 0,
            heartbeats,
            silence,
            inboxes,
            last_gap: None,
            woken: Wakers::default(),
        }
    }

    pub(super) fn id(&self, n: u64) -> AttemptId {
        AttemptId { client: self.client, n }
    }

    pub(super) fn is_own(&self, id: AttemptId) -> bool {
        id.client == self.client
    }

    /// Filters the attempt ids that belong to this client.
    pub(super) fn own(&self, ids: Vec<AttemptId>) -> impl Iterator<Item = AttemptId> + use<> {
        let client = self.client;
        ids.into_iter().filter(move |id| id.client == client)
    }

    /// Returns an attempt id for a request that does not wait.
    pub(super) fn fresh_id(&mut self) -> AttemptId {
        self.last_id += 1;
        self.id(self.last_id)
    }

    /// Opens the attempt under a new attempt id. `is_held` says whether an attempt id is held.
    pub(super) fn open(&mut self, attempt: Attempt, is_held: impl Fn(u64) -> bool) -> AttemptId {
        let mut id = self.fresh_id();
        if attempt.is_retained {
            id = id.retained();
        }
        if mutant::on(Mutant::AttemptIdReused) {
            id.n = (1..).find(|n| !self.open.contains_key(n) && !is_held(*n)).unwrap_or(1);
            self.last_id = id.n;
        }
        self.open.insert(id.n, attempt);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Attempt)> {
        self.open.iter().map(|(n, attempt)| (*n, attempt))
    }

    pub(super) fn get(&self, n: u64) -> Option<&Attempt> {
        self.open.get(&n)
    }

    pub(super) fn get_mut(&mut self, n: u64) -> Option<&mut Attempt> {
        self.open.get_mut(&n)
    }

    /// Records the server's answer that the attempt waits.
    pub(super) fn set_queued(&mut self, id: AttemptId, queued: Queued, now: Instant) {
        let Queued { sent, asked, holder_left, call_again } = queued;
        let Some(attempt) = self.open.get_mut(&id.n) else { return };
        attempt.asked = asked;
        attempt.counted_from = sent;
        attempt.unanswered = None;
        attempt.queued_at.get_or_insert(now);
        self.inboxes.add(&attempt.keys, id.n);
        if attempt.outcome.is_some() {
            return;
        }
        self.heartbeats.insert(&attempt.keys, id.n, ticket_ttl(attempt.lease), sent, now, holder_left);
        // The message of the grant may have been lost in a gap while the attempt was not yet known to wait.
        let mut missed = self.last_gap.max(self.inboxes.last_gap(&attempt.keys)).is_some_and(|gap| gap >= sent);
        if mutant::on(Mutant::GapBeforeAnswerForgotten) {
            missed = false;
        }
        if call_again || missed {
            self.heartbeats.heartbeat_soon(&attempt.keys, now);
        }
    }

    /// Sets the outcome of the attempt. The first outcome stays until it is taken.
    pub(super) fn set_outcome(&mut self, n: u64, outcome: Outcome) {
        if let Some(attempt) = self.open.get_mut(&n)
            && attempt.outcome.is_none()
        {
            attempt.outcome = Some(outcome);
            self.woken.extend(attempt.waker.take());
        }
    }

    /// Takes the outcome of the attempt. While there is none, `waker` is swapped with the waker stored before.
    pub(super) fn poll(&mut self, id: AttemptId, waker: &mut Option<Waker>) -> Poll<Outcome> {
        let Some(attempt) = self.open.get_mut(&id.n) else { return Poll::Ready(Outcome::Closed) };
        if let Some(outcome) = attempt.outcome.take() {
            return Poll::Ready(outcome);
        }
        std::mem::swap(&mut attempt.waker, waker);
        Poll::Pending
    }

    /// The future that waited for the attempt is about to decide it. Woken by its own decision, it would be polled once
    /// more for nothing, and on several threads another one would be woken to do that. The waker is to be dropped once
    /// the tables are unlocked.
    pub(super) fn stop_waiting(&mut self, id: AttemptId) -> Option<Waker> {
        self.open.get_mut(&id.n)?.waker.take()
    }

    /// Removes the attempt. A future that waits for it is woken, and finds it gone.
    pub(super) fn remove(&mut self, n: u64) -> Option<Attempt> {
        let mut attempt = self.open.remove(&n)?;
        if attempt.queued_at.is_some() {
            self.heartbeats.remove(&attempt.keys, n);
            self.inboxes.remove(&attempt.keys, n);
        }
        self.woken.extend(attempt.waker.take());
        Some(attempt)
    }

    /// Whether the ticket of the attempt is nearer to the tail of its queue.
    pub(super) fn is_near_tail(&self, n: u64, now: Instant) -> bool {
        let Some(attempt) = self.open.get(&n) else { return false };
        let goes_first = attempt.keys.kind.claim(attempt.amount).goes_first();
        attempt.queued_at.filter(|_| !goes_first).is_some_and(|at| now.saturating_duration_since(at) < NEAR_TAIL)
    }

    /// Called when a reply that may have carried messages about the name was lost. The heartbeats of its tickets become
    /// due at once, or as soon as a ticket is known to wait.
    pub(super) fn set_reply_lost(&mut self, keys: &Arc<Keys>, now: Instant) {
        if mutant::on(Mutant::UnreadReplyForgotten) {
            return;
        }
        self.last_gap = Some(now);
        self.heartbeats.heartbeat_soon(keys, now);
    }

    /// Called when messages may have been missed. The heartbeats of all tickets become due at once.
    pub(super) fn set_gap(&mut self, now: Instant) {
        self.last_gap = Some(now);
        if mutant::on(Mutant::NoHeartbeatAfterGap) {
            return;
        }
        self.heartbeats.heartbeat_all(now);
    }

    /// Called when messages about keys of the slot may have been missed. The heartbeats of the tickets in the slot
    /// become due at once.
    pub(super) fn set_slot_gap(&mut self, slot: u16, now: Instant) {
        for n in self.inboxes.set_gap(slot, now) {
            if let Some(attempt) = self.open.get(&n) {
                self.heartbeats.heartbeat_soon(&attempt.keys, now);
            }
        }
    }

    /// Records that a heartbeat got no usable answer. Returns the attempts that [give up](Attempt::give_up), with the
    /// time since which they have had no answer.
    pub(super) fn set_unanswered(
        &mut self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        (failure, retry_timeout): (&Failure, Duration),
    ) -> Vec<(u64, Instant)> {
        // The next heartbeat is due before a ticket expires.
        let (mut longest, mut least) = (Duration::MAX, Duration::MAX);
        let mut failed = Vec::new();
        for &id in ids {
            let Some(attempt) = self.open.get_mut(&id) else { continue };
            let since = attempt.unanswered.as_ref().map_or(sent, |unanswered| unanswered.since);
            let give_up = attempt.give_up(since, failure, retry_timeout);
            attempt.unanswered = Some(Box::new(Unanswered { since, give_up, last: failure.clone() }));
            let left = give_up.saturating_duration_since(now);
            if left.is_zero() {
                self.heartbeats.remove(keys, id);
                failed.push((id, since));
            } else {
                (longest, least) = (longest.min(ticket_ttl(attempt.lease) / 6), least.min(left));
            }
        }
        self.heartbeats.unanswered(keys, now, longest, least);
        failed
    }

    /// How the last heartbeat of the name failed. The ticket that is due first was in it.
    pub(super) fn why_unanswered(&self, keys: &Arc<Keys>) -> Option<&Failure> {
        let first = self.heartbeats.first(keys)?;
        self.get(first)?.unanswered.as_deref().map(|unanswered| &unanswered.last)
    }

    /// Called when the server has answered no heartbeat for the client's retry timeout. Returns all attempts that have
    /// waited for as long, and whose lease is over if they have one, because a name may have had no heartbeat of its
    /// own if more names wait than calls may be under way.
    pub(super) fn set_silent(&mut self, since: Instant, now: Instant) -> Vec<u64> {
        let waits = |attempt: &Attempt| {
            attempt.outcome.is_none()
                && attempt.queued_at.is_some_and(|at| at <= since)
                && attempt.lease_ends().is_none_or(|ends| ends <= now)
        };
        let mut failed = Vec::new();
        for (n, attempt) in self.open.iter().filter(|(_, attempt)| waits(attempt)) {
            self.heartbeats.remove(&attempt.keys, *n);
            failed.push(*n);
        }
        failed
    }

    /// The time since which the server has answered no heartbeat. `None` if that is not longer ago than
    /// `retry_timeout`.
    pub(super) fn silent_since(
        &mut self,
        failure: &Failure,
        sent: Instant,
        now: Instant,
        retry_timeout: Duration,
    ) -> Option<Instant> {
        if !failure.kind().is_retryable() || retry_timeout.is_zero() {
            return None;
        }
        let since = self.silence.goes_on(sent, now);
        (now.saturating_duration_since(since) >= retry_timeout).then_some(since)
    }

    /// The wakers of all attempts that are decided or removed. The caller takes them.
    pub(super) fn woken(&mut self) -> &mut Wakers {
        &mut self.woken
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.heartbeats.is_empty() && self.inboxes.waiting() == 0
    }
}
