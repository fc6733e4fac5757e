//! The holds of each holder, so that re-entry needs no command.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use event_listener::Event;

use crate::holder::Holder;
use crate::mutex::lock;
use crate::protocol::key::Keys;

type Key = (Holder, Arc<Keys>);

/// The holds by holder and name. `T` is what the guards of a hold share.
#[derive(Debug)]
pub(crate) struct Reentry<T> {
    slots: Mutex<HashMap<Key, Slot<T>>>,
}

#[derive(Debug)]
enum Slot<T> {
    /// An acquisition of the holder is under way, and other tasks wait for its outcome.
    Acquiring(Arc<Event>),
    Held(Weak<T>),
}

/// What a holder finds when it acquires.
pub(crate) enum Entry<'a, T> {
    /// The holder already holds the lock.
    Held(Arc<T>),
    /// Another task acquires for the holder. Enter again when this resolves.
    Acquiring(event_listener::EventListener),
    /// The caller has to acquire.
    Vacant(Vacant<'a, T>),
}

impl<T> Reentry<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Mutex::new(HashMap::new()) }
    }

    /// Looks for a hold of the holder. `valid` says whether a hold may still be entered.
    pub(crate) fn enter(&self, holder: Holder, keys: &Arc<Keys>, valid: impl Fn(&T) -> bool) -> Entry<'_, T> {
        let key = (holder, keys.clone());
        // Dropped after the mutex is unlocked. If the other guards have gone meanwhile, this is the last one, and its
        // drop locks the table.
        let mut looked_at: Option<Arc<T>> = None;
        let mut slots = lock(&self.slots);
        match slots.get(&key) {
            Some(Slot::Acquiring(event)) => return Entry::Acquiring(event.listen()),
            Some(Slot::Held(owned)) => looked_at = owned.upgrade(),
            None => {}
        }
        if looked_at.as_deref().is_some_and(valid)
            && let Some(owned) = looked_at.take()
        {
            return Entry::Held(owned);
        }
        let event = Arc::new(Event::new());
        slots.insert(key.clone(), Slot::Acquiring(event.clone()));
        Entry::Vacant(Vacant { reentry: self, key, event, before: None })
    }

    /// What the guards of the holder's hold share, if it has one.
    pub(crate) fn held(&self, holder: Holder, keys: &Arc<Keys>) -> Option<Arc<T>> {
        match lock(&self.slots).get(&(holder, keys.clone())) {
            Some(Slot::Held(owned)) => owned.upgrade(),
            Some(Slot::Acquiring(_)) | None => None,
        }
    }

    /// Called when the hold of the holder is about to change. Until then, no other task enters the hold or acquires for
    /// the holder.
    pub(crate) fn reopen(&self, holder: Holder, keys: &Arc<Keys>) -> Vacant<'_, T> {
        let (key, event) = ((holder, keys.clone()), Arc::new(Event::new()));
        let before = match lock(&self.slots).insert(key.clone(), Slot::Acquiring(event.clone())) {
            Some(Slot::Held(owned)) => Some(owned),
            Some(Slot::Acquiring(_)) | None => None,
        };
        Vacant { reentry: self, key, event, before }
    }

    /// Called when the last guard of a hold is gone.
    pub(crate) fn leave(&self, holder: Holder, keys: &Arc<Keys>) {
        let key = (holder, keys.clone());
        let mut slots = lock(&self.slots);
        if matches!(slots.get(&key), Some(Slot::Held(owned)) if owned.strong_count() == 0) {
            slots.remove(&key);
        }
    }
}

/// The right to acquire for a holder. If it is dropped without a hold, it goes to a task that waits for it, unless the
/// hold that was about to change has other guards.
pub(crate) struct Vacant<'a, T> {
    reentry: &'a Reentry<T>,
    key: Key,
    event: Arc<Event>,
    /// The hold that was about to change.
    before: Option<Weak<T>>,
}

impl<T> Vacant<'_, T> {
    pub(crate) fn fill(self, owned: &Arc<T>) {
        lock(&self.reentry.slots).insert(self.key.clone(), Slot::Held(Arc::downgrade(owned)));
    }
}

