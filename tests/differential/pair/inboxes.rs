//! The messages that clients get on both servers.

use std::time::Duration;

use bowline::{Connection, Notice};
use futures::executor::block_on;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use redis::PubSub;

use super::Pair;
use crate::agree::Slack;
use crate::steps::CLIENTS;

/// The subscriptions of one client on both servers.
pub(super) struct Inbox {
    pub(super) channel: String,
    pub(super) real: PubSub<'static>,
    pub(super) embedded: Option<BoxStream<'static, Notice>>,
}

impl Pair {
    fn inbox(&mut self, client: &str) -> &mut Inbox {
        &mut self.inboxes[CLIENTS.iter().position(|known| *known == client).unwrap()]
    }

    pub(super) fn listen(&mut self, client: &str) {
        let channel = self.inbox(client).channel.clone();
        if self.inbox(client).embedded.is_none() {
            let stream = block_on(self.embedded_connection.subscribe(&channel)).unwrap();
            let inbox = self.inbox(client);
            inbox.real.subscribe(&channel).unwrap();
            inbox.embedded = Some(stream);
        }
    }

    /// Forgets the messages so far.
    pub(super) fn deafen(&mut self, client: &str) {
        let inbox = self.inbox(client);
        if inbox.embedded.take().is_some() {
            inbox.real.unsubscribe(&inbox.channel).unwrap();
            inbox.real.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            while inbox.real.get_message().is_ok() {}
            inbox.real.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
    }

    /// Everything that was published to those who listen.
    pub(super) fn messages(&mut self, slack: &Slack) -> Result<(), String> {
        for inbox in &mut self.inboxes {
            let Some(stream) = &mut inbox.embedded else { continue };
            let count: u64 = redis::cmd("PUBLISH").arg(&inbox.channel).arg("end").query(&mut self.connection).unwrap();
            assert_eq!(count, 1);
            let mut real: Vec<Vec<u8>> = Vec::new();
            loop {
                match inbox.real.get_message().unwrap().get_payload::<Vec<u8>>().unwrap() {
                    end if end == b"end" => break,
                    message => real.push(message),
                }
            }
            let mut embedded = Vec::new();
            while let Some(Some(Notice::Message(message))) = stream.next().now_or_never() {
                embedded.push(message);
            }
            *self.seen.entry("message".to_owned()).or_default() += real.len() as u64;
            slack.messages(&real, &embedded).map_err(|what| format!("{}: {what}", inbox.channel))?;
        }
        Ok(())
    }
}
