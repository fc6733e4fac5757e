//! A cluster of fake nodes behind sockets in memory, in virtual time: the clock moves when no task can run.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
#[cfg(unix)]
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use ::tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use event_listener::Event;
use futures::channel::oneshot;
use futures::future::{BoxFuture, pending, ready};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::super::super::dial::{Dial, DialError, Dialled};
use crate::error::Result;
use crate::mutex::lock;
use crate::runtime::{Executor, an_instant};

pub(super) struct Lab {
    now: Mutex<Instant>,
    timers: Mutex<Vec<(Instant, oneshot::Sender<()>)>>,
    spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
    /// By their ports.
    pub(super) nodes: HashMap<u16, Arc<FakeNode>>,
}

/// What one node answers.
pub(super) struct FakeNode {
    pub(super) up: AtomicBool,
    pub(super) frozen: AtomicBool,
    thawed: Event,
    /// The master of all slots, with its config epoch.
    pub(super) owner: Mutex<(u16, u64)>,
    pub(super) logins: Mutex<u64>,
    pub(super) readings: Mutex<u64>,
    pub(super) scripts: Mutex<u64>,
    /// Nothing listens.
    pub(super) dead: AtomicBool,
}

impl Lab {
    pub(super) fn new(ports: &[u16], owner: u16) -> Arc<Self> {
        let node = || FakeNode {
            up: AtomicBool::new(true),
            frozen: AtomicBool::new(false),
            thawed: Event::new(),
            owner: Mutex::new((owner, 1)),
            logins: Mutex::default(),
            readings: Mutex::default(),
            scripts: Mutex::default(),
            dead: AtomicBool::new(false),
        };
        let nodes = ports.iter().map(|port| (*port, Arc::new(node()))).collect();
        Arc::new(Self { now: Mutex::new(an_instant()), timers: Mutex::default(), spawned: Mutex::default(), nodes })
    }

    /// Runs all tasks until this future is ready.
    pub(super) fn run<F: Future>(&self, tasks: &mut FuturesUnordered<BoxFuture<'static, ()>>, future: F) -> F::Output {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        loop {
            while woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
                tasks.extend(lock(&self.spawned).drain(..));
                while let Poll::Ready(Some(())) = tasks.poll_next_unpin(&mut context) {}
                if !lock(&self.spawned).is_empty() {
                    woken.0.store(true, Ordering::SeqCst);
                }
            }
            let mut timers = lock(&self.timers);
            timers.retain(|(_, timer)| !timer.is_canceled());
            let next = timers.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(index, _)| index);
            let (at, timer) = timers.remove(next.expect("a task waits for a timer"));
            drop(timers);
            let mut now = lock(&self.now);
            *now = at.max(*now);
            drop(now);
            let _ = timer.send(());
            woken.0.store(true, Ordering::SeqCst);
        }
    }

    pub(super) fn sum(&self, count: impl Fn(&FakeNode) -> &Mutex<u64>) -> u64 {
        self.nodes.values().map(|node| *lock(count(node))).sum()
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lab")
    }
}

impl Executor for Lab {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        lock(&self.spawned).push(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (timer, fired) = oneshot::channel();
        let at = self.now() + duration;
        lock(&self.timers).push((at, timer));
        fired.map(drop).boxed()
    }

    fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> Result<()> {
        unreachable!("nothing blocks")
    }
}

impl Dial for Lab {
    fn tcp<'a>(&'a self, _host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        let node = Arc::clone(&self.nodes[&port]);
        if node.dead.load(Ordering::SeqCst) {
            let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            return ready(Err(DialError::Socket(refused))).boxed();
        }
        let (near, far) = duplex(1 << 20);
        *lock(&node.logins) += 1;
        self.spawn(async move { node.serve(far).await }.boxed());
        ready(Dialled::Ok(Box::new(near))).boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _path: &'a Path) -> BoxFuture<'a, Dialled> {
        pending().boxed()
    }
}

impl FakeNode {
    pub(super) fn thaw(&self) {
        self.frozen.store(false, Ordering::SeqCst);
        self.thawed.notify(usize::MAX);
    }

    async fn serve(&self, mut stream: DuplexStream) {
        let (mut unread, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            unread.extend_from_slice(&buffer[..read]);
            loop {
                let thawed = self.thawed.listen();
                if !self.frozen.load(Ordering::SeqCst) {
                    break;
                }
                thawed.await;
            }
            while let Some(command) = take(&mut unread) {
                if stream.write_all(self.answer(&command).as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    fn answer(&self, command: &[String]) -> String {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let (owner, epoch) = *lock(&self.owner);
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words[..] {
            ["HELLO", ..] => ["version", "7.0.0", "mode", "cluster", "role", "master"]
                .iter()
                .fold("%3\r\n".to_owned(), |all, word| all + &bulk(word)),
            ["CLUSTER", "INFO"] => {
                *lock(&self.readings) += 1;
                let state = if self.up.load(Ordering::SeqCst) { "ok" } else { "fail" };
                bulk(&format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n"))
            }
            ["CLUSTER", "NODES"] => bulk(&format!("n{owner} h:{owner}@1 master - 0 0 {epoch} connected 0-16383\n")),
            ["CLUSTER", "SLOTS"] => {
                let node = |port: u16| format!("*3\r\n{}:{port}\r\n{}", bulk("h"), bulk(&format!("n{port}")));
                format!("*1\r\n*5\r\n:0\r\n:16383\r\n{}{}{}", node(owner), node(2), node(3))
            }
            ["EVAL" | "EVALSHA", ..] => {
                *lock(&self.scripts) += 1;
                if self.up.load(Ordering::SeqCst) {
                    ":1\r\n".to_owned()
                } else {
                    "-CLUSTERDOWN The cluster is down\r\n".to_owned()
                }
            }
            ["PUBSUB" | "SPUBLISH" | "SSUBSCRIBE" | "SUNSUBSCRIBE", ..] => "-ERR unknown command\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        }
    }
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
