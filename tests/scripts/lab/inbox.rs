//! The inbox of a client.

use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Value};

use super::attempt::uuid;
use super::{INBOX, Lab};

pub struct Inbox {
    channel: String,
    messages: Receiver<String>,
}

impl Lab {
    pub fn listen(&mut self, client: u32) -> Inbox {
        let channel = format!("{INBOX}{}", uuid(client));
        let (url, (send, messages), (ready, is_ready)) = (self.server.url(), mpsc::channel(), mpsc::channel());
        let name = channel.clone();
        thread::spawn(move || {
            let mut connection = Client::open(url).unwrap().get_connection().unwrap();
            let mut pubsub = connection.as_pubsub();
            pubsub.subscribe(&name).unwrap();
            ready.send(()).unwrap();
            // Until the server is gone, or cuts it.
            while let Ok(message) = pubsub.get_message() {
                // Read or not: the client listens.
                let _ = send.send(message.get_payload::<String>().unwrap());
            }
        });
        is_ready.recv_timeout(Duration::from_secs(10)).unwrap();
        Inbox { channel, messages }
    }

    /// Everything that the inbox has got until now.
    #[track_caller]
    pub fn read(&mut self, inbox: &Inbox) -> Vec<String> {
        self.markers += 1;
        let marker = format!("marker {}", self.markers);
        assert_eq!(self.raw(&["PUBLISH", &inbox.channel, &marker]), Value::Int(1));
        let mut read = Vec::new();
        loop {
            let message = inbox.messages.recv_timeout(Duration::from_secs(10)).unwrap();
            if message == marker {
                return read;
            }
            read.push(message);
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
