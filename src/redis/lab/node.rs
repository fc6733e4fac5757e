//! A fake server, which can be the node of a cluster.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use event_listener::Event;
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedSender};
use futures::future::{Either, OptionFuture, pending, select};

use super::Clock;
use crate::mutex::lock;
use crate::protocol::slot;
use crate::until::until;

/// What a server answers to one command.
pub(in super::super) enum Said {
    Now(String),
    /// After this time. The commands behind it wait too.
    After(Duration, String),
    /// Never. The commands behind it get no answer either.
    Never,
}

/// Answers one command in the place of the node. The number is that of the socket.
type Hook = Box<dyn FnMut(usize, &[&str]) -> Option<Said> + Send>;

pub(in super::super) struct FakeNode {
    port: u16,
    clock: Arc<Clock>,
    pub(in super::super) up: AtomicBool,
    pub(in super::super) frozen: AtomicBool,
    thawed: Event,
    /// The master of all slots, with its config epoch.
    pub(in super::super) owner: Mutex<(u16, u64)>,
    pub(in super::super) logins: Mutex<u64>,
    pub(in super::super) readings: Mutex<u64>,
    pub(in super::super) scripts: Mutex<u64>,
    /// Whether connections are refused.
    pub(in super::super) dead: AtomicBool,
    /// Whether it is a single server and no node of a cluster.
    pub(in super::super) alone: AtomicBool,
    /// Whether it has shard channels.
    pub(in super::super) sharded: AtomicBool,
    /// Whether it redirects calls for the slots of others.
    pub(in super::super) strict: AtomicBool,
    /// How long a request and its answer take on their way.
    pub(in super::super) round_trip: Mutex<Duration>,
    hook: Mutex<Option<Hook>>,
    /// The open sockets.
    sockets: Mutex<BTreeMap<usize, UnboundedSender<String>>>,
}

/// What a node notices.
enum Happened {
    /// So many bytes were sent to it.
    Read(usize),
    /// What was sent first has arrived.
    Arrived,
    /// It has a message to send.
    Pushed(String),
}

impl FakeNode {
    pub(super) fn new(port: u16, owner: u16, clock: Arc<Clock>) -> Self {
        Self {
            port,
            clock,
            up: AtomicBool::new(true),
            frozen: AtomicBool::new(false),
            thawed: Event::new(),
            owner: Mutex::new((owner, 1)),
            logins: Mutex::default(),
            readings: Mutex::default(),
            scripts: Mutex::default(),
            dead: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            sharded: AtomicBool::new(false),
            strict: AtomicBool::new(false),
            round_trip: Mutex::default(),
            hook: Mutex::default(),
            sockets: Mutex::default(),
        }
    }

    pub(in super::super) fn thaw(&self) {
        self.frozen.store(false, Ordering::SeqCst);
        self.thawed.notify(usize::MAX);
    }

    /// Gives the answers of `hook` from now on. `None` leaves the answer to the node.
    pub(in super::super) fn answers(&self, hook: impl FnMut(usize, &[&str]) -> Option<Said> + Send + 'static) {
        *lock(&self.hook) = Some(Box::new(hook));
    }

    /// The numbers of the open sockets, in the order in which they were opened.
    pub(in super::super) fn sockets(&self) -> Vec<usize> {
        lock(&self.sockets).keys().copied().collect()
    }

    /// Sends a message that is no answer over a socket.
    pub(in super::super) fn push(&self, socket: usize, said: String) {
        lock(&self.sockets)[&socket].unbounded_send(said).unwrap();
    }

    /// Closes a socket.
    pub(in super::super) fn cut(&self, socket: usize) {
        lock(&self.sockets).remove(&socket);
    }

