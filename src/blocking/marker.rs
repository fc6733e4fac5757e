//! Which threads a guard may move to, as type parameters without values.

use std::marker::PhantomData;
use std::sync::MutexGuard;

#[cfg(doc)]
use crate::Holder;

/// Marks acquisitions and [guards](super::Guard) that belong to the current thread and cannot move to another one.
///
/// A thread re-enters what it holds. If its guard could leave, the thread would still count as the holder: the next job
/// on a pool thread would share the hold, and the token, with the job that has the guard now.
///
/// Some pools run one job inside another, as rayon does while a job waits. Both jobs then run on one thread and count
/// as one holder. Name a holder in each of them to keep them apart.
///
/// A guard of the thread is not `Send`. The compiler says so with the name `NameAHolderToSendTheGuard`: acquire with
/// [`.holder(&Holder::new())`](super::Acquire::holder), as [`AnyThread`] shows.
///
/// ```compile_fail,E0277
/// # async fn example(client: bowline::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let lock = client.lock("orders");
/// let guard = tokio::task::spawn_blocking(move || lock.try_lock().block()).await??;
/// # Ok(()) }
/// ```
///
/// Nor is the builder, because it already names the thread as the holder:
///
/// ```compile_fail,E0277
/// # fn example(client: bowline::blocking::Client) {
/// let lock = client.lock("orders");
/// let acquire = lock.lock();
/// std::thread::scope(|scope| { scope.spawn(|| acquire.block().map(drop)); });
/// # }
/// ```
///
/// An upgrade or a downgrade keeps the marker of the guard:
///
/// ```compile_fail,E0277
/// # fn example(client: bowline::blocking::Client) -> bowline::Result<()> {
/// let reading = client.rw_lock("prices").write().block()?.downgrade()?;
/// std::thread::spawn(move || reading.release());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ThisThread {
    // A `MutexGuard` is `Sync` but not `Send`, as a guard of the thread is.
    _not_send: PhantomData<MutexGuard<'static, NameAHolderToSendTheGuard>>,
}

/// The compiler names this type when a guard of the thread is sent to another one. Acquire with
/// `.holder(&Holder::new())` instead.
#[derive(Debug)]
struct NameAHolderToSendTheGuard;

/// Marks acquisitions and [guards](super::Guard) that may move to any thread: those of an explicit [`Holder`], and
/// permits, which have no holder.
///
/// ```
/// # async fn example(client: bowline::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let lock = client.lock("orders");
/// let job = bowline::Holder::new();
/// let guard = tokio::task::spawn_blocking(move || lock.try_lock().holder(&job).block()).await??;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AnyThread {
    _private: (),
}
