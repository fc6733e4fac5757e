//! The part of the engine's interface that the watchdog and the inbox use.

use std::sync::Arc;
use std::time::Instant;

use event_listener::EventListener;

use crate::connection::ConnectionError;
use crate::engine::Engine;
use crate::engine::ahead::Ask;
use crate::engine::heartbeats::unread::{UNREAD, UnreadId};
use crate::engine::lease::Hold;
use crate::engine::work::Work;
use crate::mutant::{self, Mutant};
use crate::observe;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::message::Message;
use crate::protocol::reply::AskedAhead;

/// Until this is dropped, the reply to a release is not read.
#[derive(Debug)]
pub(crate) struct UnreadReply<'a> {
    engine: &'a Engine,
    keys: Arc<Keys>,
    id: UnreadId,
}

impl Drop for UnreadReply<'_> {
    fn drop(&mut self) {
        self.engine.change(|state| state.attempts.heartbeats.read(&self.keys, self.id));
    }
}

impl Engine {
    /// Returns a listener for new work. Listen before calling [`work`](Self::work), so that no work is missed.
    pub(crate) fn listen(&self) -> EventListener {
        self.work.listen()
    }

    pub(crate) fn work(&self, now: Instant) -> Work {
        self.change(|state| state.work(now))
    }

    /// The server answered a renewal sent at `sent`.
    pub(crate) fn renewed(&self, sent: Instant, now: Instant, held: &[Arc<Hold>], gone: &[Arc<Hold>]) {
        self.change(|state| {
            state.attempts.silence.ends();
            state.hold_handler().set_renewed(sent, now, held, gone);
        });
    }

    /// Records that a renewal got no answer.
    pub(crate) fn not_renewed(&self, holds: &[Arc<Hold>], now: Instant) {
        self.change(|state| state.holds.set_unanswered(holds, now));
    }

    /// The server answered a request for the next hand-off budget, sent at `sent`; `None` if no usable answer came.
    pub(crate) fn ahead_answered(&self, ask: &Ask, answer: Option<AskedAhead>, sent: Instant, now: Instant) {
        self.change(|state| state.ahead_answered(ask, answer, sent, now));
    }

    pub(crate) fn cleanup_done(&self, n: u64, was_held: bool) {
        self.change(|state| state.cleanups.done(n, was_held));
    }

    /// The call for the clean-up has failed, and the pause after it is over.
    pub(crate) fn cleanup_again(&self, n: u64, now: Instant) {
        self.change(|state| state.cleanups.again(n, now));
    }

    /// A message came to the inbox.
    pub(crate) fn deliver(&self, message: Message, now: Instant) {
        let asked = if let Message::Asked { id } = message { Some(id) } else { None };
        self.change(|state| state.deliver(message, now));
        let asked = asked.and_then(|id| self.look().holds.get(id.n).cloned());
        asked.into_iter().for_each(|hold| hold.notify_asked());
    }

    /// Whether the outcome of this attempt of the client is not known yet.
    pub(crate) fn is_open(&self, id: AttemptId) -> bool {
        let state = self.look();
        state.attempts.is_own(id) && state.attempts.get(id.n).is_some()
    }

    /// Called when a reply that may have carried messages about the name was lost. The engine asks the server about the
    /// tickets of this name.
    pub(crate) fn reply_lost(&self, keys: &Arc<Keys>, now: Instant) {
        self.change(|state| state.attempts.set_reply_lost(keys, now));
    }

    /// Called when a release of the name is sent. While the returned value exists, the reply has not been read.
    pub(crate) fn unread_reply(&self, keys: &Arc<Keys>, now: Instant) -> UnreadReply<'_> {
        let id = self.change(|state| state.attempts.heartbeats.unread(keys, now + UNREAD));
        UnreadReply { engine: self, keys: keys.clone(), id }
    }

    /// The server refused to restore the subscription.
    pub(crate) fn subscription_refused(&self, refusal: &ConnectionError) {
        self.change(|state| state.stats.subscriptions_refused += 1);
        observe::subscription_refused(refusal);
    }

    /// The server names these holds. Those of this client that were ended before, at a server that it has replaced, are
    /// ended again.
    pub(crate) fn end_again(&self, held: Vec<AttemptId>, now: Instant) {
        self.change(|state| {
            for id in state.attempts.own(held) {
                if !state.holds.is_held(id.n) && !mutant::on(Mutant::EndedNotLookedFor) {
                    state.cleanups.end_again(id.n, now);
                }
            }
        });
    }

    /// Messages may have been missed, and the server may be another one. It is asked about every ticket and every hold,
    /// and the latest releases are repeated.
    pub(crate) fn gap(&self, now: Instant) {
        self.change(|state| {
            state.attempts.set_gap(now);
            state.holds.set_gap(now);
            state.handoff_handler().want_all(now);
            // A client that is closing has ended all attempts and holds already, and its connection ends next.
            if !self.is_closed() {
                state.cleanups.repeat(now);
                state.give_back_again(now);
            }
        });
    }
}
