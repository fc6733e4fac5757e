//! On which threads a guard may be: types that stand for it, and have no values.

use std::marker::PhantomData;
use std::sync::MutexGuard;

use crate::Holder;

/// Marks acquisitions and [guards](super::Guard) whose holder is the thread: they cannot be sent to another one.
///
/// A thread enters what it holds. If its guard could leave, the thread would hold without knowing: a pool's next job
/// would share the hold, and its token, with whatever has the guard now.
///
/// Where a thread runs one job inside another, as rayon's threads do while they wait, both jobs are one holder: name a
/// holder in each.
///
/// ```compile_fail,E0277
/// # async fn example(client: bowline::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let lock = client.lock("orders");
/// let guard = tokio::task::spawn_blocking(move || lock.try_lock().block()).await??;
/// # Ok(()) }
/// ```
///
/// A builder stays too, because it was made for the thread's holder:
///
/// ```compile_fail,E0277
/// # fn example(client: bowline::blocking::Client) {
/// let lock = client.lock("orders");
/// let acquire = lock.lock();
/// std::thread::scope(|scope| { scope.spawn(|| acquire.block().map(drop)); });
/// # }
/// ```
///
/// So do what an upgrade or a downgrade makes of a guard:
///
/// ```compile_fail,E0277
/// # fn example(client: bowline::blocking::Client) -> bowline::Result<()> {
/// let reading = client.rw_lock("prices").write().block()?.downgrade()?;
/// std::thread::spawn(move || reading.release());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ThisThread {
    // Not `Send`, but `Sync`, as what it stands for.
    _stays: PhantomData<MutexGuard<'static, ()>>,
}

/// Marks acquisitions and [guards](super::Guard) that may go to any thread: those of a [`Holder`] that was named, and
/// permits, which have none.
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
    _goes: (),
}

/// The holder that this thread is. Its number is never given to another thread, not even after this one has ended.
pub(super) fn this_thread() -> Holder {
    thread_local!(static HOLDER: Holder = Holder::new());
    HOLDER.with(|holder| *holder)
}

/// Says by its absence that the thread ends.
struct Alive;

impl Drop for Alive {
    // With a destructor, a local knows that it is gone.
    fn drop(&mut self) {}
}

thread_local!(static ALIVE: Alive = const { Alive });

/// For each time that this thread has blocked: the runtime has made thread-locals by then, and those that were made last
/// are dropped first.
pub(super) fn blocked() {
    let _ = ALIVE.try_with(|_| ());
}

/// This thread drops its locals. Those of the runtime may be gone, and blocking would panic, which ends the process here.
pub(super) fn ends() -> bool {
    ALIVE.try_with(|_| ()).is_err()
}
