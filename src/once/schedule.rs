//! When the periods of a [`Once`](crate::Once) begin.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::period::Period;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;

#[cfg(feature = "cron")]
use super::cron::Pattern;

/// The shortest [period of one length](Schedule::every): 1 second.
pub const MIN_PERIOD: Duration = Duration::from_secs(1);

/// The longest [period of one length](Schedule::every): 366 days.
pub const MAX_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// When the periods of a [`Once`](crate::Once) begin, always by the server's clock.
///
/// ```
/// # use std::time::Duration;
/// # use bowline::Schedule;
/// // A day, from midnight UTC. `Client::once` takes the `Duration` itself, too.
/// let daily = Schedule::every(Duration::from_secs(24 * 60 * 60));
/// # #[cfg(feature = "cron")]
/// # {
/// // On weekdays at half past three, UTC.
/// let weekdays = Schedule::cron("30 3 * * MON-FRI")?;
/// # }
/// # Ok::<(), bowline::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Schedule(Ticks);

#[derive(Clone, PartialEq)]
enum Ticks {
    Every(Duration),
    #[cfg(feature = "cron")]
    Cron(Pattern),
}

impl Schedule {
    /// Periods of one length, the first of which began on 1970-01-01 at 00:00 UTC. From 1 s ([`MIN_PERIOD`]) to 366
    /// days ([`MAX_PERIOD`]), in whole milliseconds. A bad length is an error of the first operation that uses it.
    pub const fn every(length: Duration) -> Self {
        Self(Ticks::Every(length))
    }

    /// Periods that begin when a pattern of cron matches, in UTC, and last until it matches again.
    ///
    /// A pattern has the five fields minute, hour, day of the month, month and day of the week, or six with a second
    /// before them. Fields are those of `cron(8)` on Debian: `*`, lists, ranges, steps and names. If both days are
    /// restricted, one of them is enough. There are also `L` for the last day of a month, `5#2` for its second Friday,
    /// `15W` for the weekday nearest to the 15th, and nicknames such as `@hourly`. The parser is that of the crate
    /// `croner`.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput): the pattern cannot be read, or it never matches, such as one
    /// for the 30th of February.
    #[cfg(feature = "cron")]
    pub fn cron(pattern: &str) -> crate::Result<Self> {
        Pattern::parse(pattern).map(|pattern| Self(Ticks::Cron(pattern)))
    }

    /// Why no run can follow the schedule.
    pub(super) fn problem(&self) -> Option<String> {
        match &self.0 {
            Ticks::Every(length) => {
                let is_whole = length.subsec_nanos().is_multiple_of(1_000_000);
                let is_valid = (MIN_PERIOD..=MAX_PERIOD).contains(length) && is_whole;
                (!is_valid).then(|| format!("a period is 1 s to 366 days, in whole milliseconds, not {length:?}"))
            }
            #[cfg(feature = "cron")]
            Ticks::Cron(_) => None,
        }
    }

    /// The period that contains `now`.
    pub(super) fn period_at(&self, now: ServerMillis) -> Period {
        match (&self.0, now) {
            (Ticks::Every(length), _) => Period { first: 0, length: millis(*length) },
            #[cfg(feature = "cron")]
            (Ticks::Cron(pattern), now) => pattern.period_at(now),
        }
    }

    /// Whether a period depends on the time.
    pub(super) fn needs_time(&self) -> bool {
        !matches!(self.0, Ticks::Every(_))
    }

    /// The period of a run, as a number. A token of a run is the time at which it began, in microseconds.
    pub(super) fn tick_of(&self, token: Token) -> u64 {
        let began = token.get() / 1000;
        match &self.0 {
            Ticks::Every(length) => began / millis(*length).max(1),
            #[cfg(feature = "cron")]
            Ticks::Cron(pattern) => pattern.period_at(began).first / 1000,
        }
    }

    /// When the period with this number began.
    pub(super) fn began(&self, tick: u64) -> SystemTime {
        let length = match &self.0 {
            Ticks::Every(length) => millis(*length),
            #[cfg(feature = "cron")]
            Ticks::Cron(_) => 1000,
        };
        SystemTime::UNIX_EPOCH + Duration::from_millis(tick.saturating_mul(length))
    }
}

impl From<Duration> for Schedule {
    fn from(length: Duration) -> Self {
        Self::every(length)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ticks::Every(length) => write!(f, "every {length:?}"),
            #[cfg(feature = "cron")]
            Ticks::Cron(pattern) => write!(f, "{:?}", pattern.text()),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
