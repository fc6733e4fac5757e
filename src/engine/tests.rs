use futures::FutureExt;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::*;
use crate::cohort::budget::HandoffBudget;
use crate::cohort::id::CohortId;
use crate::engine::attempt::{Outcome, Queued};
use crate::engine::cleanup::Cleanup;
use crate::engine::lease::{Hold, Loss, Term, deadline};
use crate::engine::turn::{AttemptHandoff, CannotJoin, Turn};
use crate::engine::work::Work;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::limits::HANDOFF_BUDGET;
use crate::protocol::reply::{HeartbeatReply, TicketState};
use crate::protocol::token::Token;
use crate::runtime::an_instant;
use crate::stats::Stats;

mod ahead;
mod cleanups;
mod cohort;
mod confirmations;
mod counts;
mod endings;
mod handed_off;
mod heartbeat_reply;
mod identity;
mod idle;
mod inbox;
mod parties;
mod slots;
mod storm;
mod terms;
mod turns;

const LEASE: Duration = Duration::from_secs(30);

struct Setup {
    engine: Engine,
    now: Instant,
}

fn setup() -> Setup {
    Setup { engine: Engine::new(Uuid::from_u128(1), false), now: an_instant() }
}

fn keys(name: &str) -> Arc<Keys> {
    Arc::new(Keys::new("p", Kind::Lock, name).unwrap())
}

impl Engine {
    /// Adds a member whose task nothing wakes.
    fn join_asleep(&self, cohort: &CohortId, max_waiters: u32) -> Result<u64, CannotJoin> {
        self.join(cohort, max_waiters, Some(Waker::noop()), an_instant()).map(|joined| joined.number)
    }
}

/// A client may have very many waiters, and up to half of a table is unused.
#[test]
fn the_entry_of_an_attempt_is_small() {
    assert!(size_of::<(u64, attempt::Attempt)>() <= 168);
}

impl Setup {
    fn open(&self, keys: &Arc<Keys>) -> AttemptId {
        self.engine.open(keys, 1, LEASE, self.now).unwrap()
    }

    fn queue(&self, id: AttemptId) {
        let queued = Queued { sent: self.now, asked: 1, holder_left: Some(LEASE), call_again: false };
        assert!(!self.engine.queued(id, queued, self.now));
    }

    fn waits(&self, keys: &Arc<Keys>) -> AttemptId {
        let id = self.open(keys);
        self.queue(id);
        id
    }

    fn grant(&self, id: AttemptId, renewed: bool) -> Arc<Hold> {
        let term = if renewed { Term::Renewed } else { Term::Fixed };
        self.engine.hold(id, 1, Token::new(7), term, self.now + LEASE, self.now).unwrap()
    }

    fn holds(&self, keys: &Arc<Keys>) -> Arc<Hold> {
        self.grant(self.open(keys), true)
    }

    /// Answers that all tickets are in this state, at this time of the server's clock.
    fn heartbeat_reply(&self, keys: &Arc<Keys>, ids: &[u64], server: u64, state: TicketState) {
        let answer = HeartbeatReply {
            now: server,
            holder_left: Some(LEASE),
            call_again: false,
            tickets: vec![state; ids.len()],
        };
        self.engine.heartbeat_answered(keys, ids, self.now, self.now, answer);
    }

    /// Ends the calls of this work, as if the server had answered.
    fn answer(&self, work: &Work) {
        for heartbeat in &work.heartbeat {
            let ids: Vec<u64> = heartbeat.tickets.iter().map(|(id, ..)| *id).collect();
            self.heartbeat_reply(&heartbeat.keys, &ids, 0, TicketState::Waiting);
        }
        for (n, _) in &work.cleanups {
            self.engine.cleanup_done(*n, false);
        }
    }

    /// Ends all clean-ups that are due.
    fn clean_up(&self) {
        loop {
            let work = self.engine.work(self.now);
            if work.cleanups.is_empty() {
                return;
            }
            self.answer(&work);
        }
    }

    /// Everything that has begun has ended, and left nothing behind.
    #[track_caller]
    fn assert_empty(&self) {
        self.clean_up();
        let state = lock(&self.engine.state);
        assert!(state.attempts.is_empty() && state.holds.is_empty() && state.cohorts.is_empty(), "{state:?}");
        assert!(state.cleanups.is_empty() && state.cleanups.is_idle() && state.next().is_none(), "{state:?}");
        assert!(state.aheads.is_empty() && state.idles.is_empty(), "{state:?}");
        drop(state);
        let Stats { held, waiting, .. } = self.engine.stats();
        assert_eq!((held, waiting), (0, 0));
    }
}
