//! Work that is woken often, beside other work that is woken seldom.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};

/// Runs `often` to its end, which returns `None`, or until the first of the others has ended. Each wake polls `often`,
/// but the others only if the wake was for them. The driver of a connection is woken four times per command.
pub(in crate::redis) async fn beside<'a, T>(
    often: impl Future<Output = ()>,
    others: impl IntoIterator<Item = BoxFuture<'a, T>>,
) -> Option<T> {
    let mut others: FuturesUnordered<_> = others.into_iter().collect();
    let mut often = pin!(often);
    poll_fn(|context| match often.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => others.poll_next_unpin(context),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Waker};

    use event_listener::Event;
    use futures::FutureExt;

    use super::*;

    /// Pending until `end` is done. Counts how often it is polled.
    async fn counted(polls: &AtomicU32, mut end: impl Future<Output = ()> + Unpin) {
        poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            end.poll_unpin(context)
        })
        .await;
    }

    #[test]
    fn a_wake_polls_only_those_of_the_others_that_it_is_for() {
        let [often, seldom, never] = [0; 3].map(AtomicU32::new);
        let woken = Event::new();
        let others = [counted(&seldom, woken.listen()).boxed(), counted(&never, pending()).boxed()];
        let mut both = pin!(beside(counted(&often, pending()), others));
        let mut poll = || both.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let polls = || [&often, &seldom, &never].map(|polls| polls.load(Ordering::Relaxed));
        for round in 1..=3 {
            assert!(poll().is_pending());
            assert_eq!(polls(), [round, 1, 1]);
        }
        woken.notify(1);
        assert_eq!(poll(), Poll::Ready(Some(())));
        assert_eq!(polls(), [4, 2, 1]);
    }

    #[test]
    fn the_end_of_the_frequent_work_comes_before_that_of_the_others() {
        assert_eq!(beside(ready(()), [ready(1).boxed()]).now_or_never(), Some(None));
        assert_eq!(beside(pending(), [pending().boxed(), ready(1).boxed()]).now_or_never(), Some(Some(1)));
    }
}
