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
use crate::runtime::Executor;

/// An acquisition that asks the holder of a lock to release it, and takes the lock by force after a time. Returned by
/// [`Acquire::force_after`]. It resolves to the guard.
///
/// The holder is the one at the time when the acquisition begins to wait. It is [asked](crate::Lock::ask_to_release) at
/// once, and if it still holds after the given time, the lock is [taken](crate::Lock::force_release) from it. Others
/// that wait in the queue before this acquisition are served first, and are not pressed.
///
/// A holder that goes on after that has a smaller [token](LockGuard::token) than the next one: the storage rejects it.
///
/// Sends one command more than the acquisition, and two more if somebody holds the lock.
///
/// # Errors
/// - Those of [`Acquire`].
/// - [`InvalidInput`](ErrorKind::InvalidInput): the acquisition is that of a [`RedLock`](crate::RedLock).
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
        let primitive = acquire.parts().first().map(|part| part.primitive.clone());
        let acquiring = acquire.acquired();
        let Some(primitive) = primitive else { return acquiring.await };
        // Polled first, so that its request is sent first.
        match select(Box::pin(acquiring), Box::pin(press(&primitive, after))).await {
            Either::Left((acquired, _)) => acquired,
            Either::Right((Ok(()), acquiring)) => acquiring.await,
            Either::Right((Err(error), _)) => Err(error),
        }
    }
}

/// Asks the present holder, and ends its hold after the time.
async fn press(primitive: &Primitive, after: Duration) -> Result<()> {
    const OPERATION: &str = "force_after";
    let context = primitive.context();
    let keys = primitive.keys(OPERATION)?;
    if keys.kind != Kind::Lock {
        let reason = "only a lock on one server or cluster can be taken by force";
        return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&keys.name));
    }
    let inspected = primitive.ask(OPERATION, |scripts, keys| scripts.inspect_lock(keys, 0)).await?;
    let Some((holder, ..)) = inspected.holder else { return Ok(()) };
    let id: Vec<_> = AttemptId::parse(&holder).into_iter().collect();
    // This acquisition itself: its grant is not confirmed yet.
    if id.iter().any(|id| context.engine.is_open(*id)) {
        return Ok(());
    }
    let now = primitive.ask(OPERATION, |scripts, keys| scripts.ask_to_release(keys, &id)).await?;
    context.observe(now);
    context.executor.sleep(after).await;
    // Of that holder only: nothing happens if it has released.
    let released = primitive.ask(OPERATION, |scripts, keys| scripts.force_release_lock(keys, &holder)).await?;
    context.observe(released.now);
    if released.call_again {
        context.engine.promote_later(keys, context.now(), context.config.lease);
    }
    Ok(())
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
