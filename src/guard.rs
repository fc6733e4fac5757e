//! Guards: what proves and ends a hold.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::holder::Holder;
use crate::lease::{Hold, Loss};
use crate::mutant::{self, Mutant};
use crate::reentry::Reentry;
use crate::scripts::reply::Released;
use crate::token::Token;

/// A held lock. Released by [`release`](Self::release), or in the background when dropped.
///
/// # Guarantees
/// While [`is_valid`](Self::is_valid) says `true`, no other guard of the same name is valid, in any process that uses
/// the same server and prefix; see the exceptions below. A loss is signalled by [`lost`](Self::lost) at the latest when
/// the lease, counted from before the last renewal was sent, is over.
///
/// # Not guaranteed
/// A lock on Redis is a lease, not a mutex: code that checked a moment ago may be paused past the end of its lease.
/// Exclusion may also fail for holds granted before a `FLUSHALL`, a failover that lost them, or a forward step of the
/// server's clock, and after a suspended machine resumes. For these there is the [`token`](Self::token): send it with
/// every write, and let the resource refuse smaller ones.
///
/// # Dropping
/// The drop hands the release to the client's background task, which tries until the server answers or the lease is
/// over. Without a running executor, the hold ends with its lease.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    owned: Arc<Owned>,
}

impl LockGuard {
    pub(crate) fn new(owned: Arc<Owned>) -> Self {
        Self { owned }
    }

    /// The fencing token of this hold.
    pub fn token(&self) -> Token {
        self.owned.hold.token
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        &self.owned.hold.keys.name
    }

    /// Whether the holder may still act. Costs no command: it is the client's own count of the lease.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// What is left of the lease by the client's own, careful count; zero once it is lost. The watchdog's renewals
    /// make it longer.
    pub fn remaining(&self) -> Duration {
        self.owned.hold.remaining(self.owned.context.now())
    }

    /// Resolves when the holder must stop, and says why.
    ///
    /// # Cancel safety
    /// May be dropped and called again; a loss is not missed.
    pub async fn lost(&self) -> Loss {
        self.owned.hold.lost().await
    }

    /// Runs `work`, and stops it when the lease is lost.
    ///
    /// Between its awaits `work` is not stopped: it should await often, and send the [`token`](Self::token) with its
    /// writes.
    ///
    /// # Errors
    /// [`Lost`](ErrorKind::Lost), with the [`Loss`] as its source, if the lease was lost before `work` was done; `work`
    /// is dropped then.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and keeps the guard.
    pub async fn protect<F: Future>(&self, work: F) -> Result<F::Output> {
        let mut work = pin!(work);
        let mut lost = pin!(self.lost());
        poll_fn(|context| {
            // The clock is asked too: the process may have slept through the deadline.
            let signalled = match lost.as_mut().poll(context) {
                Poll::Ready(loss) => Some(loss),
                Poll::Pending if mutant::on(Mutant::ProtectWaitsForSignal) => None,
                Poll::Pending => self.owned.hold.loss(self.owned.context.now()),
            };
            match signalled {
                Some(loss) => Poll::Ready(Err(lost_error(&self.owned.hold, "protect", loss))),
                None => work.as_mut().poll(context).map(Ok),
            }
        })
        .await
    }

    /// Releases the lock and waits until the server has confirmed it. With a [`Holder`], only the last guard does; the
    /// others just go.
    ///
    /// # Errors
    /// - [`Lost`](ErrorKind::Lost): the lease was over before; somebody else may have held the lock meanwhile.
    /// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused) and other answers of the server: the
    ///   hold ends with its lease at the latest.
    ///
    /// # Cancel safety
    /// Dropping the future finishes the release in the background.
    pub async fn release(self) -> Result<()> {
        let hold = self.owned.hold.clone();
        let loss = hold.loss(self.owned.context.now());
        // Not `try_unwrap`: of guards that go at the same time, exactly one must find itself the last.
        match Arc::into_inner(self.owned) {
            Some(owned) => owned.release().await,
            None => loss.map_or(Ok(()), |loss| Err(lost_error(&hold, "release", loss))),
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("name", &self.name())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish()
    }
}

/// A hold that this process has to end: shared by the guards of one holder, ended by the last.
#[derive(Debug)]
pub(crate) struct Owned {
    context: Arc<Context>,
    pub(crate) hold: Arc<Hold>,
    /// Whose it is, if it can be re-entered.
    holder: Option<(Holder, Arc<Reentry<Self>>)>,
    /// The server has confirmed that nothing is left.
    ended: bool,
}

impl Owned {
    pub(crate) fn new(context: Arc<Context>, hold: Arc<Hold>, holder: Option<(Holder, Arc<Reentry<Self>>)>) -> Self {
        Self { context, hold, holder, ended: false }
    }

    async fn release(mut self) -> Result<()> {
        if let Err(loss) = self.hold.release(self.context.now()) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        self.context.ledger.release(&self.hold);
        let id = self.hold.id.text();
        let mut tries = self.context.tries("release", &self.hold.keys.name);
        let mut sent_before = false;
        loop {
            match self.context.scripts().release(&self.hold.keys, &id).await {
                Ok(Released::Released { more, now }) => {
                    self.ended(more, now);
                    return Ok(());
                }
                Ok(Released::NotHeld { more, now }) => {
                    self.ended(more, now);
                    // The answer to the first request was lost, and that one released: the lease was valid then.
                    return if sent_before { Ok(()) } else { Err(lost_error(&self.hold, "release", Loss::Gone)) };
                }
                Err(failure) => {
                    sent_before = !mutant::on(Mutant::ResentReleaseLost);
                    tries.again_after(failure).await?;
                }
            }
        }
    }

    fn ended(&mut self, more: bool, now: crate::scripts::reply::ServerMillis) {
        self.ended = true;
        self.context.observe(now);
        if more && !mutant::on(Mutant::MoreNotDone) {
            self.context.ledger.promote_later(&self.hold.keys, self.context.now(), self.hold.lease);
        }
    }
}

fn lost_error(hold: &Hold, operation: &'static str, loss: Loss) -> Error {
    Error::new(ErrorKind::Lost, operation).with_name(&hold.keys.name).with_source(loss)
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some((holder, reentry)) = &self.holder {
            reentry.leave(*holder, &self.hold.keys);
        }
        let now = self.context.now();
        // Other losses leave nothing in Redis.
        let leaves = || matches!(self.hold.release(now), Ok(()) | Err(Loss::Expired));
        if !self.ended && leaves() && !mutant::on(Mutant::NoReleaseOnDrop) {
            self.context.ledger.release_later(&self.hold, now);
        }
    }
}
