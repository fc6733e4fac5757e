//! Waiting for a counter in Redisson's format. Each change of the counter sends a message on its channel, and each
//! waiter asks the server again when it hears one.

use std::pin::pin;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::acquire::news::News;
use crate::acquire::wait::{LastFailure, end_of, in_time, with_cause};
use crate::driver::retry::Retry;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::observe::{self, meter};
use crate::protocol::dispatch::Failure;
use crate::protocol::key::SharedCounter;

/// Asks until there is an answer, within the timeout. `ask` is told where to leave the failure of its last request.
pub(crate) async fn answer<T>(
    primitive: &Primitive<SharedCounter>,
    operation: &'static str,
    timeout: Option<Duration>,
    ask: impl for<'a> Fn(&'a Primitive<SharedCounter>, &'a LastFailure) -> BoxFuture<'a, Result<Option<T>>>,
) -> Result<T> {
    let (context, counter) = (primitive.context(), primitive.keys(operation)?);
    let waiting = async {
        let until = end_of(context, timeout);
        let last = LastFailure::default();
        let asked = pin!(ask_again(primitive, operation, &last, ask));
        let late = || {
            let error = Error::new(ErrorKind::TimedOut, operation).with_name(&counter.name);
            with_cause(context, counter, error, &last, || None)
        };
        in_time(context, until, asked, late).await
    };
    observe::acquiring(context.observed(operation, counter), true, meter::of_wait, waiting).await
}

async fn ask_again<T>(
    primitive: &Primitive<SharedCounter>,
    operation: &'static str,
    last: &LastFailure,
    ask: impl for<'a> Fn(&'a Primitive<SharedCounter>, &'a LastFailure) -> BoxFuture<'a, Result<Option<T>>>,
) -> Result<T> {
    let (context, counter) = (primitive.context(), primitive.keys(operation)?);
    let mut news = News::new(context, operation, counter, counter.channel());
    loop {
        news.asks();
        if let Some(answer) = ask(primitive, last).await? {
            return Ok(answer);
        }
        last.set(None);
        // The message may be lost.
        news.next(context.config.lease / 3, context.engine.closed()).await?;
    }
}

/// Whether the count is zero. An answer for [`answer`].
pub(crate) fn is_zero<'a>(
    primitive: &'a Primitive<SharedCounter>,
    operation: &'static str,
    last: &'a LastFailure,
) -> BoxFuture<'a, Result<Option<()>>> {
    Box::pin(async move {
        let failed = |_: &Retry<'_>, failure: Failure| {
            last.set(Some(&failure));
            Ok(failure)
        };
        let count = primitive.ask_in_time_unless(operation, failed, |scripts, counter, _| async move {
            let (count, now) = scripts.shared_count(counter).await?;
            Ok((Some(count), now))
        });
        Ok((count.await? == 0).then_some(()))
    })
}
