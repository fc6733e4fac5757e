//! The inbox of a client.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use bowline::wire;
use redis::{Client, PubSub, RedisResult, Value};

use super::attempt::{timeless, uuid};
use super::{Lab, PREFIX, lock};
use crate::support::server::Server;

pub struct Inbox {
    channel: String,
    /// How many a `PUBLISH` counts.
    receivers: i64,
    messages: Receiver<String>,
}

/// The channel of a client's inbox.
pub fn channel(client: u32) -> String {
    wire::inbox(PREFIX, uuid(client).parse().unwrap())
}

impl Lab {
    pub fn listen(&mut self, client: u32) -> Inbox {
        self.listen_at(&self.server, client, 1)
    }

    /// At a replica: a `PUBLISH` at the lab's own server counts no subscriber.
    pub fn listen_at_replica(&mut self, replica: &Server, client: u32) -> Inbox {
        self.listen_at(replica, client, 0)
    }

    fn listen_at(&self, server: &Server, client: u32, receivers: i64) -> Inbox {
        let channel = channel(client);
        Self::subscribed(server, channel, receivers, |pubsub, channel| pubsub.subscribe(channel))
    }

    /// Watches the inboxes of all clients by a pattern, and reads that of this client.
    pub fn listen_by_pattern(&mut self, client: u32) -> Inbox {
        let channel = channel(client);
        Self::subscribed(&self.server, channel, 1, |pubsub, _| {
            pubsub.psubscribe(format!("{}*", lock("n").inbox_prefix()))
        })
    }

    fn subscribed(
        server: &Server,
        channel: String,
        receivers: i64,
        subscribe: fn(&mut PubSub<'_>, &str) -> RedisResult<()>,
    ) -> Inbox {
        let (url, (send, messages), (ready, is_ready)) = (server.url(), mpsc::channel(), mpsc::channel());
        let name = channel.clone();
        thread::spawn(move || {
            let mut connection = Client::open(url).unwrap().get_connection().unwrap();
            let mut pubsub = connection.as_pubsub();
            subscribe(&mut pubsub, &name).unwrap();
            ready.send(()).unwrap();
            // Until the server is gone or closes the connection.
            while let Ok(message) = pubsub.get_message() {
                // Whether or not the test reads it, the client listens.
                let _ = send.send(message.get_payload::<String>().unwrap());
            }
        });
        is_ready.recv_timeout(Duration::from_secs(10)).unwrap();
        Inbox { channel, receivers, messages }
    }

    /// Everything that the inbox has got until now.
    #[track_caller]
    pub fn read(&mut self, inbox: &Inbox) -> Vec<String> {
        self.markers += 1;
        let marker = format!("marker {}", self.markers);
        assert_eq!(self.raw(&["PUBLISH", &inbox.channel, &marker]), Value::Int(inbox.receivers));
        // Longer than any test. The clock may have been set back since the message.
        let (mut read, now) = (Vec::new(), self.now());
        let when = now.saturating_sub(300_000)..=now + 300_000;
        loop {
            let message = inbox.messages.recv_timeout(Duration::from_secs(10)).unwrap();
            if message == marker {
                return read;
            }
            read.push(timeless(&message, when.clone()));
        }
    }

    /// All subscriptions are cut.
    pub fn cut_inboxes(&mut self) {
        self.raw(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let start = Instant::now();
        while self.raw(&["PUBSUB", "CHANNELS"]) != Value::Array(Vec::new()) {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
    }
}
