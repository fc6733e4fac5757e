//! Calls that change a latch, a barrier or a counter that Java shares. Each is sent until it is answered, and executed
//! only once.

use std::borrow::Borrow;
use std::pin::pin;

use futures::future::BoxFuture;

use crate::connection::ConnectionError;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::mutant::{self, Mutant};
use crate::protocol::copy::CallCopy;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, Named};
use crate::protocol::reply::ServerMillis;

/// The server's answer to one copy of a call.
pub(crate) enum CopyAnswer<T> {
    /// The call was executed. With `call_again`, more waiters have to be notified.
    Done { outcome: T, call_again: bool },
    /// Nothing was done yet, and the same call must be sent again.
    Again,
    /// Nothing was done, because this copy came too late.
    Stale,
}

/// The answer, with the time of the server's clock.
pub(crate) type TimedAnswer<T> = std::result::Result<(CopyAnswer<T>, ServerMillis), Failure>;

/// Sends copies of a request until one is answered. All copies have the same attempt id, by which the server recognizes
/// them, and the same time until which the server remembers that id. This is the latest time at which the last copy may
/// be executed. It is fixed before the first copy whose fate is unknown, and covers all copies that are sent within the
/// client's retry timeout.
pub(crate) async fn call_once<T>(
    primitive: &Primitive,
    operation: &'static str,
    call: impl for<'a> Fn(Scripts<'a>, &'a Keys, CallCopy) -> BoxFuture<'a, TimedAnswer<T>>,
) -> Result<T> {
    let (outcome, call_again) = outcome_of(primitive, operation, |_| {}, call).await?;
    if call_again && let Ok(keys) = primitive.keys(operation) {
        primitive.context().promote_later(keys);
    }
    Ok(outcome)
}

/// What is told of the copies of a call.
pub(crate) enum Told<'a> {
    /// The copy is about to be sent.
    Sends(CallCopy),
    /// The copy had no usable answer.
    Failed(&'a Failure),
}

/// As [`call_once`]. Returns whether the call has to be made again, too.
pub(crate) async fn outcome_of<N: Borrow<Named>, T>(
    primitive: &Primitive<N>,
    operation: &'static str,
    tell: impl Fn(Told<'_>),
    call: impl for<'a> Fn(Scripts<'a>, &'a N, CallCopy) -> BoxFuture<'a, TimedAnswer<T>>,
) -> Result<(T, bool)> {
    let context = primitive.context();
    let keys = primitive.keys(operation)?;
    let named: &Named = (**keys).borrow();
    let fresh = || context.engine.fresh().map_err(|_| context.closed(operation, named));
    let mut id = fresh()?;
    let mut retry = context.retry(operation, named);
    let (mut known_until, mut resent) = (0, false);
    loop {
        let sent = retry.begin().await?;
        if !resent {
            known_until = context.not_after(sent + context.config.retry_timeout, None);
        }
        let not_after = context.not_after(sent, retry.limit(sent)).min(known_until);
        let copy = CallCopy { id, not_after, known_until, resent };
        tell(Told::Sends(copy));
        let call = pin!(call(context.scripts(), keys, copy));
        match retry.bounded(sent, call).await {
            Ok((said, now)) => {
                context.observe(now);
                match said {
                    CopyAnswer::Done { outcome, call_again } => return Ok((outcome, call_again)),
                    CopyAnswer::Stale if resent && not_after == known_until => {
                        let reason = "no answer came to the first request, and it is too late for another";
                        return Err(Error::because(ErrorKind::Unavailable, operation, reason).with_name(&named.name));
                    }
                    CopyAnswer::Again => retry.gets_on(),
                    // The estimate of the server's clock was wrong, and the answer has corrected it.
                    CopyAnswer::Stale => {}
                }
            }
            Err(failure) => {
                resent |= matches!(failure, Failure::Connection(ConnectionError::Unknown(_)));
                tell(Told::Failed(&failure));
                retry.again_after(failure).await?;
                if mutant::on(Mutant::CallSentAnew) {
                    id = fresh()?;
                }
            }
        }
    }
}
