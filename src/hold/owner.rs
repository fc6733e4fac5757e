//! What the guards of one hold share, and how the hold ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::acquire::member::InCohort;
use crate::context::Context;
use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind, Result};
use crate::hold::quorum::Ends;
use crate::hold::source::Source;
use crate::holder::Holder;
use crate::mutant::{self, Mutant};
use crate::observe::meter::Metered;
use crate::protocol::reply::ServerMillis;

mod change;
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
    /// `None` for the vote and the turn of a master, where the hold of the quorum is metered, and for what an upgrade
    /// acquires besides.
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

    pub(crate) fn metered(mut self, metered: Option<Metered>) -> Self {
        self.metered = metered;
        self
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    pub(crate) fn holder(&self) -> Option<Holder> {
        self.holder
    }

    pub(crate) fn source(&self) -> &Arc<HoldSource> {
        &self.source
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
