//! A subscription: a connection of its own, kept up by a task of its own.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::redis::aio::SendError;
use ::redis::{PushInfo, PushKind, Value};
use futures::Stream;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use futures::future::{Either, select};

use super::backoff::Backoff;
use super::handshake::{self, Driver, Failure, Fresh};
use super::link::Shared;
use crate::connection::{ConnectionError, Notice};

/// How often a quiet connection is asked whether it still stands.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The receiving end. Dropping it ends the task and closes the connection.
#[derive(Debug)]
pub(super) struct Subscription {
    notices: UnboundedReceiver<Notice>,
    _alive: oneshot::Sender<Infallible>,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        Pin::new(&mut self.notices).poll_next(cx)
    }
}

/// Returns once the server has confirmed. Trouble with the connection is retried until the deadline, a refusal is not.
pub(super) async fn subscribe(
    shared: &Arc<Shared>,
    channel: &str,
    number: u64,
) -> Result<Subscription, ConnectionError> {
    if shared.is_closed() {
        return Err(ConnectionError::Closed);
    }
    let (notices, received) = mpsc::unbounded();
    let (alive, wanted) = oneshot::channel::<Infallible>();
    let (confirm, confirmed) = oneshot::channel();
    let subscription = Subscription { notices: received, _alive: alive };
    let feed = Feed { shared: Arc::clone(shared), channel: channel.to_owned(), notices, number };
    shared.executor.spawn(Box::pin(async move {
        let mut work = pin!(feed.run(confirm));
        let closed = pin!(feed.shared.closed());
        select(work.as_mut(), select(wanted, closed)).await;
    }));
    match confirmed.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(Failure::Refused(refusal))) => Err(refusal),
        Ok(Err(failure)) => Err(ConnectionError::Unreachable(failure.to_string())),
        // The task was dropped: closed, or the runtime is shut down.
        Err(oneshot::Canceled) => Err(ConnectionError::Closed),
    }
}

/// What the task of a subscription works with.
struct Feed {
    shared: Arc<Shared>,
    channel: String,
    notices: UnboundedSender<Notice>,
    number: u64,
}

impl Feed {
    async fn run(&self, confirm: oneshot::Sender<Result<(), Failure>>) {
        let mut backoff = Backoff::new(self.shared.seed.wrapping_add(self.number));
        let mut last = Failure::Io(format!("no answer within {:?}", self.shared.timeout));
        let first = self.shared.within(self.shared.timeout, self.first(&mut backoff, &mut last)).await;
        let mut fresh = match first {
            Some(Ok(fresh)) => fresh,
            Some(Err(refusal)) => {
                let _ = confirm.send(Err(refusal));
                return;
            }
            None => {
                let _ = confirm.send(Err(last));
                return;
            }
        };
        if confirm.send(Ok(())).is_err() {
            return;
        }
        loop {
            let since = self.shared.executor.now();
            self.listen(fresh).await;
            self.notify(Notice::Gap);
            backoff.lasted(self.shared.executor.now().saturating_duration_since(since));
            fresh = loop {
                self.shared.executor.sleep(backoff.pause()).await;
                if let Ok(fresh) = self.shared.attempt(self.open()).await {
                    break fresh;
                }
            };
            self.shared.reconnected("messages");
            // Not when the confirmation arrives: the connection may end in the same moment, and every gap at the end
            // of an interruption has one at its beginning. Messages that overtake this one were not missed.
            self.notify(Notice::Gap);
        }
    }

    /// Tries again for as long as it is polled; `last` is what went wrong so far.
    async fn first(&self, backoff: &mut Backoff, last: &mut Failure) -> Result<Fresh, Failure> {
        loop {
            match self.open().await {
                Err(failure @ Failure::Io(_)) => *last = failure,
                done => return done,
            }
            self.shared.executor.sleep(backoff.pause()).await;
        }
    }

    /// Connects, subscribes and waits for the confirmation.
    async fn open(&self) -> Result<Fresh, Failure> {
        let notices = self.notices.clone();
        let push = move |push: PushInfo| deliver(&notices, push);
        let mut fresh = handshake::login(&self.shared, Some(Arc::new(push))).await?;
        let subscribed = {
            let confirmation = pin!(fresh.connection.subscribe(&self.channel));
            match select(confirmation, &mut fresh.driver).await {
                Either::Left((confirmation, _)) => confirmation,
                Either::Right(((), _)) => {
                    return Err(Failure::Io("the server closed the connection".to_owned()));
                }
            }
        };
        match subscribed {
            Ok(()) => Ok(fresh),
            Err(error) => Err(match error.code() {
                Some(code) => {
                    let line = format!("{code} {}", error.detail().unwrap_or(""));
                    Failure::Refused(ConnectionError::refused(line.trim_end()))
                }
                None => Failure::Io(error.to_string()),
            }),
        }
    }

    /// Until the connection ends, or gives no answer to a heartbeat.
    async fn listen(&self, fresh: Fresh) {
        let Fresh { mut connection, driver } = fresh;
        let mut driver: Driver = driver;
        let heartbeat = pin!(async {
            let ping = handshake::ping();
            loop {
                self.shared.executor.sleep(HEARTBEAT).await;
                let pong = self.shared.within(self.shared.timeout, connection.send_packed_command(&ping)).await;
                if !matches!(pong, Some(Ok(_))) {
                    return;
                }
            }
        });
        select(&mut driver, heartbeat).await;
    }

    fn notify(&self, notice: Notice) {
        // Nobody listens any more: the task is about to end.
        let _ = self.notices.unbounded_send(notice);
    }
}

/// Runs inside the driver.
fn deliver(notices: &UnboundedSender<Notice>, push: PushInfo) -> Result<(), SendError> {
    match (push.kind, push.data.into_iter().nth(1)) {
        (PushKind::Message, Some(Value::BulkString(payload))) => {
            notices.unbounded_send(Notice::Message(payload)).map_err(|_| SendError)
        }
        _ => Ok(()),
    }
}
