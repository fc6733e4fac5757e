//! Futures that run together and are polled in their order.

use std::future::{Future, poll_fn};
use std::task::Poll;

use futures::future::maybe_done;

use crate::connection::{Call, Connection, ConnectionError, Reply};

/// [`run_batch`](Connection::run_batch) for a connection over a library that sends one call at a time: polls
/// [`run`](Connection::run) of each call, in the order of `calls`. What the library has in its queue then can still go
/// out in one write.
///
/// # Cancel safety
/// That of [`run`](Connection::run), for each call.
pub async fn run_in_turn<C>(connection: &C, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>>
where
    C: Connection + ?Sized,
{
    in_turn(calls.iter().map(|call| connection.run(*call))).await
}

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
