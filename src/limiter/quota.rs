//! How much a rate limiter allows.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::rate::Taken;

/// The longest time in which a [quota](Quota) refills its burst: 31 days. It is also the longest wait for permits.
pub const MAX_REFILL: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// What a [`RateLimiter`](crate::RateLimiter) allows: so many permits per period, evenly, and so many at once.
///
/// | | valid |
/// |---|---|
/// | permits | at least 1, and at most 10 per microsecond of the period |
/// | period | any, such as a second or a month |
/// | burst | at least 1; the time to refill it, `burst / permits * period`, is at most 31 days ([`MAX_REFILL`]) |
///
/// In any one period, at most `permits + burst` are taken: the burst after a pause, and those that refill meanwhile.
/// For a service that allows ten calls in any second, choose two numbers with that sum, such as 7 permits and a burst
/// of 3.
///
/// The time between two permits is rounded up to a whole nanosecond, so a rate is never higher than asked for, and
/// lower by less than 1 %. A quota is checked by the first operation that uses it.
///
/// ```
/// # use std::time::Duration;
/// use bowline::Quota;
///
/// // 100 in a minute: one every 600 ms, and 100 at once after a minute without any.
/// let quota = Quota::per(100, Duration::from_secs(60));
/// // The same rate, but never more than 5 at once.
/// let smooth = quota.burst(5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    permits: u32,
    period: Duration,
    burst: u32,
}

impl Quota {
    /// Allows `permits` per `period` on average, and as many at once. So up to twice as many may be taken in one
    /// period: set a smaller [`burst`](Self::burst) if that is too much.
    pub const fn per(permits: u32, period: Duration) -> Self {
        Self { permits, period, burst: permits }
    }

    /// Sets how many permits are allowed at once, after a time without any. The default is the number per period. It
    /// does not change the rate.
    #[must_use]
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Checks the quota and what a call asks of it.
    pub(super) fn for_call(self, operation: &'static str, cost: u32) -> Result<Terms> {
        let Self { permits, period, burst } = self;
        let invalid = |reason: String| Err(Error::because(ErrorKind::InvalidInput, operation, reason));
        if permits == 0 || burst == 0 || cost == 0 {
            return invalid("permits, burst and cost of a rate limiter must be at least 1".to_owned());
        }
        if period.as_nanos() < u128::from(permits) * SHORTEST.as_nanos() {
            return invalid(format!("{permits} permits per {period:?} are more than 10 per microsecond"));
        }
        let interval = period.as_nanos().div_ceil(u128::from(permits));
        let refill = interval.saturating_mul(u128::from(burst));
        if refill > MAX_REFILL.as_nanos() {
            let reason = format!("a burst of {burst} at {permits} permits per {period:?} needs more than 31 days");
            return invalid(reason);
        }
        if cost > burst {
            let reason = format!("a cost of {cost} permits is more than the burst of {burst}");
            return Err(Error::because(ErrorKind::OverLimit, operation, reason));
        }
        let time_of = |permits: u32| nanos(interval * u128::from(permits));
        Ok(Terms { limit: burst, interval: nanos(interval), burst: time_of(burst), cost: time_of(cost) })
    }
}

/// The shortest time between two permits. Rounded up to a nanosecond, it is longer by 1 % at most.
const SHORTEST: Duration = Duration::from_nanos(100);

/// A valid quota, and the cost of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    limit: u32,
    interval: Duration,
    /// The time in which the whole burst refills.
    pub(super) burst: Duration,
    pub(super) cost: Duration,
}

impl Terms {
    pub(super) fn decision(&self, Taken { limited, wait, ahead }: Taken) -> Decision {
        let left = self.burst.saturating_sub(ahead).as_nanos() / self.interval.as_nanos();
        Decision {
            limited,
            limit: self.limit,
            remaining: u32::try_from(left).unwrap_or(self.limit),
            retry_after: limited.then_some(wait),
            reset_after: ahead,
        }
    }

    /// What a call would get while the theoretical arrival time is so far ahead of the clock.
    pub(super) fn would_be(&self, ahead: Duration) -> Decision {
        let wait = (ahead + self.cost).saturating_sub(self.burst);
        self.decision(Taken { limited: !wait.is_zero(), wait, ahead })
    }
}

