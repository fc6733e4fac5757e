//! Scoped use: acquire, work, release, whatever becomes of the work.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::error::Result;
use crate::hold::covered::covered;
use crate::hold::guard::{Held, protect};

impl<G: Held> Acquire<G> {
    /// Acquires, runs `work` with the guard, and releases, even if the work fails or panics.
    ///
    /// - The release is awaited. If the work panicked, the panic resumes after it.
    /// - If the hold is lost, the work is stopped where it awaits, as by [`protect`](crate::LockGuard::protect).
    /// - The guard that `work` gets shares its hold with `run`. The hold lasts until both are done: until the end of
    ///   the work, even if the work drops its guard earlier, and until the guard is dropped, even if the work returns
    ///   it. A shared hold cannot be [downgraded](crate::WriteGuard::downgrade), and an
    ///   [upgrade](crate::UpgradableGuard::upgrade) is a [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) error.
    ///   Parts that the work [splits](crate::Permit::split) are given back when it drops them. Permits that it merges
    ///   into the guard are released in the background.
    ///
    /// # Errors
    /// - Those of acquiring, as documented for [`Acquire`]. `work` is not called then.
    /// - [`Lost`](crate::ErrorKind::Lost): the hold was lost before the work was done. Another holder may have been
    ///   granted the lock. The output of the work is dropped.
    /// - [`WrongType`](crate::ErrorKind::WrongType), [`Protocol`](crate::ErrorKind::Protocol): the release found
    ///   something that bowline did not write, so the lock may not have excluded others.
    /// - Any other failure of the release is not an error, because the lease covered the work. The release continues in
    ///   the background.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and releases in the background.
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
        run(Box::pin(self.acquired()).await?, work).await
    }
}

impl<G: Held> TryAcquire<G> {
    /// Tries to acquire, runs `work` with the guard, and releases, as [`Acquire::run`] does. `None` means that nothing
    /// was acquired and `work` was not called.
    ///
    /// # Errors
    /// Those of [`Acquire::run`].
    ///
    /// # Cancel safety
    /// That of [`Acquire::run`].
    pub async fn run<F, W>(self, work: F) -> Result<Option<W::Output>>
    where
        F: FnOnce(G) -> W,
        W: Future,
    {
        match Box::pin(self.acquired()).await? {
            Some(guard) => run(guard, work).await.map(Some),
            None => Ok(None),
        }
    }
}

fn run<G, F, W>(guard: G, work: F) -> impl Future<Output = Result<W::Output>>
where
    G: Held,
    F: FnOnce(G) -> W,
    W: Future,
{
    // Does not count as a guard, unlike that of the work, which may outlive the run.
    let own = guard.share();
    // The closure itself may panic, too. On the heap, because the future can have any size and would be copied from
    // frame to frame.
    let work = Box::pin(AssertUnwindSafe(async move { work(guard).await }).catch_unwind());
    async move {
        let worked = protect("run", || own.loss(), own.first_lost(), work).await;
        // On the heap, too, as the future would have room for it while the work runs.
        let released = Box::pin(own.release()).await;
        match worked? {
            Ok(output) => covered(released).map(|()| output),
            Err(panic) => resume_unwind(panic),
        }
    }
}
