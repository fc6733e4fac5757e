//! What the guards of one hold share, and how it ends.

use std::sync::Arc;

use crate::context::{Context, Undecided};
use crate::error::{Error, ErrorKind, Result};
use crate::holder::Holder;
use crate::lease::{Hold, Loss};
use crate::mutant::{self, Mutant};
use crate::reentry::Reentry;
use crate::scripts::dispatch::ChangeArgs;
use crate::scripts::reply::Released;
use crate::scripts::reply::permit::Changed as Answer;

/// A hold that this process has to end: shared by the guards of one holder, ended by the last.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) context: Arc<Context>,
    pub(crate) hold: Arc<Hold>,
    /// Whose it is, if it can be re-entered.
    holder: Option<(Holder, Arc<Reentry<Self>>)>,
    /// The server has confirmed that nothing is left.
    ended: bool,
}

impl Owned {
    pub(crate) fn new(context: Arc<Context>, hold: Arc<Hold>, holder: Option<(Holder, Arc<Reentry<Self>>)>) -> Self {
        Self { context, hold, holder, ended: false }
    }

    /// For the last guard of the hold.
    pub(crate) async fn release(mut self) -> Result<()> {
        if let Err(loss) = self.hold.release(self.context.now()) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        self.context.ledger.release(&self.hold);
        let id = self.hold.id.text();
        let mut tries = self.context.tries("release", &self.hold.keys.name);
        let mut sent_before = false;
        loop {
            match self.context.scripts().release(&self.hold.keys, &id).await {
                Ok(Released::Released { more, now }) => {
                    self.ended(more, now);
                    return Ok(());
                }
                Ok(Released::NotHeld { more, now }) => {
                    self.ended(more, now);
                    // The answer to the first request was lost, and that one released: the lease was valid then.
                    return if sent_before { Ok(()) } else { Err(lost_error(&self.hold, "release", Loss::Gone)) };
                }
                Err(failure) => {
                    sent_before = !mutant::on(Mutant::ResentReleaseLost);
                    tries.again_after(failure).await?;
                }
            }
        }
    }

    /// Turns the hold into one of that many units, under a wire id of its own: a late copy of the request must find
    /// nobody. For the last guard of the hold. Dropped half way, both are cleaned up in the background.
    pub(crate) async fn change(mut self, operation: &'static str, amount: u32) -> Result<Changed> {
        let (context, old) = (self.context.clone(), self.hold.clone());
        if let Some(loss) = old.loss(context.now()) {
            return Err(lost_error(&old, operation, loss));
        }
        let holder = self.holder.clone();
        // Others of the holder wait until it is known what there is to enter.
        let vacant = holder.as_ref().map(|(holder, reentry)| reentry.reopen(*holder, &old.keys));
        let opened = Undecided::open(&context, &old.keys, amount, old.lease);
        let undecided = opened.map_err(|_| context.closed(operation, &old.keys))?;
        let args = ChangeArgs {
            old_id: &old.id.text(),
            new_id: &undecided.id.text(),
            units: amount,
            lease: old.lease,
            limit: old.keys.kind.limit().unwrap_or(amount),
        };
        // From here on the server may have forgotten the old one, and a renewal that says so means nothing.
        if !mutant::on(Mutant::RenewedWhileChanging) {
            context.ledger.release(&old);
        }
        let mut tries = context.tries(operation, &old.keys.name);
        loop {
            let sent = context.now();
            if let Some(loss) = old.loss(sent) {
                return Err(lost_error(&old, operation, loss));
            }
            match context.scripts().change(&old.keys, args).await {
                Ok(Answer::Done { token, more, now }) => {
                    self.ended(more, now);
                    let held = undecided.hold(token, old.renewed, old.lease, sent);
                    // Only for a while that nobody has counted: it is given back.
                    let Ok(Some(hold)) = held else { return Err(lost_error(&old, operation, Loss::Expired)) };
                    let owned = Arc::new(Self::new(context.clone(), hold, holder.clone()));
                    if let Some(vacant) = vacant {
                        vacant.fill(&owned);
                    }
                    return Ok(Changed::To(owned));
                }
                Ok(Answer::Busy { now }) => {
                    context.observe(now);
                    undecided.forget();
                    context.ledger.keep(&old, context.now());
                    let owned = Arc::new(self);
                    if let Some(vacant) = vacant {
                        vacant.fill(&owned);
                    }
                    return Ok(Changed::Not(owned));
                }
                Ok(Answer::NotHeld { more, now }) => {
                    self.ended(more, now);
                    undecided.forget();
                    return Err(lost_error(&old, operation, Loss::Gone));
                }
                Err(failure) => tries.again_after(failure).await?,
            }
        }
    }

    fn ended(&mut self, more: bool, now: crate::scripts::reply::ServerMillis) {
        self.ended = true;
        self.context.observe(now);
        if more && !mutant::on(Mutant::MoreNotDone) {
            self.context.ledger.promote_later(&self.hold.keys, self.context.now(), self.hold.lease);
        }
    }
}

/// What came of [`Owned::change`].
pub(crate) enum Changed {
    To(Arc<Owned>),
    /// Others are in the way; the hold is what it was.
    Not(Arc<Owned>),
}

pub(crate) fn lost_error(hold: &Hold, operation: &'static str, loss: Loss) -> Error {
    Error::new(ErrorKind::Lost, operation).with_name(&hold.keys.name).with_source(loss)
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some((holder, reentry)) = &self.holder {
            reentry.leave(*holder, &self.hold.keys);
        }
        let now = self.context.now();
        // Other losses leave nothing in Redis.
        let leaves = || matches!(self.hold.release(now), Ok(()) | Err(Loss::Expired));
        if !self.ended && leaves() && !mutant::on(Mutant::NoReleaseOnDrop) {
            self.context.ledger.release_later(&self.hold, now);
        }
    }
}
