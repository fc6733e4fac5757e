//! A server behind sockets in memory, which does its work or fails in one of several ways.

use std::fmt;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::dialled::{Stream, Streams};
use bowline::embedded::{EmbeddedConnection, Server};
use bowline::{Call, Connection, ConnectionError, Notice};
use bowline_testkit::memory::is_memory;
use event_listener::Event;
use futures::future::{BoxFuture, Either, select, select_all};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::cluster::resp::{Eval, Say, Words, take, text};
use crate::executor::{Machine, WORLD};

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It answers everything with an error that can pass.
    Refuses(&'static str),
    /// Each answer takes this long.
    Slow(Duration),
    /// It reads nothing any more, and takes new sockets all the same.
    Silent,
    /// It has become a replica: its sockets are open, scripts are refused, and so is each new login.
    Demoted,
    /// Its sockets are closed, and nothing listens.
    Absent,
    /// Its sockets are closed, and no new one is answered for, not even with a refusal.
    Unreachable,
    /// Its sockets are closed, and the password is another one.
    Denies,
}

use Trouble::{Absent, Demoted, Denies, Refuses, Silent, Slow, Unreachable};

pub const TROUBLES: [Trouble; 7] = [
    Refuses("LOADING Redis is loading the dataset in memory"),
    Refuses("OOM command not allowed when used memory > 'maxmemory'."),
    Silent,
    Demoted,
    Absent,
    Unreachable,
    Denies,
];

/// A server at an address of its own.
pub struct Place {
    machine: Arc<Machine>,
    server: EmbeddedConnection,
    data: Server,
    state: Mutex<Option<Trouble>>,
    changed: Event,
    seed: u64,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

impl Place {
    pub fn new(machine: &Arc<Machine>, seed: u64) -> Arc<Self> {
        let data = Server::starting_at(Duration::from_secs(1_800_000_000));
        let server = data.connect(machine.process(WORLD));
        let (machine, state, changed) = (machine.clone(), Mutex::default(), Event::new());
        Arc::new(Self { machine, server, data, state, changed, seed })
    }

    pub fn set(&self, trouble: Option<Trouble>) {
        *self.state.lock().unwrap() = trouble;
        self.changed.notify(usize::MAX);
    }

    /// The keys of what is held here, or waits.
    pub fn held(&self) -> Vec<String> {
        let keys = self.data.dump().into_keys().map(|key| String::from_utf8_lossy(&key).into_owned());
        keys.filter(|key| !is_memory(key)).collect()
    }

    fn trouble(&self) -> Option<Trouble> {
        *self.state.lock().unwrap()
    }

    async fn other_than(&self, trouble: Option<Trouble>) {
        loop {
            let changed = self.changed.listen();
            if self.trouble() != trouble {
                return;
            }
            changed.await;
        }
    }

