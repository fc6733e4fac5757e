//! What this client has asked for and what it holds, by attempt id.
//!
//! Every attempt id is decided here, once: delivered (it becomes a hold) or abandoned. Whatever arrives about it later
//! finds nobody and is ignored.
//!
//! | state | becomes, on |
//! |---|---|
//! | open: sent, or waiting in the queue | hold on [`hold`](Engine::hold); gone on [`forget`](Engine::forget), [`abandon`](Engine::abandon), [`close`](Engine::close) |
//! | hold | another guard's under the same attempt id on [`pass`](Engine::pass); gone on [`release`](Engine::release), a loss, [`close`](Engine::close) |

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use event_listener::Event;
use uuid::Uuid;

use crate::engine::lease::{Hold, Loss, Term};
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::ticket::ticket_ttl;
use crate::protocol::token::Token;
use crate::stats::Stats;
use crate::trace;

mod cleanups;
mod cohorts;
mod ends;
mod heartbeats;
pub(crate) mod lease;
mod members;
mod messages;
mod passing;
mod schedule;
mod silence;
mod state;
mod work;

use cleanups::Cleanups;
pub(crate) use cohorts::CohortId;
use cohorts::Cohorts;
pub(crate) use ends::Cleanup;
use heartbeats::Heartbeats;
pub(crate) use members::CannotJoin;
pub(crate) use passing::{AttemptHandoff, Span, Turn};
use schedule::Schedule;
pub(crate) use schedule::answer_within;
use silence::Silence;
use state::{Attempt, Effects, State};
pub(crate) use work::{Heartbeat, Work};

#[derive(Debug)]
pub(crate) struct Engine {
    client: Uuid,
    state: Mutex<State>,
    /// Notified when the watchdog has something to do sooner than it believes.
    work: Event,
    /// Notified when the last clean-up is done.
    idle: Event,
    jitter: AtomicU64,
}

/// What became of an attempt that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds the lock, for its lease counted from then at the earliest.
    Granted { token: Token, counted_from: Instant },
    /// The server does not know it any more.
    Gone,
    /// The server cannot be asked, or says no.
    Failed(Failure),
    /// The client was closed.
    Closed,
}

/// What an attempt waits for, by the answer to a request sent then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) sent: Instant,
    /// So many requests about it were sent.
    pub(crate) asked: u32,
    /// What is left of the lease in the way.
    pub(crate) holder_left: Option<Duration>,
    /// The script is to be called again.
    pub(crate) more: bool,
}

/// The client was closed.
#[derive(Debug)]
pub(crate) struct Closed;

impl Engine {
    pub(crate) fn new(client: Uuid) -> Self {
        let (seed, other) = client.as_u64_pair();
        Self {
            client,
            state: Mutex::new(State {
                open: HashMap::new(),
                holds: HashMap::new(),
                schedule: Schedule::new(Jitter::new(seed)),
                heartbeats: Heartbeats::new(Jitter::new(other)),
                silence: Silence::default(),
                cohorts: Cohorts::new(),
                cleanups: Cleanups::default(),
                ending_holds: BTreeMap::new(),
                last_ending: 0,
                last_id: 0,
                counted: Stats::default(),
                last_gap: None,
                armed: None,
                closed: false,
                ending: false,
                dead: false,
            }),
            work: Event::new(),
            idle: Event::new(),
            jitter: AtomicU64::new(seed ^ other),
        }
    }

    /// Another one each time, and for each client.
    pub(crate) fn jitter_seed(&self) -> u64 {
        self.jitter.fetch_add(1, Ordering::Relaxed)
    }

