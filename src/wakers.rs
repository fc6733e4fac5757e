//! Wakers to call after the tables in which they were stored are unlocked.

use std::task::Waker;

#[cfg(test)]
pub(crate) mod woken;

/// Most changes wake at most one task, and need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// `None` if the list is empty.
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Wakes all. No mutex may be locked, because wakers are foreign code.
    pub(crate) fn wake(self) {
        let Some(first) = self.first else { return };
        first.wake();
        self.more.into_iter().for_each(Waker::wake);
    }

    /// Moves the wakers of the other list to the end of this one.
    #[inline]
    pub(crate) fn append(&mut self, other: &mut Self) {
        if let Some(first) = other.first.take() {
            self.push(first);
            self.more.append(&mut other.more);
        }
    }

    fn push(&mut self, waker: Waker) {
        if self.first.is_none() { self.first = Some(waker) } else { self.more.push(waker) }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}

impl Extend<Waker> for Wakers {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }
}