    pub(super) async fn serve(&self, socket: usize, mut stream: DuplexStream) {
        let (pushes, mut pushed) = mpsc::unbounded();
        lock(&self.sockets).insert(socket, pushes);
        let (mut unread, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        // Bytes that are on their way, with the times at which they arrive.
        let mut sent = VecDeque::new();
        loop {
            let arrives = OptionFuture::from(sent.front().map(|(at, _)| self.until(*at)));
            let arrived = async {
                if arrives.await.is_none() {
                    pending().await
                }
            };
            let happened = {
                let (read, arrived) = (pin!(stream.read(&mut buffer)), pin!(arrived));
                match select(read, select(arrived, pushed.next())).await {
                    Either::Left((Ok(read @ 1..), _)) => Happened::Read(read),
                    Either::Right((Either::Left(_), _)) => Happened::Arrived,
                    Either::Right((Either::Right((Some(push), _)), _)) => Happened::Pushed(push),
                    Either::Left(_) | Either::Right((Either::Right((None, _)), _)) => break,
                }
            };
            let done = match happened {
                Happened::Read(read) => {
                    sent.push_back((self.clock.now() + *lock(&self.round_trip), buffer[..read].to_vec()));
                    true
                }
                Happened::Arrived => {
                    unread.extend(sent.pop_front().into_iter().flat_map(|(_, bytes)| bytes));
                    self.execute(socket, &mut unread, &mut stream).await
                }
                Happened::Pushed(push) => stream.write_all(push.as_bytes()).await.is_ok(),
            };
            if !done {
                // Unless it was cut, the socket stays open until the other side closes it, but the node is silent.
                let is_open = lock(&self.sockets).contains_key(&socket);
                while is_open && matches!(stream.read(&mut buffer).await, Ok(1..)) {}
                break;
            }
        }
        lock(&self.sockets).remove(&socket);
    }

    async fn until(&self, at: Instant) {
        let left = at.saturating_duration_since(self.clock.now());
        if !left.is_zero() {
            self.clock.sleep(left).await;
        }
    }

    /// Returns whether the socket can still be used.
    async fn execute(&self, socket: usize, unread: &mut Vec<u8>, stream: &mut DuplexStream) -> bool {
        until(&self.thawed, || (!self.frozen.load(Ordering::SeqCst)).then_some(())).await;
        while let Some(command) = take(unread) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let hooked = lock(&self.hook).as_mut().and_then(|hook| hook(socket, &words));
            let answer = match hooked {
                None => self.answer(&words),
                Some(Said::Now(answer)) => answer,
                Some(Said::After(time, answer)) => {
                    self.clock.sleep(time).await;
                    answer
                }
                Some(Said::Never) => return false,
            };
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return false;
            }
        }
        true
    }

    fn answer(&self, words: &[&str]) -> String {
        let (owner, epoch) = *lock(&self.owner);
        let strange = self.strict.load(Ordering::SeqCst) && owner != self.port;
        // The place of the key, or of the channel.
        let moved = |place: usize| {
            let slot = words.get(place).map_or(0, |key| slot::of(key));
            format!("-MOVED {slot} h:{owner}\r\n")
        };
        let is_sharded = self.sharded.load(Ordering::SeqCst);
        match *words {
            ["HELLO", ..] => {
                let mode = if self.alone.load(Ordering::SeqCst) { "standalone" } else { "cluster" };
                ["version", "7.0.0", "mode", mode, "role", "master"]
                    .iter()
                    .fold("%3\r\n".to_owned(), |all, word| all + &bulk(word))
            }
            ["CLUSTER", "INFO"] => {
                *lock(&self.readings) += 1;
                let state = if self.up.load(Ordering::SeqCst) { "ok" } else { "fail" };
                bulk(&format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n"))
            }
            ["CLUSTER", "NODES"] => {
                let of = |port| format!("n{port} h:{port}@1 {}", if port == self.port { "myself," } else { "" });
                let others = [1, 2, 3].into_iter().filter(|port| *port != owner);
                let replica = |port| format!("{}slave n{owner} 0 0 {epoch} connected\n", of(port));
                let replicas: String = others.map(replica).collect();
                bulk(&format!("{}master - 0 0 {epoch} connected 0-16383\n{replicas}", of(owner)))
            }
            ["CLUSTER", "SLOTS"] => {
                let node = |port: u16| format!("*3\r\n{}:{port}\r\n{}", bulk("h"), bulk(&format!("n{port}")));
                format!("*1\r\n*5\r\n:0\r\n:16383\r\n{}{}{}", node(owner), node(2), node(3))
            }
            ["EVAL" | "EVALSHA", ..] => {
                *lock(&self.scripts) += 1;
                if !self.up.load(Ordering::SeqCst) {
                    "-CLUSTERDOWN The cluster is down\r\n".to_owned()
                } else if strange {
                    moved(3)
                } else {
                    ":1\r\n".to_owned()
                }
            }
            ["WAIT", ..] => ":1\r\n".to_owned(),
            ["PUBSUB" | "SPUBLISH" | "SSUBSCRIBE" | "SUNSUBSCRIBE", ..] if !is_sharded => {
                "-ERR unknown command\r\n".to_owned()
            }
            ["PUBSUB", ..] => "*0\r\n".to_owned(),
            ["SSUBSCRIBE" | "SPUBLISH", ..] if strange => moved(1),
            ["SPUBLISH", ..] => ":0\r\n".to_owned(),
            ["SUBSCRIBE", channel] => push("subscribe", channel),
            ["SSUBSCRIBE", channel] => push("ssubscribe", channel),
            ["SUNSUBSCRIBE", channel] => push("sunsubscribe", channel),
            _ => "+OK\r\n".to_owned(),
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The message of a server about a channel.
pub(in super::super) fn push(kind: &str, channel: &str) -> String {
    format!(">3\r\n{}{}:1\r\n", bulk(kind), bulk(channel))
}

/// Takes one whole command off the front.
fn take(unread: &mut Vec<u8>) -> Option<Vec<String>> {
    let mut at = 0;
    let number = |unread: &[u8], at: &mut usize| {
        let end = unread[*at..].windows(2).position(|pair| pair == b"\r\n")?;
        let number: usize = std::str::from_utf8(&unread[*at + 1..*at + end]).ok()?.parse().ok()?;
        *at += end + 2;
        Some(number)
    };
    let count = number(unread, &mut at)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(unread, &mut at)?;
        words.push(String::from_utf8_lossy(unread.get(at..at + length)?).into_owned());
        at += length + 2;
    }
    (at <= unread.len()).then(|| unread.drain(..at))?;
    Some(words)
}
