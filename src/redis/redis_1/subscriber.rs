//! A subscription with a connection of its own, made from a `redis::Client`.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::redis::Value;
use ::redis::aio::{PubSubSink, PubSubStream};
use futures::future::{Either, select};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use uuid::Uuid;

use super::super::convert;
use super::super::dial::progress::DialProgress;
use super::super::failure::Failure;
use super::super::subscribe::{self, Notices, Proven, Source};
use super::calls::failed;
use super::shared::{Kind, Shared};
use crate::connection::{ConnectionError, Notice, Reply};
use crate::observe;
use crate::runtime::Executor;

/// How often an idle subscription is checked.
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(super) async fn subscribe(
    shared: &Arc<Shared>,
    channel: &str,
    number: u64,
) -> Result<BoxStream<'static, Notice>, ConnectionError> {
    let source = Dedicated { shared: Arc::clone(shared), channel: channel.to_owned(), next: 0 };
    Ok(subscribe::subscribe(source, None, channel, number).await?.boxed())
}

struct Dedicated {
    shared: Arc<Shared>,
    channel: String,
    /// The client that makes the next socket.
    next: usize,
}

/// A socket that is subscribed to two channels: the one that was asked for, and a probe. The probe has a random name.
/// If the server of the calls counts a subscriber of the probe, this socket leads to that server.
struct Socket {
    sink: PubSubSink,
    messages: PubSubStream,
    probe: String,
    /// The losses of calls that were known before the proof.
    losses: u64,
}

impl Source for Dedicated {
    type Socket = Socket;

    fn executor(&self) -> &Arc<dyn Executor> {
        &self.shared.executor
    }

    fn limits(&self) -> [Duration; 2] {
        [self.shared.upkeep, self.shared.timeout]
    }

    fn first_limit(&self) -> Option<Duration> {
        let Shared { clients, timeout, .. } = &*self.shared;
        (clients.len() > 1).then_some(*timeout / 2)
    }

    #[expect(clippy::disallowed_methods, reason = "an adapter may draw a random name")]
    async fn open(&mut self, channel: &str, _: &Notices, _: &Arc<DialProgress>) -> Result<Socket, Failure> {
        if self.shared.is_gone() {
            // The application's connection is lost for good, so no socket can be proven.
            return pending().await;
        }
        let client = self.shared.clients.get(self.next % self.shared.clients.len().max(1));
        let client = client.ok_or_else(|| Failure::Io("no client was given for subscriptions".to_owned()))?;
        // A failure leads to the next node.
        self.next = self.next.wrapping_add(1);
        let (mut sink, messages) = client.get_async_pubsub().await.map_err(|error| Failure::of(&error))?.split();
        let probe = format!("{channel}:{}", Uuid::new_v4().simple());
        sink.subscribe(&[channel, &probe]).await.map_err(|error| Failure::of(&error))?;
        self.next = self.next.wrapping_sub(1);
        Ok(Socket { sink, messages, probe, losses: 0 })
    }

    /// Asks over the application's connection. The nodes of a cluster count only their own subscribers, but pass
    /// messages on to all.
    async fn prove(&mut self, socket: &mut Socket) -> Proven {
        socket.losses = self.shared.losses();
        if self.shared.is_gone() {
            // Nothing proves it any more.
            return pending().await;
        }
        if self.shared.kind == Kind::Cluster {
            return Proven::Yes;
        }
        let mut ask = ::redis::cmd("PUBSUB");
        ask.arg("NUMSUB").arg(&socket.probe);
        let asked = self.shared.within(self.shared.timeout, self.shared.application.send(&ask)).await;
        let answer = match asked {
            Some(Ok(Value::ServerError(error))) => Err(convert::refused(&error)),
            Some(Ok(value)) => convert::reply(value),
            Some(Err(error)) => Err(failed(&self.shared, &error)),
            None => Err(ConnectionError::Unknown("the connection gave no answer".to_owned())),
        };
        match answer {
            Ok(Reply::Array(items)) if matches!(&items[..], [_, Reply::Integer(1..)]) => Proven::Yes,
            Ok(_) => Proven::No(Failure::Io("the subscription is on another server than the calls".to_owned())),
            Err(refusal @ ConnectionError::Refused { .. }) => Proven::Refused(refusal),
            Err(_) => {
                self.shared.executor.sleep(Duration::from_millis(50)).await;
                Proven::Unanswered
            }
        }
    }

    /// Reads until the socket ends or does not answer, or until a call finds that the application's connection was
    /// lost, and the proof with it.
    async fn stand(&self, mut socket: Socket, notices: &Notices) -> Option<Socket> {
        let Socket { sink, messages, losses, .. } = &mut socket;
        let payloads = messages.filter_map(|message| {
            ready((message.get_channel_name() == self.channel).then(|| message.get_payload_bytes().to_vec()))
        });
        let is_proven = || self.shared.losses() == *losses;
        let read = read(payloads, is_proven, |payload| notices.send(Notice::Message(payload)));
        let heartbeat = async {
            loop {
                self.shared.executor.sleep(HEARTBEAT).await;
                let pong = self.shared.within(self.shared.upkeep, sink.ping::<Value>()).await;
                if !matches!(pong, Some(Ok(_))) {
                    return;
                }
            }
        };
        let lapsed = {
            let (read, heartbeat) = (pin!(read), pin!(heartbeat));
            let own = select(read, heartbeat);
            matches!(select(own, pin!(self.shared.until_lost(*losses))).await, Either::Right(_))
        };
        // The keeper reports a gap only if it gets no socket back. Here the messages end, so it gets none.
        (lapsed && !self.shared.is_gone()).then_some(socket)
    }

    async fn idle(&self, mut socket: Socket, pause: Duration) -> Option<Socket> {
        self.shared.executor.sleep(pause).await;
        let pong = self.shared.within(self.shared.upkeep, socket.sink.ping::<Value>()).await;
        matches!(pong, Some(Ok(_))).then_some(socket)
    }

    fn reconnected(&self) {
        self.shared.reconnects.fetch_add(1, Ordering::Relaxed);
        observe::reconnected(observe::MESSAGES);
    }

    fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move { shared.until_closed().await }
    }
}

/// Delivers messages until they end. When the proof has lapsed, it delivers no more, and waits: they may come from a
/// server that the calls have left.
async fn read(messages: impl Stream<Item = Vec<u8>>, is_proven: impl Fn() -> bool, deliver: impl Fn(Vec<u8>)) {
    let mut messages = pin!(messages);
    while let Some(payload) = messages.next().await {
        if !is_proven() {
            return pending().await;
        }
        deliver(payload);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures::{FutureExt, stream};

    use super::*;

    #[test]
    fn a_message_that_comes_after_the_proof_has_lapsed_is_not_delivered() {
        for lapses in [false, true] {
            let (is_proven, delivered) = (Cell::new(true), RefCell::new(Vec::new()));
            let deliver = |payload| {
                delivered.borrow_mut().push(payload);
                is_proven.set(!lapses);
            };
            let ended = read(stream::iter([vec![1], vec![2]]), || is_proven.get(), deliver).now_or_never();
            assert_eq!((delivered.take().len(), ended.is_some()), if lapses { (1, false) } else { (2, true) });
        }
    }
}
