//! The watchdog's and the inbox's side of the engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use event_listener::EventListener;

use crate::connection::ConnectionError;
use crate::engine::Engine;
use crate::engine::heartbeats::unread::UnreadId;
use crate::engine::lease::Hold;
use crate::engine::work::Work;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::message::Message;
use crate::protocol::reply::HeartbeatReply;
use crate::trace;

/// After this time without a reply to a release, the client's waiters ask for themselves: the reply may be late, or its future may
/// not be polled.
const UNREAD: Duration = Duration::from_millis(50);

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
    /// To be listened to before [`work`](Self::work) is called.
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

    /// No answer came to a renewal.
    pub(crate) fn not_renewed(&self, holds: &[Arc<Hold>], now: Instant) {
        self.change(|state| state.holds.set_unanswered(holds, now));
    }

    /// The server answered a heartbeat of these tickets, sent at `sent`.
    pub(crate) fn heartbeat_answered(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        reply: HeartbeatReply,
    ) {
        self.change(|state| state.heartbeat_answered(keys, ids, sent, now, reply));
    }

    /// No usable answer came to a heartbeat. Attempts that had none for as long as `retry_timeout` fail.
    pub(crate) fn heartbeat_failed(
        &self,
        keys: &Arc<Keys>,
        ids: &[u64],
        sent: Instant,
        now: Instant,
        failure: &Failure,
        retry_timeout: Duration,
    ) {
        self.change(|state| state.heartbeat_failed(keys, ids, sent, now, failure, retry_timeout));
    }

    pub(crate) fn cleanup_done(&self, n: u64) {
        self.change(|state| state.cleanups.done(n));
    }

    /// A message came to the inbox.
    pub(crate) fn deliver(&self, message: Message, now: Instant) {
        self.change(|state| state.deliver(message, now));
    }

    /// A reply that may have had messages about the name was lost. The server is asked about the tickets of the name.
    pub(crate) fn reply_lost(&self, keys: &Arc<Keys>, now: Instant) {
        self.change(|state| state.attempts.set_reply_lost(keys, now));
    }

    /// A release of the name is sent. Until the returned value is dropped, its reply is not read.
    pub(crate) fn unread_reply(&self, keys: &Arc<Keys>, now: Instant) -> UnreadReply<'_> {
        let id = self.change(|state| state.attempts.heartbeats.unread(keys, now + UNREAD));
        UnreadReply { engine: self, keys: keys.clone(), id }
    }

    /// The server refused to restore the subscription.
    pub(crate) fn subscription_refused(&self, refusal: &ConnectionError) {
        self.change(|state| state.stats.subscriptions_refused += 1);
        trace::subscription_refused(refusal);
    }

    /// Messages may have been missed. The server is asked about every ticket and every hold.
    pub(crate) fn gap(&self, now: Instant) {
        self.change(|state| {
            state.attempts.set_gap(now);
            state.holds.set_gap(now);
        });
    }
}
