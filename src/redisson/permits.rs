//! Permits that Java programs share, and how they are given back.
//!
//! A call that takes permits leaves a mark with its id, which says how many. Giving them back turns the mark to zero,
//! so that it happens once, however many copies are sent. A future that is dropped, or has failed, does not know
//! whether it took any: it gives back what the mark says, and leaves a mark that later copies of its call find.

use std::fmt;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Instant;

use crate::call_once::Told;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::copy::CallCopy;
use crate::protocol::key::SharedCounter;
use crate::protocol::reply::ServerMillis;
use crate::protocol::shared_counter::Given;
use crate::tuning::AGAIN;

const RELEASE: &str = "release";

/// Permits of a [`RedissonSemaphore`](crate::RedissonSemaphore). They are given back when this is dropped, in the
/// background.
///
/// There is no lease: nobody else gets the permits before they are given back, however long that takes, and they are
/// lost if the program dies.
///
/// # Dropping
/// The background task sends the release until the server has answered, for one
/// [`lease`](crate::ConfigBuilder::lease) of the client. If the client is closed or the runtime shut down before, the
/// permits stay taken: [`release`](Self::release) them first.
#[must_use = "the permits are given back when this is dropped"]
pub struct RedissonPermits {
    /// `None` once they are given back or forgotten.
    held: Option<(Primitive<SharedCounter>, AttemptId)>,
    permits: u32,
}

impl RedissonPermits {
    /// How many permits these are.
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Gives the permits back, and wakes those who wait. They are given back once, even if the request is sent several
    /// times.
    ///
    /// # Errors
    /// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for
    ///   the client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). The release goes on in the background.
    /// - [`Denied`](ErrorKind::Denied): the user may not publish to the channel. The permits stay taken.
    /// - [`WrongType`](ErrorKind::WrongType): the name is that of something else by now.
    /// - [`Closed`](ErrorKind::Closed): the client was closed. The permits stay taken.
    ///
    /// # Cancel safety
    /// If the future is dropped, the release goes on in the background.
    pub async fn release(mut self) -> Result<()> {
        match self.giving_back() {
            Some(mut release) => release.send().await,
            None => Ok(()),
        }
    }

    /// Leaves the permits taken, and returns how many. Anybody may give them back by
    /// [`RedissonSemaphore::release`](crate::RedissonSemaphore::release), or by `release` in Java.
    pub fn forget(mut self) -> u32 {
        self.held = None;
        self.permits
    }

    fn giving_back(&mut self) -> Option<Release> {
        let (primitive, id) = self.held.take()?;
        Some(Release::new(primitive, id, Given::Permits(self.permits.into())))
    }
}

impl Drop for RedissonPermits {
    fn drop(&mut self) {
        drop(self.giving_back());
    }
}

impl fmt::Debug for RedissonPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedissonPermits").field("permits", &self.permits).finish_non_exhaustive()
    }
}

/// A call that may take permits. If it is dropped before its answer, what it has taken is given back.
pub(super) struct Taking {
    primitive: Primitive<SharedCounter>,
    /// The id of the copies that were sent.
    sent: Mutex<Option<AttemptId>>,
}

impl Taking {
    pub(super) fn new(primitive: &Primitive<SharedCounter>) -> Self {
        Self { primitive: primitive.clone(), sent: Mutex::default() }
    }

    pub(super) fn told(&self, told: &Told<'_>) {
        if let Told::Sends(copy) = told {
            *lock(&self.sent) = Some(copy.id);
        }
    }

    /// The server has answered that so many were taken.
    pub(super) fn answered(self, permits: u32) -> Option<RedissonPermits> {
        let id = lock(&self.sent).take()?;
        (permits > 0).then(|| RedissonPermits { held: Some((self.primitive.clone(), id)), permits })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let sent = lock(&self.sent).take().filter(|_| !mutant::on(Mutant::PermitsKeptOnDrop));
        if let Some(id) = sent {
            drop(Release::new(self.primitive.clone(), id, Given::Unknown));
        }
    }
}

/// Gives permits back. If it is dropped before that is done, it goes on in the background.
struct Release {
    primitive: Primitive<SharedCounter>,
    id: AttemptId,
    given: Given,
    /// No copy is executed after that time, and so long the mark is kept.
    known_until: ServerMillis,
    /// No request is begun after that time.
    end: Instant,
    is_over: bool,
}

impl Release {
    fn new(primitive: Primitive<SharedCounter>, id: AttemptId, given: Given) -> Self {
        let context = primitive.context();
        let end = context.now() + context.config.lease;
        // No copy of the call that takes comes later than one retry timeout after it began, whatever the lease is.
        let known_until = context.not_after(end + context.config.retry_timeout, None);
        Self { primitive, id, given, known_until, end, is_over: false }
    }

    /// Sends copies until one is answered, for the client's retry timeout.
    async fn send(&mut self) -> Result<()> {
        let (context, counter) = (self.primitive.context(), self.primitive.keys(RELEASE)?);
        let mut retry = context.retry(RELEASE, counter);
        loop {
            let sent = retry.begin().await?;
            let not_after = context.not_after(sent, retry.limit(sent)).min(self.known_until);
            let copy = CallCopy { id: self.id, not_after, known_until: self.known_until, resent: true };
            let call = pin!(context.scripts().release_shared(counter, copy, self.given));
            match retry.bounded(sent, call).await {
                Ok((done, now)) => {
                    context.observe(now);
                    if done.is_some() {
                        self.is_over = true;
                        return Ok(());
                    }
                    if not_after == self.known_until {
                        let reason = "it is too late to give the permits back";
                        let error = Error::because(ErrorKind::Unavailable, RELEASE, reason);
                        return Err(error.with_name(&counter.name));
                    }
                    // The estimate of the server's clock was wrong, and the answer has corrected it.
                }
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }

    async fn finish(mut self) {
        let executor = self.primitive.context().executor.clone();
        while executor.now() < self.end {
            match self.send().await {
                Err(error) if error.kind().is_retryable() => executor.sleep(AGAIN).await,
                _ => break,
            }
        }
        self.is_over = true;
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.is_over, true) || self.primitive.keys(RELEASE).is_err() {
            return;
        }
        let Self { id, given, known_until, end, .. } = *self;
        let rest = Self { primitive: self.primitive.clone(), id, given, known_until, end, is_over: false };
        self.primitive.context().executor.spawn(Box::pin(rest.finish()));
    }
}
