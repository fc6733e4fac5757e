//! What the guards of one hold share, and how the hold ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::confirm::confirm;
use crate::acquire::member::Member;
use crate::acquire::pending::{GrantExpired, PendingAttempt, Terms};
use crate::context::Context;
use crate::engine::lease::{Hold, Loss, Term};
use crate::error::{Error, ErrorKind, Result};
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::ChangeArgs;
use crate::protocol::limits::WRITE;
use crate::protocol::permits::reply::Changed as Answer;
use crate::protocol::reply::{Released, ServerMillis};
use crate::protocol::token::Token;
use crate::reentry::Reentry;

/// A hold that this process has to end. The guards of one holder share it, and the last one ends it.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) context: Arc<Context>,
    pub(crate) hold: Arc<Hold>,
    /// The holder, if the hold can be re-entered.
    holder: Option<(Holder, Arc<Reentry<Self>>)>,
    /// The member of a cohort that acquired it, if one did.
    member: Option<Member>,
    /// A release was sent, and its answer is not known.
    asked: bool,
    /// Nothing is left to end: the server has said so, or the hold was handed off.
    ended: bool,
}

impl Owned {
    pub(crate) fn new(context: Arc<Context>, hold: Arc<Hold>, holder: Option<(Holder, Arc<Reentry<Self>>)>) -> Self {
        Self { context, hold, holder, member: None, asked: false, ended: false }
    }

    pub(crate) fn in_cohort(mut self, member: Option<Member>) -> Self {
        self.member = member;
        self
    }

    /// Releases the hold, for its last guard.
    pub(crate) async fn release(mut self) -> Result<()> {
        if self.hand_off() {
            return Ok(());
        }
        if let Err(loss) = self.hold.release(self.context.now()) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        // Declared before `this`, hence dropped after it: a future dropped half-way adds its clean-up before closing may end.
        let context = self.context.clone();
        let _ending = context.engine.ending(&self.hold);
        let mut this = self;
        context.engine.release(&this.hold);
        let _unread = context.engine.unread_reply(&this.hold.keys, context.now());
        let mut retry = context.retry("release", &this.hold.keys.name);
        let mut may_be_done = false;
        loop {
            this.asked = true;
            match context.scripts().release(&this.hold.keys, this.hold.id).await {
                Ok(Released::Released { more: call_again, told: messages, now }) => {
                    this.set_ended(call_again, now);
                    context.deliver(messages);
                    return Ok(());
                }
                Ok(Released::NotHeld { more: call_again, now }) => {
                    this.set_ended(call_again, now);
                    if !may_be_done {
                        return Err(lost_error(&this.hold, "release", Loss::Gone));
                    }
                    context.reply_lost(&this.hold.keys);
                    // The answer to an earlier request was lost, and that request released: the lease was valid then.
                    return Ok(());
                }
                Err(failure) => {
                    if failure.may_be_done() {
                        context.reply_lost(&this.hold.keys);
                        // From now on: a later request that is surely not executed does not change what this one did.
                        may_be_done = true;
                    }
                    if mutant::on(Mutant::ResentReleaseLost) {
                        may_be_done = false;
                    }
                    retry.again_after(failure).await?;
                }
            }
        }
    }

    /// Changes the hold to one of that many units, or of as many as before if others are in the way. Either way the new hold has an
    /// attempt id of its own, so that a late copy of the request finds nothing to change. For the last guard of the hold. If the
    /// future is dropped half-way, both holds are cleaned up in the background.
    pub(crate) async fn change(self, operation: &'static str, amount: u32) -> Result<Arc<Self>> {
        let (context, old) = (self.context.clone(), self.hold.clone());
        if let Some(loss) = old.loss(context.now()) {
            return Err(lost_error(&old, operation, loss));
        }
        let holder = self.holder.clone();
        // Other tasks of the holder wait until the new hold can be entered.
        let vacant = holder.as_ref().map(|(holder, reentry)| reentry.reopen(*holder, &old.keys));
        let _ending = context.engine.ending(&old);
        // A fixed lease begins anew, and one that was extended is not shortened.
        let lease = if old.term == Term::Fixed { old.lease.max(old.remaining(context.now())) } else { old.lease };
        let Ok(mut pending) = PendingAttempt::open(&context, &old.keys, amount, lease) else {
            drop(self);
            return Err(context.closed(operation, &old.keys));
        };
        // Declared after `pending`, hence dropped before it: the old hold is cancelled first, and a late request finds nothing to
        // change.
        let mut this = self;
        // From here on the server may have ended the old hold, and a renewal that says so means nothing. The new hold is not the
        // cohort's.
        if !mutant::on(Mutant::RenewedWhileChanging) {
            context.engine.release(&old);
        }
        let changed = this.ask_to_change(operation, lease, &mut pending).await?;
        // Tasks that watch the old hold are told that it is over, whatever becomes of the new one.
        let _ = old.release(context.now());
        let terms = Terms { term: old.term, lease: changed.lease, replicas: old.replicas };
        let hold = match pending.hold(changed.amount, changed.token, terms, changed.sent) {
            Ok(Some(hold)) => hold,
            // The client was closed meanwhile, which has cancelled the attempt.
            Ok(None) => return Err(context.closed(operation, &old.keys)),
            Err(GrantExpired) => return Err(lost_error(&old, operation, Loss::Expired)),
        };
        let owned = Self::new(context.clone(), hold, holder.clone());
        if !confirm(&context, operation, &owned.hold).await? {
            let loss = owned.hold.loss(context.now()).unwrap_or(Loss::Gone);
            return Err(lost_error(&owned.hold, operation, loss));
        }
        let owned = Arc::new(owned);
        if let Some(vacant) = vacant {
            vacant.fill(&owned);
        }
        Ok(owned)
    }

