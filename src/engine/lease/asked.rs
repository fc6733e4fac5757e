//! Whether a program has asked the holder to release.

use std::sync::atomic::{Ordering, fence};

use super::Hold;
use crate::until::until;

impl Hold {
    pub(crate) fn is_asked_to_release(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Wakes no task: see [`notify_asked`](Self::notify_asked).
    pub(crate) fn set_asked_to_release(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Wakes the tasks that wait for it. The caller must not hold a mutex, because this runs foreign wakers.
    pub(crate) fn notify_asked(&self) {
        // As at the end of a hold: `listen` ends with a SeqCst fence, and the task then reads the flag.
        fence(Ordering::SeqCst);
        if self.over.total_listeners() > 0 {
            self.over.notify(usize::MAX);
        }
    }

    /// Resolves when a program asks, and at once if one has asked already.
    pub(crate) async fn asked_to_release(&self) {
        until(&self.over, || self.is_asked_to_release().then_some(())).await;
    }
}
