//! Fake servers behind sockets in memory, in virtual time: the clock moves when no task can run.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::RangeInclusive;
#[cfg(unix)]
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use ::tokio::io::duplex;
use futures::channel::oneshot;
use futures::future::{BoxFuture, pending, ready};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::dial::locate::Locate;
use super::dial::{Dial, DialError, Dialled};
use super::failure::Failure;
use super::link::Link;
use super::link::supervisor;
use super::url::target::Target;
use crate::config::Config;
use crate::connection::Warning;
use crate::error::Result;
use crate::mutex::lock;
use crate::runtime::{Executor, an_instant};
use crate::tuning::RECONNECT;

pub(super) use self::named::Named;
pub(super) use self::node::{FakeNode, Said, push};
pub(super) use self::rotating::Rotating;

mod named;
mod node;
mod rotating;

pub(super) type Connecting = oneshot::Receiver<std::result::Result<Vec<Warning>, Failure>>;
pub(super) type Tasks = FuturesUnordered<BoxFuture<'static, ()>>;

/// How long after the first loss of a connection it is dialled again, with a little time for the dial.
pub(super) fn soon() -> RangeInclusive<Duration> {
    RECONNECT.shortest * 3 / 4 - ms(1)..=RECONNECT.shortest * 5 / 4 + ms(2)
}

/// The shortest time after which it is dialled again when it has been lost many times.
pub(super) fn late() -> Duration {
    RECONNECT.longest * 3 / 4
}

/// A connection that lasted for this long is dialled again soon.
pub(super) fn lasting() -> Duration {
    RECONNECT.at_most()
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) struct Lab {
    pub(super) clock: Arc<Clock>,
    /// By their ports.
    pub(super) nodes: HashMap<u16, Arc<FakeNode>>,
    /// The number of the last socket.
    sockets: AtomicUsize,
    /// The number of the socket whose dial gets no answer.
    pub(super) unreached: AtomicUsize,
    /// The time of the last dial, and the number of dials at that time.
    dials: Mutex<(Instant, usize)>,
}

/// The time, and the tasks that have not run yet.
pub(super) struct Clock {
    now: Mutex<Instant>,
    timers: Mutex<Vec<(Instant, oneshot::Sender<()>)>>,
    /// The number of timers that were ever set.
    set: AtomicUsize,
    spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Lab {
    /// Servers at these ports. One is the master of all slots.
    pub(super) fn new(ports: &[u16], owner: u16) -> Arc<Self> {
        let clock = Arc::new(Clock {
            now: Mutex::new(an_instant()),
            timers: Mutex::default(),
            set: AtomicUsize::new(0),
            spawned: Mutex::default(),
        });
        let nodes = ports.iter().map(|port| (*port, Arc::new(FakeNode::new(*port, owner, Arc::clone(&clock)))));
        let dials = Mutex::new((clock.now(), 0));
        let [sockets, unreached] = [0; 2].map(AtomicUsize::new);
        Arc::new(Self { nodes: nodes.collect(), clock, sockets, unreached, dials })
    }

    /// Runs all tasks until this future is ready, for an hour at most.
    pub(super) fn run<F: Future>(&self, tasks: &mut Tasks, future: F) -> F::Output {
        let (mut future, end) = (pin!(future), self.clock.now() + Duration::from_secs(3600));
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        loop {
            while woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return output;
                }
                tasks.extend(lock(&self.clock.spawned).drain(..));
                while let Poll::Ready(Some(())) = tasks.poll_next_unpin(&mut context) {}
                if !lock(&self.clock.spawned).is_empty() {
                    woken.0.store(true, Ordering::SeqCst);
                }
            }
            self.clock.advance();
            assert!(self.clock.now() <= end, "what is waited for does not come");
            woken.0.store(true, Ordering::SeqCst);
        }
    }

    /// A link to the server at port 1, which is then a single server.
    pub(super) fn link(self: &Arc<Self>, tasks: &mut Tasks) -> Arc<Link> {
        self.nodes[&1].alone.store(true, Ordering::SeqCst);
        let locate: Arc<dyn Locate> = Arc::new(Arc::new(Target::parse("redis://h:1").unwrap()));
        let (link, connected) = self.connect(locate, &Config::default());
        self.run(tasks, connected).unwrap().unwrap();
        link
    }

    /// A link to where this leads, and the result of its first attempt.
    pub(super) fn connect(self: &Arc<Self>, locate: Arc<dyn Locate>, config: &Config) -> (Arc<Link>, Connecting) {
        let link = Arc::new(Link::new(self.clone(), self.clone(), locate, config, 7));
        let (first, connected) = oneshot::channel();
        self.spawn(Box::pin(supervisor::supervise(Arc::clone(&link), first)));
        (link, connected)
    }

    /// The number of timers that were ever set.
    pub(super) fn timers(&self) -> usize {
        self.clock.set.load(Ordering::SeqCst)
    }

    pub(super) fn sum(&self, count: impl Fn(&FakeNode) -> &Mutex<u64>) -> u64 {
        self.nodes.values().map(|node| *lock(count(node))).sum()
    }
}

impl Clock {
    /// Ends the next sleep.
    fn advance(&self) {
        let mut timers = lock(&self.timers);
        timers.retain(|(_, timer)| !timer.is_canceled());
        let next = timers.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(index, _)| index);
        let (at, timer) = timers.remove(next.expect("a task waits for a timer"));
        drop(timers);
        let mut now = lock(&self.now);
        *now = at.max(*now);
        drop(now);
        let _ = timer.send(());
    }

    pub(super) fn now(&self) -> Instant {
        *lock(&self.now)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (timer, fired) = oneshot::channel();
        let at = self.now() + duration;
        self.set.fetch_add(1, Ordering::SeqCst);
        lock(&self.timers).push((at, timer));
        fired.map(drop).boxed()
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
        lock(&self.clock.spawned).push(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> Result<()> {
        unreachable!("nothing blocks")
    }
}

impl Dial for Lab {
    fn tcp<'a>(&'a self, _host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        let (mut dials, now) = (lock(&self.dials), self.clock.now());
        *dials = (now, if dials.0 == now { dials.1 + 1 } else { 1 });
        assert!(dials.1 < 1000, "there are no pauses between dials");
        drop(dials);
        let node = Arc::clone(&self.nodes[&port]);
        if node.dead.load(Ordering::SeqCst) {
            let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            return ready(Err(DialError::Socket(refused))).boxed();
        }
        let number = self.sockets.fetch_add(1, Ordering::SeqCst) + 1;
        if self.unreached.load(Ordering::SeqCst) == number {
            return pending().boxed();
        }
        let (near, far) = duplex(1 << 20);
        *lock(&node.logins) += 1;
        self.spawn(async move { node.serve(number, far).await }.boxed());
        ready(Dialled::Ok(Box::new(near))).boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _path: &'a Path) -> BoxFuture<'a, Dialled> {
        pending().boxed()
    }
}
