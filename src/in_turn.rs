//! Futures that run together.

use std::future::{Future, poll_fn};
use std::task::Poll;

use futures::future::maybe_done;

/// Polls the futures in their order, and returns their outputs in that order. `join_all` polls many futures in an order
/// of its own.
pub(crate) async fn in_turn<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        let mut all = Poll::Ready(());
        for future in &mut futures {
            if future.as_mut().poll(context).is_pending() {
                all = Poll::Pending;
            }
        }
        all
    })
    .await;
    futures.iter_mut().filter_map(|future| future.as_mut().take_output()).collect()
}
