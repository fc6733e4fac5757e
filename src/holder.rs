//! The identity that re-entrant acquisitions belong to.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Who holds: acquiring with a holder that holds the lock already gives another guard of the same hold at once,
/// with the same token and without a command. The lock is released when the last of these guards goes.
///
/// Async code has no thread that could say who is asking, so re-entrancy is explicit: without a holder each
/// acquisition stands for itself, and acquiring twice waits for itself. A holder is a plain value; copies are the same
/// holder, and it can be sent to other tasks.
///
/// A holder is one client's: what it holds by one [`Client`](crate::Client) and its clones, it waits for by another, also in
/// the same process. So a holder that acquires one name by two clients waits for itself.
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
    id: u64,
}

impl Holder {
    /// A holder like no other in this process.
    #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed) + 1 }
    }

    /// Makes this the holder of every acquisition inside `future` that names none, on any executor.
    ///
    /// Tasks that `future` spawns are outside: each of their acquisitions stands for itself. Scopes nest; the innermost
    /// counts.
    ///
    /// **Branches of one future are one holder.** Inside a scope, `join!`, `select!` and `FuturesUnordered` run their branches
    /// as parts of `future`, so that all of them enter what one of them holds, at the same time. Where branches must exclude
    /// each other, give each of them a holder of its own, or spawn them as tasks:
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
    /// A branch with a holder of its own waits for what the surrounding scope holds, and for ever if the scope waits for the
    /// branch.
    ///
    /// # Cancel safety
    /// Dropping it drops `future`, and does no more.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        Scope { holder: *self, future: future.as_mut() }.await
    }

    /// The holder of the innermost scope that this code runs in.
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

/// Also when the poll panics.
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
