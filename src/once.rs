//! Work that runs once in a period, over all programs.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::acquire::builder::TryAcquire;
use crate::config::MAX_LEASE;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::guard::{LockGuard, Sealed, protect};
use crate::hold::owner::HoldSource;
use crate::inspect::Labels;
use crate::protocol::kind::Kind;
use crate::protocol::once::reply::RunInspected;
use crate::protocol::reply::ServerMillis;

use period::Period;
use run::Running;

pub use run::Run;
pub use schedule::{MAX_PERIOD, MIN_PERIOD, Schedule};
pub use state::{LastRun, OnceState, RunOutcome};

#[cfg(feature = "cron")]
mod cron;
mod period;
pub(crate) mod run;
mod schedule;
mod state;

/// How often a call that reaches the server in another period than was expected tries the next one.
const MOST_TRIES: usize = 2;

/// By how much the clocks of the servers of a cluster may differ, in milliseconds.
const CLOCKS_DIFFER: u64 = 10_000;

/// Work that runs at most once in each period, whichever of many programs calls it first: a nightly report, a clean-up,
/// a heartbeat to another system.
///
/// Returned by [`Client::once`](crate::Client::once). A handle is cheap to make and to clone, and stores nothing in
/// Redis. It starts nothing by itself: every program calls [`run`](Self::run) by its own timer, several times in a
/// period. A call only at the beginning of a period could be early, by the server's clock.
///
/// # Guarantees
/// - Periods are those of the [`Schedule`] by the server's clock: the clocks of the programs' hosts do not matter.
/// - In each period at most one run begins, in the program whose call reaches the server first. With
///   [`retry_on_error`](Self::retry_on_error), another one may begin after a run of the period has failed.
/// - Two runs are never under way at the same time, as far as that is true of a [`LockGuard`](crate::LockGuard): a run
///   holds like a lock, the watchdog renews its lease, and its work is stopped when the lease is lost. A period whose
///   run would have to wait for that of an earlier one has none.
/// - A run whose program has crashed keeps others away until its lease ends, and counts as the run of its period.
///
/// # Not guaranteed
/// - A period can pass without its work. Perhaps nobody calls in it. Or the server begins a run, and the program does
///   not learn of that in time: the answer was lost or late, or too few replicas have acknowledged the grant. With
///   [`retry_on_error`](Self::retry_on_error), the next call begins another run.
/// - With [`retry_on_error`](Self::retry_on_error), work that was done is repeated if the server did not answer the
///   command that ends its run.
/// - The run is a lease with a fencing [token](Run::token), not a mutex: see [`LockGuard`](crate::LockGuard).
/// - If the server loses its data, or fails over to a replica that has not heard of the run, the period has another
///   run, with a larger token. Replicas [acknowledge](crate::ConfigBuilder::acknowledged_by) the beginning of a run,
///   not its end.
/// - If the server's clock is set back, no run begins until the clock has caught up with the last one, except another
///   try of a run that has failed, with [`retry_on_error`](Self::retry_on_error).
///
/// # Redis keys
/// - `<prefix>:once:{<name>}`, the hold of the run, expires with its lease.
/// - `...:fence`, what is known of the last run, expires after two periods, 65 min or twice the lease, whichever is
///   longest.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn write_report(_: bowline::Token) -> std::io::Result<u64> { Ok(0) }
/// # async fn example(client: bowline::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let report = client.once("report", Duration::from_secs(60 * 60)).retry_on_error();
///
/// // In every program, every ten minutes: one of them writes the report of the hour.
/// match report.try_run(|run| async move { write_report(run.token()).await }).await? {
///     Some(Ok(lines)) => println!("{lines} lines"),
///     Some(Err(error)) => eprintln!("the next call tries again: {error}"),
///     None => {}
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Once {
    source: Arc<HoldSource>,
    name: Arc<str>,
    schedule: Schedule,
    at_least: Duration,
    at_most: Option<Duration>,
    retries: bool,
}

