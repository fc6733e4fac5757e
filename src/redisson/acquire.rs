//! How permits that Java programs share are taken.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::announced;
use crate::call_once::Told;
use crate::driver::channels::Announced;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::SharedCounter;
use crate::protocol::limits::MAX_SHARED;
use crate::redisson::changed::changed;
use crate::redisson::permits::{RedissonPermits, Taking, longest};
use crate::runtime::Executor;

/// Fails unless that is a number of permits.
pub(super) fn check(primitive: &Primitive<SharedCounter>, operation: &'static str, permits: u32) -> Result<()> {
    let counter = primitive.keys(operation)?;
    if (1..=MAX_SHARED).contains(&permits) {
        return Ok(());
    }
    let reason = format!("the number of permits must be 1 to {MAX_SHARED}, not {permits}");
    Err(Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&counter.name))
}

/// Fails unless so many permits can be added, or taken away if the number is negative.
pub(super) fn check_change(primitive: &Primitive<SharedCounter>, operation: &'static str, change: i32) -> Result<()> {
    let counter = primitive.keys(operation)?;
    if (1..=MAX_SHARED).contains(&change.unsigned_abs()) {
        return Ok(());
    }
    let reason = format!("the change must be 1 to {MAX_SHARED} permits, or -{MAX_SHARED} to -1, not {change}");
    Err(Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&counter.name))
}

/// Takes permits if there are enough. `wanted` 0 means all that are there.
pub(super) async fn take(
    primitive: &Primitive<SharedCounter>,
    operation: &'static str,
    wanted: u32,
    failed: impl Fn(&Failure),
) -> Result<Option<RedissonPermits>> {
    let (context, taking) = (primitive.context(), Taking::new(primitive));
    let tries_channel = context.channels.is_untried(Announced::Permits);
    // A call may be given up at the end of its retry timeout.
    let keep = longest(context);
    let tell = |told: Told<'_>| {
        taking.told(&told);
        if let Told::Failed(failure) = told {
            failed(failure);
        }
    };
    let permits = changed(primitive, operation, tell, move |scripts, counter, copy| {
        Box::pin(async move { scripts.take_shared(counter, copy.kept(keep), (wanted, tries_channel)).await })
    })
    .await?;
    context.channels.set_tried(Announced::Permits);
    Ok(taking.answered(permits))
}

/// An acquisition of permits that Java programs share, returned by
/// [`RedissonSemaphore::acquire`](crate::RedissonSemaphore::acquire). Nothing is sent before it is awaited, or before
/// [`block`](Self::block) is called in blocking code.
///
/// # Errors
/// - [`TimedOut`](ErrorKind::TimedOut): the [`timeout`](Self::timeout) has passed.
/// - [`InvalidInput`](ErrorKind::InvalidInput): the name or the number of permits is invalid, or the timeout is zero.
///   Nothing was sent.
/// - [`Unavailable`](ErrorKind::Unavailable), [`Refused`](ErrorKind::Refused): the server gave no usable answer for the
///   client's [`retry_timeout`](crate::ConfigBuilder::retry_timeout). Other errors of the server are returned at once.
/// - [`Closed`](ErrorKind::Closed): the client is closed, or was closed during the wait.
///
/// # Cancel safety
/// If the future is dropped or fails, what it may have taken is given back in the background.
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing unless awaited"]
pub struct RedissonAcquire {
    primitive: Primitive<SharedCounter>,
    permits: u32,
    timeout: Option<Duration>,
}

impl RedissonAcquire {
    pub(super) fn new(primitive: &Primitive<SharedCounter>, permits: u32) -> Self {
        Self { primitive: primitive.clone(), permits, timeout: None }
    }

    /// Limits the wait. By default it is unlimited. Zero is an [`InvalidInput`](ErrorKind::InvalidInput) error: use
    /// [`RedissonSemaphore::try_acquire_many`](crate::RedissonSemaphore::try_acquire_many) to ask without waiting.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.primitive.context().executor
    }
}

impl IntoFuture for RedissonAcquire {
    type Output = Result<RedissonPermits>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        const OPERATION: &str = "acquire";
        Box::pin(async move {
            let Self { primitive, permits, timeout } = self;
            check(&primitive, OPERATION, permits)?;
            let counter = primitive.keys(OPERATION)?;
            if timeout.is_some_and(|timeout| timeout.is_zero()) {
                let reason = "timeout is zero; use try_acquire to ask without waiting";
                return Err(Error::because(ErrorKind::InvalidInput, OPERATION, reason).with_name(&counter.name));
            }
            announced::answer(&primitive, OPERATION, timeout, |primitive, last| {
                Box::pin(take(primitive, OPERATION, permits, |failure| last.set(Some(failure))))
            })
            .await
        })
    }
}
