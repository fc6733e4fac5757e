//! What the guards of one hold share, and how the hold ends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::acquire::confirm::confirm;
use crate::acquire::member::InCohort;
use crate::acquire::pending::{GrantExpired, PendingAttempt, Terms};
use crate::context::Context;
use crate::engine::lease::{Hold, Loss, Term};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::quorum::Ends;
use crate::hold::source::Source;
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::observe::meter::Metered;
use crate::protocol::change::Changed;
use crate::protocol::dispatch::ChangeArgs;
use crate::protocol::limits::WRITE;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

pub(crate) mod release;

/// Who grants the holds of guards.
pub(crate) type HoldSource = Source<HoldOwner>;

/// A hold that this process has to end. The guards of one holder share it, and the last one ends it.
#[derive(Debug)]
pub(crate) struct HoldOwner {
    source: Arc<HoldSource>,
    pub(crate) hold: Arc<Hold>,
    /// The holder that can re-enter the hold, if there is one.
    holder: Option<Holder>,
    /// One reference more for each guard. `None` without a holder, as there can be one guard only.
    pub(crate) guards: Option<Arc<()>>,
    /// The cohort that gets the hold next, if there is one.
    pub(crate) in_cohort: Option<InCohort>,
    /// `None` for the vote of a master: the hold of the quorum is metered.
    metered: Option<Metered>,
    /// Ends the hold on all servers, if several have granted it.
    quorum: Option<Arc<dyn Ends>>,
    /// Whether the hold stays in Redis when its last guard is gone.
    kept: AtomicBool,
    /// Whether a release was sent whose answer is not known.
    asked: bool,
    /// Whether nothing is left to end, because the server has said so or the hold was handed off.
    ended: bool,
}

impl HoldOwner {
    pub(crate) fn new(source: Arc<HoldSource>, hold: Arc<Hold>, holder: Option<Holder>) -> Self {
        Self {
            source,
            hold,
            holder,
            guards: holder.map(|_| Arc::default()),
            in_cohort: None,
            metered: None,
            quorum: None,
            kept: AtomicBool::new(false),
            asked: false,
            ended: false,
        }
    }

