//! The connection of one subscription: a client of fred that has the settings of the application's client, and never
//! reconnects.

use std::pin::pin;
use std::time::Duration;

use bowline::{ConnectionError, Reply};
use fred::clients::Client;
use fred::error::Error;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::config::Server;
use fred::types::{ConnectHandle, Message, Value};
use futures::future::{Either, select};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use crate::calls::{custom, raw};
use crate::convert;
use crate::shared::Shared;

/// How often an idle subscription is checked.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The number of messages that fred keeps for a stream that is not polled. fred's default is 32.
const MESSAGES: usize = 1024;

/// Subscribed to two channels: the one that was asked for, and a probe. The probe has a random name. If the server of
/// the calls counts a subscriber of the probe, this connection leads to that server.
pub(crate) struct Socket {
    client: Client,
    /// Ends with the connection.
    running: ConnectHandle,
    messages: Receiver<Message>,
    probe: String,
    /// Each reconnect of the client of the application, from the last question on whether the probe is there.
    reconnects: Receiver<Server>,
}

/// What became of the question whether the server of the calls has the subscription.
pub(crate) enum Proven {
    Yes,
    /// It has not.
    No,
    Refused(ConnectionError),
    /// There was no answer.
    Unanswered,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message(Vec<u8>),
    /// The stream was not polled for too long, so fred has dropped messages.
    Missed,
    /// The client of the application has reconnected, perhaps to another server.
    Lapsed,
    /// The connection has ended.
    Ended,
}

impl Socket {
    /// Connects, subscribes and waits for the confirmation.
    #[expect(clippy::disallowed_methods, reason = "an adapter may draw a random name")]
    pub(crate) async fn open(shared: &Shared, channel: &str) -> Result<Self, ConnectionError> {
        let (application, mut config, mut perf) =
            (&shared.client, shared.client.client_config(), shared.client.perf_config());
        config.fail_fast = true;
        perf.broadcast_channel_capacity = perf.broadcast_channel_capacity.max(MESSAGES);
        let client = Client::new(config, Some(perf), Some(application.connection_config().clone()), None);
        let (messages, reconnects) = (client.message_rx(), application.reconnect_rx());
        let running = shared.enter(|| client.connect());
        let probe = format!("{channel}:{}", Uuid::new_v4().simple());
        let mut socket = Self { client, running, messages, probe, reconnects };
        let subscribing = subscribe(&socket.client, channel, &socket.probe);
        let subscribed = match select(pin!(shared.in_tokio(subscribing)), &mut socket.running).await {
            Either::Left((subscribed, _)) => subscribed,
            Either::Right((Ok(Err(error)), _)) => Err(error),
            Either::Right(_) => Err(Error::new_canceled()),
        };
        subscribed.map_err(|error| convert::not_subscribed(&error)).map(|()| socket)
    }

    /// Asks the server of the calls whether it has the subscription. What has arrived before is dropped.
    pub(crate) async fn prove(&mut self, shared: &Shared) -> Proven {
        // Before the question, because its answer says nothing about a server after it.
        self.reconnects = shared.client.reconnect_rx();
        let arguments = vec!["NUMSUB".into(), self.probe.as_str().into()];
        let Ok(answer) = raw(shared, "PUBSUB", arguments, shared.timeout).await else { return Proven::Unanswered };
        match convert::reply(answer) {
            Ok(Reply::Array(items)) if matches!(items[..], [_, Reply::Integer(1..)]) => {
                self.messages = self.client.message_rx();
                Proven::Yes
            }
            Ok(_) => Proven::No,
            Err(refusal) => Proven::Refused(refusal),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits for what comes next. Messages that arrived before the end are delivered.
    pub(crate) async fn event(&mut self, shared: &Shared, channel: &str) -> Event {
        let Self { client, running, messages, reconnects, .. } = self;
        let (unanswered, lapsed) = (pin!(unanswered(shared, client)), pin!(reconnects.recv()));
        next(lapsed, pin!(message(messages, channel)), select(running, unanswered)).await
    }
}

/// What comes next. A message that comes after the proof has `lapsed` may be from a server that the calls have left, so
/// it goes after that. Those that have come before the connection is `over` go before its end.
async fn next(
    lapsed: impl Future + Unpin,
    message: impl Future<Output = Event> + Unpin,
    over: impl Future + Unpin,
) -> Event {
    match select(lapsed, select(message, over)).await {
        Either::Left(_) => Event::Lapsed,
        Either::Right((Either::Left((event, _)), _)) => event,
        Either::Right((Either::Right(_), _)) => Event::Ended,
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The task has the socket.
        self.running.abort();
    }
}

/// fred does not wait for the confirmation of a `SUBSCRIBE`, and takes a refusal for the answer to the next command.
/// That is a `PING`, which the pipeline writes before anything is read.
async fn subscribe(client: &Client, channel: &str, probe: &str) -> Result<(), Error> {
    let both = client.pipeline();
    both.subscribe(vec![channel, probe]).await?;
    let _: Value = both.custom(custom("PING"), Vec::<Value>::new()).await?;
    both.last::<Value>().await.map(drop)
}

async fn message(messages: &mut Receiver<Message>, channel: &str) -> Event {
    loop {
        match messages.recv().await {
            Ok(message) if message.channel == channel => match message.value.as_bytes() {
                Some(bytes) => return Event::Message(bytes.to_vec()),
                None => return Event::Missed,
            },
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return Event::Missed,
            Err(RecvError::Closed) => return Event::Ended,
        }
    }
}

/// Ends when the server does not answer.
async fn unanswered(shared: &Shared, client: &Client) {
    loop {
        shared.executor.sleep(HEARTBEAT).await;
        let ping = shared.in_tokio(client.custom_raw(custom("PING"), Vec::<Value>::new()));
        if !matches!(shared.within(shared.timeout, ping).await, Some(Ok(_))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_lapsed_proof_goes_before_messages_and_they_before_the_end() {
        let message = || ready(Event::Message(vec![1]));
        let next = |lapsed: bool, ended: bool| {
            let lapsed = if lapsed { ready(()).boxed() } else { pending().boxed() };
            let over = if ended { ready(()).boxed() } else { pending().boxed() };
            next(lapsed, message(), over).now_or_never().unwrap()
        };
        assert_eq!(next(true, false), Event::Lapsed);
        assert_eq!(next(true, true), Event::Lapsed);
        assert_eq!(next(false, true), Event::Message(vec![1]));
        assert_eq!(super::next(pending::<()>(), pending(), ready(())).now_or_never(), Some(Event::Ended));
    }
}
