//! Wakers to call after the tables in which they were stored are unlocked.

use std::task::Waker;

/// Most changes wake at most one task, and need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    /// Wakes all. No mutex may be locked, because wakers are foreign code.
    pub(crate) fn wake(self) {
        for waker in self.first.into_iter().chain(self.more) {
            waker.wake();
        }
    }

    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}

impl Extend<Waker> for Wakers {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        for waker in wakers {
            if self.first.is_none() { self.first = Some(waker) } else { self.more.push(waker) }
        }
    }
}
