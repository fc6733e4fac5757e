//! The watchdog's side of the engine: what is to be sent, and what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event_listener::EventListener;

use crate::engine::lease::{Hold, Loss, deadline};
use crate::engine::state::{Attempt, Effects, State};
use crate::engine::{Cleanup, Engine, Outcome};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::reply::{HeartbeatReply, TicketState};
use crate::protocol::ticket::{Ticket, ticket_ttl};

/// What the watchdog has to send now.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) renew: Vec<Arc<Hold>>,
    pub(crate) heartbeat: Vec<Heartbeat>,
    /// Each with the number to name it by in [`Engine::cleanup_done`].
    pub(crate) cleanups: Vec<(u64, Cleanup)>,
    /// When to look again.
    pub(crate) next: Option<Instant>,
    /// Nothing is left to do, ever.
    pub(crate) ended: bool,
}

/// Tickets of one name to keep alive, each with the number of its attempt.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub(crate) keys: Arc<Keys>,
    pub(crate) tickets: Vec<(u64, Ticket)>,
}

impl Engine {
    /// To be listened to before [`work`](Self::work) is called.
    pub(crate) fn listen(&self) -> EventListener {
        self.work.listen()
    }

    pub(crate) fn work(&self, now: Instant) -> Work {
        self.change(|state, effects| {
            let mut work = Work::default();

            let due = state.schedule.due(now);
            for id in due.expired {
                // A renewal whose answer was late or lost may have kept it in Redis.
                state.lose_and_clean_up(id, Loss::Expired, now, effects);
            }
            work.renew = due.renew.iter().filter_map(|id| state.holds.get(id).cloned()).collect();

            while let Some((keys, ids)) = state.heartbeats.due(now) {
                let tickets = ids.into_iter().filter_map(|id| {
                    let attempt = state.open.get(&id)?;
                    Some((id, attempt.keys.kind.ticket(self.attempt_id(id), attempt.lease, attempt.amount)))
                });
                work.heartbeat.push(Heartbeat { tickets: tickets.collect(), keys });
            }

            work.cleanups = state.cleanups.begin();
            work.next = state.next();
            state.armed = work.next;
            work.ended = state.ending && state.is_idle();
            // It has just looked.
            effects.work = false;
            work
        })
    }

    /// The server answered a renewal sent at `sent`: these are held, these are not.
    pub(crate) fn renewed(&self, sent: Instant, now: Instant, held: &[Arc<Hold>], gone: &[Arc<Hold>]) {
        self.change(|state, effects| {
            state.silence.ends();
            // It may have been passed on meanwhile: the lease is that of the attempt id.
            let held: Vec<_> =
                held.iter().map(|hold| state.holds.get(&hold.id.n).unwrap_or(hold)).map(Arc::clone).collect();
            for hold in &held {
                let lease = hold.renewal(sent);
                if !lease.is_zero() {
                    hold.extend(deadline(sent, lease), now);
                    state.counted.renewals += 1;
                }
            }
            let deadlines = held.iter().filter_map(|hold| Some((hold.id.n, hold.deadline()?)));
            state.schedule.renewed(deadlines, sent);
            for hold in held.iter().filter(|hold| hold.interval().is_none()) {
                state.schedule.renewed_last(hold.id.n);
            }
            for hold in gone.iter().filter(|_| !mutant::on(Mutant::LossNotSignalled)) {
                // The server may be one that knows less than the one that comes back.
                state.lose_and_clean_up(hold.id.n, Loss::Gone, now, effects);
            }
        });
    }

    /// The server has extended the hold by a request sent at `sent`. Returns the loss if it was lost meanwhile.
    pub(crate) fn extended(&self, hold: &Hold, lease: Duration, sent: Instant, now: Instant) -> Option<Loss> {
        self.change(|state, effects| {
            if let Some(loss) = hold.loss(now) {
                return Some(loss);
            }
            hold.extend(deadline(sent, lease), now);
            if let Some(deadline) = hold.deadline() {
                state.schedule.lengthen(hold.id.n, deadline);
                state.wake_if_sooner(effects);
            }
            None
        })
    }

