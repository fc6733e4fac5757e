//! The metrics of the feature `metrics`. Without the feature, these functions do nothing.
//!
//! docs/metrics.md describes each metric. A test compares the two. A recorder is the application's code, so nothing
//! here is called while tables are locked.

use std::time::Duration;

use super::observed::Observed;
use crate::error::{ErrorKind, Result};

#[cfg(feature = "metrics")]
mod timed;

/// What a connection carries, as docs/metrics.md spells it.
#[cfg(feature = "_redis")]
pub(crate) const COMMANDS: &str = "commands";
#[cfg(feature = "_redis")]
pub(crate) const MESSAGES: &str = "messages";

/// Counts up, if the feature is on.
macro_rules! count {
    ($name:literal, $by:expr $(, $label:literal => $value:expr)*) => {{
        #[cfg(feature = "metrics")]
        ::metrics::counter!($name $(, $label => $value)*).increment($by);
        #[cfg(not(feature = "metrics"))]
        let _ = ($by, $($value,)*);
    }};
}

/// A client begins, which may lose holds for these reasons. Its counters are told while they are zero: Prometheus sees
/// no increase in a counter that begins with one.
pub(crate) fn began(reasons: impl IntoIterator<Item = &'static str>) {
    renewed(0);
    not_renewed(0);
    handed_off(0);
    retained(0);
    subscriptions_refused(0);
    storms_capped(0);
    reasons.into_iter().for_each(|reason| lost(reason, 0));
    #[cfg(feature = "_redis")]
    for carries in [COMMANDS, MESSAGES] {
        reconnected(carries, 0);
    }
}

pub(crate) fn renewed(leases: usize) {
    count!("bowline_renewals_total", u64::try_from(leases).unwrap_or(u64::MAX));
}

pub(super) fn not_renewed(leases: usize) {
    count!("bowline_renewal_failures_total", u64::try_from(leases).unwrap_or(u64::MAX));
}

pub(super) fn lost(reason: &'static str, holds: u64) {
    count!("bowline_losses_total", holds, "reason" => reason);
}

pub(crate) fn handed_off(grants: u64) {
    count!("bowline_hand_offs_total", grants);
}

pub(crate) fn retained(grants: u64) {
    count!("bowline_retained_total", grants);
}

#[cfg(feature = "_redis")]
pub(super) fn reconnected(carries: &'static str, connections: u64) {
    count!("bowline_reconnects_total", connections, "carries" => carries);
}

pub(crate) fn storms_capped(by: u64) {
    count!("bowline_storms_capped_total", by);
}

/// `lag`: by how much the server's time in an answer is behind the estimate.
pub(crate) fn server_time(lag: Duration) {
    #[cfg(feature = "metrics")]
    ::metrics::histogram!("bowline_server_time_lag_seconds").record(lag.as_secs_f64());
    #[cfg(not(feature = "metrics"))]
    let _ = lag;
}

pub(super) fn subscriptions_refused(by: u64) {
    count!("bowline_subscriptions_refused_total", by);
}

/// What is measured for as long as it lasts: an acquisition, or a hold. Nothing without the feature.
#[derive(Debug)]
pub(crate) struct Metered {
    /// On the heap, because futures that change a hold have it several times.
    #[cfg(feature = "metrics")]
    timed: Box<timed::Timed>,
}

impl Metered {
    /// An acquisition that begins.
    #[cfg(feature = "metrics")]
    pub(super) fn waiting(observed: Observed<'_>) -> Self {
        Self { timed: Box::new(timed::Timed::waiting(observed)) }
    }

    /// A hold that was granted just now.
    pub(crate) fn held(observed: Observed<'_>) -> Self {
        #[cfg(not(feature = "metrics"))]
        let _ = observed;
        Self {
            #[cfg(feature = "metrics")]
            timed: Box::new(timed::Timed::held(observed)),
        }
    }

    /// Ends an acquisition. One that is dropped before was cancelled.
    #[cfg(feature = "metrics")]
    pub(super) fn end(self, outcome: &'static str) {
        self.timed.end(outcome);
    }
}

/// How an acquisition has ended.
pub(crate) fn of_acquisition<T>(result: &Result<Option<T>>) -> &'static str {
    match result {
        Ok(Some(_)) => GRANTED,
        Ok(None) => "busy",
        Err(error) => of_failure(error.kind()),
    }
}

/// How a wait has ended.
pub(crate) fn of_wait<T>(result: &Result<T>) -> &'static str {
    match result {
        Ok(_) => GRANTED,
        Err(error) => of_failure(error.kind()),
    }
}

const GRANTED: &str = "granted";

/// The kind as docs/metrics.md spells it.
fn of_failure(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "invalid_input",
        ErrorKind::TimedOut => "timed_out",
        ErrorKind::QueueFull => "queue_full",
        ErrorKind::Dropped => "dropped",
        ErrorKind::OverLimit => "over_limit",
        ErrorKind::WouldDeadlock => "would_deadlock",
        ErrorKind::Lost => "lost",
        ErrorKind::Unacknowledged => "unacknowledged",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Refused => "refused",
        ErrorKind::Denied => "denied",
        ErrorKind::Certificate => "certificate",
        ErrorKind::WrongType => "wrong_type",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Closed => "closed",
        ErrorKind::OtherMasters => "other_masters",
        ErrorKind::ClientIdInUse => "client_id_in_use",
        ErrorKind::Broken => "broken",
        ErrorKind::OtherParties => "other_parties",
    }
}
