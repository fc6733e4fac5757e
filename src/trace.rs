//! What the feature `tracing` tells; without it, nothing here does anything.
//!
//! Names of locks are told, never attempt ids, addresses or credentials.

use std::fmt::Display;
use std::future::Future;
use std::time::Instant;

/// Runs an acquisition in a span of its own, which ends with how long it took.
#[cfg(feature = "tracing")]
pub(crate) async fn acquiring<F: Future>(
    operation: &'static str,
    name: &str,
    fair: bool,
    now: impl Fn() -> Instant,
    acquisition: F,
) -> F::Output {
    use tracing::Instrument;

    let span = tracing::debug_span!("acquire", operation, name, fair, waited_us = tracing::field::Empty);
    let since = now();
    let output = acquisition.instrument(span.clone()).await;
    let waited = now().saturating_duration_since(since);
    span.record("waited_us", u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
    output
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

/// The server's setup endangers locks, found when connecting.
pub(crate) fn warning(what: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(what = %what, "the server's setup endangers locks");
    #[cfg(not(feature = "tracing"))]
    let _ = what;
}

/// No usable answer came to a renewal of so many leases.
pub(crate) fn not_renewed(leases: usize, why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(leases, why = %why, "leases were not renewed; they are tried again");
    #[cfg(not(feature = "tracing"))]
    let _ = (leases, why);
}

/// The holder was told that it has lost what it held.
pub(crate) fn lost(name: &str, why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(name, why = %why, "a lease was lost");
    #[cfg(not(feature = "tracing"))]
    let _ = (name, why);
}

/// After a reconnect, the server refused the subscription of the client's inbox.
pub(crate) fn subscription_refused(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(why = %why, "the server refused the subscription; it is tried again, and waiters learn later");
    #[cfg(not(feature = "tracing"))]
    let _ = why;
}

/// The connection that carries commands or messages stands again.
#[cfg(feature = "_redis")]
pub(crate) fn reconnected(carries: &'static str) {
    #[cfg(feature = "tracing")]
    tracing::info!(carries, "reconnected");
    #[cfg(not(feature = "tracing"))]
    let _ = carries;
}