    /// No answer came to a renewal.
    pub(crate) fn not_renewed(&self, holds: &[Arc<Hold>], now: Instant) {
        if mutant::on(Mutant::RenewalNotRetried) {
            return;
        }
        let ids: Vec<u64> = holds.iter().map(|hold| hold.id.n).collect();
        lock(&self.state).schedule.unanswered(&ids, now);
    }

    /// The server answered a heartbeat of these, sent at `sent`.
    pub(crate) fn heartbeat_reply(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        answer: HeartbeatReply,
    ) {
        let HeartbeatReply { now: server, holder_left, more, tickets } = answer;
        self.change(|state, effects| {
            state.silence.ends();
            let mut waiting = Vec::new();
            for (id, ticket) in ids.iter().copied().zip(tickets) {
                let Some(attempt) = state.open.get_mut(&id) else { continue };
                attempt.unanswered_since = None;
                let outcome = match ticket {
                    TicketState::Waiting => {
                        if !mutant::on(Mutant::LeaseFromFirstRequest) {
                            attempt.counted_from = sent;
                            attempt.waiting_at = server;
                        }
                        waiting.push((id, ticket_ttl(attempt.lease)));
                        None
                    }
                    TicketState::Granted(token) => Some(Outcome::Granted { token, counted_from: sent }),
                    TicketState::Gone => Some(Outcome::Gone),
                };
                if outcome.is_some() || attempt.outcome.is_some() {
                    state.heartbeats.remove(keys, id);
                }
                if let Some(outcome) = outcome {
                    state.decide(self.attempt_id(id), outcome, now, effects);
                }
            }
            state.heartbeats.answered(keys, sent, now, &waiting, holder_left, more);
        });
    }

    /// No usable answer came to a heartbeat. Attempts that had none for as long as `retry_timeout` fail with it.
    pub(crate) fn not_touched(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        failure: &Failure,
        retry_timeout: Duration,
    ) {
        self.change(|state, effects| {
            // The next heartbeat is to be there before a ticket expires, and when somebody's retry timeout is over.
            let mut longest = Duration::MAX;
            for id in ids {
                let Some(attempt) = state.open.get_mut(id) else { continue };
                let since = *attempt.unanswered_since.get_or_insert(sent);
                let left = retry_timeout.saturating_sub(now.saturating_duration_since(since));
                if left.is_zero() {
                    state.heartbeats.remove(keys, *id);
                    state.decide(self.attempt_id(*id), Outcome::Failed(failure.clone()), now, effects);
                } else {
                    longest = longest.min(left).min(ticket_ttl(attempt.lease) / 6);
                }
            }
            state.heartbeats.unanswered(keys, now, longest);
            if failure.kind().is_retryable() && !retry_timeout.is_zero() {
                let since = state.silence.goes_on(sent, now);
                if now.saturating_duration_since(since) >= retry_timeout {
                    self.nobody_is_answered(state, since, now, failure, effects);
                }
            }
        });
    }

    /// The server has been silent for as long as the client's retry timeout. Those fail too who were not touched meanwhile: there
    /// may be more names than touches under way at a time.
    fn nobody_is_answered(
        &self,
        state: &mut State,
        since: Instant,
        now: Instant,
        failure: &Failure,
        effects: &mut Effects,
    ) {
        let waits = |attempt: &Attempt| attempt.outcome.is_none() && attempt.queued_at.is_some_and(|at| at <= since);
        let waiting = state.open.iter().filter(|(_, attempt)| waits(attempt));
        let waiting: Vec<_> = waiting.map(|(id, attempt)| (*id, attempt.keys.clone())).collect();
        for (id, keys) in waiting {
            state.heartbeats.remove(&keys, id);
            state.decide(self.attempt_id(id), Outcome::Failed(failure.clone()), now, effects);
        }
    }

    pub(crate) fn cleanup_done(&self, n: u64) {
        self.change(|state, effects| {
            effects.idle = state.cleanups.done(n) && state.is_idle();
        });
    }
}
