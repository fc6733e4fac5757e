//! A hold that is a part of another one: the vote of one server for a hold that several servers grant together.

use std::fmt;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::mutex::lock;

/// A hold with parts.
pub(crate) trait Whole: fmt::Debug + Send + Sync {
    /// A client has closed, and is about to give back the part that it holds. Called with the client's tables locked.
    /// Must lock no tables and wake no task.
    fn part_closed(&self);
}

/// What a hold is a part of, if it is. On the heap, because most holds are a part of nothing.
#[derive(Debug, Default)]
pub(super) struct PartOf(OnceLock<Box<Part>>);

#[derive(Debug)]
struct Part {
    whole: Weak<dyn Whole>,
    /// A reference that is kept until the tables are unlocked, because dropping the last one locks tables.
    told: Mutex<Option<Arc<dyn Whole>>>,
}

impl PartOf {
    pub(super) fn set(&self, whole: Weak<dyn Whole>) {
        let _ = self.0.set(Box::new(Part { whole, told: Mutex::default() }));
        // The caller reads the state of the part next. A thread that closes the part writes the state first and then
        // looks for the whole. So one of the two threads sees what the other has written.
        fence(Ordering::SeqCst);
    }

    /// Must be followed by [`let_go`](Self::let_go).
    pub(super) fn tell_closed(&self) {
        fence(Ordering::SeqCst);
        if let Some(part) = self.0.get()
            && let Some(whole) = part.whole.upgrade()
        {
            whole.part_closed();
            *lock(&part.told) = Some(whole);
        }
    }

    /// Called with no tables locked.
    pub(super) fn let_go(&self) {
        if let Some(part) = self.0.get() {
            let told = lock(&part.told).take();
            drop(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[derive(Debug, Default)]
    struct Told {
        told: AtomicBool,
        /// The last reference but that of the caller.
        last: Mutex<Option<Arc<Told>>>,
    }

    impl Whole for Told {
        fn part_closed(&self) {
            self.told.store(true, Ordering::SeqCst);
            drop(lock(&self.last).take());
        }
    }

    /// Dropping it would lock tables that are locked already.
    #[test]
    fn the_last_reference_is_kept_while_tables_are_locked() {
        let whole = Arc::new(Told::default());
        *lock(&whole.last) = Some(whole.clone());
        let (part, weak) = (PartOf::default(), Arc::downgrade(&whole));
        part.tell_closed();
        part.let_go();
        let as_whole: Weak<dyn Whole> = weak.clone();
        part.set(as_whole);
        assert!(!whole.told.load(Ordering::SeqCst));
        drop(whole);
        part.tell_closed();
        assert!(weak.upgrade().is_some_and(|whole| whole.told.load(Ordering::SeqCst)));
        part.let_go();
        assert!(weak.upgrade().is_none());
    }
}
