//! How a hold becomes one of more or fewer units.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{HoldOwner, check_not_lost, lost_error};
use crate::acquire::confirm::confirm;
use crate::acquire::pending::{GrantExpired, PendingAttempt, Terms};
use crate::context::Context;
use crate::engine::lease::{Loss, Term};
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::change::Changed;
use crate::protocol::dispatch::ChangeArgs;
use crate::protocol::limits::WRITE;
use crate::protocol::token::Token;
use crate::runtime::timeout;

impl HoldOwner {
    /// Changes the hold to one of `amount` units, or of as many as before if other holders leave no room. The new hold
    /// has a new attempt id in both cases, so that a late copy of the request finds nothing to change. Called by the
    /// last guard of the hold. If the future is dropped half-way, both holds are cleaned up in the background.
    ///
    /// `rest` is another hold of the same name that is given up for the new one, too.
    pub(crate) async fn change(self, operation: &'static str, amount: u32, rest: Option<Self>) -> Result<Self> {
        let (source, old) = (self.source.clone(), self.hold.clone());
        let context = &source.context;
        check_not_lost(&old, operation, context.now())?;
        let holder = self.holder;
        let _ending = context.engine.ending(&old, context.now());
        let _rest_ending = rest.as_ref().map(|rest| context.engine.ending(&rest.hold, context.now()));
        // A fixed lease begins again. A lease that was extended is not shortened.
        let lease = if old.term == Term::Fixed { old.lease.max(old.counted(context.now())) } else { old.lease };
        let Ok(mut pending) = PendingAttempt::open(&**context, &old.keys, amount, lease) else {
            drop(self);
            return Err(context.closed(operation, &old.keys));
        };
        // Declared after `pending`, and therefore dropped before it. The old holds are cancelled first, and a late
        // request then finds nothing to change.
        let (mut this, mut rest) = (self, rest);
        // From here on the server may have ended the old hold, so a renewal that finds it gone means nothing. The new
        // hold does not belong to the cohort.
        if !mutant::on(Mutant::RenewedWhileChanging) {
            context.engine.release(&old, context.now());
        }
        if !mutant::on(Mutant::RestRenewedWhileChanging) {
            rest.iter().for_each(|rest| context.engine.release(&rest.hold, context.now()));
        }
        let rest_id = rest.as_ref().map(|rest| rest.hold.id);
        let changed = {
            let mut asking = pin!(this.ask_to_change(operation, lease, rest_id, &mut pending));
            let left = old.remaining(context.now());
            let changed = timeout(&context.executor, left, asking.as_mut()).await;
            // The engine no longer watches the old hold, so it does not report the loss. When the runtime shuts down,
            // timers end early, and the lease may go on.
            if old.remaining(context.now()).is_zero() {
                context.engine.set_lost(&old, Loss::Expired);
            }
            match changed {
                Some(changed) => changed?,
                None => asking.await?,
            }
        };
        // Tasks that watch the old hold learn that it is over, even if the new one fails.
        let _ = old.release(context.now());
        if let Some(rest) = &mut rest {
            rest.ended = rest.hold.release(context.now()).is_ok();
        }
        let terms = Terms { term: old.term, lease: changed.lease, replicas: old.replicas };
        let hold = match pending.hold(changed.amount, changed.token, terms, changed.sent) {
            Ok(Some(hold)) => hold,
            // Closing has cancelled the attempt.
            Ok(None) if context.engine.is_closed() => return Err(context.closed(operation, &old.keys)),
            Ok(None) => return Err(lost_error(&old, operation, Loss::Revoked)),
            Err(GrantExpired) => return Err(lost_error(&old, operation, Loss::Expired)),
        };
        // A change stores the old hold in full, and then the new one.
        hold.set_in_full();
        let mut owned = Self::new(source.clone(), hold, holder);
        if !confirm(context, operation, &owned.hold).await? {
            let loss = owned.hold.loss(context.now()).unwrap_or(Loss::Gone);
            return Err(lost_error(&owned.hold, operation, loss));
        }
        *owned.kept.get_mut() = *this.kept.get_mut();
        owned.metered = this.metered.take();
        Ok(owned)
    }

    /// Whether the hold has other guards than one that has just given up its share. Without a holder there is one
    /// guard, and who has the hold besides uses it.
    pub(crate) fn has_other_guards(&self) -> bool {
        self.guards.as_ref().is_none_or(|guards| Arc::strong_count(guards) > 1)
    }

    /// Sends requests to change the hold to the pending one, until one is answered.
    async fn ask_to_change(
        &mut self,
        operation: &'static str,
        lease: Duration,
        rest: Option<AttemptId>,
        pending: &mut PendingAttempt<&Context>,
    ) -> Result<NewHold> {
        let (context, old) = (self.context().clone(), self.hold.clone());
        let mut retry = context.retry(operation, &old.keys);
        loop {
            let sent = retry.sends();
            check_not_lost(&old, operation, sent)?;
            // Closing has cancelled the new attempt id. A later request would change the hold for a client that is
            // gone.
            if context.engine.is_closed() {
                return Err(context.closed(operation, &old.keys));
            }
            let lease = old.term.lease(lease, sent);
            let units = pending.state.amount;
            let not_after = context.not_after(sent, retry.limit(sent));
            let token = Some(old.token()).filter(|_| !mutant::on(Mutant::DowngradedToAnotherToken));
            let args = ChangeArgs { old: old.id, rest, new: pending.id(), units, lease, not_after, token };
            let call = pin!(context.scripts().change(&old.keys, WRITE, args));
            match retry.bounded(sent, call).await {
                Ok(Changed::Done { token, call_again, now }) => {
                    self.set_ended(call_again, now);
                    return Ok(NewHold { amount: units, token, lease, sent });
                }
                // Other holders leave no room. The hold continues as it was, under the new attempt id.
                Ok(Changed::Busy { call_again: false, now }) => {
                    self.set_ended(false, now);
                    return Ok(NewHold { amount: old.amount, token: old.token(), lease, sent });
                }
                // There are more expired leases to remove.
                Ok(Changed::Busy { call_again: true, now }) => {
                    context.observe(now);
                    retry.gets_on();
                }
                // The request arrived after `not_after`, and the answer has corrected the estimate of the server's
                // clock.
                Ok(Changed::Stale { now }) => context.observe(now),
                Ok(Changed::NotHeld { call_again, now }) => {
                    self.set_ended(call_again, now);
                    context.engine.set_lost(&old, Loss::Gone);
                    pending.forget();
                    return Err(lost_error(&old, operation, Loss::Gone));
                }
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }
}

/// The answer to a change.
struct NewHold {
    amount: u32,
    token: Token,
    lease: Duration,
    sent: Instant,
}
