//! A function that is called with a value when the value's owner is dropped.

/// Made before a task that must not end without the call: a runtime that shuts down drops its tasks, also before their
/// first poll.
pub(crate) struct OnDrop<T>(pub(crate) T, pub(crate) fn(&T));

impl<T> Drop for OnDrop<T> {
    fn drop(&mut self) {
        self.1(&self.0);
    }
}
