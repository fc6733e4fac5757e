//! An acquisition that takes the lock by force after a time.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};

use crate::acquire::builder::Acquire;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::guard::LockGuard;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::kind::Kind;
use crate::revoke::{has_ended, take_from};
use crate::runtime::{self, Executor};

const OPERATION: &str = "force_after";

/// The pause before a second look, if it is not known yet who holds.
const PAUSE: Duration = Duration::from_millis(250);

/// The timeout of a second acquisition whose time is over.
const SHORTEST: Duration = Duration::from_millis(1);

/// An acquisition that asks the holder of a lock to release it, and takes the lock by force after a time. Returned by
/// [`Acquire::force_after`]. It resolves to the guard.
///
/// The holder is the one at the time when the acquisition begins to wait. It is [asked](crate::Lock::ask_to_release) at
/// once, and if its hold has not ended after the given time, the lock is [taken](crate::Lock::force_release) from it.
/// The members of a [cohort](Acquire::non_fair) that hand the lock on have one hold. If they hand it to this
/// acquisition while it is taken from them, the acquisition begins again behind those that wait. Others that wait in
/// the queue before this acquisition are served first, and are not pressed.
///
/// A holder that goes on after that has a smaller [token](LockGuard::token) than the next one: the storage rejects it.
///
/// Sends one command more than the acquisition, and two more if somebody holds the lock.
///
/// # Errors
/// - Those of [`Acquire`].
/// - [`InvalidInput`](ErrorKind::InvalidInput): the acquisition is that of a [`RedLock`](crate::RedLock). Nothing was
///   sent.
///
/// # Cancel safety
/// Dropping the future cancels the acquisition in the background. The holder may have been asked, and the lock may have
/// been taken from it.
#[must_use = "an acquisition does nothing unless awaited"]
pub struct ForceAfter<G = LockGuard> {
    pub(crate) acquire: Acquire<G>,
    pub(crate) after: Duration,
}

impl Acquire<LockGuard> {
    /// Asks the holder to release the lock, and takes it by force after that time: see [`ForceAfter`]. Set the other
    /// options before.
    pub fn force_after(self, after: Duration) -> ForceAfter {
        ForceAfter { acquire: self, after }
    }
}

impl ForceAfter {
    async fn forced(self) -> Result<LockGuard> {
        let Self { acquire, after } = self;
        let Some(part) = acquire.parts().first() else { return acquire.acquired().await };
        let primitive = part.primitive.clone();
        let keys = primitive.keys(OPERATION)?;
        if keys.kind != Kind::Lock {
            let reason = "only a lock on one server or cluster can be taken by force";
            return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&keys.name));
        }
        let context = primitive.context();
        let began = context.now();
        // The acquisition is polled first, so that its request is sent first.
        let mut acquiring = Box::pin(acquire.clone().acquired());
        let pressed = match select(&mut acquiring, Box::pin(press(&primitive, after))).await {
            Either::Left((acquired, _)) => return acquired,
            Either::Right((pressed, _)) => pressed?,
        };
        let timeout = acquire.options.choices.timeout;
        let left = || timeout.map(|timeout| timeout.saturating_sub(context.now() - began));
        // Nothing happens if that hold has ended.
        let taking = Box::pin(take_from(&primitive, OPERATION, &pressed.holder));
        match select(&mut acquiring, taking).await {
            // The cohort of this client has handed on the very hold that is taken. Whatever the answer is, the hold may
            // have ended: another copy of the call may have taken it.
            Either::Left((Ok(guard), taking)) if pressed.id == Some(guard.attempt()) => {
                let taken = match left() {
                    Some(left) => runtime::timeout(&context.executor, left, taking).await,
                    None => Some(taking.await),
                };
                has_ended(context, &pressed.holder);
                taken.transpose()?;
            }
            Either::Left((acquired, _)) => return acquired,
            Either::Right((taken, acquiring)) => {
                taken?;
                return acquiring.await;
            }
        }
        match left() {
            Some(left) => acquire.timeout(left.max(SHORTEST)).acquired().await,
            None => acquire.acquired().await,
        }
    }
}

/// The holder that was asked to release.
struct Pressed {
    holder: String,
    /// `None`: bowline did not write the hold.
    id: Option<AttemptId>,
}

/// Asks the present holder, and waits for the time.
async fn press(primitive: &Primitive, after: Duration) -> Result<Pressed> {
    let context = primitive.context();
    let (holder, id) = loop {
        let inspected = primitive.ask(OPERATION, |scripts, keys| scripts.inspect_lock(keys, 0)).await?;
        match inspected.holder.map(|(holder, ..)| (AttemptId::parse(&holder), holder)) {
            // An attempt of this client whose grant is not known yet: perhaps of this acquisition itself.
            Some((Some(id), _)) if context.engine.is_open(id) => {}
            Some((id, holder)) => break (holder, id),
            // It is about to be acquired, by this acquisition or by another one.
            None => {}
        }
        context.executor.sleep(PAUSE).await;
    };
    let now = primitive.ask(OPERATION, |scripts, keys| scripts.ask_to_release(keys, id.as_slice())).await?;
    context.observe(now);
    context.executor.sleep(after).await;
    Ok(Pressed { holder, id })
}

impl<G> ForceAfter<G> {
    pub(crate) fn executor(&self) -> Result<Arc<dyn Executor>> {
        self.acquire.executor()
    }
}

impl IntoFuture for ForceAfter {
    type Output = Result<LockGuard>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.forced())
    }
}

impl<G> fmt::Debug for ForceAfter<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForceAfter").field("after", &self.after).finish_non_exhaustive()
    }
}
