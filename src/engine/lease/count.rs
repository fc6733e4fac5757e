//! How the client counts a lease: from before the request was sent, and for a shorter time than the server. How long it
//! waits for an answer about a lease.

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

/// An ordinary network answers within this time. A renewal may take as long, however little of its lease is left.
pub(crate) const ORDINARY: Duration = Duration::from_millis(100);

/// How long to wait for the answer to a renewal: `longest` at most, and half of the time `left`, so that it can be sent
/// again.
pub(crate) fn answer_within(left: Duration, longest: Duration) -> Duration {
    if mutant::on(Mutant::RenewalWithoutBound) {
        return longest;
    }
    (left / 2).max(ORDINARY).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_half_of_what_is_left() {
        let s = Duration::from_secs_f64;
        let longest = Duration::from_secs(3);
        for (left, within) in [(30.0, 3.0), (6.0, 3.0), (4.0, 2.0), (1.0, 0.5), (0.3, 0.15), (0.1, 0.1), (0.0, 0.1)] {
            assert_eq!(answer_within(s(left), longest), s(within), "{left}");
        }
        assert_eq!(answer_within(s(0.0), s(0.05)), s(0.05));
    }
}
