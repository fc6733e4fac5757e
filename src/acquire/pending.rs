//! An attempt on the side of the future that waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::engine::Grant;
use crate::engine::closed::Closed;
use crate::engine::lease::{Hold, Term, deadline};
use crate::engine::turn::AttemptHandoff;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::token::Token;

/// An attempt from before its first request until it is decided. Dropped before that, it goes to the next member of its cohort;
/// without one it is abandoned, and what it has in Redis is cleaned up in the background.
#[derive(Debug)]
pub(crate) struct PendingAttempt<'a> {
    context: &'a Context,
    pub(crate) state: AttemptHandoff,
    /// No other member is to continue it.
    pub(crate) alone: bool,
    decided: bool,
}

impl<'a> PendingAttempt<'a> {
    pub(crate) fn open(context: &'a Context, keys: &Arc<Keys>, amount: u32, lease: Duration) -> Result<Self, Closed> {
        let id = context.engine.open(keys, amount, lease, context.now())?;
        Ok(Self::resume(context, AttemptHandoff::new(id, amount)))
    }

    /// Continues an open attempt.
    pub(crate) fn resume(context: &'a Context, state: AttemptHandoff) -> Self {
        Self { context, state, alone: false, decided: false }
    }

    pub(crate) fn id(&self) -> AttemptId {
        self.state.id
    }

    /// The attempt is a hold of `amount`, granted by a request sent at `sent`. `Ok(None)`: it was revoked, or the client was closed
    /// meanwhile.
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
        let grant = Grant { amount, token, term, deadline: until, replicas };
        Ok(self.context.engine.grant(self.id(), grant, now))
    }

    /// Its ticket belongs to its cohort now.
    pub(crate) fn leave_to_cohort(&mut self) {
        self.decided = true;
    }

    /// The server said that it has nothing of the attempt.
    pub(crate) fn forget(&mut self) {
        self.decided = true;
        self.context.engine.forget(self.id());
    }

    /// Gives the attempt up: what it has in Redis is cleaned up.
    pub(crate) fn abandon(&mut self) {
        self.decided = true;
        self.context.engine.abandon(self.id(), self.context.now());
    }
}

impl Drop for PendingAttempt<'_> {
    fn drop(&mut self) {
        if self.decided {
            return;
        }
        if self.alone {
            self.context.engine.abandon(self.id(), self.context.now());
        } else {
            self.context.engine.drop_pending(self.id(), self.context.now());
        }
    }
}

/// On which terms a hold is granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) term: Term,
    pub(crate) lease: Duration,
    /// How many replicas must acknowledge it.
    pub(crate) replicas: u32,
}

/// The lease had expired when its grant became known.
#[derive(Debug)]
pub(crate) struct GrantExpired;
