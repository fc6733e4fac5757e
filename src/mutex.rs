//! Locking a mutex whose critical sections cannot leave it half changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere while the mutex was held is not this caller's to repeat.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
