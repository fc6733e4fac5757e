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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_change_before_there_is_a_listener_is_not_missed() {
        let looks = AtomicU32::new(0);
        let changed_meanwhile = || (looks.fetch_add(1, Ordering::Relaxed) > 0).then_some(7);
        assert_eq!(until(&Event::new(), changed_meanwhile).now_or_never(), Some(7));
    }
}
