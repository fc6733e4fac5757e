//! How long a hold may last, and what its renewals ask for.

use std::time::{Duration, Instant};

use crate::engine::lease::count::drift;

/// The server counts in whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// The rule by which a hold ends, apart from its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// The watchdog renews the lease while a guard exists.
    Renewed,
    /// Like [`Renewed`](Self::Renewed), but the hold ends at this time at the latest.
    Until(Instant),
    /// The hold ends with its lease, unless its owner extends it.
    Fixed,
}

impl Term {
    /// The term of a renewed hold that lasts until `at_most` after `start`. A time past the range of the clock is no
    /// limit.
    pub(crate) fn capped(start: Instant, at_most: Option<Duration>) -> Self {
        at_most.and_then(|limit| start.checked_add(limit)).map_or(Self::Renewed, Self::Until)
    }

    /// The lease that a request sent at `sent` asks for, which does not reach past the end of the hold.
    pub(crate) fn lease(self, lease: Duration, sent: Instant) -> Duration {
        match self {
            Self::Until(end) => lease.min(end.saturating_duration_since(sent)),
            Self::Renewed | Self::Fixed => lease,
        }
    }

    /// The lease that a renewal sent at `sent` asks for. Zero only checks that the hold exists.
    pub(crate) fn renewal(self, lease: Duration, sent: Instant) -> Duration {
        match self {
            Self::Renewed | Self::Until(_) => self.lease(lease, sent),
            Self::Fixed => Duration::ZERO,
        }
    }

    /// The time between renewals of a hold whose lease lasts until `deadline`; `None` if it is not renewed again,
    /// because the lease is fixed, or reaches to the end of the hold.
    pub(crate) fn interval(self, lease: Duration, deadline: Instant) -> Option<Duration> {
        let goes_on = match self {
            Self::Renewed => true,
            Self::Until(end) => end.saturating_duration_since(deadline) > drift(lease) + ROUNDING,
            Self::Fixed => false,
        };
        goes_on.then_some(lease / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lease::deadline;
    use crate::runtime::an_instant;

    const LEASE: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_capped_hold_is_renewed_with_what_is_left() {
        let start = an_instant();
        let term = Term::capped(start, Some(LEASE + 10 * SECOND));
        assert_eq!(term.lease(LEASE, start), LEASE);
        assert_eq!(term.interval(LEASE, deadline(start, LEASE)), Some(10 * SECOND));
        // The first renewal reaches the end of the hold, and is the last one.
        let sent = start + 10 * SECOND + Duration::from_micros(1500);
        assert_eq!(term.renewal(LEASE, sent), LEASE - Duration::from_micros(1500));
        let last = deadline(sent, term.renewal(LEASE, sent));
        assert!(last <= start + LEASE + 10 * SECOND);
        assert_eq!(term.interval(LEASE, last), None);
        assert_eq!(term.renewal(LEASE, start + LEASE + 11 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_cap_within_the_first_lease_needs_no_renewal() {
        let start = an_instant();
        for cap in [Duration::from_millis(100), SECOND, LEASE] {
            let term = Term::capped(start, Some(cap));
            assert_eq!(term.lease(LEASE, start), cap);
            assert_eq!(term.interval(cap, deadline(start, cap)), None, "{cap:?}");
        }
    }

    /// The time of the term after the lease is no more than the difference between the client's count and the server's.
    #[test]
    fn no_renewal_is_sent_for_the_drift_alone() {
        let start = an_instant();
        let slack = drift(LEASE) + ROUNDING;
        assert_eq!(Term::Until(start + slack).interval(LEASE, start), None);
        assert!(Term::Until(start + slack + Duration::from_nanos(1)).interval(LEASE, start).is_some());
    }

    #[test]
    fn a_fixed_lease_is_looked_at_only_and_no_cap_is_none() {
        let start = an_instant();
        assert_eq!(Term::Fixed.renewal(LEASE, start), Duration::ZERO);
        assert_eq!(Term::Fixed.interval(LEASE, deadline(start, LEASE)), None);
        assert_eq!(Term::Fixed.lease(LEASE, start), LEASE);
        assert_eq!(Term::capped(start, None), Term::Renewed);
        assert_eq!(Term::capped(start, Some(Duration::MAX)), Term::Renewed);
        assert_eq!(Term::Renewed.renewal(LEASE, start), LEASE);
    }
}
