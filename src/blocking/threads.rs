//! Which threads a guard may move to, as type parameters without values; and the holder of each thread.

use std::marker::PhantomData;
use std::sync::MutexGuard;

use crate::Holder;

/// Marks acquisitions and [guards](super::Guard) that belong to the current thread and cannot move to another one.
///
/// A thread re-enters what it holds. If its guard could leave, the thread would still count as the holder: the next job on a
/// pool thread would share the hold, and the token, with the job that has the guard now.
///
/// Some pools run one job inside another, as rayon does while a job waits. Both jobs then run on one thread and count as one
/// holder. Name a holder in each of them to keep them apart.
///
/// A guard of the thread is not `Send`:
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
    _not_send: PhantomData<MutexGuard<'static, ()>>,
}

/// Marks acquisitions and [guards](super::Guard) that may move to any thread: those of an explicit [`Holder`], and permits,
/// which have no holder.
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

/// The holder of this thread. It is never reused, even after the thread has ended.
pub(super) fn this_thread() -> Holder {
    thread_local!(static HOLDER: Holder = Holder::new());
    HOLDER.with(|holder| *holder)
}

/// A thread-local that is destroyed when the thread ends. Only a type with a destructor reports that it was destroyed.
struct Alive;

impl Drop for Alive {
    fn drop(&mut self) {}
}

thread_local!(static ALIVE: Alive = const { Alive });

/// Makes `ALIVE` after each blocking call. The runtime has made its own thread-locals by then. Thread-locals are destroyed in
/// the reverse order, so `ALIVE` is destroyed before those of the runtime.
pub(super) fn blocked() {
    let _ = ALIVE.try_with(|_| ());
}

/// Whether this thread is destroying its thread-locals. Those of the runtime may be gone, so blocking would panic, and a panic
/// in a destructor of a thread-local aborts the process.
pub(super) fn ends() -> bool {
    ALIVE.try_with(|_| ()).is_err()
}