    fn attempt_id(&self, n: u64) -> AttemptId {
        AttemptId { client: self.client, n }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State, &mut Effects) -> R) -> R {
        let mut effects = Effects::default();
        let result = change(&mut lock(&self.state), &mut effects);
        for (hold, loss) in effects.losses {
            if loss != Loss::Closed {
                trace::lost(&hold.keys.name, &loss);
            }
            hold.lose(loss);
        }
        for waker in effects.wakers {
            waker.wake();
        }
        if effects.work {
            self.work.notify(usize::MAX);
        }
        if effects.idle {
            self.idle.notify(usize::MAX);
        }
        result
    }

    /// A attempt id for a request that waits for nothing.
    pub(crate) fn fresh(&self) -> Result<AttemptId, Closed> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        state.last_id += 1;
        Ok(self.attempt_id(state.last_id))
    }

    /// Begins an attempt under a new attempt id. To be called before anything about it is sent, because its grant can
    /// arrive before the answer to the request.
    pub(crate) fn open(
        &self,
        keys: &Arc<Keys>,
        amount: u32,
        lease: Duration,
        now: Instant,
    ) -> Result<AttemptId, Closed> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        Ok(self.attempt_id(state.open(Attempt::new(keys, amount, lease, now))))
    }

    /// The server answered a request sent at `sent`, the last of so many: the attempt waits in the queue. `true`: for
    /// whoever is first in a cohort by then.
    pub(crate) fn queued(&self, id: AttemptId, queued: Queued, now: Instant) -> bool {
        let Queued { sent, asked, holder_left, more } = queued;
        self.change(|state, effects| {
            state.silence.ends();
            let Some(attempt) = state.open.get_mut(&id.n) else { return false };
            attempt.asked = asked;
            attempt.counted_from = sent;
            attempt.unanswered_since = None;
            attempt.queued_at.get_or_insert(now);
            attempt.before = None;
            if attempt.outcome.is_none() {
                state.heartbeats.insert(&attempt.keys, id.n, ticket_ttl(attempt.lease), sent, now, holder_left);
                // The grant's message may have been missed in a gap that the attempt was not known to wait in.
                let missed = state.last_gap.is_some_and(|gap| gap >= sent);
                if more || (missed && !mutant::on(Mutant::GapBeforeAnswerForgotten)) {
                    state.heartbeats.heartbeat_soon(&attempt.keys, now);
                }
                state.wake_if_sooner(effects);
            }
            state.queued_in_cohort(id, now, effects)
        })
    }

    /// Waits for what becomes of a queued attempt.
    pub(crate) fn poll_outcome(&self, id: AttemptId, context: &mut Context<'_>) -> Poll<Outcome> {
        // Cloned and dropped outside of the lock, as it is other people's code.
        let mut waker = Some(context.waker().clone());
        let mut state = lock(&self.state);
        let polled = match state.open.get_mut(&id.n) {
            None => Poll::Ready(Outcome::Closed),
            Some(attempt) => match attempt.outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    std::mem::swap(&mut attempt.waker, &mut waker);
                    Poll::Pending
                }
            },
        };
        drop(state);
        polled
    }

    /// Decides the attempt: it is a hold from now on. `None` if it was revoked or the client closed meanwhile.
    pub(crate) fn hold(
        &self,
        id: AttemptId,
        amount: u32,
        token: Token,
        term: Term,
        deadline: Instant,
        now: Instant,
    ) -> Option<Arc<Hold>> {
        self.change(|state, effects| {
            let attempt = state.remove_open(id.n, effects)?;
            if attempt.revoked && !mutant::on(Mutant::RevokedGrantHeld) {
                return None;
            }
            let Attempt { keys, lease, member, .. } = attempt;
            let cohort = CohortId::of(&keys, amount);
            let hold = Arc::new(Hold::new(keys, id, amount, token, lease, term, deadline));
            state.counted.acquired += 1;
            state.keep(&hold, deadline, now);
            state.wake_if_sooner(effects);
            if let Some(member) = member {
                state.cohorts.holds(&cohort, member, id.n);
                if !mutant::on(Mutant::OneAsksForPermits) {
                    state.cohorts.settle(&cohort, &mut effects.wakers);
                }
            }
            Some(hold)
        })
    }

    /// Decides the attempt: the server said that nothing of it is left.
    pub(crate) fn forget(&self, id: AttemptId) {
        self.change(|state, effects| state.remove_open(id.n, effects));
    }

    /// Decides the attempt: nobody waits for it any more. What it has in Redis is cleaned up in the background.
    pub(crate) fn abandon(&self, id: AttemptId, now: Instant) {
        self.change(|state, effects| state.give_up(id, now, effects));
    }

    /// Nobody waits for the attempt any more, unless it was made for a cohort, and the next one there goes on with it.
    pub(crate) fn drop_pending(&self, id: AttemptId, now: Instant) {
        self.change(|state, effects| {
            if mutant::on(Mutant::NoCleanUpOnDrop) {
                state.remove_open(id.n, effects);
            } else if !self.hand_on(state, id, now, effects) {
                state.give_up(id, now, effects);
            }
        });
    }

    /// Stops keeping the hold, because it is about to be released.
    pub(crate) fn release(&self, hold: &Hold) {
        if mutant::on(Mutant::RenewalAfterRelease) {
            return;
        }
        self.change(|state, effects| state.end_hold(hold.id.n, effects));
    }

    /// But for the reconnects.
    pub(crate) fn stats(&self) -> Stats {
        let state = lock(&self.state);
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        // Of a cohort, those who wait count, not its tickets.
        let (waiting, tickets) = state.cohorts.all_waiting();
        let waiting = count((state.open.len() + waiting).saturating_sub(tickets));
        Stats { held: count(state.holds.len()), waiting, ..state.counted }
    }
}

#[cfg(test)]
mod tests;
