//! The identity that re-entrant acquisitions belong to.

use std::cell::Cell;
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// The owner of re-entrant holds. A holder that acquires what it already holds gets another guard of the same hold.
///
/// Re-entry returns at once, sends no command and keeps the token. The hold is released when its last guard is dropped
/// or released. [`guard_count`](crate::LockGuard::guard_count) says how many there are. An acquisition can also
/// [deny re-entry](crate::Acquire::deny_reentry).
///
/// Async tasks move between threads, so the thread cannot identify the owner and re-entrancy is explicit. Without a
/// holder, each acquisition is independent: a task that acquires the same lock twice waits for itself. A holder is a
/// plain value. Its copies are the same holder and can be sent to other tasks.
///
/// Re-entry works within one [`Client`](crate::Client) and its clones, and within all [`RedLock`](crate::RedLock)s of
/// the same clients. A holder that acquires one name through two clients
/// waits for itself, even in one process.
///
/// # Examples
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let me = bowline::Holder::new();
/// let orders = client.lock("orders");
/// let outer = orders.lock().holder(&me).await?;
/// let inner = orders.lock().holder(&me).await?; // at once
/// assert_eq!(outer.token(), inner.token());
///
/// // The same, without passing it along:
/// me.scope(async {
///     let inner = orders.lock().await?;
///     inner.release().await
/// })
/// .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    /// Not zero, so that an optional holder takes no more room.
    id: NonZeroU64,
}

impl Holder {
    /// Makes a holder that differs from all others in this process.
    #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { id: NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Runs `future` with this holder as the default of its acquisitions, on any executor.
    ///
    /// Acquisitions that name a holder are not affected. Tasks that `future` spawns are outside of the scope. Scopes
    /// nest, and the innermost applies.
    ///
    /// **All branches of `future` share the holder.** `join!`, `select!` and `FuturesUnordered` run their branches as
    /// parts of `future`, so one branch re-enters what another holds, and both hold it at the same time. If branches
    /// must exclude each other, give each of them its own holder or spawn them as tasks:
    ///
    /// ```
    /// # use bowline::Holder;
    /// # async fn example(lock: bowline::Lock) -> bowline::Result<()> {
    /// # async fn work(lock: &bowline::Lock) -> bowline::Result<()> { lock.lock().await?.release().await }
    /// Holder::new()
    ///     .scope(async {
    ///         // Not `join!(work(&lock), work(&lock))`: both would hold the lock at once.
    ///         let (a, b) = (Holder::new(), Holder::new());
    ///         let (a, b) = futures::join!(a.scope(work(&lock)), b.scope(work(&lock)));
    ///         a.and(b)
    ///     })
    ///     .await
    /// # }
    /// ```
    ///
    /// A branch with its own holder waits for what the surrounding scope holds. If the scope waits for that branch,
    /// both wait forever.
    ///
    /// # Cancel safety
    /// Dropping the future drops `future` and has no other effect.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        Scope { holder: *self, future: future.as_mut() }.await
    }

    /// The holder of the innermost [`scope`](Self::scope) around the caller, if there is one.
    pub fn current() -> Option<Self> {
        CURRENT.get()
    }
}

thread_local! {
    static CURRENT: Cell<Option<Holder>> = const { Cell::new(None) };
}

/// Sets the thread's holder for the duration of each poll.
struct Scope<'a, F> {
    holder: Holder,
    future: Pin<&'a mut F>,
}

impl<F: Future> Future for Scope<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _restore = Restore(CURRENT.replace(Some(self.holder)));
        self.future.as_mut().poll(context)
    }
}

/// Restores the previous holder when it is dropped, even if the poll panics.
struct Restore(Option<Holder>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn scopes_nest_and_end() {
        let (outer, inner) = (Holder::new(), Holder::new());
        assert_ne!(outer, inner);
        assert_eq!(Holder::current(), None);
        let seen = outer
            .scope(async { (Holder::current(), inner.scope(async { Holder::current() }).await, Holder::current()) });
        assert_eq!(seen.now_or_never(), Some((Some(outer), Some(inner), Some(outer))));
        assert_eq!(Holder::current(), None);
    }

    #[test]
    fn a_scope_covers_its_future_only_while_it_is_polled() {
        let holder = Holder::new();
        let mut scoped = Box::pin(holder.scope(futures::future::pending::<()>()));
        assert!(scoped.as_mut().now_or_never().is_none());
        assert_eq!(Holder::current(), None);
    }

    #[test]
    fn a_panic_inside_does_not_leak_the_holder() {
        let holder = Holder::new();
        let scoped = std::panic::AssertUnwindSafe(holder.scope(async { panic!("on purpose") }));
        assert!(scoped.catch_unwind().now_or_never().unwrap().is_err());
        assert_eq!(Holder::current(), None);
    }
}
