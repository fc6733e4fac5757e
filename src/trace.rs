//! The spans and events of the feature `tracing`. Without the feature, these functions do nothing.
//!
//! Spans and events contain names of primitives. They contain no attempt ids, addresses or credentials.

use std::fmt::Display;
use std::future::Future;
use std::time::Instant;

/// Runs an acquisition in its own span, which records how long it took.
///
/// Not an `async fn`, which would store the acquisition twice.
#[cfg(feature = "tracing")]
pub(crate) fn acquiring<F: Future>(
    operation: &'static str,
    name: &str,
    fair: bool,
    now: impl Fn() -> Instant,
    acquisition: F,
) -> impl Future<Output = F::Output> {
    use futures::FutureExt;
    use tracing::Instrument;

    let span = tracing::debug_span!("acquire", operation, name, fair, waited_us = tracing::field::Empty);
    let since = now();
    let recorded = span.clone();
    acquisition.instrument(span).map(move |output| {
        let waited = now().saturating_duration_since(since);
        recorded.record("waited_us", u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        output
    })
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn acquiring<F: Future>(
    _operation: &'static str,
    _name: &str,
    _fair: bool,
    _now: impl Fn() -> Instant,
    acquisition: F,
) -> F {
    acquisition
}

/// Reports a problem of the server's setup that was found when connecting.
pub(crate) fn warning(what: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(what = %what, "the server's setup endangers locks");
    #[cfg(not(feature = "tracing"))]
    let _ = what;
}

/// Reports that an attempt to connect in the background has failed.
pub(crate) fn not_connected(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(why = %why, "not connected yet; connecting is retried");
    #[cfg(not(feature = "tracing"))]
    let _ = why;
}

/// Reports that a client has connected in the background.
pub(crate) fn connected() {
    #[cfg(feature = "tracing")]
    tracing::info!("connected in the background");
}

/// Reports that a renewal of `leases` leases got no usable answer.
pub(crate) fn not_renewed(leases: usize, why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(leases, why = %why, "leases were not renewed; the renewal is retried");
    #[cfg(not(feature = "tracing"))]
    let _ = (leases, why);
}

/// Reports that the loss of a hold was signalled to its holder.
pub(crate) fn lost(name: &str, why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(name, why = %why, "a lease was lost");
    #[cfg(not(feature = "tracing"))]
    let _ = (name, why);
}

/// Reports that the server refused to restore the subscription of the client's inbox after a reconnect.
pub(crate) fn subscription_refused(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(why = %why, "the server refused the subscription; it is retried, and waiters learn of grants later");
    #[cfg(not(feature = "tracing"))]
    let _ = why;
}

/// Reports that a connection was restored. `carries` names what it carries: commands or messages.
#[cfg(feature = "_redis")]
pub(crate) fn reconnected(carries: &'static str) {
    #[cfg(feature = "tracing")]
    tracing::info!(carries, "reconnected");
    #[cfg(not(feature = "tracing"))]
    let _ = carries;
}
