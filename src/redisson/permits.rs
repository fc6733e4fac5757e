//! Permits that Java programs share, and how they are given back.
//!
//! A call that takes permits leaves a mark with its id, which says how many. Giving them back turns the mark to zero,
//! so that it happens once, however many copies are sent. A future that is dropped, or has failed, does not know
//! whether it took any: it gives back what the mark says, and leaves a mark that later copies of its call find.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use crate::call_once::Told;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::observe;
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
/// [`retry_timeout`](crate::ConfigBuilder::retry_timeout) and one [`lease`](crate::ConfigBuilder::lease) of the client.
/// After [`Denied`](ErrorKind::Denied), [`WrongType`](ErrorKind::WrongType) and other answers that time does not mend,
/// it stops at once. If the client is closed or the runtime shut down before the answer, the permits stay taken:
/// [`release`](Self::release) them first. A release that was given up is a warning of the feature `tracing`.
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
    ///   the client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). The release goes on in the background for
    ///   one [`lease`](crate::ConfigBuilder::lease) more.
    /// - [`Denied`](ErrorKind::Denied): the user may not publish to the channel. The permits stay taken, and nothing is
    ///   sent any more.
    /// - [`WrongType`](ErrorKind::WrongType): the name is that of something else by now. Nothing is sent any more.
    /// - [`Closed`](ErrorKind::Closed): the client was closed. The permits stay taken.
    ///
    /// # Cancel safety
    /// If the future is dropped, the release goes on in the background.
    pub async fn release(mut self) -> Result<()> {
        match self.giving_back() {
            Some(release) => release.send().await,
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
    /// The id of the copies that may be executed, and whether another one was sent before the last one.
    sent: Mutex<Option<(AttemptId, bool)>>,
}

impl Taking {
    pub(super) fn new(primitive: &Primitive<SharedCounter>) -> Self {
        Self { primitive: primitive.clone(), sent: Mutex::default() }
    }

    pub(super) fn told(&self, told: &Told<'_>) {
        let mut sent = lock(&self.sent);
        match told {
            Told::Sends(copy) => *sent = Some((copy.id, copy.resent)),
            // The copy took nothing, and never will.
            Told::Failed(failure) if !failure.may_be_done() => *sent = sent.filter(|(_, resent)| *resent),
            Told::Failed(_) => {}
        }
    }

    /// The server has answered that so many were taken.
    pub(super) fn answered(self, permits: u32) -> Option<RedissonPermits> {
        let (id, _) = lock(&self.sent).take()?;
        (permits > 0).then(|| RedissonPermits { held: Some((self.primitive.clone(), id)), permits })
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let sent = lock(&self.sent).take().filter(|_| !mutant::on(Mutant::PermitsKeptOnDrop));
        if let Some((id, _)) = sent {
            drop(Release::new(self.primitive.clone(), id, Given::Unknown));
        }
    }
}

/// Gives permits back. If it is dropped before that is done, it goes on in the background. `None` when it is over.
struct Release(Option<GivingBack>);

impl Release {
    fn new(primitive: Primitive<SharedCounter>, id: AttemptId, given: Given) -> Self {
        let end = primitive.context().now() + longest(primitive.context());
        Self(Some(GivingBack { primitive, id, given, known_until: 0, resent: false, end }))
    }

    /// Sends copies until one is answered, for the client's retry timeout.
    async fn send(mut self) -> Result<()> {
        let Some(back) = &mut self.0 else { return Ok(()) };
        let sent = back.send().await;
        if sent.as_ref().err().is_none_or(|error| back.is_final(error)) {
            self.0 = None;
        }
        sent
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(back) = self.0.take() {
            let executor = back.primitive.context().executor.clone();
            executor.spawn(Box::pin(back.finish()));
        }
    }
}

/// How long requests to give permits back are begun. A release of the caller may fail after one retry timeout, and the
/// background task has one lease then.
pub(super) fn longest(context: &Context) -> Duration {
    context.config.retry_timeout + context.config.lease
}

/// The requests to give permits back. It has no drop of its own: a runtime that is shut down drops its tasks.
struct GivingBack {
    primitive: Primitive<SharedCounter>,
    id: AttemptId,
    given: Given,
    /// No copy is executed after that time, and so long the mark is kept. Until a copy may have been executed, it
    /// follows the estimate of the server's clock.
    known_until: ServerMillis,
    /// Whether a copy may have been executed.
    resent: bool,
    /// No request is begun after that time.
    end: Instant,
}

impl GivingBack {
    /// Sends copies until one is answered, for the client's retry timeout.
    async fn send(&mut self) -> Result<()> {
        let (context, counter) = (self.primitive.context(), self.primitive.keys(RELEASE)?);
        let mut retry = context.retry(RELEASE, counter);
        loop {
            let sent = retry.begin().await?;
            if !self.resent {
                // No copy of the call that takes comes later than one retry timeout after it began.
                self.known_until = self.known_until.max(context.not_after(self.end, None));
            }
            let not_after = context.not_after(sent, retry.limit(sent)).min(self.known_until);
            // If this future is dropped, nobody hears what became of the copy.
            let resent = mem::replace(&mut self.resent, true);
            let copy = CallCopy { id: self.id, not_after, known_until: self.known_until, resent };
            let call = pin!(context.scripts().release_shared(counter, copy, self.given));
            match retry.bounded(sent, call).await {
                Ok((done, now)) => {
                    context.observe(now);
                    if done.is_some() {
                        return Ok(());
                    }
                    if resent && not_after == self.known_until || context.now() >= self.end {
                        self.end = context.now();
                        let reason = "it is too late to give the permits back";
                        let error = Error::because(ErrorKind::Unavailable, RELEASE, reason);
                        return Err(error.with_name(&counter.name));
                    }
                    // The estimate of the server's clock was wrong, and the answer has corrected it.
                    self.resent = resent;
                }
                Err(failure) => {
                    self.resent = resent || failure.may_be_done();
                    let next = retry.again_after(failure.clone()).await;
                    if next.is_ok() && context.now() >= self.end {
                        return Err(retry.error(failure));
                    }
                    next?;
                }
            }
        }
    }

    /// Whether another request is of no use. A refused login passes when the credentials are right again, and a refused
    /// certificate when the server has another one.
    fn is_final(&self, error: &Error) -> bool {
        let is_down = |counter: &Arc<SharedCounter>| self.primitive.context().why_down(counter.main()).is_some();
        !error.kind().is_retryable() && !self.primitive.keys(RELEASE).is_ok_and(is_down)
    }

    async fn finish(mut self) {
        let executor = self.primitive.context().executor.clone();
        let mut why = None;
        while executor.now() < self.end {
            let Err(error) = self.send().await else { return };
            let is_final = self.is_final(&error);
            why = Some(error);
            if is_final {
                break;
            }
            executor.sleep(AGAIN).await;
        }
        let permits = match self.given {
            Given::Permits(permits) => Some(permits),
            Given::Unknown => None,
        };
        let why = why.as_ref().map(|error| error as &dyn fmt::Display);
        observe::not_given_back(self.primitive.name().unwrap_or_default(), permits, why);
    }
}
