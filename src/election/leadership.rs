//! What proves and ends a leadership, and what its work sees of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::candidate::Candidate;
use crate::engine::lease::Loss;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::guard::{LockGuard, LossSignal};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::election::{Announcement, What};
use crate::protocol::token::Token;

/// The leadership of an election, returned by [`Election::campaign`](crate::Election::campaign).
/// [`resign`](Self::resign) ends the term and waits for the server.
///
/// While [`is_valid`](Self::is_valid) returns `true`, no other leadership of the same name is valid, with the
/// exceptions of [`LockGuard`](crate::LockGuard).
///
/// # Dropping
/// A drop releases in the background, and the next candidate leads. If there is none, programs that
/// [watch](crate::Election::changes) learn that the term has ended within a third of their client's lease.
#[must_use = "the candidate leads no more when this is dropped"]
pub struct Leadership {
    guard: LockGuard,
    term: Term,
}

impl Leadership {
    /// Notes that the term has begun, unless several servers have granted it, which would have to agree on that.
    pub(super) async fn begin(candidate: &Candidate, guard: LockGuard, operation: &'static str) -> Result<Self> {
        let announcer = Announcer { candidate: candidate.clone(), id: guard.attempt(), last: AtomicU64::new(0) };
        let term = Term { announcer: Arc::new(announcer), token: guard.token(), lost: guard.lost_signal() };
        if candidate.quorum().is_none() {
            Box::pin(term.announce(operation, What::Led, "")).await?;
        }
        Ok(Self { guard, term })
    }

    /// The term, for tasks that work in it.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// The fencing token of the term.
    pub fn token(&self) -> Token {
        self.term.token
    }

    /// The name of the election.
    pub fn name(&self) -> &str {
        self.guard.name()
    }

    /// Whether the lease is still valid by this client's own count. See
    /// [`LockGuard::is_valid`](crate::LockGuard::is_valid).
    pub fn is_valid(&self) -> bool {
        self.guard.is_valid()
    }

    /// The rest of the lease by this client's own count, zero if it is over.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Resolves when the leadership is lost. See [`LockGuard::lost`](crate::LockGuard::lost).
    ///
    /// # Cancel safety
    /// The future may be dropped and `lost` called again. No loss is missed.
    pub async fn lost(&self) -> Loss {
        self.guard.lost().await
    }

    /// A signal of the loss, for other tasks.
    pub fn lost_signal(&self) -> LossSignal {
        self.guard.lost_signal()
    }

    /// Runs `work` until it is done or the leadership is lost. See
    /// [`LockGuard::protect`](crate::LockGuard::protect).
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost): the leadership was lost before the work was done. The work was dropped.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work. The leadership continues.
    pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
        self.guard.protect(work).await
    }

    /// Publishes a value: see [`Term::publish`].
    ///
    /// # Errors
    /// Those of [`Term::publish`].
    ///
    /// # Cancel safety
    /// That of [`Term::publish`].
    pub async fn publish(&self, value: &str) -> Result<()> {
        self.term.publish(value).await
    }

    /// Ends the term, hands over to the next candidate, and waits until the server has confirmed that. Programs that
    /// [watch](crate::Election::changes) are notified.
    ///
    /// # Errors
    /// - [`Lost`](ErrorKind::Lost): the lease ended before. Another candidate may lead.
    /// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused) and other errors of the server: the
    ///   term ends with its lease at the latest.
    ///
    /// # Cancel safety
    /// If the future is dropped, the release continues in the background.
    pub async fn resign(self) -> Result<()> {
        Box::pin(self.guard.release()).await
    }

    pub(super) fn guard(&self) -> &LockGuard {
        &self.guard
    }

    /// For the blocking facade, whose guards are dropped in another way.
    pub(crate) fn into_parts(self) -> (LockGuard, Term) {
        (self.guard, self.term)
    }

    pub(crate) fn of_parts(guard: LockGuard, term: Term) -> Self {
        Self { guard, term }
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("term", &self.term).field("remaining", &self.remaining()).finish()
    }
}

/// A term of an election, as its leader's tasks see it. Cheap to clone. It keeps the client alive, but not the
/// leadership.
#[derive(Clone)]
pub struct Term {
    announcer: Arc<Announcer>,
    token: Token,
    lost: LossSignal,
}

/// What is needed to speak for a term.
struct Announcer {
    candidate: Candidate,
    id: AttemptId,
    /// The number of the last announcement.
    last: AtomicU64,
}

impl Term {
    /// The fencing token of the term: larger than those of all terms before it.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The name of the election.
    pub fn name(&self) -> &str {
        self.lost.name()
    }

    /// Whether the leadership is still valid by this client's own count of the lease: `false` after a loss, and after
    /// the resignation. Sends no command.
    pub fn is_valid(&self) -> bool {
        self.lost.is_held()
    }

    /// A signal of the loss of the leadership.
    pub fn lost_signal(&self) -> &LossSignal {
        &self.lost
    }

    /// Publishes a value with the leader, such as the address at which it serves: up to 1,024 bytes
    /// ([`MAX_LEADER_VALUE`](crate::MAX_LEADER_VALUE)). It replaces the one before, ends with the term, and is told to
    /// the programs that [watch](crate::Election::changes). Everybody who may read from the server can read it.
    ///
    /// # Errors
    /// - [`InvalidInput`](ErrorKind::InvalidInput): the value is too long. Nothing was sent.
    /// - [`Unsupported`](ErrorKind::Unsupported): the election is one [over a
    ///   `RedLock`](crate::RedLock::election).
    /// - [`Lost`](ErrorKind::Lost): the term has ended.
    /// - The errors of a server that does not answer or refuses. The value may have been published.
    ///
    /// # Cancel safety
    /// After the future is dropped, the value may or may not have been published. Of several values, the one whose call
    /// began last stays. A value that a later one has overtaken on its way is not reported.
    pub async fn publish(&self, value: &str) -> Result<()> {
        const OPERATION: &str = "publish";
        self.announcer.candidate.check_value(value, OPERATION)?;
        self.announcer.candidate.check_one_server(OPERATION)?;
        self.announce(OPERATION, What::Said, value).await
    }

    async fn announce(&self, operation: &'static str, what: What, value: &str) -> Result<()> {
        let Announcer { candidate: Candidate { primitive, label }, id, last } = &*self.announcer;
        let number = last.fetch_add(1, Ordering::Relaxed) + 1;
        let said = Announcement { term: self.token, what, number, label, value };
        let announced = primitive.ask(operation, |scripts, keys| scripts.announce(keys, *id, said)).await?;
        primitive.context().observe(announced.now);
        if announced.is_noted {
            return Ok(());
        }
        Err(Error::because(ErrorKind::Lost, operation, "the term has ended").with_name(self.name()))
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Term");
        shown.field("name", &self.name()).field("token", &self.token).field("is_valid", &self.is_valid()).finish()
    }
}
