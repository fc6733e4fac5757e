//! The clock.

use std::sync::{Arc, Mutex};

use super::threads::{joined, on_a_thread};
use crate::mutex::lock;
use crate::runtime::Executor;
use crate::testing::report::{Checked, ensure};

/// Several threads read it in turn, so each reading comes after all those before it.
pub(super) fn monotonic(executor: &Arc<dyn Executor>) -> Checked {
    let last = Arc::new(Mutex::new(executor.now()));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (executor, last) = (Arc::clone(executor), Arc::clone(&last));
            on_a_thread(move || {
                (0..1000).find_map(|_| {
                    let mut last = lock(&last);
                    let now = executor.now();
                    let back = last.checked_duration_since(now).filter(|back| !back.is_zero());
                    *last = now;
                    back
                })
            })
        })
        .collect();
    for thread in threads {
        let back = joined(thread)?;
        ensure(back.is_none(), || format!("`now` went back by {:?}", back.unwrap_or_default()))?;
    }
    Ok(())
}
