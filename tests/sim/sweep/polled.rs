//! A future that is polled so many times and then dropped.

use std::future::poll_fn;
use std::task::Poll;

use bowline::{ErrorKind, Result};
use futures::FutureExt;
use futures::future::BoxFuture;

/// What happens between the last poll and the drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    Drop,
    /// The world goes on for a while: what it says arrives, and the future never sees it.
    Wait,
}

/// How the operation's future ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Unpolled,
    /// Dropped when it had been polled often enough.
    HalfWay,
    /// Dropped before that, because it waited for what comes after the drop.
    Starved,
    Done(std::result::Result<(), ErrorKind>),
}

/// Polls the future when it is woken, at most so many times, then pauses and drops it.
pub async fn polled(
    mut future: BoxFuture<'static, Result<()>>,
    polls: usize,
    pause: Option<BoxFuture<'static, ()>>,
    mut deadline: BoxFuture<'static, ()>,
) -> Ended {
    if polls == 0 {
        return Ended::Unpolled;
    }
    let mut left = polls;
    let ended = poll_fn(|context| {
        if deadline.poll_unpin(context).is_ready() {
            return Poll::Ready(Ended::Starved);
        }
        left -= 1;
        match future.poll_unpin(context) {
            Poll::Ready(output) => Poll::Ready(Ended::Done(output.map_err(|error| error.kind()))),
            Poll::Pending if left == 0 => Poll::Ready(Ended::HalfWay),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if let Some(pause) = pause.filter(|_| ended == Ended::HalfWay) {
        pause.await;
    }
    ended
}
