//! The current thread: its holder, how it blocks, and whether it is ending.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::{Error, ErrorKind, Executor, Holder, Result};

/// Blocks this thread until `future` is done.
pub(super) fn block<T: Send>(
    executor: &Arc<dyn Executor>,
    operation: &'static str,
    future: BoxFuture<'_, Result<T>>,
) -> Result<T> {
    let mut output = None;
    let blocked = executor.block_on(Box::pin(async { output = Some(future.await) }));
    mark_alive();
    blocked?;
    output.unwrap_or_else(|| Err(Error::new(ErrorKind::Closed, operation)))
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

/// Makes `ALIVE` after each blocking call. The runtime has made its own thread-locals by then. Thread-locals are
/// destroyed in the reverse order, so `ALIVE` is destroyed before those of the runtime.
fn mark_alive() {
    let _ = ALIVE.try_with(|_| ());
}

/// Whether this thread is destroying its thread-locals. Those of the runtime may be gone, so blocking would panic, and
/// a panic in a destructor of a thread-local aborts the process.
pub(super) fn ends() -> bool {
    ALIVE.try_with(|_| ()).is_err()
}
