//! A subscription: a socket of its own, kept up by a task of its own. A watch of a key is one, too.
//!
//! | file | what it does |
//! |---|---|
//! | `keeper` | the task: keeps a socket subscribed and reports interruptions, on any deployment |
//! | `one_server` | the sockets of a subscription to one server, and the proof that they lead to the server of the commands |
//! | `tracked` | the watch of a key |
//! | `proof` | asks the server of the commands whether it has the subscription |
//!
//! A cluster has another [`Source`], in `cluster/subscription.rs`. Its shard channels share sockets, so they have a
//! table instead, in `cluster/sharded.rs`.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::redis::aio::SendError;
use ::redis::{PushInfo, PushKind, Value};
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use futures::future::select;
use futures::{FutureExt, Stream};

use self::keeper::Keeper;
pub(super) use self::keeper::{Proven, Source};
pub(super) use self::one_server::at_one_server;
pub(super) use self::tracked::{Tracked, pass_on};
use super::link::Link;
use crate::connection::{ConnectionError, Notice};

mod keeper;
mod one_server;
mod proof;
mod tracked;

/// What a socket is opened for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// The messages of a channel.
    Channel(&'a str),
    /// The changes of a key. The inbox is a channel of the client's own.
    Key { key: &'a str, inbox: &'a str },
}

impl Subject<'_> {
    /// The channel or the key.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Channel(name) | Self::Key { key: name, .. } => name,
        }
    }
}

/// The receiving end. Dropping it ends the task and closes the socket.
#[derive(Debug)]
pub(super) struct Subscription {
    notices: UnboundedReceiver<ProvenNotice>,
    /// The connection whose server has to have the subscription. `None` if any server will do.
    commands: Option<Arc<Link>>,
    _alive: oneshot::Sender<Infallible>,
}

/// A notice that the task passes on.
#[derive(Debug)]
pub(super) struct ProvenNotice {
    notice: Notice,
    /// For messages that need a proof: the generation of the connection for commands that had proven the subscription.
    proven: Option<u64>,
}

/// The sending end. An error means that the receiver is gone, and the task is about to end.
#[derive(Clone, Debug)]
pub(super) struct Notices(UnboundedSender<ProvenNotice>);

impl Notices {
    pub(super) fn send(&self, notice: Notice) {
        let _ = self.0.unbounded_send(ProvenNotice { notice, proven: None });
    }

    /// Passes on the message that the server has pushed, if it is one. Called by the driver of a socket.
    pub(super) fn push(&self, push: PushInfo, proven: Option<u64>) -> Result<(), SendError> {
        match (push.kind, push.data.into_iter().nth(1)) {
            (PushKind::Message, Some(Value::BulkString(payload))) => self.message(payload, proven),
            _ => Ok(()),
        }
    }

    /// Passes on that a watched key has changed.
    pub(super) fn changed(&self, proven: Option<u64>) {
        let _ = self.message(Vec::new(), proven);
    }

    fn message(&self, payload: Vec<u8>, proven: Option<u64>) -> Result<(), SendError> {
        let notice = ProvenNotice { notice: Notice::Message(payload), proven };
        self.0.unbounded_send(notice).map_err(|_| SendError)
    }
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        while let Some(ProvenNotice { notice, proven }) = ready!(Pin::new(&mut self.notices).poll_next(cx)) {
            // The proof may have lapsed since the message arrived. A gap will follow.
            let current = self.commands.as_ref().map(|commands| commands.current());
            if proven.is_none() || proven == current {
                return Poll::Ready(Some(notice));
            }
        }
        Poll::Ready(None)
    }
}

/// Returns when the subscription is confirmed and, if needed, proven. Connection errors are retried until the deadline,
/// a refusal is not. `commands` is the connection whose server has to have the subscription. `channel` is a key if the
/// source watches keys.
pub(super) async fn subscribe(
    source: impl Source,
    commands: Option<Arc<Link>>,
    channel: &str,
    seed: u64,
) -> Result<Subscription, ConnectionError> {
    if source.closed().now_or_never().is_some() {
        return Err(ConnectionError::Closed);
    }
    let (sender, notices) = mpsc::unbounded();
    let (alive, wanted) = oneshot::channel::<Infallible>();
    let (confirm, confirmed) = oneshot::channel();
    let subscription = Subscription { notices, commands, _alive: alive };
    let (executor, until_closed) = (Arc::clone(source.executor()), source.closed());
    let mut keeper = Keeper::new(source, channel.to_owned(), Notices(sender), seed);
    executor.spawn(Box::pin(async move {
        let mut work = pin!(keeper.run(confirm));
        select(work.as_mut(), select(wanted, pin!(until_closed))).await;
    }));
    match confirmed.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(failure)) => Err(failure.into()),
        // The task was dropped: the connection is closed, or the runtime is shut down.
        Err(oneshot::Canceled) => Err(ConnectionError::Closed),
    }
}
