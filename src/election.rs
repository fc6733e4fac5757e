//! Elections: one leader among many programs.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;

use crate::acquire::builder::TryAcquire;
use crate::error::Result;
use crate::handle::Primitive;
use crate::hold::covered::covered;
use crate::hold::guard::{LockGuard, Sealed, protect};
use crate::hold::owner::HoldSource;
use crate::protocol::kind::Kind;
use crate::tuning::AGAIN;

use candidate::Candidate;

pub use campaign::Campaign;
pub use candidate::MAX_LEADER_VALUE;
pub use changes::{ElectionChange, ElectionChanges};
pub use leadership::{Leadership, Term};
pub use state::Leader;

mod campaign;
mod candidate;
mod changes;
mod leadership;
mod state;

/// A named election: of all programs that campaign in it, one leads at a time, until it resigns or its lease ends.
///
/// Returned by [`Client::election`](crate::Client::election). A handle is cheap to make and to clone, and stores
/// nothing in Redis.
///
/// # Guarantees
/// - At most one [`Leadership`] per name is valid, as far as that is true of a [`LockGuard`](crate::LockGuard): a
///   leader holds like a lock, and the watchdog renews its lease.
/// - Each term has a [token](Term::token), which is larger than those of all terms before it. It is a fencing token.
/// - Candidates lead in the order in which they began to campaign. When the leader [resigns](Leadership::resign), the
///   next one leads after one hand-over; when it crashes, after its lease.
/// - [`changes`](Self::changes) reports every term that has begun and ended, and every value that was published, in
///   order. It says so if it [missed](ElectionChange::Missed) some.
///
/// # Not guaranteed
/// - An election [over a `RedLock`](crate::RedLock::election) has the guarantees and the keys of a
///   [`RedLock`](crate::RedLock), whose lock of that name its leader holds. It has no [`changes`](Self::changes) and
///   publishes no values, because no server sees all of them: both return
///   [`Unsupported`](crate::ErrorKind::Unsupported). Its leader is shown by the
///   [label](crate::ConfigBuilder::label) of its clients, which should all have the same one.
///   [`leader`](Self::leader) asks each master once or twice. It is an [`Unavailable`](crate::ErrorKind::Unavailable)
///   error if too few answer to tell. If masters have restarted without their data since this program has campaigned
///   there, `leader` may tell that nobody leads although somebody does, or tell of a candidate that does not lead yet.
/// - A leadership is a lease with a fencing token, not a mutex: see [`LockGuard`](crate::LockGuard).
/// - Replicas [acknowledge](crate::ConfigBuilder::acknowledged_by) the hold of a leader, but neither the report that
///   its term has begun nor what it publishes. After a failover to a replica without these,
///   [`changes`](Self::changes) does not report that term, the leader has no label, and the value before is read
///   again, until the leader publishes.
/// - If the server loses its data, what is known of the leader is lost with its hold.
///
/// # Redis keys
/// - `<prefix>:election:{<name>}`, `...:queue`, `...:tickets` and `...:fence` are those of a [`Lock`](crate::Lock).
/// - `...:changes`, the last 65 changes, expires 1 h after the last change, or after twice the lease if that is longer.
///   Renewals of the leader and programs that watch keep it.
/// - `...:watchers`, the waits for a change, expires 1 h after the last heartbeat.
///
/// # Examples
/// ```no_run
/// # async fn schedule(_: &bowline::Term) {}
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// let election = client.election("scheduler").label("web-7");
///
/// // Leads until the work returns. After a loss it campaigns again, and calls the work anew.
/// election.lead(|term| async move { schedule(&term).await }).await?;
/// # Ok(()) }
/// ```
/// ```no_run
/// # async fn example(client: bowline::Client) -> bowline::Result<()> {
/// use bowline::ElectionChange;
/// use futures::StreamExt;
///
/// let mut changes = client.election("scheduler").changes();
/// while let Some(change) = changes.next().await {
///     match change? {
///         ElectionChange::Elected(leader) => println!("{} leads", leader.label),
///         ElectionChange::Published(leader) => println!("{} is at {:?}", leader.label, leader.value),
///         ElectionChange::Ended { term } => println!("term {term} has ended"),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Election {
    candidate: Candidate,
}

impl Election {
    pub(crate) fn new(source: &Arc<HoldSource>, name: &str) -> Self {
        Self::of(source, Kind::Election, name)
    }

