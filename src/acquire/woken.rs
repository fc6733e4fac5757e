//! Follows one attempt id for a lock without a queue: of all that wait, a release wakes everybody, and everybody asks.
//!
//! | the attempt | and asks again, with the same id, on |
//! |---|---|
//! | was told "busy" for the first time, and begins to listen to the channel of the lock | the beginning of the subscription: what was released before is not heard |
//! | was told "busy" while it listens | a message; a gap, in which a message may have been lost; the end of the lease in the way |
//! | has released the former hold of its cohort, and woken others | the same, and its own message, each time after a pause in which others can ask. At once if nobody was woken |
//!
//! The tasks of a client share the subscription. The members of a cohort share the attempt as well.

use std::time::Duration;

use crate::acquire::ask::{self, AcquireAnswer};
use crate::acquire::news::News;
use crate::acquire::request::Request;
use crate::acquire::wait::Waiter;
use crate::connection::Topology;
use crate::driver::channels::Announced;
use crate::error::Result;
use crate::jitter::Jitter;
use crate::protocol::kind::Kind;
use crate::tuning::{LEFT_TO_OTHERS, OWN_MESSAGE};

/// The server counts in whole milliseconds, and the key may be there for a moment longer.
const SLACK: Duration = Duration::from_millis(1);

/// When to ask again if no message comes. For a lock: when the lease in the way has passed. For a permit: after a third
/// of the client's lease at the latest. The permit that is given back next need not be the one whose lease ends first,
/// and the leases of some permits never end.
fn rest(kind: Kind, left: Option<Duration>, lease: Duration) -> Duration {
    match kind {
        Kind::TimedPermit { .. } => left.map_or(lease / 3, |left| left.min(lease / 3)),
        _ => left.unwrap_or(lease),
    }
}

/// Asks the server until the lock is free, or once if the request does not wait.
pub(super) async fn ask(request: &Request, waiter: &mut Waiter<'_>) -> Result<AcquireAnswer> {
    let (context, channel) = (waiter.context, request.keys.channel());
    let returns = waiter.attempt.state.before.is_some();
    let mut news = News::new(context, request.operation, &request.keys, channel);
    // Its own message may overtake the answer to the release.
    if returns && context.channels.is_subscribed(channel) {
        news = news.listening();
    }
    loop {
        news.asks();
        let own = u64::from(context.channels.hears(channel));
        let answer = ask::ask(request, waiter).await?;
        context.channels.set_tried(Announced::of(request.keys.kind));
        let rest = match answer {
            // Without a TTL, another program has written the lock, and it is looked at as often as one of this client.
            AcquireAnswer::Busy { left, .. } if request.wait => {
                rest(request.keys.kind, left, context.config.lease) + SLACK
            }
            AcquireAnswer::Released(listeners) => {
                // With replicas, others may listen where the server does not count them.
                let Topology { publish_counts_everyone, fails_over, .. } = context.connection.topology();
                let in_client = context.channels.listeners(channel) > usize::from(news.is_listening());
                if publish_counts_everyone && !fails_over && listeners <= own && !in_client {
                    continue;
                }
                OWN_MESSAGE
            }
            answer => return Ok(answer),
        };
        // An attempt that is not queued is decided without an answer only if the client is closed.
        if news.next(rest, waiter.decided()).await? && returns {
            let pause = Jitter::new(context.engine.jitter_seed()).spread(LEFT_TO_OTHERS);
            context.executor.sleep(pause).await;
        }
    }
}
