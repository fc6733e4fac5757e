//! Calls that change a counter of Redisson: each is sent until it is answered, and executed only once.

use futures::future::BoxFuture;

use crate::call_once::{CopyAnswer, Told, outcome_of};
use crate::error::Result;
use crate::handle::Primitive;
use crate::protocol::copy::CallCopy;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::SharedCounter;
use crate::protocol::reply::Timed;
use crate::protocol::shared_counter::Given;

/// The answer to one copy.
pub(super) type Changed<T> = std::result::Result<Timed<T>, Failure>;

pub(super) async fn changed<T: Send + 'static>(
    primitive: &Primitive<SharedCounter>,
    operation: &'static str,
    tell: impl Fn(Told<'_>),
    call: impl for<'a> Fn(Scripts<'a>, &'a SharedCounter, CallCopy) -> BoxFuture<'a, Changed<T>>,
) -> Result<T> {
    let answered = outcome_of(primitive, operation, tell, |scripts, counter, copy| {
        let answered = call(scripts, counter, copy);
        Box::pin(async move {
            let (answer, now) = answered.await?;
            Ok((answer.map_or(CopyAnswer::Stale, |outcome| CopyAnswer::Done { outcome, call_again: false }), now))
        })
    });
    Ok(answered.await?.0)
}

/// Gives permits to a semaphore.
pub(super) async fn give(primitive: &Primitive<SharedCounter>, operation: &'static str, given: Given) -> Result<()> {
    changed(
        primitive,
        operation,
        |_| {},
        |scripts, counter, copy| Box::pin(async move { scripts.release_shared(counter, copy, given).await }),
    )
    .await
}