    /// An election over several servers that grant together.
    pub(crate) fn of_quorum(source: &Arc<HoldSource>, name: &str) -> Self {
        Self::of(source, Kind::Vote, name)
    }

    fn of(source: &Arc<HoldSource>, kind: Kind, name: &str) -> Self {
        let label = source.context.config.label.clone();
        Self { candidate: Candidate { primitive: Primitive::new(source, kind, name), label } }
    }

    /// Says who this candidate is, such as the name of its host: up to 64 bytes
    /// ([`MAX_LABEL`](crate::MAX_LABEL)) without control characters. Everybody who may read from the server can read
    /// it. The default is the [label](crate::ConfigBuilder::label) of the client.
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        Self { candidate: Candidate { label: label.into(), ..self.candidate } }
    }

    /// Waits until this candidate leads. Set options on the result, then await it.
    pub fn campaign(&self) -> Campaign {
        Campaign::new(&self.candidate)
    }

    /// Leads if nobody leads and nobody campaigns. Never waits for others.
    ///
    /// # Errors
    /// Those of [`Campaign`], but for those of waiting.
    ///
    /// # Cancel safety
    /// That of [`Campaign`].
    pub async fn try_campaign(&self) -> Result<Option<Leadership>> {
        const OPERATION: &str = "try_campaign";
        self.candidate.check_label(OPERATION)?;
        let attempt = TryAcquire::<LockGuard>::new(&self.candidate.primitive, OPERATION, 1).ignoring_holder();
        match Box::pin(attempt.acquired()).await? {
            Some(guard) => Leadership::begin(&self.candidate, guard, OPERATION).await.map(Some),
            None => Ok(None),
        }
    }

    /// Campaigns, runs `work` while this candidate leads, and resigns when the work returns.
    ///
    /// If the leadership is lost, the work is stopped where it awaits, and this candidate campaigns again. It does the
    /// same after an error that may [pass](crate::Error::is_retryable), such as that of a server that does not answer,
    /// after a pause of 1 s. A panic of the work is resumed after the resignation.
    ///
    /// # Errors
    /// - [`Lost`](crate::ErrorKind::Lost), [`WrongType`](crate::ErrorKind::WrongType),
    ///   [`Protocol`](crate::ErrorKind::Protocol): the resignation found that the leadership may not have lasted as
    ///   long as the work, which has returned. Its output is dropped.
    /// - Errors of [`Campaign`] that do not pass by themselves.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and the [`Leadership`], or leaves the queue in the background.
    pub async fn lead<F, W>(&self, mut work: F) -> Result<W::Output>
    where
        F: FnMut(Term) -> W,
        W: Future,
    {
        let context = self.candidate.primitive.context();
        loop {
            let leadership = match Box::pin(self.campaign().led("lead")).await {
                Ok(leadership) => leadership,
                Err(error) if error.is_retryable() => {
                    context.executor.sleep(AGAIN).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (term, guard) = (leadership.term().clone(), leadership.guard());
            // The closure itself may panic, too. On the heap, as in `Acquire::run`.
            let work = Box::pin(AssertUnwindSafe(async { work(term).await }).catch_unwind());
            let Ok(worked) = protect("lead", || guard.loss(), guard.first_lost(), work).await else { continue };
            let resigned = Box::pin(leadership.resign()).await;
            return match worked {
                Ok(output) => covered(resigned).map(|()| output),
                Err(panic) => resume_unwind(panic),
            };
        }
    }

    /// Reads who leads.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid name, and the errors of a server that does not
    /// answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        const OPERATION: &str = "leader";
        if let Some(quorum) = self.candidate.quorum() {
            let keys = self.candidate.primitive.keys(OPERATION)?;
            return Ok(quorum.holder(OPERATION, &keys.name).await?.map(Leader::of_holder));
        }
        let seen =
            self.candidate.primitive.ask(OPERATION, |scripts, keys| scripts.look_at_election(keys, None)).await?;
        self.candidate.primitive.context().observe(seen.now);
        Ok(Leader::of(seen))
    }

    /// Reports who leads, and then every change.
    pub fn changes(&self) -> ElectionChanges {
        match self.candidate.check_one_server("changes") {
            Ok(()) => ElectionChanges::of(&self.candidate.primitive),
            Err(error) => ElectionChanges::failed(error),
        }
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Election");
        shown
            .field("name", &self.candidate.primitive.name())
            .field("label", &self.candidate.label)
            .finish_non_exhaustive()
    }
}
