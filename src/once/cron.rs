//! Patterns of cron.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::period::Period;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::reply::ServerMillis;

/// The longest period, of a pattern that matches on the 29th of February: 8 years, because 2100 has none.
const LONGEST: u64 = 8 * 366 * 24 * 60 * 60 * 1000;

/// A pattern that matches again and again.
#[derive(Clone, PartialEq)]
pub(super) struct Pattern(Arc<Cron>);

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let invalid = |reason: String| Error::because(ErrorKind::InvalidInput, "cron", format!("{text:?}: {reason}"));
        // Both days at once can be 40 years apart.
        if text.contains('+') {
            return Err(invalid("the sign + is not supported".to_owned()));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let pattern = Self(Arc::new(parser.parse(text).map_err(|error| invalid(error.to_string()))?));
        match pattern.next(0) {
            Some(_) => Ok(pattern),
            None => Err(invalid("it never matches".to_owned())),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.0.as_str()
    }

    /// From the last time at which the pattern matched until it matches again. Before its first match since 1970, it
    /// is as if it had matched at the beginning of that year.
    pub(super) fn period_at(&self, now: ServerMillis) -> Period {
        let first = self.last(now).unwrap_or(0);
        let length = self.next(now).unwrap_or(u64::MAX).saturating_sub(first).min(LONGEST);
        Period { first, length }
    }

    fn last(&self, now: ServerMillis) -> Option<ServerMillis> {
        millis(self.0.find_previous_occurrence(&time(now)?, true).ok()?)
    }

    fn next(&self, now: ServerMillis) -> Option<ServerMillis> {
        millis(self.0.find_next_occurrence(&time(now)?, false).ok()?)
    }
}

/// In whole seconds: the crate adds the rest to what it finds.
fn time(millis: ServerMillis) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_secs(i64::try_from(millis / 1000).ok()?)
}

fn millis(time: DateTime<Utc>) -> Option<ServerMillis> {
    u64::try_from(time.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    /// Monday, 2024-01-01 00:00 UTC.
    const MONDAY: u64 = 19_723 * DAY;

    fn period(pattern: &str, now: u64) -> (u64, u64) {
        let Period { first, length } = Pattern::parse(pattern).unwrap().period_at(now);
        (first, length)
    }

    #[test]
    fn a_period_lasts_from_one_match_to_the_next() {
        for (pattern, now, first, length) in [
            ("* * * * *", MONDAY + 59_999, MONDAY, MINUTE),
            ("* * * * *", MONDAY + 60_000, MONDAY + MINUTE, MINUTE),
            ("@hourly", MONDAY - 1, MONDAY - HOUR, HOUR),
            ("30 3 * * *", MONDAY + 210 * MINUTE - 1, MONDAY - DAY + 210 * MINUTE, DAY),
            ("30 3 * * *", MONDAY + 210 * MINUTE, MONDAY + 210 * MINUTE, DAY),
            ("0 0 * * MON-FRI", MONDAY - 1, MONDAY - 3 * DAY, 3 * DAY),
            ("0 0 * * MON-FRI", MONDAY, MONDAY, DAY),
            // A second before the minute.
            ("*/5 * * * * *", MONDAY + 4999, MONDAY, 5000),
            ("0 0 L * *", MONDAY, MONDAY - DAY, 31 * DAY),
            // The second Monday, and the weekday nearest to the 6th, a Saturday.
            ("0 0 * * 1#2", MONDAY + 8 * DAY, MONDAY + 7 * DAY, 35 * DAY),
            ("0 0 6W * *", MONDAY + 5 * DAY, MONDAY + 4 * DAY, 32 * DAY),
            // Either day is enough.
            ("0 0 3 * MON", MONDAY + DAY, MONDAY, 2 * DAY),
            // 1896 and 1904 are no further apart than 2096 and 2104.
            ("0 0 29 2 *", 47_580 * DAY, 46_080 * DAY, 2921 * DAY),
        ] {
            assert_eq!(period(pattern, now), (first, length), "{pattern} at {now}");
        }
    }

    #[test]
    fn before_the_first_match_since_1970() {
        assert_eq!(period("0 12 * * *", 5), (0, 12 * HOUR));
        assert_eq!(period("0 12 * * *", 12 * HOUR), (12 * HOUR, DAY));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in
            ["", "* * * *", "61 * * * *", "* * * * * * *", "0 0 0 1 1 * 2030", "x", "0 0 30 2 *", "0 0 29 2 +MON"]
        {
            let error = Pattern::parse(text).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
            assert!(error.to_string().starts_with(&format!("cron: invalid input: {text:?}: ")), "{error}");
        }
    }
}
