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
    /// sets a timer of its own only if it has less time than the limit there, or takes longer.
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
        if soon.is_some() || more.is_zero() { soon } else { self.within(more, work).await }
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
