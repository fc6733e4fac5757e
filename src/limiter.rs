//! The rate limiter.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;

use calls::Calls;

pub use quota::{Decision, MAX_REFILL, Quota};
pub use until_ready::UntilReady;

mod calls;
mod quota;
mod until_ready;

/// A named rate that programs on many machines keep to together, such as the calls of another system's API.
///
/// Returned by [`Client::rate_limiter`](crate::Client::rate_limiter). A handle is cheap to make and to clone, and
/// stores nothing in Redis. [`check`](Self::check) answers at once whether a call is allowed.
/// [`until_ready`](Self::until_ready) waits for its turn. Each is one command, however many wait: there is no polling
/// and no queue.
///
/// # Guarantees
/// - The algorithm is the generic cell rate algorithm (GCRA), as in `CL.THROTTLE`: permits refill evenly, one at a
///   time. In any time `t` of the server's clock, at most `burst + t / interval` permits are taken, where `interval` is
///   `period / permits` of the [quota](Quota).
/// - Only the server's clock counts. The clocks of the programs' hosts measure their own waits, and nothing else.
/// - No waiter is early: its wait begins when the answer arrives. Waiters are served in the order in which their
///   requests reach the server. A [`check`](Self::check) takes nothing that belongs to a waiter.
/// - If the server's clock is set back, the time until the next permit is at most what it was when the last permit was
///   taken. If it is set forward, at most one burst is there at once.
///
/// # Not guaranteed
/// - A permit may be lost. A request is sent at most once, unless it is known not to have been executed. If its answer
///   is lost, the call fails with [`Unavailable`](ErrorKind::Unavailable), and its permits may have been taken.
/// - A permit is no hold. A program that has waited for its turn can be late, and then run closer to the next one.
/// - A failover to a replica forgets the permits of the writes that the replica has not heard of: in the time around
///   it, at most one burst more is taken. So it is if the server loses its data or evicts the key. Replicas do not
///   [acknowledge](crate::ConfigBuilder::acknowledged_by) permits.
/// - While the server does not answer, each call takes up to the client's
///   [`retry_timeout`](crate::ConfigBuilder::retry_timeout), and fails. Whether work goes on without a limit then is up
///   to the program.
///
/// # Different quotas
/// Each handle brings its quota, and what Redis stores is only a time: when the whole burst is there again. So a
/// changed quota takes effect with the next call. If programs use different quotas of one name, each call moves the
/// time that all share on by `cost * interval` of its own quota, and is allowed by its own burst: a program with a
/// smaller burst is refused first.
///
/// # Redis keys
/// `<prefix>:rate:{<name>}:tat` expires when the whole burst is there again.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// use bowline::Quota;
///
/// // A server refuses what is too much.
/// let per_user = client.rate_limiter("user:42", Quota::per(100, Duration::from_secs(60)).burst(20));
/// let decision = per_user.check().await?;
/// if decision.limited {
///     println!("429, Retry-After: {:?}", decision.retry_after);
/// }
///
/// // A worker waits for its turn.
/// let calls = client.rate_limiter("their-api", Quota::per(10, Duration::from_secs(1)));
/// calls.until_ready().timeout(Duration::from_secs(30)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RateLimiter {
    calls: Calls,
}

impl RateLimiter {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str, quota: Quota) -> Self {
        Self { calls: Calls { primitive: Primitive::limiter(source, name), quota } }
    }

    /// Takes one permit, if it is free. Never waits.
    ///
    /// # Errors
    /// Those of [`check_n`](Self::check_n).
    ///
    /// # Cancel safety
    /// After the future is dropped, the permit may or may not have been taken.
    pub async fn check(&self) -> Result<Decision> {
        self.check_n(1).await
    }

    /// Takes `cost` permits, if all of them are free. Otherwise it takes none. Never waits.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the quota is invalid, or the cost is zero. Nothing was
    ///   sent.
    /// - [`OverLimit`](ErrorKind::OverLimit): the cost is more than the burst, so the call would never be allowed.
    ///   Nothing was sent.
    /// - [`Unavailable`](ErrorKind::Unavailable): the server gave no answer. The permits may have been taken.
    /// - Other errors of the server. Nothing was taken.
    ///
    /// # Cancel safety
    /// After the future is dropped, the permits may or may not have been taken.
    pub async fn check_n(&self, cost: u32) -> Result<Decision> {
        const OPERATION: &str = "check";
        let terms = self.calls.terms(OPERATION, cost)?;
        Ok(terms.decision(self.calls.take(OPERATION, &terms, (|| Duration::ZERO, false), None).await?))
    }

    /// Waits until a permit is free, and takes it. Set a timeout on the result if needed, then await it.
    pub fn until_ready(&self) -> UntilReady {
        self.until_ready_n(1)
    }

    /// Waits until `cost` permits are free, and takes them. Set a timeout on the result if needed, then await it.
    pub fn until_ready_n(&self, cost: u32) -> UntilReady {
        UntilReady::new(self.calls.clone(), cost)
    }

    /// Reads what [`check`](Self::check) would decide now, and takes nothing.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name or quota, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<Decision> {
        const OPERATION: &str = "inspect";
        let terms = self.calls.terms(OPERATION, 1)?;
        let (ahead, now) = self.calls.primitive.ask(OPERATION, |scripts, named| scripts.inspect_rate(named)).await?;
        self.calls.primitive.context().observe(now);
        Ok(terms.would_be(ahead))
    }

    /// Forgets what was taken, so that the whole burst is there at once. Returns whether anything had been taken. Waits
    /// that have begun go on, and what they have reserved is forgotten, too.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not answer
    /// or refuses. After [`Unavailable`](ErrorKind::Unavailable), the limiter may have been reset.
    ///
    /// # Cancel safety
    /// After the future is dropped, the limiter may or may not have been reset.
    pub async fn reset(&self) -> Result<bool> {
        self.calls.ask("reset", None, |scripts, named, not_after| scripts.reset_rate(named, not_after)).await
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.calls.primitive.name();
        f.debug_struct("RateLimiter").field("name", &name).field("quota", &self.calls.quota).finish_non_exhaustive()
    }
}
