//! A party inside a double barrier, and how it leaves.

use std::fmt;
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, Shared, select};

use crate::acquire::wait::{end_of, in_time};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::barrier::end::GenerationEnd;
use crate::protocol::barrier::reply::Leaving;
use crate::protocol::kind::Kind;
use crate::protocol::message::Message;
use crate::protocol::ticket::ticket_ttl;
use crate::protocol::token::Token;
use crate::runtime::Executor;

pub(super) const GONE: &str = "the server has lost the party, and it is not known how its generation has ended";

/// How the generation ends for the party. Dropped, it breaks the generation.
type Presence = Shared<BoxFuture<'static, Result<Token>>>;

/// A party inside a [`DoubleBarrier`](crate::DoubleBarrier), returned by
/// [`enter`](crate::DoubleBarrier::enter). The client keeps its lease until it has left. While the server gives no
/// usable answer, the party stays inside until its lease ends, or until the
/// [`retry_timeout`](crate::ConfigBuilder::retry_timeout) is over if that is later. The lease counts from the last
/// request that was answered, and is 30 minutes at most.
///
/// # Dropping
/// A drop breaks the generation for all others, in the background, unless it has ended. [`leave`](Self::leave) ends it
/// well.
#[must_use = "dropping this breaks the generation"]
pub struct Inside {
    primitive: Primitive,
    id: AttemptId,
    presence: Presence,
    generation: u64,
    index: u32,
}

impl Inside {
    pub(super) fn new(
        primitive: Primitive,
        id: AttemptId,
        presence: Presence,
        (generation, index): (u64, u32),
    ) -> Self {
        Self { primitive, id, presence, generation, index }
    }

    /// The number of the generation, the same for all of its parties: the server's time in milliseconds when the last
    /// one came, or larger. See [`BarrierPass::generation`](crate::BarrierPass::generation).
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The place of the party in its generation, from 0 to the number of parties less one. No two parties have the same
    /// one.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Resolves when the generation is broken, with the reason as the error: another party has stopped or died, or
    /// this one is not known any more. What the parties do together will then not be complete.
    ///
    /// # Cancel safety
    /// The future may be dropped and `broken` called again.
    pub async fn broken(&self) -> Error {
        match outcome("broken", &self.primitive, self.presence.clone().await) {
            Err(error) => error,
            // Nobody leaves before this party is ready.
            Ok(()) => Error::new(ErrorKind::Protocol, "broken"),
        }
    }

    /// Whether the generation is known to be broken: see [`broken`](Self::broken). Sends no command.
    pub fn is_broken(&self) -> bool {
        self.presence.clone().now_or_never().is_some()
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.primitive.context().executor
    }

    /// Says that this party is ready to leave, and waits until all others are. Set a timeout on the result if needed,
    /// then await it.
    pub fn leave(self) -> Leave {
        Leave { inside: self, timeout: None }
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Inside");
        shown.field("name", &self.primitive.name()).field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// A party that leaves, returned by [`Inside::leave`]. Nothing is sent before it is awaited, or before
/// [`block`](Self::block) is called in blocking code.
///
/// # Errors
/// - [`Broken`](ErrorKind::Broken): the generation was broken, as the message says. Not all parties were ready.
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed. This breaks the generation, unless
///   all were ready in that moment.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the timeout is zero. This breaks the generation, too.
/// - [`Lost`](ErrorKind::Lost): the server has lost the party, and it is not known whether all were ready.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused), [`Closed`](ErrorKind::Closed) and other
///   errors of the server. The generation is broken, unless all were ready.
///
/// # Cancel safety
/// Dropping the future breaks the generation in the background, unless it has ended by then.
#[derive(Debug)]
#[must_use = "a party does not leave unless this is awaited"]
pub struct Leave {
    inside: Inside,
    timeout: Option<Duration>,
}

impl Leave {
    /// Limits the wait. By default it is unlimited. Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        self.inside.executor()
    }
}

impl IntoFuture for Leave {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            const OPERATION: &str = "leave";
            let Self { inside: Inside { primitive, id, presence, .. }, timeout: limit } = self;
            let name = primitive.name().unwrap_or_default().to_owned();
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(fail(ErrorKind::InvalidInput, OPERATION, "timeout is zero", &name));
            }
            let Kind::Inside { keep, .. } = primitive.keys(OPERATION)?.kind else {
                return Err(Error::new(ErrorKind::Protocol, OPERATION).with_name(&name));
            };
            let context = primitive.context();
            let leaves = pin!(leave(&primitive, (id, keep), &presence));
            let late = || Error::new(ErrorKind::TimedOut, OPERATION).with_name(&name);
            in_time(context, end_of(context, limit), leaves, late).await
        })
    }
}

/// Says that the party is ready, again and again until the generation has ended: a failover may lose it.
async fn leave(primitive: &Primitive, (id, keep): (AttemptId, u64), presence: &Presence) -> Result<()> {
    const OPERATION: &str = "leave";
    let context = primitive.context();
    loop {
        let asked = pin!(primitive.ask(OPERATION, |scripts, keys| scripts.leave_barrier(keys, id, keep)));
        // The message may come although the answer is lost.
        let answer = match select(presence.clone(), asked).await {
            Either::Left((ended, _)) => return outcome(OPERATION, primitive, ended),
            Either::Right((answer, _)) => answer?,
        };
        let (Leaving::Ended { now, .. } | Leaving::Waits { now } | Leaving::Gone { now }) = answer;
        context.observe(now);
        match answer {
            Leaving::Ended { number: token, .. } => {
                // The attempt is told as by a message, which the script sends to the others only. Polled once, it knows
                // that there is nothing to cancel.
                context.deliver(vec![Message::Granted { id, token, at: now }]);
                let _ = presence.clone().now_or_never();
                return outcome(OPERATION, primitive, Ok(token));
            }
            Leaving::Gone { .. } => {
                return Err(fail(ErrorKind::Lost, OPERATION, GONE, primitive.name().unwrap_or_default()));
            }
            Leaving::Waits { .. } => {}
        }
        if let Either::Left((ended, _)) =
            select(presence.clone(), context.executor.sleep(ticket_ttl(context.config.lease) / 3)).await
        {
            return outcome(OPERATION, primitive, ended);
        }
    }
}

fn outcome(operation: &'static str, primitive: &Primitive, ended: Result<Token>) -> Result<()> {
    let name = primitive.name().unwrap_or_default();
    match ended.map(GenerationEnd::of) {
        Ok(Some(GenerationEnd::Passed { .. })) => Ok(()),
        Ok(Some(GenerationEnd::Broken(why))) => Err(fail(ErrorKind::Broken, operation, why.reason(), name)),
        Ok(None) => Err(Error::new(ErrorKind::Protocol, operation).with_name(name)),
        Err(error) => Err(error.during(operation)),
    }
}

pub(super) fn fail(kind: ErrorKind, operation: &'static str, reason: &'static str, name: &str) -> Error {
    Error::because(kind, operation, reason).with_name(name)
}