/// The answer of a [`RateLimiter`](crate::RateLimiter), with the values that `CL.THROTTLE` replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
#[must_use = "the permits may have been refused"]
pub struct Decision {
    /// Whether the call is refused. Then it took nothing.
    pub limited: bool,
    /// The burst of the quota.
    pub limit: u32,
    /// How many permits could be taken at once now, after this call.
    pub remaining: u32,
    /// After which time the same call is allowed, if no other one takes permits before. `None` if it is allowed now.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text::optional", default))]
    pub retry_after: Option<Duration>,
    /// After which time the whole burst is there again, if no other call takes permits before.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub reset_after: Duration,
}

impl Decision {
    /// Whether the call is allowed: the opposite of [`limited`](Self::limited).
    pub fn is_allowed(&self) -> bool {
        !self.limited
    }
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn terms(quota: Quota, cost: u32) -> std::result::Result<(Duration, Duration), ErrorKind> {
        quota.for_call("check", cost).map(|terms| (terms.cost, terms.burst)).map_err(|error| error.kind())
    }

    #[test]
    fn quotas_that_are_valid() {
        let ns = Duration::from_nanos;
        assert_eq!(terms(Quota::per(10_000, SECOND), 1), Ok((ns(100_000), SECOND)));
        assert_eq!(terms(Quota::per(3, SECOND), 3), Ok((ns(1_000_000_002), ns(1_000_000_002))));
        assert_eq!(terms(Quota::per(3, SECOND).burst(1), 1), Ok((ns(333_333_334), ns(333_333_334))));
        assert_eq!(terms(Quota::per(10, ns(1_000)), 1), Ok((ns(100), ns(1_000))));
        assert_eq!(terms(Quota::per(u32::MAX, DAY), u32::MAX).map(|(cost, _)| cost < DAY + DAY / 100), Ok(true));
        assert_eq!(terms(Quota::per(1_000_000, 31 * DAY), 1_000_000), Ok((31 * DAY, 31 * DAY)));
        assert_eq!(terms(Quota::per(12, 365 * DAY).burst(1), 1), Ok((365 * DAY / 12, 365 * DAY / 12)));
    }

    #[test]
    fn quotas_that_are_not() {
        let ns = Duration::from_nanos;
        for (quota, cost) in [
            (Quota::per(0, SECOND), 1),
            (Quota::per(0, SECOND).burst(1), 1),
            (Quota::per(1, SECOND).burst(0), 1),
            (Quota::per(1, SECOND), 0),
            (Quota::per(1, Duration::ZERO), 1),
            (Quota::per(10, ns(999)), 1),
            (Quota::per(u32::MAX, SECOND), 1),
            (Quota::per(1, MAX_REFILL + ns(1)), 1),
            (Quota::per(2, MAX_REFILL).burst(3), 1),
            (Quota::per(1, Duration::MAX).burst(u32::MAX), 1),
        ] {
            assert_eq!(terms(quota, cost), Err(ErrorKind::InvalidInput), "{quota:?} {cost}");
        }
        assert_eq!(terms(Quota::per(7, SECOND), 8), Err(ErrorKind::OverLimit));
        assert_eq!(terms(Quota::per(7, SECOND).burst(2), 3), Err(ErrorKind::OverLimit));
    }

    /// The script computes with doubles, which are exact below 2^53.
    #[test]
    fn times_are_exact_in_the_script() {
        let furthest = MAX_REFILL * 2;
        assert!(furthest.as_nanos() < 1 << 53);
    }

    #[test]
    fn what_is_left() {
        let terms = Quota::per(10, SECOND).burst(4).for_call("check", 2).unwrap();
        let ms = Duration::from_millis;
        let told = |ahead| {
            let Decision { limited, limit, remaining, retry_after, reset_after } = terms.would_be(ahead);
            assert_eq!((limit, reset_after), (4, ahead));
            (limited, remaining, retry_after)
        };
        assert_eq!(told(ms(0)), (false, 4, None));
        assert_eq!(told(ms(1)), (false, 3, None));
        assert_eq!(told(ms(200)), (false, 2, None));
        assert_eq!(told(ms(201)), (true, 1, Some(ms(1))));
        assert_eq!(told(ms(400)), (true, 0, Some(ms(200))));
        // Others wait, or have another quota.
        assert_eq!(told(ms(1000)), (true, 0, Some(ms(800))));
    }
}
