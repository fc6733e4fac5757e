//! How the client counts a lease: from before the request was sent, and shorter than the server does.

use std::time::{Duration, Instant};

use crate::mutant::{self, Mutant};

/// How much shorter the client counts a lease than the server: their clocks may run at different rates.
pub(crate) fn drift(lease: Duration) -> Duration {
    if mutant::on(Mutant::NoDrift) {
        return Duration::ZERO;
    }
    (lease / 500).max(Duration::from_millis(2))
}

/// Until when a holder may trust a lease that the server started or renewed some time after `sent`.
pub(crate) fn deadline(sent: Instant, lease: Duration) -> Instant {
    // The server is asked for whole milliseconds.
    let asked = lease - Duration::from_nanos(u64::from(lease.subsec_nanos() % 1_000_000));
    sent + asked - drift(lease)
}
