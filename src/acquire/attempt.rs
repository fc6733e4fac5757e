//! One attempt id from its first request until it is decided.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use crate::acquire::Request;
use crate::acquire::request::Answer;
use crate::cohort::Member;
use crate::context::{Context, Late, PendingAttempt, Retry};
use crate::engine::lease::{Hold, Term, deadline};
use crate::engine::{AttemptHandoff, Closed, Outcome};
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::kind::Kind;
use crate::protocol::token::Token;

/// What became of an attempt.
pub(super) enum Decision {
    Held(Arc<Hold>),
    Busy,
    /// The latch is open: there is nothing to hold.
    Open,
    /// This attempt id came to nothing; another one may.
    Again,
    /// Its ticket waits for whoever in the cohort is first by then.
    InCohort,
    /// When the grant was known, nothing was left of its lease: it is given back.
    Late,
}

/// One attempt id from its first request until it is decided. Dropped undecided, it is abandoned.
pub(super) struct Attempt<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) request: &'a Request,
    pub(super) until: Option<Instant>,
    pub(super) pending: PendingAttempt<'a>,
    pub(super) amount: u32,
    /// How often the request was sent.
    pub(super) asked: u32,
    /// What the request releases, until the server has answered.
    pub(super) before: Option<Arc<Hold>>,
    /// It has waited, and it is known what became of it.
    decided: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(
        context: &'a Arc<Context>,
        request: &'a Request,
        until: Option<Instant>,
        member: Option<&Member>,
    ) -> Result<Self> {
        let closed = |Closed| request.error(ErrorKind::Closed);
        if let Some(member) = member {
            return Ok(Self::resume(context, request, until, member.open(request).map_err(closed)?));
        }
        let pending = PendingAttempt::open(context, &request.keys, request.amount, request.lease).map_err(closed)?;
        let amount = request.amount;
        Ok(Self { context, request, until, pending, amount, asked: 0, before: None, decided: false })
    }

    /// Goes on with what is open.
    pub(super) fn resume(
        context: &'a Arc<Context>,
        request: &'a Request,
        until: Option<Instant>,
        handoff: AttemptHandoff,
    ) -> Self {
        let AttemptHandoff { id, amount, before, asked, decided } = handoff;
        let pending = PendingAttempt::resume(context, id);
        Self { context, request, until, pending, amount, asked, before, decided }
    }

    pub(super) async fn run(mut self, retry: &mut Retry<'_>) -> Result<Decision> {
        loop {
            // Boxed, or whoever waits would carry for hours what only a request needs.
            let answer =
                if std::mem::take(&mut self.decided) { Answer::Queued } else { Box::pin(self.ask(retry)).await? };
            let decided = match answer {
                Answer::Granted { .. } if self.request.keys.kind == Kind::Latch => return Ok(self.open()),
                Answer::Granted { token, counted_from } => return Ok(self.hold(token, counted_from)),
                Answer::Busy => {
                    self.pending.forget();
                    return Ok(Decision::Busy);
                }
                Answer::Full => {
                    self.pending.forget();
                    return Err(self.request.error(ErrorKind::QueueFull));
                }
                Answer::Over { limit } => {
                    self.pending.forget();
                    let reason = format!("{} permits of {limit}", self.request.amount);
                    let error = Error::because(ErrorKind::OverLimit, self.request.operation, reason);
                    return Err(error.with_name(&self.request.keys.name));
                }
                Answer::Queued => None,
                Answer::QueuedInCohort => {
                    self.pending.leave();
                    return Ok(Decision::InCohort);
                }
                Answer::Decided(outcome) => Some(outcome),
            };
            let outcome = match decided {
                Some(outcome) => outcome,
                None => poll_fn(|context| self.context.engine.poll_outcome(self.pending.id, context)).await,
            };
            match outcome {
                Outcome::Granted { token, mut counted_from } => {
                    if mutant::on(Mutant::LeaseFromMessage) {
                        counted_from = self.context.now();
                    }
                    if self.request.keys.kind == Kind::Latch {
                        return Ok(self.open());
                    }
                    let left = deadline(counted_from, self.request.lease).saturating_duration_since(self.context.now());
                    // If the request was sent twice, the second copy may have queued up anew after the first one's grant
                    // had expired, and this may be that grant: too old to be counted from the second copy.
                    let asked_once = self.asked == 1 || mutant::on(Mutant::GrantTrustedAfterResend);
                    if left >= self.request.lease / 2 && asked_once {
                        return Ok(self.hold(token, counted_from));
                    }
                    // Ask again: the answer is up to date, and starts the lease anew.
                }
                // Asked again, a latch that is not there any more would look like an open one. The ticket may be there
                // still: dropped undecided, it is cancelled.
                Outcome::Gone if self.request.keys.kind == Kind::Latch => {
                    let reason = "the latch ended before it was counted down, or nobody knows";
                    let error = Error::because(ErrorKind::Lost, self.request.operation, reason);
                    return Err(error.with_name(&self.request.keys.name));
                }
                Outcome::Gone => {
                    // If the request was sent twice, a heartbeat may have been answered between the two, and the second copy
                    // has queued up: it is cancelled.
                    if self.asked == 1 || mutant::on(Mutant::GoneTrustedAfterResend) {
                        self.pending.forget();
                    } else {
                        self.pending.abandon();
                    }
                    return Ok(Decision::Again);
                }
                Outcome::Failed(failure) => {
                    self.pending.alone = true;
                    return Err(retry.error(failure));
                }
                Outcome::Closed => return Err(self.request.error(ErrorKind::Closed)),
            }
        }
    }

    /// The latch is open. If the request was sent twice, the second copy may have queued up for the next latch: dropped
    /// undecided, it is cancelled.
    fn open(self) -> Decision {
        if self.asked == 1 {
            self.pending.forget();
        }
        Decision::Open
    }

    fn hold(self, token: Token, counted_from: Instant) -> Decision {
        let Request { renewed, lease, at_most, .. } = *self.request;
        let term = if renewed { Term::capped(counted_from, at_most) } else { Term::Fixed };
        match self.pending.hold(self.amount, token, term, lease, counted_from) {
            Ok(Some(hold)) => Decision::Held(hold),
            Ok(None) => Decision::Again,
            Err(Late) => Decision::Late,
        }
    }
}
