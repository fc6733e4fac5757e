//! Requests to several masters at once, for a limited time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::runtime::{Executor, yield_once};

/// Futures that run at the same time until a time limit.
pub(super) struct Together<F> {
    running: FuturesUnordered<F>,
    /// `None` after the time limit.
    timer: Option<BoxFuture<'static, ()>>,
}

impl<F: Future> Together<F> {
    pub(super) fn new(timer: BoxFuture<'static, ()>, futures: impl IntoIterator<Item = F>) -> Self {
        Self { running: futures.into_iter().collect(), timer: Some(timer) }
    }

    /// Whether nothing is left to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty() || self.timer.is_none()
    }

    /// The output of the next future that is done. `None`: all are done, or the time is over.
    pub(super) async fn next(&mut self) -> Option<F::Output> {
        if let Some(timer) = self.timer.as_mut() {
            if let Either::Left((output, _)) = select(self.running.next(), timer).await {
                return output;
            }
            self.timer = None;
            // If this task was kept from running, those that bring the outputs may be behind it.
            yield_once().await;
        }
        self.running.next().now_or_never().flatten()
    }
}

/// Runs the futures for at most `limit`. The outputs have the order of the futures. `None` stands for one that did not
/// finish in time.
pub(super) async fn together<F: Future>(
    executor: &Arc<dyn Executor>,
    limit: Duration,
    futures: impl IntoIterator<Item = F>,
) -> Vec<Option<F::Output>> {
    let numbered = futures.into_iter().enumerate().map(async |(n, future)| (n, future.await));
    let mut running = Together::new(executor.sleep(limit), numbered);
    let mut outputs: Vec<Option<F::Output>> = std::iter::repeat_with(|| None).take(running.running.len()).collect();
    while let Some((n, output)) = running.next().await {
        outputs[n] = Some(output);
    }
    outputs
}

#[cfg(test)]
mod tests {
    use futures::channel::oneshot;
    use futures::future::{pending, ready};

    use super::*;

    #[test]
    fn outputs_come_until_all_are_done() {
        let mut two = Together::new(pending().boxed(), [ready(1), ready(2)]);
        let outputs = [(); 3].map(|()| two.next().now_or_never());
        assert_eq!(outputs, [Some(Some(1)), Some(Some(2)), Some(None)]);
    }

    /// A timer must not be polled again after it has fired.
    #[test]
    fn nothing_comes_after_the_time_is_over() {
        let mut one = Together::new(async {}.boxed(), [pending::<()>()]);
        let mut outputs = [(); 3].map(|()| one.next().now_or_never());
        assert_eq!(outputs[0].take(), None, "others run once more");
        assert_eq!(outputs[1..], [Some(None); 2]);
    }

    /// The task that brings it runs behind the one that waits, both after the time is over.
    #[test]
    fn what_comes_in_the_same_moment_counts() {
        let (sender, receiver) = oneshot::channel();
        let mut one = Together::new(async {}.boxed(), [receiver]);
        let mut next = Box::pin(one.next());
        assert_eq!(next.as_mut().now_or_never(), None);
        sender.send(7).unwrap();
        assert_eq!(next.now_or_never(), Some(Some(Ok(7))));
    }
}
