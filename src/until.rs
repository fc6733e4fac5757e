//! Waits for what others bring about.

use event_listener::Event;

/// Resolves when `found` returns something. Whatever changes the state that `found` reads notifies `changed`
/// afterwards.
pub(crate) async fn until<T>(changed: &Event, found: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(found) = found() {
            return found;
        }
        let listener = changed.listen();
        // Looked at again, because the state may have changed before the listener existed.
        if let Some(found) = found() {
            return found;
        }
        listener.await;
    }
}
