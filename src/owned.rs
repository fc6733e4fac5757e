//! What the guards of one hold share, and how it ends.

use std::sync::Arc;

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
use crate::protocol::reply::Released;
use crate::reentry::Reentry;

/// A hold that this process has to end: shared by the guards of one holder, ended by the last.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) context: Arc<Context>,
    pub(crate) hold: Arc<Hold>,
    /// Whose it is, if it can be re-entered.
    holder: Option<(Holder, Arc<Reentry<Self>>)>,
    /// Where it is passed on, if it is at all.
    member: Option<Member>,
    /// A release may have been executed whose answer is not known.
    asked: bool,
    /// Nothing is left to end: the server has said so, or it was passed on.
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

    /// For the last guard of the hold.
    pub(crate) async fn release(mut self) -> Result<()> {
        if self.hand_off() {
            return Ok(());
        }
        if let Err(loss) = self.hold.release(self.context.now()) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        // Dropped after the hold: what is left of that half way is to be cleaned up before the client is closed.
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
                Ok(Released::Released { more, told: messages, now }) => {
                    this.ended(more, now);
                    context.deliver(messages);
                    return Ok(());
                }
                Ok(Released::NotHeld { more, now }) => {
                    this.ended(more, now);
                    if !may_be_done {
                        return Err(lost_error(&this.hold, "release", Loss::Gone));
                    }
                    context.reply_lost(&this.hold.keys);
                    // The answer to an earlier request was lost, and that one released: the lease was valid then.
                    return Ok(());
                }
                Err(failure) => {
                    if failure.may_be_done() {
                        context.reply_lost(&this.hold.keys);
                        // Whatever comes after it: a request that was not executed takes nothing back.
                        may_be_done = !mutant::on(Mutant::ResentReleaseLost);
                    }
                    retry.again_after(failure).await?;
                }
            }
        }
    }

    /// Turns the hold into one of that many units, or of as many as it had if others are in the way; either way under a
    /// attempt id of its own: a late copy of the request must find nobody. For the last guard of the hold. Dropped half
    /// way, both are cleaned up in the background.
    pub(crate) async fn change(self, operation: &'static str, amount: u32) -> Result<Arc<Self>> {
        let (context, old) = (self.context.clone(), self.hold.clone());
        if let Some(loss) = old.loss(context.now()) {
            return Err(lost_error(&old, operation, loss));
        }
        let holder = self.holder.clone();
        // Others of the holder wait until it is known what there is to enter.
        let vacant = holder.as_ref().map(|(holder, reentry)| reentry.reopen(*holder, &old.keys));
        let _ending = context.engine.ending(&old);
        // A fixed lease begins anew; one that was extended is not shortened.
        let lease = if old.term == Term::Fixed { old.lease.max(old.remaining(context.now())) } else { old.lease };
        let Ok(mut pending) = PendingAttempt::open(&context, &old.keys, amount, lease) else {
            drop(self);
            return Err(context.closed(operation, &old.keys));
        };
        // Dropped before the new one, so that the old one is cancelled first: a late request finds nothing to change.
        let mut this = self;
        // From here on the server may have forgotten the old one, and a renewal that says so means nothing. What becomes of
        // it is not for those in its cohort.
        if !mutant::on(Mutant::RenewedWhileChanging) {
            context.engine.release(&old);
        }
        let mut retry = context.retry(operation, &old.keys.name);
        loop {
            let sent = context.now();
            if let Some(loss) = old.loss(sent) {
                return Err(lost_error(&old, operation, loss));
            }
            // Closing has cancelled the new attempt id: sent after that, the request would change the hold for nobody.
            if context.engine.is_closed() {
                return Err(context.closed(operation, &old.keys));
            }
            let asked = old.term.lease(lease, sent);
            let args = ChangeArgs {
                old: old.id,
                new: pending.id(),
                units: amount,
                lease: asked,
                not_after: context.not_after(sent, None),
            };
            let (amount, token, more, now) = match context.scripts().change(&old.keys, WRITE, args).await {
                // Of a hold that was passed on, the server knows the first token.
                Ok(Answer::Done { token, more, now }) => (amount, token.max(old.token), more, now),
                // Refused: what there was goes on under the new attempt id.
                Ok(Answer::Busy { more: false, now }) => (old.amount, old.token, false, now),
                // Leases are left to end; or the request took longer than the server's clock allowed, and its answer has
                // set our idea of that clock right.
                Ok(Answer::Busy { more: true, now } | Answer::Stale { now }) => {
                    context.observe(now);
                    continue;
                }
                Ok(Answer::NotHeld { more, now }) => {
                    this.ended(more, now);
                    old.lose(Loss::Gone);
                    pending.forget();
                    return Err(lost_error(&old, operation, Loss::Gone));
                }
                Err(failure) => {
                    retry.again_after(failure).await?;
                    continue;
                }
            };
            this.ended(more, now);
            // Whatever comes of the new one, those who watch the old one are told that it is over.
            let _ = old.release(context.now());
            let hold =
                match pending.hold(amount, token, Terms { term: old.term, lease: asked, replicas: old.replicas }, sent)
                {
                    Ok(Some(hold)) => hold,
                    // The client was closed meanwhile, which has cancelled it.
                    Ok(None) => return Err(context.closed(operation, &old.keys)),
                    // Only for a while that nobody has counted: it is given back.
                    Err(GrantExpired) => return Err(lost_error(&old, operation, Loss::Expired)),
                };
            let owned = Self::new(context.clone(), hold, holder.clone());
            if !confirm(&context, operation, &owned.hold).await? {
                return Err(lost_error(&owned.hold, operation, Loss::Gone));
            }
            let owned = Arc::new(owned);
            if let Some(vacant) = vacant {
                vacant.fill(&owned);
            }
            return Ok(owned);
        }
    }

    /// Hands the hold off to the next member of its cohort, if there is one.
    fn hand_off(&mut self) -> bool {
        self.ended |= self.member.take().is_some_and(|member| member.hand_off(&self.hold));
        self.ended
    }

    fn ended(&mut self, more: bool, now: crate::protocol::reply::ServerMillis) {
        self.ended = true;
        self.context.observe(now);
        if more && !mutant::on(Mutant::MoreNotDone) {
            self.context.engine.promote_later(&self.hold.keys, self.context.now(), self.hold.lease);
        }
    }
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
        // What is left of other losses in Redis is cleaned up when they are noticed.
        let leaves = || matches!(self.hold.release(now), Ok(()) | Err(Loss::Expired));
        if leaves() && !mutant::on(Mutant::NoReleaseOnDrop) {
            self.context.engine.release_later(&self.hold, now);
        }
        if self.asked {
            self.context.reply_lost(&self.hold.keys);
        }
    }
}
