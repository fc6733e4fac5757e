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

/// Calls `attempt` with 0, 1, 2, ... polls, several times each, until it is done whenever it is called with as many:
/// how far a poll gets depends on the threads. It returns `None` if it was dropped half way. `is_left` is awaited after
/// each call: it panics if anything stays.
pub async fn sweep<T>(mut attempt: impl AsyncFnMut(usize) -> Option<T>, is_left: impl AsyncFn()) {
    // If others use the processors, answers may have come before the first poll is over, again and again.
    for _ in 0..100 {
        if sweep_once(&mut attempt, &is_left).await > 0 {
            return;
        }
    }
    panic!("nothing was dropped half way");
}

/// Returns how often it was dropped half way.
async fn sweep_once<T>(attempt: &mut impl AsyncFnMut(usize) -> Option<T>, is_left: &impl AsyncFn()) -> usize {
    const TIMES: usize = 4;
    let (mut polls, mut half_way) = (0, 0);
    loop {
        let mut done = 0;
        for _ in 0..TIMES {
            // If the future returns a guard, the guard is dropped too.
            done += usize::from(attempt(polls).await.is_some());
            is_left().await;
        }
        half_way += if polls > 0 { TIMES - done } else { 0 };
        if done == TIMES {
            println!("dropped half way {half_way} times, done after {polls} polls");
            return half_way;
        }
        polls += 1;
        assert!(polls < 200, "it never ends");
    }
}