    pub(crate) fn metered(mut self, metered: Metered) -> Self {
        self.metered = Some(metered);
        self
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    pub(crate) fn of_quorum(mut self, quorum: Arc<dyn Ends>) -> Self {
        self.quorum = Some(quorum);
        self
    }

    pub(crate) fn quorum(&self) -> Option<&Arc<dyn Ends>> {
        self.quorum.as_ref()
    }

    pub(crate) fn guard_count(&self) -> usize {
        self.guards.as_ref().map_or(1, |guards| Arc::strong_count(guards) - 1)
    }

    /// Changes the hold to one of `amount` units, or of as many as before if other holders leave no room. The new hold
    /// has a new attempt id in both cases, so that a late copy of the request finds nothing to change. Called by the
    /// last guard of the hold. If the future is dropped half-way, both holds are cleaned up in the background.
    pub(crate) async fn change(self, operation: &'static str, amount: u32) -> Result<Arc<Self>> {
        let (source, old) = (self.source.clone(), self.hold.clone());
        let context = &source.context;
        check_not_lost(&old, operation, context.now())?;
        let holder = self.holder;
        // Other tasks of the holder wait until they can enter the new hold.
        let vacant = holder.map(|holder| source.reentry.reopen(holder, &old.keys));
        let _ending = context.engine.ending(&old, context.now());
        // A fixed lease begins again. A lease that was extended is not shortened.
        let lease = if old.term == Term::Fixed { old.lease.max(old.remaining(context.now())) } else { old.lease };
        let Ok(mut pending) = PendingAttempt::open(context, &old.keys, amount, lease) else {
            drop(self);
            return Err(context.closed(operation, &old.keys));
        };
        // Declared after `pending`, and therefore dropped before it. The old hold is cancelled first, and a late
        // request then finds nothing to change.
        let mut this = self;
        // From here on the server may have ended the old hold, so a renewal that finds it gone means nothing. The new
        // hold does not belong to the cohort.
        if !mutant::on(Mutant::RenewedWhileChanging) {
            context.engine.release(&old, context.now());
        }
        let changed = this.ask_to_change(operation, lease, &mut pending).await?;
        // Tasks that watch the old hold learn that it is over, even if the new one fails.
        let _ = old.release(context.now());
        let terms = Terms { term: old.term, lease: changed.lease, replicas: old.replicas };
        let hold = match pending.hold(changed.amount, changed.token, terms, changed.sent) {
            Ok(Some(hold)) => hold,
            // The client was closed meanwhile, and closing has cancelled the attempt.
            Ok(None) => return Err(context.closed(operation, &old.keys)),
            Err(GrantExpired) => return Err(lost_error(&old, operation, Loss::Expired)),
        };
        let mut owned = Self::new(source.clone(), hold, holder);
        if !confirm(context, operation, &owned.hold).await? {
            let loss = owned.hold.loss(context.now()).unwrap_or(Loss::Gone);
            return Err(lost_error(&owned.hold, operation, loss));
        }
        *owned.kept.get_mut() = *this.kept.get_mut();
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
            let args = ChangeArgs { old: old.id, new: pending.id(), units, lease, not_after };
            let call = pin!(context.scripts().change(&old.keys, WRITE, args));
            match retry.bounded(sent, call).await {
                Ok(Changed::Done { token, call_again, now }) => {
                    self.set_ended(call_again, now);
                    // The server knows the first token of a grant. A hold that was handed off has a larger one.
                    return Ok(NewHold { amount: units, token: token.max(old.token()), lease, sent });
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
                    old.lose(Loss::Gone);
                    pending.forget();
                    return Err(lost_error(&old, operation, Loss::Gone));
                }
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }

    /// Whether the hold can outlive its guards.
    pub(crate) fn can_be_kept(&self) -> Result<()> {
        if self.quorum.is_some() {
            let reason = "the hold of a RedLock cannot outlive its guard";
            return Err(Error::because(ErrorKind::InvalidInput, "keep", reason).with_name(&self.hold.keys.name));
        }
        check_not_lost(&self.hold, "keep", self.context().now())
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }

    /// Leaves the hold in Redis. If it has other guards, the last of them does.
    pub(crate) fn keep(self: Arc<Self>) -> Result<()> {
        self.can_be_kept()?;
        self.kept.store(true, Ordering::Release);
        let Some(mut last) = Arc::into_inner(self) else { return Ok(()) };
        if last.keep_or_hand_off() {
            return Ok(());
        }
        // Closing takes the hold away before it tells the hold.
        let unknown = if last.context().engine.is_closed() { Loss::Closed } else { Loss::Expired };
        let loss = last.hold.loss(last.context().now()).unwrap_or(unknown);
        Err(lost_error(&last.hold, "keep", loss))
    }

    /// `true`: nothing is left to release. The hold stays in Redis, because it is kept, or the next member of its
    /// cohort has it.
    fn keep_or_hand_off(&mut self) -> bool {
        let Self { source, hold, in_cohort, kept, .. } = self;
        // A member of the cohort would get fewer units than it has asked for.
        in_cohort.take_if(|_| hold.units.rest().is_some() && !mutant::on(Mutant::SmallerHoldHandedOff));
        if !self.ended && *kept.get_mut() {
            let now = source.context.now();
            // Members of its cohort ask the server from now on, as everybody else.
            self.ended = source.context.engine.leave_in_redis(hold, now) && hold.release(now).is_ok();
        } else {
            self.ended |= in_cohort.take().is_some_and(|cohort| cohort.hand_off(&source.context, hold));
        }
        self.ended
    }

    /// Records the server's answer that the hold is over. `call_again`: the script did not finish.
    fn set_ended(&mut self, call_again: bool, now: ServerMillis) {
        self.ended = true;
        self.context().observe(now);
        if mutant::on(Mutant::MoreNotDone) {
            return;
        }
        if call_again {
            self.context().engine.promote_later(&self.hold.keys, self.context().now(), self.hold.lease);
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

/// Fails if the hold is lost.
pub(crate) fn check_not_lost(hold: &Hold, operation: &'static str, now: Instant) -> Result<()> {
    hold.loss(now).map_or(Ok(()), |loss| Err(lost_error(hold, operation, loss)))
}

pub(crate) fn lost_error(hold: &Hold, operation: &'static str, loss: Loss) -> Error {
    Error::new(ErrorKind::Lost, operation).with_name(&hold.keys.name).with_source(loss)
}

impl Drop for HoldOwner {
    fn drop(&mut self) {
        if let Some(holder) = self.holder {
            self.source.reentry.leave(holder, &self.hold.keys);
        }
        if self.ended || self.keep_or_hand_off() {
            return;
        }
        let now = self.context().now();
        if let Some(quorum) = &self.quorum {
            let _ = self.hold.release(now);
            return quorum.release_later();
        }
        // After any other loss, the engine has already cleaned up.
        let mut release = matches!(self.hold.release(now), Ok(()) | Err(Loss::Expired));
        if mutant::on(Mutant::NoReleaseOnDrop) {
            release = false;
        }
        if release {
            self.context().engine.release_later(&self.hold, now);
        }
        if self.asked {
            self.context().reply_lost(&self.hold.keys);
        }
    }
}
