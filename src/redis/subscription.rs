//! A subscription: a connection of its own, kept up by a task of its own.
//!
//! | the subscription | its messages | left by |
//! |---|---|---|
//! | has no socket | | a socket that is logged in and subscribed |
//! | has a socket without a [proof](super::proof) | are dropped | the proof; its refutation, which ends the socket |
//! | is proven | are delivered | the end of its socket; the end of the connection that carries the commands |
//!
//! Each time that it is proven anew there is a gap, after which messages are delivered: whatever was missed or dropped
//! before is made up for by asking. So a lost connection for commands costs a subscription its messages until the next
//! one stands, but not its socket.
//!
//! A refuted one dials anew, and every second time in a row so does the connection for commands: the one that hangs on the
//! wrong server may be either. The subscription goes first, as behind a balancer that sends the dials of a client to two
//! servers by turns, both together would never meet.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::channel::oneshot;
use futures::future::select;

use self::feed::Feed;
use super::link::Shared;
use crate::connection::{ConnectionError, Notice};

mod feed;
mod socket;

/// The receiving end. Dropping it ends the task and closes the connection.
#[derive(Debug)]
pub(super) struct Subscription {
    shared: Arc<Shared>,
    told: UnboundedReceiver<Told>,
    _alive: oneshot::Sender<Infallible>,
}

/// A notice that the task passes on.
#[derive(Debug)]
struct Told {
    notice: Notice,
    /// For messages: the generation of the connection for commands that had proven the subscription. `None` for other
    /// notices.
    proven: Option<u64>,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        while let Some(told) = ready!(Pin::new(&mut self.told).poll_next(cx)) {
            // The proof may have lapsed since the message arrived. A gap will follow.
            let stale = told.proven.is_some_and(|proven| proven != self.shared.current.load(Ordering::SeqCst));
            if !stale {
                return Poll::Ready(Some(told.notice));
            }
        }
        Poll::Ready(None)
    }
}

/// Returns when the subscription is confirmed and proven. Connection errors are retried until the deadline, a refusal is
/// not.
pub(super) async fn subscribe(
    shared: &Arc<Shared>,
    channel: &str,
    number: u64,
) -> Result<Subscription, ConnectionError> {
    if shared.is_closed() {
        return Err(ConnectionError::Closed);
    }
    let (notices, told) = mpsc::unbounded();
    let (alive, wanted) = oneshot::channel::<Infallible>();
    let (confirm, confirmed) = oneshot::channel();
    let subscription = Subscription { shared: Arc::clone(shared), told, _alive: alive };
    let mut feed = Feed::new(Arc::clone(shared), channel.to_owned(), notices, number);
    let until_closed = Arc::clone(shared);
    shared.executor.spawn(Box::pin(async move {
        let mut work = pin!(feed.run(confirm));
        let closed = pin!(until_closed.closed());
        select(work.as_mut(), select(wanted, closed)).await;
    }));
    match confirmed.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(failure)) => Err(failure.into()),
        // The task was dropped: the connection is closed, or the runtime is shut down.
        Err(oneshot::Canceled) => Err(ConnectionError::Closed),
    }
}