impl Once {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str, schedule: Schedule) -> Self {
        let (source, name) = (source.clone(), name.into());
        Self { source, name, schedule, at_least: Duration::ZERO, at_most: None, retries: false }
    }

    /// Has the run hold for at least that time from when it began, even if its work is done sooner: up to 24 h
    /// ([`MAX_LEASE`](crate::MAX_LEASE)), 0 by default. After work that returns or panics, no other run begins before,
    /// not even in the next period or after an error. After a crash, a loss or a dropped future, or if the server gave
    /// no answer when the run ended, the hold ends with its lease or sooner.
    pub fn at_least(self, time: Duration) -> Self {
        Self { at_least: time, ..self }
    }

    /// Stops the work after that time, as [`Acquire::hold_at_most`](crate::Acquire::hold_at_most) says. Without it,
    /// the run lasts as long as its work.
    pub fn at_most(self, time: Duration) -> Self {
        Self { at_most: Some(time), ..self }
    }

    /// Lets another run of the same period begin if the first one is not known to have ended well: if its work returned
    /// an error ([`try_run`](Self::try_run)) or panicked, if its hold was lost, if its program crashed, or if the
    /// server did not answer when it ended.
    pub fn retry_on_error(self) -> Self {
        Self { retries: true, ..self }
    }

    /// Runs `work`, unless a run of this period has begun, or another run is under way or [holds](Self::at_least). Then
    /// it returns `None`, and `work` is not called. With a pattern of cron, the client may have to ask the server
    /// twice: if the period ends in between, the call returns `None` too. Never waits.
    ///
    /// Sends one command before the work and one after it. A call by a pattern of cron sends up to three more: one if
    /// the client does not know the server's time yet, and two if the pattern has matched in the last ten seconds,
    /// because the server may still be in the period before. The run has ended well when the work returns, whatever it
    /// returns.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the name, the length of the period or a time is invalid. Nothing
    ///   was sent.
    /// - [`Lost`](ErrorKind::Lost): the hold was lost before the work was done, or it lasted for longer than
    ///   [`at_most`](Self::at_most). The work was stopped where it awaits. Another run may have begun.
    /// - [`Unacknowledged`](ErrorKind::Unacknowledged): too few replicas have the beginning of the run in time. The
    ///   work is not called, and the run ends.
    /// - [`Closed`](ErrorKind::Closed): the client was closed.
    /// - [`WrongType`](ErrorKind::WrongType), [`Protocol`](ErrorKind::Protocol): the end of the run found something
    ///   that bowline did not write.
    /// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused) and other errors of the server before
    ///   the work, which is not called. If an answer was lost, the server may have begun the run: then the period has
    ///   had a run that has not ended well.
    ///
    /// Errors of the server after the work are not returned. The hold then ends with its lease at the latest, and the
    /// run may count as one that has not ended well.
    ///
    /// A panic of the work is resumed when the run has ended.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and ends its hold in the background. The run counts as one that has not
    /// ended well, and does not hold for [`at_least`](Self::at_least).
    pub async fn run<F, W>(&self, work: F) -> Result<Option<W::Output>>
    where
        F: FnOnce(Run) -> W,
        W: Future,
    {
        self.begin_and_end(work, |_| true).await
    }

    /// Runs `work` as [`run`](Self::run) does. If it returns an error, the run has failed.
    ///
    /// # Errors
    /// Those of [`run`](Self::run). The error of the work is part of what is returned.
    ///
    /// # Cancel safety
    /// That of [`run`](Self::run).
    pub async fn try_run<F, W, T, E>(&self, work: F) -> Result<Option<std::result::Result<T, E>>>
    where
        F: FnOnce(Run) -> W,
        W: Future<Output = std::result::Result<T, E>>,
    {
        self.begin_and_end(work, std::result::Result::is_ok).await
    }

    /// Reads what is known of the last run. Sends two commands if there was one: the second reads the label.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name or length of a period, and the errors of a server
    /// that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self) -> Result<OnceState> {
        let inspected = self.inspected("inspect").await?;
        let clients = inspected.last.iter().filter_map(|run| run.client).collect();
        let labels = Labels::read(&self.source.context, clients).await;
        Ok(OnceState::of(inspected, &self.schedule, &labels))
    }

    /// Begins a run, for the blocking facade too. `None`: this period has had its run, or another one is under way.
    pub(crate) async fn begin(&self) -> Result<Option<Running>> {
        const OPERATION: &str = "once";
        if self.at_least > MAX_LEASE {
            let reason = format!("a run holds for at least 0 to {MAX_LEASE:?}, not {:?}", self.at_least);
            return Err(self.invalid(OPERATION, reason));
        }
        let mut tried: Option<Period> = None;
        for _ in 0..MOST_TRIES {
            let period = self.schedule.period_at(self.server_time(OPERATION, tried).await?);
            // The server has answered for this one.
            if tried.replace(period) == Some(period) {
                break;
            }
            let Some(guard) = self.try_begin(OPERATION, period).await? else { continue };
            let length = Duration::from_millis(period.length);
            return Ok(Some(Running::new(guard, self.schedule.clone(), length, self.at_least)));
        }
        Ok(None)
    }

    async fn try_begin(&self, operation: &'static str, period: Period) -> Result<Option<LockGuard>> {
        let mut begin = TryAcquire::<LockGuard>::new(&self.primitive(operation, period)?, operation, 1);
        if let Some(time) = self.at_most {
            begin = begin.hold_at_most(time);
        }
        Box::pin(begin.acquired()).await
    }

    /// An estimate, or 0 if the schedule does not depend on it. The server was asked for the period `tried`, if there
    /// is one.
    async fn server_time(&self, operation: &'static str, tried: Option<Period>) -> Result<ServerMillis> {
        if !self.schedule.needs_time() {
            return Ok(0);
        }
        let context = &self.source.context;
        let time = context.clock.at(context.now(), Duration::ZERO);
        // The estimate follows the clock of all servers that is furthest ahead. That of this name may show the period
        // before.
        let is_doubtful = tried.is_some_and(|period| time < period.first.saturating_add(CLOCKS_DIFFER));
        if time == 0 || is_doubtful { Ok(self.inspected(operation).await?.now) } else { Ok(time) }
    }

    async fn inspected(&self, operation: &'static str) -> Result<RunInspected> {
        let primitive = self.primitive(operation, self.schedule.period_at(0))?;
        let inspected = primitive.ask(operation, |scripts, keys| scripts.inspect_run(keys)).await?;
        primitive.context().observe(inspected.now);
        Ok(inspected)
    }

    async fn begin_and_end<F, W>(&self, work: F, is_done: impl FnOnce(&W::Output) -> bool) -> Result<Option<W::Output>>
    where
        F: FnOnce(Run) -> W,
        W: Future,
    {
        let Some(running) = self.begin().await? else { return Ok(None) };
        let (run, guard) = (running.run(), running.guard());
        // The closure itself may panic, too. On the heap, as in `Acquire::run`.
        let work = Box::pin(AssertUnwindSafe(async move { work(run).await }).catch_unwind());
        let worked = protect("once", || guard.loss(), guard.first_lost(), work).await?;
        let ended = Box::pin(running.end(worked.as_ref().is_ok_and(is_done))).await;
        match worked {
            Ok(output) => ended.map(|()| Some(output)),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn primitive(&self, operation: &'static str, Period { first, length }: Period) -> Result<Primitive> {
        if let Some(reason) = self.schedule.problem() {
            return Err(self.invalid(operation, reason));
        }
        let kind = Kind::Once { first, period: length, retries: self.retries };
        Ok(Primitive::new(&self.source, kind, &self.name))
    }

    fn invalid(&self, operation: &'static str, reason: String) -> Error {
        Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&self.name)
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("name", &self.name).field("schedule", &self.schedule).finish_non_exhaustive()
    }
}
