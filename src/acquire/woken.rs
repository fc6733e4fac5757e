//! Follows one attempt id for a lock without a queue: of all that wait, a release wakes everybody, and everybody asks.
//!
//! | the attempt | and asks again, with the same id, on |
//! |---|---|
//! | was told "busy" for the first time, and begins to listen to the channel of the lock | the beginning of the subscription: what was released before is not heard |
//! | was told "busy" while it listens | a message; a gap, in which a message may have been lost; the end of the lease in the way |
//! | has released the former hold of its cohort, and woken others | the same, and its own message, each time after a pause in which others can ask. At once if nobody was woken |
//!
//! The tasks of a client share the subscription. The members of a cohort share the attempt as well.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use crate::acquire::ask::{self, AcquireAnswer};
use crate::acquire::request::Request;
use crate::acquire::wait::Waiter;
use crate::connection::Topology;
use crate::driver::channels::{Heard, Listener};
use crate::error::{ErrorKind, Result};
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::tuning::{LEFT_TO_OTHERS, OWN_MESSAGE};

/// The server counts in whole milliseconds, and the key may be there for a moment longer.
const SLACK: Duration = Duration::from_millis(1);

/// Asks the server until the lock is free, or once if the request does not wait.
pub(super) async fn ask(request: &Request, waiter: &mut Waiter<'_>) -> Result<AcquireAnswer> {
    let (context, channel) = (waiter.context, request.keys.channel());
    let returns = waiter.attempt.state.before.is_some();
    // Its own message may overtake the answer to the release.
    let listens = returns && context.channels.is_subscribed(channel);
    let mut listener = listens.then(|| context.channels.listen(channel));
    loop {
        let known = listener.as_ref().map(Listener::look);
        let own = u64::from(context.channels.is_subscribed(channel));
        let answer = ask::ask(request, waiter).await?;
        context.channels.set_tried();
        let rest = match answer {
            // Without a TTL, another program has written the lock, and it is looked at as often as one of this client.
            AcquireAnswer::Busy { left, .. } if request.wait => left.unwrap_or(context.config.lease) + SLACK,
            AcquireAnswer::Released(listeners) => {
                // With replicas, others may listen where the server does not count them.
                let Topology { publish_counts_everyone, fails_over, .. } = context.connection.topology();
                let in_client = context.channels.listeners(channel) > usize::from(listener.is_some());
                if publish_counts_everyone && !fails_over && listeners <= own && !in_client {
                    continue;
                }
                OWN_MESSAGE
            }
            answer => return Ok(answer),
        };
        let is_new = listener.is_none();
        let listener = listener.get_or_insert_with(|| context.channels.listen(channel));
        let known = match known {
            Some(known) => known,
            None => listener.look(),
        };
        // Another task has subscribed the channel, and its message may have come before this one listened.
        if is_new && known.is_subscribed() && !mutant::on(Mutant::SubscriptionNoNews) {
            continue;
        }
        known.check(request.operation, &request.keys.name)?;
        wait(request, waiter, (listener, &known), rest).await?;
        if returns {
            let pause = Jitter::new(context.engine.jitter_seed()).spread(LEFT_TO_OTHERS);
            context.executor.sleep(pause).await;
        }
        listener.look().check(request.operation, &request.keys.name)?;
    }
}

/// Waits for news, and for `rest` at most.
async fn wait(
    request: &Request,
    waiter: &Waiter<'_>,
    (listener, known): (&Listener, &Heard),
    rest: Duration,
) -> Result<()> {
    let news = pin!(listener.news_after(known));
    let news = select(news, waiter.context.executor.sleep(rest));
    match select(news, pin!(waiter.decided())).await {
        Either::Left(_) => Ok(()),
        // Nobody but the client itself decides an attempt that is not queued.
        Either::Right(_) => Err(request.error(ErrorKind::Closed)),
    }
}