    /// Sends requests to change the hold to the pending one, until one is answered.
    async fn ask_to_change(
        &mut self,
        operation: &'static str,
        lease: Duration,
        pending: &mut PendingAttempt<'_>,
    ) -> Result<Changed> {
        let (context, old) = (self.context.clone(), self.hold.clone());
        let mut retry = context.retry(operation, &old.keys.name);
        loop {
            let sent = context.now();
            if let Some(loss) = old.loss(sent) {
                return Err(lost_error(&old, operation, loss));
            }
            // Closing has cancelled the new attempt id, so a later request would change the hold for a client that is gone.
            if context.engine.is_closed() {
                return Err(context.closed(operation, &old.keys));
            }
            let lease = old.term.lease(lease, sent);
            let units = pending.state.amount;
            let not_after = context.not_after(sent, None);
            let args = ChangeArgs { old: old.id, new: pending.id(), units, lease, not_after };
            match context.scripts().change(&old.keys, WRITE, args).await {
                Ok(Answer::Done { token, more: call_again, now }) => {
                    self.set_ended(call_again, now);
                    // The server knows the first token of a grant, and a hold that was handed off has a larger one.
                    return Ok(Changed { amount: units, token: token.max(old.token), lease, sent });
                }
                // Others are in the way: the hold goes on as it was, under the new attempt id.
                Ok(Answer::Busy { more: false, now }) => {
                    self.set_ended(false, now);
                    return Ok(Changed { amount: old.amount, token: old.token, lease, sent });
                }
                // Expired leases are left to remove; or the request took longer than `not_after` allowed, and the answer has
                // corrected the estimate of the server's clock.
                Ok(Answer::Busy { more: true, now } | Answer::Stale { now }) => context.observe(now),
                Ok(Answer::NotHeld { more: call_again, now }) => {
                    self.set_ended(call_again, now);
                    old.lose(Loss::Gone);
                    pending.forget();
                    return Err(lost_error(&old, operation, Loss::Gone));
                }
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }

    /// Hands the hold off to the next member of its cohort, if there is one.
    fn hand_off(&mut self) -> bool {
        self.ended |= self.member.take().is_some_and(|member| member.hand_off(&self.hold));
        self.ended
    }

    /// The server has answered that the hold is over. `call_again`: the script did not finish.
    fn set_ended(&mut self, call_again: bool, now: ServerMillis) {
        self.ended = true;
        self.context.observe(now);
        if mutant::on(Mutant::MoreNotDone) {
            return;
        }
        if call_again {
            self.context.engine.promote_later(&self.hold.keys, self.context.now(), self.hold.lease);
        }
    }
}

/// The answer to a change.
struct Changed {
    amount: u32,
    token: Token,
    lease: Duration,
    sent: Instant,
}

pub(crate) fn lost_error(hold: &Hold, operation: &'static str, loss: Loss) -> Error {
    Error::new(ErrorKind::Lost, operation).with_name(&hold.keys.name).with_source(loss)
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some((holder, reentry)) = &self.holder {
            reentry.leave(*holder, &self.hold.keys);
        }
        if self.ended || self.hand_off() {
            return;
        }
        let now = self.context.now();
        // After any other loss, the engine has cleaned up already.
        let mut release = matches!(self.hold.release(now), Ok(()) | Err(Loss::Expired));
        if mutant::on(Mutant::NoReleaseOnDrop) {
            release = false;
        }
        if release {
            self.context.engine.release_later(&self.hold, now);
        }
        if self.asked {
            self.context.reply_lost(&self.hold.keys);
        }
    }
}
