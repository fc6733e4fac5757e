//! Scoped use: acquire, work, release, whatever becomes of the work.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::error::{ErrorKind, Result};
use crate::guard::{Acquired, Held, protect, release};
use crate::owned::Owned;

impl<G: Held> Acquire<G> {
    /// Acquires, runs `work` with the guard, and releases, whatever becomes of the work.
    ///
    /// - The release is awaited, also when the work returns an error of its own, and when it panics: the panic goes on after
    ///   the release.
    /// - The work is stopped at its next await when the lease is lost, as by [`protect`](crate::LockGuard::protect).
    /// - The guard that the work is given shares its hold with `run`: the hold lasts as long as the work, also if the work
    ///   drops the guard before. If the guard outlives the work, the hold lasts as long as the guard. A shared hold is
    ///   neither [downgraded](crate::WriteGuard::downgrade) nor [upgraded](crate::ReadGuard::try_upgrade).
    ///
    /// # Errors
    /// - Those of acquiring, as documented for [`Acquire`]; `work` is not called then.
    /// - [`Lost`](ErrorKind::Lost): the lease was over before the work was. Another holder may have been let in, and what the
    ///   work has returned, if it was done, is dropped.
    /// - A release that fails otherwise is no error: by the client's own count the lease covered the work. The release goes on
    ///   in the background. Only a key that does not hold what bowline wrote ([`WrongType`](ErrorKind::WrongType)), or a reply
    ///   that bowline's scripts never give ([`Protocol`](ErrorKind::Protocol)), is an error, because nothing vouches for the
    ///   lock then.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and releases in the background.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: bowline::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn write(_: bowline::Token) -> std::io::Result<u64> { Ok(1) }
    /// let orders = client.lock("orders:42");
    /// let written = orders.lock().run(|guard| async move { write(guard.token()).await }).await??;
    /// # Ok(()) }
    /// ```
    pub async fn run<F, W>(self, work: F) -> Result<W::Output>
    where
        F: FnOnce(G) -> W,
        W: Future,
    {
        run(Box::pin(self.owned()).await?, work).await
    }
}

impl<G: Held> TryAcquire<G> {
    /// As [`Acquire::run`]. `None`: nothing was acquired, and `work` was not called.
    ///
    /// # Errors
    /// As [`Acquire::run`].
    ///
    /// # Cancel safety
    /// As [`Acquire::run`].
    pub async fn run<F, W>(self, work: F) -> Result<Option<W::Output>>
    where
        F: FnOnce(G) -> W,
        W: Future,
    {
        match Box::pin(self.owned()).await? {
            Some(owned) => run(owned, work).await.map(Some),
            None => Ok(None),
        }
    }
}

async fn run<G, F, W>(owned: Arc<Owned>, work: F) -> Result<W::Output>
where
    G: Held,
    F: FnOnce(G) -> W,
    W: Future,
{
    let shared = G::of(Acquired(owned.clone()));
    // The call of the closure may panic too. On the heap: it is of any size, and would be copied from frame to frame.
    let work = Box::pin(AssertUnwindSafe(async move { work(shared).await }).catch_unwind());
    let worked = protect(&owned, "run", work).await;
    let released = release(owned).await;
    match worked? {
        Ok(output) => covered(released).map(|()| output),
        Err(panic) => resume_unwind(panic),
    }
}

/// Whether the lease covered the work that the release ended.
pub(crate) fn covered(released: Result<()>) -> Result<()> {
    match released {
        Err(error) if matches!(error.kind(), ErrorKind::Lost | ErrorKind::WrongType | ErrorKind::Protocol) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
