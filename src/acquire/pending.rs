//! An attempt, as the future that waits for it sees it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::engine::Grant;
use crate::engine::lease::{Hold, Term, deadline};
use crate::engine::turn::{AttemptHandoff, Closed};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::token::Token;

/// An attempt whose outcome is not known yet. If it is dropped, it goes to the next member of its cohort. Without such
/// a member it is abandoned, and its ticket or hold is removed from Redis in the background.
///
/// `C` is a reference to the context: an `Arc`, if the attempt may outlive the future that has opened it.
#[derive(Debug)]
pub(crate) struct PendingAttempt<C: Deref<Target = Context>> {
    context: C,
    pub(crate) state: AttemptHandoff,
    /// Whether the attempt must not go to another member when it is dropped.
    pub(crate) alone: bool,
    decided: bool,
    /// Whether a request without an answer may have been executed.
    pub(super) may_be_done: bool,
}

impl<C: Deref<Target = Context>> PendingAttempt<C> {
    pub(crate) fn open(context: C, keys: &Arc<Keys>, amount: u32, lease: Duration) -> Result<Self, Closed> {
        let id = context.engine.open(keys, amount, lease, context.now())?;
        Ok(Self::resume(context, AttemptHandoff::new(id, amount)))
    }

    /// Continues an open attempt.
    pub(crate) fn resume(context: C, state: AttemptHandoff) -> Self {
        Self { context, state, alone: false, decided: false, may_be_done: false }
    }

    pub(crate) fn id(&self) -> AttemptId {
        self.state.id
    }

    /// The attempt is a hold of `amount`, granted by a request sent at `sent`. `Ok(None)`: it was revoked, or the
    /// client was closed meanwhile.
    pub(crate) fn hold(
        &mut self,
        amount: u32,
        token: Token,
        terms: Terms,
        sent: Instant,
    ) -> Result<Option<Arc<Hold>>, GrantExpired> {
        let (now, until) = (self.context.now(), deadline(sent, terms.lease));
        let mut expired = until <= now;
        if mutant::on(Mutant::LateGrantKept) {
            expired = false;
        }
        if expired {
            self.abandon();
            return Err(GrantExpired);
        }
        self.decided = true;
        let Terms { term, replicas, .. } = terms;
        let at_first = self.state.asked <= 1;
        let grant = Grant { amount, token, term, deadline: until, replicas, at_first };
        Ok(self.context.engine.grant(self.id(), grant, now))
    }

    /// Records that the ticket belongs to the cohort now.
    pub(crate) fn leave_to_cohort(&mut self) {
        self.decided = true;
    }

    /// Records the server's answer that it has neither a ticket nor a hold of the attempt.
    pub(crate) fn forget(&mut self) {
        self.decided = true;
        self.context.engine.forget(self.id());
    }

    /// Records the answer that the server does not take the attempt. A copy of the request that has no answer may still
    /// be executed, and be taken.
    pub(crate) fn turned_away(&mut self) {
        if self.state.asked > 1 { self.abandon() } else { self.forget() }
    }

    /// Gives the attempt up. Its ticket or hold is removed from Redis in the background.
    pub(crate) fn abandon(&mut self) {
        self.decided = true;
        self.context.engine.abandon(self.id(), self.context.now());
    }
}

impl<C: Deref<Target = Context>> Drop for PendingAttempt<C> {
    fn drop(&mut self) {
        if self.decided {
            return;
        }
        if self.alone {
            self.context.engine.abandon(self.id(), self.context.now());
        } else {
            self.context.engine.drop_pending(self.id(), self.state.since, self.context.now());
        }
    }
}

/// The conditions of a hold: its lease, and how many replicas must acknowledge it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) term: Term,
    pub(crate) lease: Duration,
    /// How many replicas must acknowledge the hold.
    pub(crate) replicas: u32,
}

/// The lease had expired when its grant became known.
#[derive(Debug)]
pub(crate) struct GrantExpired;
