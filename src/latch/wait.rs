//! The wait for a latch.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::announced;
use crate::acquire::ticket_only::TicketWait;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::protocol::key::{Named, SharedCounter};
use crate::runtime::Executor;

/// A wait until a latch is open, returned by [`CountDownLatch::wait`](crate::CountDownLatch::wait) and by
/// [`RedissonCountDownLatch::wait`](crate::RedissonCountDownLatch::wait). Nothing is sent before it is awaited, or
/// before [`block`](Self::block) is called in blocking code.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name is invalid or the timeout is zero. Nothing was sent.
/// - [`Lost`](ErrorKind::Lost): the latch ended during the wait, and may not have been counted down. Also if the answer
///   to a request was lost, and the next one finds no latch.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for the
///   client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). Other errors of the server are returned at once.
/// - [`Closed`](ErrorKind::Closed): the client is closed, or was closed during the wait.
///
/// # Cancel safety
/// Dropping the future removes the waiter in the background.
#[derive(Clone, Debug)]
#[must_use = "a wait does nothing unless awaited"]
pub struct LatchWait {
    of: Of,
    timeout: Option<Duration>,
}

/// The format of the latch.
#[derive(Clone, Debug)]
enum Of {
    Own(Primitive),
    Redisson(Primitive<SharedCounter>),
}

impl LatchWait {
    /// Limits the wait. By default it is unlimited. Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error: use
    /// `count` of the latch to check without waiting.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl LatchWait {
    fn new(of: Of) -> Self {
        Self { of, timeout: None }
    }

    /// A wait for a latch of bowline.
    pub(super) fn own(primitive: &Primitive) -> Self {
        Self::new(Of::Own(primitive.clone()))
    }

    /// A wait for a latch in Redisson's format.
    pub(crate) fn redisson(primitive: &Primitive<SharedCounter>) -> Self {
        Self::new(Of::Redisson(primitive.clone()))
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        let context = match &self.of {
            Of::Own(primitive) => primitive.context(),
            Of::Redisson(primitive) => primitive.context(),
        };
        &context.executor
    }

    /// Fails if the timeout is zero.
    fn check(&self, named: &Named) -> Result<()> {
        if !self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Ok(());
        }
        let reason = "timeout is zero; use count to check without waiting";
        Err(Error::because(ErrorKind::InvalidInput, WAIT, reason).with_name(&named.name))
    }
}

const WAIT: &str = "wait";

impl IntoFuture for LatchWait {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match &self.of {
                Of::Own(primitive) => {
                    let keys = primitive.keys(WAIT)?;
                    self.check(keys)?;
                    let gone = "the latch ended, and it is not known whether it was counted down before";
                    let (context, timeout) = (primitive.context(), self.timeout);
                    TicketWait { context, operation: WAIT, keys, timeout, gone }.observed(|_| Ok(())).await
                }
                Of::Redisson(primitive) => {
                    self.check(primitive.keys(WAIT)?)?;
                    announced::answer(primitive, WAIT, self.timeout, |primitive, last| {
                        announced::is_zero(primitive, WAIT, last)
                    })
                    .await
                }
            }
        })
    }
}
