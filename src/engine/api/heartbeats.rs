//! What heartbeats bring.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::engine::attempt::Outcome;
use crate::engine::state::State;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::reply::{HeartbeatReply, TicketState};
use crate::protocol::ticket::ticket_ttl;

impl Engine {
    /// The server answered a heartbeat of these tickets, sent at `sent`.
    pub(crate) fn heartbeat_answered(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        reply: HeartbeatReply,
    ) {
        let HeartbeatReply { now: server, holder_left, call_again, tickets } = reply;
        self.change(|state| {
            state.attempts.silence.ends();
            let mut waiting = Vec::new();
            for (n, ticket) in ids.iter().copied().zip(tickets) {
                let Some(attempt) = state.attempts.get_mut(n) else { continue };
                attempt.unanswered = None;
                let outcome = match ticket {
                    TicketState::Waiting => {
                        waiting.push((n, ticket_ttl(attempt.lease)));
                        attempt.set_waiting(sent, server);
                        None
                    }
                    TicketState::Granted(token) => Some(Outcome::Granted { token, counted_from: sent }),
                    TicketState::Gone => Some(Outcome::Gone),
                };
                if outcome.is_some() || attempt.outcome.is_some() {
                    state.attempts.heartbeats.remove(keys, n);
                }
                if let Some(outcome) = outcome {
                    let id = state.attempts.id(n);
                    state.handoff_handler().decide(id, outcome, now);
                }
            }
            state.attempts.heartbeats.answered(keys, sent, now, &waiting, holder_left, call_again);
        });
    }

    /// Records that a heartbeat got no usable answer. Attempts without an answer for `retry_timeout`
    /// fail, but those with a lease not before its end.
    pub(crate) fn heartbeat_failed(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        failure: &Failure,
        retry_timeout: Duration,
    ) {
        let fail = |state: &mut State, n, since| {
            let id = state.attempts.id(n);
            state.handoff_handler().decide(id, Outcome::Failed(Box::new(failure.clone()), since), now);
        };
        self.change(|state| {
            for (n, since) in state.attempts.set_unanswered(keys, ids, sent, now, (failure, retry_timeout)) {
                fail(state, n, since);
            }
            if let Some(since) = state.attempts.silent_since(failure, sent, now, retry_timeout) {
                for n in state.attempts.set_silent(since, now) {
                    fail(state, n, since);
                }
            }
        });
    }
}
