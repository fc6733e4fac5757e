//! Locks mutexes without regard to poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ignores that a thread panicked while it held the mutex. No critical section of this crate leaves its value half
/// changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
