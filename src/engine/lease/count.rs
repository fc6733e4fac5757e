//! How the client counts a lease: from before the request was sent, and for a shorter time than the server.

use std::time::{Duration, Instant};

use crate::mutant::{self, Mutant};

/// How much shorter the client counts a lease than the server, because their clocks may run at different rates.
pub(crate) fn drift(lease: Duration) -> Duration {
    if mutant::on(Mutant::NoDrift) {
        return Duration::ZERO;
    }
    (lease / 500).max(Duration::from_millis(2))
}

/// How long a holder may trust a lease that the server started or renewed after `sent`.
pub(crate) fn deadline(sent: Instant, lease: Duration) -> Instant {
    // The server counts in whole milliseconds.
    let asked = lease - Duration::from_nanos(u64::from(lease.subsec_nanos() % 1_000_000));
    sent + asked - drift(lease)
}
