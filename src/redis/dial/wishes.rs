//! What a connection is wanted for: it is sent right behind the login.

use std::sync::Arc;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{Cmd, PushKind, Value};
use futures::future::BoxFuture;

use super::super::convert;
use super::super::failure::Failure;
use super::Stream;

/// What a connection is wanted for.
#[derive(Default)]
pub(in crate::redis) struct Wishes<'a> {
    /// Where messages go.
    pub(in crate::redis) push: Option<Arc<dyn AsyncPushSender>>,
    /// Is sent right behind the login.
    pub(in crate::redis) commands: Vec<Cmd>,
    /// A stream to the server, if there is one already.
    pub(in crate::redis) dialled: Option<Stream>,
    /// Is called when there is a stream.
    pub(in crate::redis) on_dialled: Option<&'a (dyn Fn() + Send + Sync)>,
    /// Goes on from the moment when the commands are sent until they are answered.
    pub(in crate::redis) beside: Option<Beside<'a>>,
}

/// Begins when the commands are sent. The calls that it makes over the connection are executed after them.
pub(in crate::redis) type Beside<'a> = Box<dyn FnOnce(MultiplexedConnection) -> BoxFuture<'a, ()> + Send + 'a>;

impl Wishes<'_> {
    /// Subscriptions to these channels.
    pub(in crate::redis) fn subscribing(push: Arc<dyn AsyncPushSender>, channels: &[&str]) -> Self {
        Self {
            push: Some(push),
            commands: channels.iter().map(|channel| subscribe(channel)).collect(),
            ..Self::default()
        }
    }
}

/// Subscribes to one channel, which is one answer.
pub(in crate::redis) fn subscribe(channel: &str) -> Cmd {
    let mut command = ::redis::cmd("SUBSCRIBE");
    command.arg(channel);
    command
}

/// Reads the answer to [`subscribe`].
pub(in crate::redis) fn subscribed(answer: Option<Value>) -> Result<(), Failure> {
    match answer {
        Some(Value::Push { kind: PushKind::Subscribe, .. }) => Ok(()),
        Some(error @ Value::ServerError(_)) => convert::reply(error).map(drop).map_err(Failure::Refused),
        _ => Err(Failure::Io("another answer than that to a subscription".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_a_subscription() {
        let push = |kind| Some(Value::Push { kind, data: Vec::new() });
        assert!(subscribed(push(PushKind::Subscribe)).is_ok());
        for other in [push(PushKind::Unsubscribe), Some(Value::Okay), None] {
            assert!(matches!(subscribed(other), Err(Failure::Io(_))));
        }
    }
}
