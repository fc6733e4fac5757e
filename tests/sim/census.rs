//! Counts what a run keeps alive: nothing may stay of it, so that any number of runs fit into one process.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    /// By its name, how many of a thing live. A run is on one thread.
    static LIVING: RefCell<BTreeMap<&'static str, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// What is counted has one.
#[derive(Debug)]
pub struct Counted(&'static str);

impl Counted {
    pub fn new(what: &'static str) -> Self {
        LIVING.with_borrow_mut(|living| *living.entry(what).or_default() += 1);
        Self(what)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVING.with_borrow_mut(|living| {
            if let Some(count) = living.get_mut(self.0) {
                *count -= 1;
            }
        });
    }
}

fn living() -> BTreeMap<&'static str, usize> {
    LIVING.with_borrow(|living| living.iter().filter(|(_, count)| **count > 0).map(|(k, n)| (*k, *n)).collect())
}

/// Runs `part`, and fails if anything that it made lives on. The servers of the library, with their Lua, are counted
/// with the machines: each has the executor of one.
pub fn nothing_stays<T>(part: impl FnOnce() -> T) -> T {
    let before = living();
    let output = part();
    assert_eq!(living(), before, "left in memory by a run");
    output
}

#[test]
#[should_panic = "left in memory by a run"]
fn what_stays_is_seen() {
    nothing_stays(|| std::mem::forget(Counted::new("machine")));
}
