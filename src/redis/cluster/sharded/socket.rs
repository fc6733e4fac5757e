//! One socket with shard channels.
//!
//! redis-rs takes every `ssubscribe` and `sunsubscribe` for the answer to the oldest command. But a server also says
//! `sunsubscribe` by itself, when it hands the slot over. So at most one write is under way at a time, and each answer
//! is checked against its command. If the two do not match, another message has taken the place of the answer, and the
//! socket is given up. That message may look like the answer, for example to the `SUNSUBSCRIBE` of a channel whose slot
//! was handed over meanwhile. Then the next command seems to get the redirection, which names the slot of that channel.

use std::sync::Arc;

use ::redis::aio::SendError;
use ::redis::{Pipeline, PushInfo, PushKind, Value};
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver};

use super::super::super::convert;
use super::super::super::failure::Failure;
use super::super::host::Host;
use super::super::router::Router;
use super::super::subscription::{alive, open};
use crate::connection::ConnectionError;
use crate::protocol::slot;
use crate::redis::dial::handshake::{Fresh, driven};
use crate::redis::dial::progress::DialProgress;
use crate::redis::dial::wishes::Wishes;

pub(super) struct Socket {
    fresh: Fresh,
    said: UnboundedReceiver<FromNode>,
    /// Channels for which the server is about to send the `sunsubscribe` that was requested.
    unsubscribing: Vec<Arc<str>>,
}

/// A message of the server that does not answer a command.
pub(super) enum FromNode {
    Message {
        channel: String,
        payload: Vec<u8>,
    },
    /// The channel is no longer subscribed.
    Left(String),
}

/// The answer to one `SSUBSCRIBE`.
pub(super) type ChannelAnswer = Result<(), ConnectionError>;

impl Socket {
    /// Connects to a node that belongs to the cluster.
    pub(super) async fn open(router: &Router, host: &Host, progress: &Arc<DialProgress>) -> Result<Self, Failure> {
        let (says, said) = mpsc::unbounded();
        let push = move |push: PushInfo| match hear(push) {
            Some(said) => says.unbounded_send(said).map_err(|_| SendError),
            None => Ok(()),
        };
        let (fresh, _) = open(router, host, Wishes::subscribing(Arc::new(push), &[]), progress).await?;
        Ok(Self { fresh, said, unsubscribing: Vec::new() })
    }

    /// Whether the node belongs to the cluster.
    pub(super) async fn is_alive(&mut self) -> Result<bool, Failure> {
        driven(&mut self.fresh.driver, alive(&mut self.fresh.connection)).await?
    }

    /// Unsubscribes and subscribes in one write. Each channel has a command of its own, because a command may only have
    /// one slot. Returns the answers for `subscribe`, in its order.
    pub(super) async fn exchange(
        &mut self,
        unsubscribe: &[Arc<str>],
        subscribe: &[Arc<str>],
    ) -> Result<Vec<ChannelAnswer>, Failure> {
        let mut pipeline = Pipeline::with_capacity(unsubscribe.len() + subscribe.len());
        for channel in unsubscribe {
            pipeline.cmd("SUNSUBSCRIBE").arg(&**channel);
        }
        for channel in subscribe {
            pipeline.cmd("SSUBSCRIBE").arg(&**channel);
        }
        let Fresh { connection, driver, .. } = &mut self.fresh;
        let values = driven(driver, connection.send_packed_commands(&pipeline, 0, pipeline.len())).await?;
        let mut values = values.map_err(|error| Failure::Io(error.to_string()))?.into_iter();
        for channel in unsubscribe {
            if answer(values.next(), &PushKind::SUnsubscribe, channel)?.is_ok() {
                self.unsubscribing.push(Arc::clone(channel));
            }
        }
        subscribe.iter().map(|channel| answer(values.next(), &PushKind::SSubscribe, channel)).collect()
    }

    /// The next message of the server. `None`: the socket has ended.
    pub(super) async fn hear(&mut self) -> Option<FromNode> {
        loop {
            match driven(&mut self.fresh.driver, self.said.next()).await.ok()?? {
                FromNode::Left(channel) if self.is_answer(&channel) => {}
                said => return Some(said),
            }
        }
    }

    fn is_answer(&mut self, channel: &str) -> bool {
        let place = self.unsubscribing.iter().position(|asked| **asked == *channel);
        place.map(|place| self.unsubscribing.swap_remove(place)).is_some()
    }
}

fn answer(value: Option<Value>, expected: &PushKind, channel: &str) -> Result<ChannelAnswer, Failure> {
    let misplaced = || Failure::Io("another message stands in the place of an answer".to_owned());
    match value {
        Some(Value::Push { kind, data }) if kind == *expected && is_named(data.first(), channel) => Ok(Ok(())),
        Some(error @ Value::ServerError(_)) => {
            let answer = convert::reply(error).map(drop);
            if answer.as_ref().is_err_and(|refusal| is_about_another_slot(refusal, channel)) {
                return Err(misplaced());
            }
            Ok(answer)
        }
        _ => Err(misplaced()),
    }
}

/// Whether it is a redirection of a slot that is not that of the channel.
fn is_about_another_slot(refusal: &ConnectionError, channel: &str) -> bool {
    let ConnectionError::Refused { code, message } = refusal else { return false };
    let named = || message.split(' ').next().and_then(|slot| slot.parse::<u16>().ok());
    matches!(code.as_str(), "MOVED" | "ASK") && named().is_some_and(|named| named != slot::of(channel))
}

fn is_named(value: Option<&Value>, channel: &str) -> bool {
    matches!(value, Some(Value::BulkString(name)) if name == channel.as_bytes())
}

/// Called by the driver of the connection.
fn hear(push: PushInfo) -> Option<FromNode> {
    let mut data = push.data.into_iter();
    let Some(Value::BulkString(channel)) = data.next() else { return None };
    let channel = String::from_utf8(channel).ok()?;
    match (push.kind, data.next()) {
        (PushKind::SMessage, Some(Value::BulkString(payload))) => Some(FromNode::Message { channel, payload }),
        (PushKind::SUnsubscribe, _) => Some(FromNode::Left(channel)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two channels that are subscribed together, each has an answer of its own.
    #[test]
    fn an_answer_names_its_channel() {
        let said = |kind, channel: &str| {
            let data = vec![Value::BulkString(channel.into()), Value::Int(1)];
            answer(Some(Value::Push { kind, data }), &PushKind::SSubscribe, "a")
        };
        assert_eq!(said(PushKind::SSubscribe, "a").unwrap(), Ok(()));
        assert!(said(PushKind::SSubscribe, "b").is_err());
        assert!(said(PushKind::SUnsubscribe, "a").is_err());
        assert!(answer(Some(Value::Okay), &PushKind::SSubscribe, "a").is_err());
        assert!(answer(None, &PushKind::SSubscribe, "a").is_err());
    }

    #[test]
    fn a_redirection_of_another_slot_is_the_answer_to_another_command() {
        let (own, other) = (slot::of("{a}"), slot::of("{b}"));
        let said = |line: String| {
            let error = ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            answer(Some(error), &PushKind::SSubscribe, "{a}")
        };
        for code in ["MOVED", "ASK"] {
            assert!(said(format!("{code} {other} h:2")).is_err(), "{code}");
            let answer = said(format!("{code} {own} h:2")).unwrap();
            assert_eq!(answer, Err(ConnectionError::refused(&format!("{code} {own} h:2"))));
        }
        assert!(said(format!("CLUSTERDOWN {other}")).unwrap().is_err(), "it names no slot");
    }
}
