//! How long calls may take, and what it means for the connection when their time is over.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::super::failure::Failure;
use super::Link;
use crate::connection::{Call, ConnectionError};

/// A server that gives no answer for this long may be gone.
pub(in crate::redis) const SLOW: Duration = Duration::from_millis(500);

/// Whether a call that ran out of its `limit` says that the connection is dead. What counts is the time since it was
/// handed to the connection: before, it may have waited for a connection, or been refused again and again.
pub(in crate::redis) fn is_silent(time: Duration, limit: Duration) -> bool {
    time >= limit.min(SLOW)
}

/// The time that calls have.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Limit {
    pub(in crate::redis) started: Instant,
    pub(in crate::redis) limit: Duration,
}

impl Limit {
    /// The time limit of calls that are sent together: the shortest time for which one of their answers is useful, but
    /// at least `patient`, because a connection that is merely slow may take that long.
    pub(in crate::redis) fn of(calls: &[Call<'_>], started: Instant, patient: Duration, longest: Duration) -> Self {
        let of_use = calls.iter().filter_map(|call| call.within).fold(longest, Duration::min);
        Self { started, limit: of_use.max(patient).min(longest) }
    }

    pub(in crate::redis) fn left(&self, now: Instant) -> Duration {
        self.limit.saturating_sub(now.saturating_duration_since(self.started))
    }
}

impl Link {
    /// The time limit of calls that begin now.
    pub(in crate::redis) fn limit(&self, calls: &[Call<'_>]) -> Limit {
        Limit::of(calls, self.executor.now(), self.patient(), self.timeout)
    }

    /// Runs `work`, which begins at `now`. `None`: the time is over. The calls share the timer of `under_way`. A call
    /// sets a timer of its own only if it has less time than the limit there, or takes longer. While it takes longer,
    /// the locator hears of that.
    pub(in crate::redis) async fn in_time<T>(
        &self,
        limit: Limit,
        now: Instant,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let left = limit.left(now);
        let Some(more) = left.checked_sub(self.under_way.limit()) else {
            return self.within(left, work).await;
        };
        let soon = self.under_way.within(now, work.as_mut()).await;
        if soon.is_some() {
            return soon;
        }
        let mut left = more;
        while !left.is_zero() {
            let part = self.locate.doubt().map_or(left, |again| left.min(again));
            if let Some(output) = self.within(part, work.as_mut()).await {
                return Some(output);
            }
            left -= part;
        }
        None
    }

    /// The error of a call whose time is over. `handed` is the connection that it was handed to, and since when.
    pub(in crate::redis) fn late(&self, limit: Limit, handed: Option<(u64, Instant)>) -> ConnectionError {
        let now = self.executor.now();
        // A sleep ends early only when the runtime is shut down.
        let is_shut_down = !limit.left(now).is_zero();
        if is_shut_down || self.is_closed() {
            return ConnectionError::Closed;
        }
        let Some((generation, since)) = handed else { return self.unavailable() };
        // The other side may have vanished silently, and would then answer no later call either.
        if is_silent(now.saturating_duration_since(since), limit.limit) {
            self.suspect(generation, Failure::Io("the connection gave no answer".to_owned()));
        }
        ConnectionError::Unknown(format!("nothing within {:?}", limit.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::lab::{Lab, Tasks, ms};
    use super::*;
    use crate::protocol::Script;
    use crate::runtime::an_instant;

    /// The first call whose answer is of no use any more decides. A link that is slow by nature is not given up for it.
    #[test]
    fn the_time_of_calls_that_are_sent_together() {
        let call = Call::new(Script::all().next().unwrap(), &["a"], &[]);
        for (within, patient, longest, time) in [
            (None, 0, 3000, 3000),
            (None, 800, 3000, 3000),
            (Some(200), 0, 3000, 200),
            (Some(200), 800, 3000, 800),
            (Some(5000), 0, 3000, 3000),
            (Some(200), 5000, 3000, 3000),
        ] {
            let calls = [call, within.map_or(call, |within| call.within(ms(within)))];
            let limit = Limit::of(&calls, an_instant(), ms(patient), ms(longest));
            assert_eq!(limit.limit, ms(time), "{within:?} {patient} {longest}");
        }
    }

    #[test]
    fn what_is_left_of_the_time() {
        let started = an_instant();
        let limit = Limit { started, limit: ms(100) };
        for (after, left) in [(0, 100), (30, 70), (100, 0), (500, 0)] {
            assert_eq!(limit.left(started + ms(after)), ms(left));
        }
    }

    /// Its connection is closed, or a runtime that is shut down ends its sleep early.
    #[test]
    fn a_call_that_ends_with_its_connection_says_so() {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let link = lab.link(&mut tasks);
        let (now, limit) = (lab.clock.now(), ms(100));
        let late = |started| link.late(Limit { started, limit }, Some((1, now)));
        assert_eq!(late(now), ConnectionError::Closed, "there is time left");
        assert_eq!(late(now - limit), ConnectionError::Unknown("nothing within 100ms".to_owned()));
        link.close();
        assert_eq!([late(now - limit), late(now)], [ConnectionError::Closed, ConnectionError::Closed]);
    }
}
