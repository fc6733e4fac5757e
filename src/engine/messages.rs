//! What a message about an attempt or a hold changes.

use std::time::{Duration, Instant};

use crate::engine::attempt::Outcome;
use crate::engine::cleanup::Cleanup;
use crate::engine::lease::Loss;
use crate::engine::state::State;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::message::Message;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

impl State {
    /// Handles a message for this client. It may come late, twice or never.
    pub(super) fn deliver(&mut self, message: Message, now: Instant) {
        match message {
            Message::Granted { id, .. }
            | Message::Revoked { id }
            | Message::Wanted { id }
            | Message::Asked { id }
            | Message::Ends { id, .. }
                if !self.attempts.is_own(id) => {}
            Message::Granted { id, token, at } => self.deliver_grant(id, token, at, now),
            Message::Revoked { id } => {
                if let Some(attempt) = self.attempts.get_mut(id.n) {
                    attempt.revoked = true;
                }
                self.hold_handler().lose_and_clean_up(id.n, Loss::Revoked, now);
            }
            Message::Wanted { id } => {
                if let Some(attempt) = self.attempts.get_mut(id.n) {
                    attempt.wanted = true;
                }
                if !mutant::on(Mutant::WantedIgnored) {
                    self.handoff_handler().set_wanted(id.n, now);
                }
            }
            Message::Asked { id } => {
                if let Some(attempt) = self.attempts.get_mut(id.n) {
                    (attempt.is_asked_for, attempt.wanted) = (true, true);
                }
                if let Some(hold) = self.holds.get(id.n) {
                    hold.set_asked_to_release();
                }
                if id.is_retained() {
                    self.handoff_handler().set_wanted(id.n, now);
                }
            }
            Message::Open { ids } => {
                for id in self.attempts.own(ids) {
                    let Some(attempt) = self.attempts.get(id.n) else { continue };
                    let outcome = Outcome::Granted { token: Token::NONE, counted_from: attempt.counted_from };
                    self.handoff_handler().decide(id, outcome, now);
                }
            }
            Message::Gone { ids } => {
                for id in self.attempts.own(ids) {
                    self.handoff_handler().decide(id, Outcome::Gone, now);
                }
            }
            Message::Dropped { ids } => {
                for id in self.attempts.own(ids) {
                    let outcome = Outcome::Failed(Box::new(Failure::Dropped), now);
                    self.handoff_handler().decide(id, outcome, now);
                }
            }
            Message::Ends { id, left } => self.deliver_end(id, left, now),
        }
    }

    fn deliver_grant(&mut self, id: AttemptId, token: Token, at: ServerMillis, now: Instant) {
        let Some(attempt) = self.attempts.get(id.n) else {
            // The server had lost the grant but still had the ticket, and has granted it again. Others may have held in
            // between.
            if self.holds.get(id.n).is_some_and(|hold| hold.token() < token) {
                self.hold_handler().lose_and_clean_up(id.n, Loss::Gone, now);
                return;
            }
            if mutant::on(Mutant::LateGrantReleased) {
                let until = self.holds.get(id.n).and_then(|hold| hold.deadline());
                let cleanup = until.and_then(|until| Some(Cleanup::of(self.holds.get(id.n)?, until)));
                cleanup.into_iter().for_each(|cleanup| self.cleanups.push(cleanup));
            }
            if !self.holds.is_held(id.n) && !mutant::on(Mutant::EndedGrantLeft) {
                self.cleanups.end_again(id.n, now);
            }
            return;
        };
        if attempt.is_outdated(at) {
            let keys = attempt.keys.clone();
            self.attempts.heartbeats.heartbeat_soon(&keys, now);
            return;
        }
        let outcome = Outcome::Granted { token, counted_from: attempt.counted_from };
        self.handoff_handler().decide(id, outcome, now);
    }

    /// Handles the message that the ticket waits behind another hold now, whose lease ends earlier than that of the
    /// former hold.
    fn deliver_end(&mut self, id: AttemptId, left: Duration, now: Instant) {
        let Some(attempt) = self.attempts.get(id.n) else { return };
        let keys = attempt.keys.clone();
        match attempt.queued_at {
            Some(_) => self.attempts.heartbeats.holder_ends_at(&keys, now.checked_add(left).unwrap_or(now)),
            // The answer "queued" is still under way, and describes the former hold.
            None => self.attempts.set_reply_lost(&keys, now),
        }
    }
}
