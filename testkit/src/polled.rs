//! Futures that are given so many polls, and then dropped.

use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::thread;

use futures::FutureExt;
use futures::future::BoxFuture;

/// Polls both futures for the first time, each on a thread, at the same moment. Returns what is left of them.
pub fn begun_at_once<T: Send + 'static>(
    one: BoxFuture<'static, T>,
    other: BoxFuture<'static, T>,
) -> [BoxFuture<'static, T>; 2] {
    let start = Barrier::new(2);
    let begin = |mut future: BoxFuture<'static, T>| {
        start.wait();
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => ready(output).boxed(),
            Poll::Pending => future,
        }
    };
    thread::scope(|threads| {
        let one = threads.spawn(|| begin(one));
        let other = begin(other);
        [one.join().expect("it does not panic"), other]
    })
}

/// Polls the future once.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *future).poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Polls the future as often as it is woken, but not more than `polls` times, then waits and drops it. `None` if it
/// was not done.
pub async fn polled<F: Future>(future: F, polls: usize, wait: impl AsyncFnOnce()) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    let output = poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if output.is_none() && polls > 0 {
        wait().await;
    }
    output
}