    /// Serves one socket until it is closed.
    async fn serve(self: Arc<Self>, mut socket: DuplexStream) {
        let (mut unread, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        let mut subscriptions: Vec<(String, BoxStream<'static, Notice>)> = Vec::new();
        loop {
            let trouble = self.trouble();
            match trouble {
                Some(Silent) => {
                    self.other_than(trouble).await;
                    continue;
                }
                Some(Absent | Unreachable | Denies) => return,
                None | Some(Refuses(_) | Demoted | Slow(_)) => {}
            }
            let mut out = Vec::new();
            while let Some(words) = take(&mut unread) {
                for said in self.execute(&words, trouble, &mut subscriptions).await {
                    said.write(&mut out);
                }
            }
            if let Some(Slow(by)) = trouble
                && !out.is_empty()
            {
                self.machine.process(WORLD).sleep(by).await;
            }
            if socket.write_all(&out).await.is_err() {
                return;
            }
            let messages = subscriptions.iter_mut().map(|(_, messages)| messages.next());
            let message = async {
                let all: Vec<_> = messages.collect();
                if all.is_empty() { pending().await } else { select_all(all).await }
            };
            let changed = self.other_than(trouble);
            let read = socket.read(&mut buffer);
            let next =
                match select(std::pin::pin!(read), select(std::pin::pin!(message), std::pin::pin!(changed))).await {
                    Either::Left((read, _)) => Either::Left(read),
                    Either::Right((Either::Left(((message, at, _), _)), _)) => Either::Right((message, at)),
                    Either::Right((Either::Right(_), _)) => continue,
                };
            match next {
                Either::Left(Ok(read @ 1..)) => unread.extend_from_slice(&buffer[..read]),
                Either::Left(_) => return,
                Either::Right((Some(Notice::Message(payload)), at)) => {
                    let channel = text(subscriptions[at].0.as_str());
                    let mut out = Vec::new();
                    Say::Push(vec![text("message"), channel, Say::Bytes(payload)]).write(&mut out);
                    if socket.write_all(&out).await.is_err() {
                        return;
                    }
                }
                Either::Right(_) => {}
            }
        }
    }

    async fn execute(
        &self,
        words: &Words,
        trouble: Option<Trouble>,
        subscriptions: &mut Vec<(String, BoxStream<'static, Notice>)>,
    ) -> Vec<Say> {
        let word = |n: usize| words.get(n).map_or(String::new(), |word| String::from_utf8_lossy(word).into_owned());
        vec![match &*word(0).to_uppercase() {
            "HELLO" => {
                let role = if trouble == Some(Demoted) { "replica" } else { "master" };
                let pairs = [("version", "7.0.0"), ("mode", "standalone"), ("role", role)];
                Say::Map(pairs.map(|(key, value)| (text(key), text(value))).to_vec())
            }
            "EVAL" | "EVALSHA" => match trouble {
                Some(Refuses(line)) => Say::Error(line.to_owned()),
                Some(Demoted) => Say::Error("READONLY You can't write against a read only replica.".to_owned()),
                _ => self.eval(words).await,
            },
            "SUBSCRIBE" => {
                let mut said = Vec::new();
                for n in 1..words.len() {
                    let messages = self.server.subscribe(&word(n)).await.unwrap();
                    subscriptions.push((word(n), messages));
                    let count = subscriptions.len() as i64;
                    said.push(Say::Push(vec![text("subscribe"), text(word(n)), Say::Number(count)]));
                }
                return said;
            }
            // The proof of a subscription asks for its own channel only.
            "PUBSUB" => Say::List(vec![text(word(2)), Say::Number(1)]),
            "PING" => Say::Status("PONG"),
            "INFO" => text("# Memory\r\nmaxmemory_policy:noeviction\r\n"),
            _ => Say::Status("OK"),
        }]
    }

    async fn eval(&self, words: &Words) -> Say {
        let Eval { script, keys, args, .. } = Eval::of(words);
        match self.server.run(Call::new(script, &keys, &args)).await {
            Ok(reply) => reply.into(),
            Err(ConnectionError::Refused { code, message }) => Say::Error(format!("{code} {message}")),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Leads to the place whose number is the port.
#[derive(Debug)]
pub struct Wires(pub Vec<Arc<Place>>);

impl Streams for Wires {
    fn open<'a>(&'a self, _host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        let place = self.0[usize::from(port) - 1].clone();
        async move {
            match place.trouble() {
                Some(Absent) => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(trouble @ Unreachable) => {
                    place.other_than(Some(trouble)).await;
                }
                _ => {}
            }
            let (near, far) = duplex(1 << 20);
            let serving =
                if place.trouble() == Some(Denies) { deny(far).boxed() } else { place.clone().serve(far).boxed() };
            place.machine.process(WORLD).spawn(serving);
            Ok(Box::new(near) as Box<dyn Stream>)
        }
        .boxed()
    }

    fn seed(&self) -> u64 {
        self.0[0].seed
    }
}

/// Refuses each login.
async fn deny(mut socket: DuplexStream) {
    let (mut unread, mut buffer) = (Vec::new(), vec![0; 1 << 12]);
    while let Ok(read @ 1..) = socket.read(&mut buffer).await {
        unread.extend_from_slice(&buffer[..read]);
        while take(&mut unread).is_some() {
            let wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
            if socket.write_all(wrong).await.is_err() {
                return;
            }
        }
    }
}
