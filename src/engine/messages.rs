//! What the inbox brings, and what is done when it may have missed something.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::ConnectionError;
use crate::engine::heartbeats::UnreadId;
use crate::engine::lease::Loss;
use crate::engine::{Cleanup, Engine, Outcome};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::protocol::message::Message;
use crate::protocol::token::Token;
use crate::trace;

/// The reply to a release is read sooner, or its future is not polled: then the client's other waiters look for themselves.
const UNREAD: Duration = Duration::from_millis(50);

/// Until this is dropped, the reply to a release is not read.
#[derive(Debug)]
pub(crate) struct Unread<'a> {
    engine: &'a Engine,
    keys: Arc<Keys>,
    id: UnreadId,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        lock(&self.engine.state).heartbeats.read(&self.keys, self.id);
    }
}

impl Engine {
    /// A message from the inbox.
    pub(crate) fn deliver(&self, message: Message, now: Instant) {
        self.change(|state, effects| match message {
            Message::Granted { id, token, at } if id.client == self.client => {
                if let Some(attempt) = state.open.get(&id.n) {
                    if attempt.is_outdated(at) {
                        let keys = attempt.keys.clone();
                        state.heartbeats.heartbeat_soon(&keys, now);
                        state.wake_if_sooner(effects);
                    } else {
                        let counted_from = attempt.counted_from;
                        state.decide(id, Outcome::Granted { token, counted_from }, now, effects);
                    }
                } else if mutant::on(Mutant::LateGrantReleased)
                    && let Some((hold, now)) = state.holds.get(&id.n).and_then(|hold| Some((hold, hold.deadline()?)))
                {
                    state.clean_up(Cleanup::of(hold, now), effects);
                }
            }
            Message::Revoked { id } if id.client == self.client => {
                if let Some(attempt) = state.open.get_mut(&id.n) {
                    attempt.revoked = true;
                }
                state.lose_and_clean_up(id.n, Loss::Revoked, now, effects);
            }
            Message::Open { ids } => {
                for id in ids.iter().filter(|id| id.client == self.client) {
                    if let Some(counted_from) = state.open.get(&id.n).map(|attempt| attempt.counted_from) {
                        state.decide(*id, Outcome::Granted { token: Token::NONE, counted_from }, now, effects);
                    }
                }
            }
            Message::Gone { ids } => {
                for id in ids.iter().filter(|id| id.client == self.client) {
                    state.decide(*id, Outcome::Gone, now, effects);
                }
            }
            Message::Ends { id, left } if id.client == self.client => {
                let Some(attempt) = state.open.get(&id.n) else { return };
                let keys = attempt.keys.clone();
                match attempt.queued_at {
                    Some(_) => state.heartbeats.holder_ends_at(&keys, now.checked_add(left).unwrap_or(now)),
                    // The answer that it waits is under way, and tells of the hold before.
                    None => state.unheard(&keys, now),
                }
                state.wake_if_sooner(effects);
            }
            Message::Granted { .. } | Message::Revoked { .. } | Message::Ends { .. } => {}
        });
    }

    /// Messages about one name may have been missed, in a reply that was not read: the server is asked about its tickets.
    pub(crate) fn unheard(&self, keys: &Arc<Keys>, now: Instant) {
        self.change(|state, effects| {
            state.unheard(keys, now);
            state.wake_if_sooner(effects);
        });
    }

    /// A release of the name is sent. Until this is dropped, its reply is not read.
    pub(crate) fn unread(&self, keys: &Arc<Keys>, now: Instant) -> Unread<'_> {
        let id = self.change(|state, effects| {
            let id = state.heartbeats.unread(keys, now + UNREAD);
            state.wake_if_sooner(effects);
            id
        });
        Unread { engine: self, keys: keys.clone(), id }
    }

    /// The server refuses to send messages, for now.
    pub(crate) fn subscription_refused(&self, refusal: &ConnectionError) {
        lock(&self.state).counted.subscriptions_refused += 1;
        trace::subscription_refused(refusal);
    }

    /// Messages may have been missed: the server is asked about every ticket and every hold.
    pub(crate) fn gap(&self, now: Instant) {
        self.change(|state, effects| {
            state.last_gap = Some(now);
            if !mutant::on(Mutant::NoHeartbeatAfterGap) {
                state.heartbeats.heartbeat_all(now);
            }
            if !mutant::on(Mutant::NoVerifyAfterGap) {
                state.schedule.verify_all(now);
            }
            state.wake_if_sooner(effects);
        });
    }
}
