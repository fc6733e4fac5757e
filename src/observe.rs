//! What a client tells about itself: the spans and events of the feature `tracing`, and the metrics of the feature
//! `metrics`. Without them, these functions do nothing.
//!
//! Spans and events contain names of primitives and addresses of servers. They contain no attempt ids or credentials.

use std::fmt::Display;
use std::future::Future;
#[cfg(feature = "tracing")]
use std::sync::Arc;

#[cfg(any(feature = "metrics", feature = "tracing"))]
use futures::FutureExt;

#[cfg(feature = "metrics")]
use self::meter::Metered;

pub(crate) mod meter;
mod observed;

#[cfg(feature = "_redis")]
pub(crate) use self::meter::{COMMANDS, MESSAGES};
pub(crate) use self::observed::Observed;

/// Runs an acquisition in its own span, and records how long it took and how it has ended.
///
/// Not an `async fn`, which would store the acquisition twice.
pub(crate) fn acquiring<F: Future>(
    observed: Observed<'_>,
    fair: bool,
    outcome: fn(&F::Output) -> &'static str,
    acquisition: F,
) -> impl Future<Output = F::Output> {
    #[cfg(feature = "metrics")]
    let acquisition = {
        let metered = Metered::waiting(observed);
        acquisition.map(move |output| {
            metered.end(outcome(&output));
            output
        })
    };
    #[cfg(feature = "tracing")]
    let acquisition = in_span(observed, fair, acquisition);
    // Without the features, the future is passed on as it is: one around it would cost each acquisition some time.
    let _ = (observed, fair, outcome);
    acquisition
}

#[cfg(feature = "tracing")]
fn in_span<F: Future>(
    Observed { executor, operation, named, .. }: Observed<'_>,
    fair: bool,
    acquisition: F,
) -> impl Future<Output = F::Output> {
    use tracing::Instrument;
    use tracing::field::Empty;

    // Names with a dot are those of OpenTelemetry's conventions for databases.
    let span = tracing::debug_span!(
        "acquire",
        operation,
        name = &*named.name,
        fair,
        db.system.name = "redis",
        server.address = Empty,
        server.port = Empty,
        waiters_before = Empty,
        waited_us = Empty,
    );
    let (executor, since, recorded) = (Arc::clone(executor), executor.now(), span.clone());
    acquisition.instrument(span).map(move |output| {
        let waited = executor.now().saturating_duration_since(since);
        recorded.record("waited_us", u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        output
    })
}

/// Tells the span of an acquisition that its request was queued, and behind how many others.
pub(crate) fn queued(waiters_before: u64) {
    #[cfg(feature = "tracing")]
    in_acquisition(|span| span.record("waiters_before", waiters_before));
    #[cfg(not(feature = "tracing"))]
    let _ = waiters_before;
}

/// Tells the span of an acquisition that it asks this server. `address` is a host, or the path of a unix socket, which
/// has no port.
#[cfg(feature = "_redis")]
pub(crate) fn asks(address: &dyn Display, port: Option<u16>) {
    #[cfg(feature = "tracing")]
    in_acquisition(|span| {
        span.record("server.address", tracing::field::display(address));
        port.map_or(span, |port| span.record("server.port", port))
    });
    #[cfg(not(feature = "tracing"))]
    let _ = (address, port);
}

/// Calls `record` with the current span, if that is one of [`acquiring`]. A span of the application may have fields of
/// the same names.
#[cfg(feature = "tracing")]
fn in_acquisition(record: impl FnOnce(&tracing::Span) -> &tracing::Span) {
    // Each call comes here. Where nobody listens to such spans, it costs no more than this look.
    if !tracing::span_enabled!(tracing::Level::DEBUG) {
        return;
    }
    let span = tracing::Span::current();
    if span.metadata().is_some_and(|metadata| metadata.target() == module_path!()) {
        record(&span);
    }
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
    meter::not_renewed(leases);
    #[cfg(feature = "tracing")]
    tracing::warn!(leases, why = %why, "leases were not renewed; the renewal is retried");
    #[cfg(not(feature = "tracing"))]
    let _ = (leases, why);
}

/// Reports that the loss of a hold was signalled to its holder. `reason` says `why` in one word.
pub(crate) fn lost(name: &str, why: &dyn Display, reason: &'static str) {
    meter::lost(reason, 1);
    #[cfg(feature = "tracing")]
    tracing::warn!(name, why = %why, "a lease was lost");
    #[cfg(not(feature = "tracing"))]
    let _ = (name, why);
}

/// Reports that permits of a semaphore of Redisson stay taken, because their release was given up. `permits`: how many,
/// unless the acquisition does not know whether it has taken any. `why`: the last error, if a request was sent.
pub(crate) fn not_given_back(name: &str, permits: Option<i64>, why: Option<&dyn Display>) {
    #[cfg(feature = "tracing")]
    {
        let why = why.map(tracing::field::display);
        tracing::warn!(name, permits, why, "permits were not given back, and may stay taken");
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (name, permits, why);
}

/// Reports that the server refused to restore the subscription of the client's inbox after a reconnect.
pub(crate) fn subscription_refused(why: &dyn Display) {
    meter::subscriptions_refused(1);
    #[cfg(feature = "tracing")]
    tracing::warn!(why = %why, "the server refused the subscription; it is retried, and waiters learn of grants later");
    #[cfg(not(feature = "tracing"))]
    let _ = why;
}

/// Reports that the label of a client could not be stored or removed. The first of several failures in a row.
pub(crate) fn label_not_stored(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(why = %why, "the client's label was not stored or removed");
    #[cfg(not(feature = "tracing"))]
    let _ = why;
}

/// Reports that a connection was restored. `carries` is [`COMMANDS`] or [`MESSAGES`].
#[cfg(feature = "_redis")]
pub(crate) fn reconnected(carries: &'static str) {
    meter::reconnected(carries, 1);
    #[cfg(feature = "tracing")]
    tracing::info!(carries, "reconnected");
}
