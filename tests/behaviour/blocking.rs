//! The blocking facade where it differs from the async API: threads as holders, drops that wait, and the places it runs
//! in. Its behaviour otherwise: the suites of the primitives.

mod async_threads;
mod lab;
mod latch;
mod lock;
mod multi_lock;
mod rw_lock;
mod semaphore;