impl<T> Drop for Vacant<'_, T> {
    fn drop(&mut self) {
        let mut slots = lock(&self.reentry.slots);
        if matches!(slots.get(&self.key), Some(Slot::Acquiring(event)) if Arc::ptr_eq(event, &self.event)) {
            match self.before.take().filter(|before| before.strong_count() > 0) {
                Some(before) => slots.insert(self.key.clone(), Slot::Held(before)),
                None => slots.remove(&self.key),
            };
        }
        drop(slots);
        self.event.notify(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::protocol::kind::Kind;

    /// Stands in for what guards share. Its drop checks that the table is not locked.
    struct Shared {
        reentry: Arc<Reentry<Self>>,
        holder: Holder,
        keys: Arc<Keys>,
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            assert!(self.reentry.slots.try_lock().is_ok(), "dropped under the lock that it takes itself");
            self.reentry.leave(self.holder, &self.keys);
        }
    }

    /// Another thread drops the last guard of a lost hold while this one looks whether it can be entered.
    #[test]
    fn the_last_guard_may_go_while_its_hold_is_looked_at() {
        let (reentry, holder) = (Arc::new(Reentry::new()), Holder::new());
        let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
        let guard = Arc::new(Shared { reentry: reentry.clone(), holder, keys: keys.clone() });
        let Entry::Vacant(vacant) = reentry.enter(holder, &keys, |_| true) else { panic!("the holder holds nothing") };
        vacant.fill(&guard);
        let guard = Mutex::new(Some(guard));
        let entry = reentry.enter(holder, &keys, |_| {
            drop(lock(&guard).take());
            false
        });
        assert!(matches!(entry, Entry::Vacant(_)));
        drop(entry);
        assert!(lock(&reentry.slots).is_empty());
    }

    fn guard(reentry: &Arc<Reentry<Shared>>, holder: Holder, keys: &Arc<Keys>) -> Arc<Shared> {
        Arc::new(Shared { reentry: reentry.clone(), holder, keys: keys.clone() })
    }

    /// If the first is dropped unfilled, the second acquires. All others are notified of both.
    #[test]
    fn five_tasks_of_one_holder_all_enter() {
        for first_fills in [true, false] {
            let (reentry, holder) = (Arc::new(Reentry::<Shared>::new()), Holder::new());
            let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
            let enter = || reentry.enter(holder, &keys, |_| true);
            let Entry::Vacant(first) = enter() else { panic!("the holder holds nothing") };
            let waiting = |n: usize| {
                let listen = |_| match enter() {
                    Entry::Acquiring(listener) => listener,
                    Entry::Held(_) | Entry::Vacant(_) => panic!("it is being acquired"),
                };
                (0..n).map(listen).collect::<Vec<_>>()
            };
            let mut others = waiting(4);
            let owned = guard(&reentry, holder, &keys);
            if first_fills {
                first.fill(&owned);
            } else {
                drop(first);
                assert!(others.iter_mut().all(|other| other.now_or_never().is_some()), "one of them was not notified");
                let Entry::Vacant(second) = enter() else { panic!("no task acquires") };
                others = waiting(3);
                second.fill(&owned);
            }
            assert!(others.iter_mut().all(|other| other.now_or_never().is_some()), "one of them was not notified");
            for _ in &others {
                assert!(matches!(enter(), Entry::Held(entered) if Arc::ptr_eq(&entered, &owned)));
            }
        }
    }

    #[test]
    fn a_slot_is_freed_with_the_last_guard() {
        let (reentry, holder) = (Arc::new(Reentry::new()), Holder::new());
        for n in 0..10 {
            let keys = Arc::new(Keys::new("p", Kind::Lock, &n.to_string()).unwrap());
            let owned = guard(&reentry, holder, &keys);
            let Entry::Vacant(vacant) = reentry.enter(holder, &keys, |_| true) else {
                panic!("the holder holds nothing")
            };
            vacant.fill(&owned);
            let entered = owned.clone();
            drop(owned);
            assert_eq!(lock(&reentry.slots).len(), 1);
            // The hold is changed to another one.
            let changed = guard(&reentry, holder, &keys);
            reentry.reopen(holder, &keys).fill(&changed);
            drop(entered);
            assert_eq!(lock(&reentry.slots).len(), 1, "the new hold has it now");
            drop(changed);
            assert!(lock(&reentry.slots).is_empty());
            drop(reentry.reopen(holder, &keys));
            assert!(lock(&reentry.slots).is_empty());
        }
    }

    #[test]
    fn a_change_that_is_given_up_leaves_the_hold_to_its_other_guards() {
        let (reentry, holder) = (Arc::new(Reentry::new()), Holder::new());
        let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
        let owned = guard(&reentry, holder, &keys);
        reentry.reopen(holder, &keys).fill(&owned);
        drop(reentry.reopen(holder, &keys));
        let entry = reentry.enter(holder, &keys, |_| true);
        assert!(matches!(&entry, Entry::Held(entered) if Arc::ptr_eq(entered, &owned)));
        drop((entry, owned));
        assert!(lock(&reentry.slots).is_empty());
    }
}
