//! One world: a server, a subject whose operations are dropped, and what must hold afterwards.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bowline::{Client, Config, ErrorKind, Executor, Holder, LockGuard, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use super::NAME;
use super::lossy::{Lossy, Lost};
use super::operation::{Before, Companion, Operation, Subject};
use super::rivals::Rivals;
use crate::executor::{Machine, Process, WORLD};
use crate::network::{Link, SimConnection};
use crate::server::SimServer;
use crate::tracking::Tracking;
use crate::world::MS;

const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = MS;
const LEASE: Duration = Duration::from_secs(3);

/// The longest interruption of a connection.
const OUTAGE: Duration = Duration::from_millis(200);

/// An operation that is not done by then waits for something that comes after its drop.
const STARVED: Duration = Duration::from_secs(5);

/// A request that lay somewhere may be executed this much later, and what it leaves lasts for a lease; whoever waits
/// behind asks every third of one. The rest is connections that come back, and tries.
const LATE: Duration =
    Duration::from_millis(3100).saturating_add(LEASE).saturating_add(Duration::from_secs(1)).saturating_add(OUTAGE);

/// What the others do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contention {
    /// Nothing.
    Free,
    /// Another client holds the lock until the drop; if the subject holds it, somebody waits.
    Held,
    /// The same, with waiters before and behind.
    Queue,
    /// The other client releases meanwhile; if the subject holds the lock, it is taken from it.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    RequestLost,
    ReplyLost,
    Cut,
    SubscriptionCut,
}

/// What happens between the last poll and the drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Then {
    Drop,
    /// The world goes on for a while: what it says arrives, and the future never sees it.
    Wait,
}

/// How the operation's future ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Unpolled,
    /// Dropped when it had been polled often enough.
    HalfWay,
    /// Dropped before that, because it waited for what comes after the drop.
    Starved,
    Done(std::result::Result<(), ErrorKind>),
}

pub struct Scene {
    machine: Arc<Machine>,
    lossy: Arc<Lossy>,
    server: Arc<SimServer>,
    world: Arc<dyn Executor>,
    other: Client,
    last_process: Process,
    /// An idle client, its tasks and timers, and how many tasks there were without it.
    idle: Option<(Subject, (usize, usize), usize)>,
    /// What is being done, for messages.
    pub doing: String,
}

impl Scene {
    pub fn new(seed: u64) -> Self {
        let machine = Machine::new(seed);
        let server = SimServer::new(&machine);
        let lossy = Lossy::new(server.clone());
        let world = machine.process(WORLD);
        let link = Link::new(&machine, lossy.clone(), 1, SHORTEST, LONGEST);
        let config = Config::builder().lease(LEASE).client_id(Uuid::from_u128(1)).build().unwrap();
        let other = run(&machine, LATE, Client::new(machine.process(1), Arc::new(SimConnection(link)), config));
        let other = other.expect("it connects").unwrap();
        Self { machine, lossy, server, world, other, last_process: 1, idle: None, doing: String::new() }
    }

    /// Polls the operation so many times, drops it, and looks at what is left.
    pub fn drop_after(
        &mut self,
        operation: &Operation,
        (contention, fault): (Contention, Fault),
        polls: usize,
        then: Then,
    ) -> Ended {
        let (mut subject, idle, tasks_before) = match self.idle.take() {
            Some(idle) => idle,
            None => self.subject(operation),
        };
        let rivals = Rivals::new(&self.world);
        let held = self.prepare(operation, contention, &mut subject, &rivals);
        self.inflict(fault, &subject);

        let future = (operation.start)(&mut subject);
        let pause = if then == Then::Wait { self.draw(8 * MS) } else { Duration::ZERO };
        let (pause, deadline) = (self.world.sleep(pause), self.world.sleep(STARVED));
        let ended = self.run("the future", polled(future, polls, (then == Then::Wait).then_some(pause), deadline));

        let closed = operation.closes && ended != Ended::Unpolled;
        let taken = contention == Contention::Released || fault != Fault::None;
        match &subject.guard {
            // The guard is kept while the others are served: closing has released it.
            Some(guard) if closed => self.must(!guard.is_valid(), "the guard of a closed client is valid"),
            Some(guard) => {
                let kept = guard.is_valid() || taken || operation.robs;
                self.must(kept, "the guard outlives the future");
                subject.guard = None;
            }
            None => {}
        }
        if let Some(held) = held {
            rivals.spawn("the holder", Duration::ZERO, held.release());
        }
        let operator = operation.before == Before::Hold && contention == Contention::Released;
        self.others_are_served(operation, fault, &rivals, &ended, operation.robs || operator);
        self.nothing_is_left(operation, fault, &subject, idle);
        self.idle = Some((subject, idle, tasks_before));
        if closed || operation.before == Before::Nothing {
            self.end_client();
        }
        ended
    }

    fn subject(&mut self, operation: &Operation) -> (Subject, (usize, usize), usize) {
        self.pass(4 * LONGEST);
        let tasks_before = self.machine.live().0;
        self.last_process += 1;
        let process = self.last_process;
        let mut subject = Subject {
            process,
            link: Link::new(&self.machine, self.lossy.clone(), process, SHORTEST, LONGEST),
            tracking: Arc::new(Tracking::new(self.machine.process(process))),
            id: Uuid::from_u128(process as u128),
            lease: LEASE,
            client: None,
            guard: None,
            holder: Holder::new(),
        };
        if operation.before != Before::Nothing {
            subject.client = Some(self.run("connect", subject.connect()).unwrap());
        }
        let idle = subject.tracking.live();
        (subject, idle, tasks_before)
    }

    /// What the others have and do when the operation begins, and soon after. What is returned is held until the drop.
    fn prepare(
        &self,
        operation: &Operation,
        contention: Contention,
        subject: &mut Subject,
        rivals: &Rivals,
    ) -> Option<LockGuard> {
        let lock = self.other.lock(NAME);
        let mut held = None;
        if operation.before == Before::Hold {
            let acquire = subject.lock();
            let guard = self.run("hold", async move { acquire.lock().await }).unwrap();
            subject.guard = Some(Arc::new(guard));
        } else if contention != Contention::Free {
            let acquire = lock.clone();
            held = Some(self.run("hold", async move { acquire.lock().await }).unwrap());
        }
        let waits = operation.before == Before::Hold && contention != Contention::Free;
        if waits || contention == Contention::Queue {
            rivals.wait("the waiter before", Duration::ZERO, lock.clone());
            self.within(LATE, "queued", || self.server.waiters(NAME) == 1);
        }
        if contention == Contention::Queue {
            let neighbour = subject.client.is_some() && self.machine.random(|random| random.one_in(2));
            let behind = if neighbour { subject.lock() } else { lock.clone() };
            rivals.wait("the waiter behind", self.draw(4 * MS), behind);
        }
        if contention == Contention::Released {
            let delay = self.draw(5 * MS);
            match held.take() {
                Some(held) => rivals.spawn("the holder", delay, held.release()),
                None => rivals.spawn("the operator", delay, async move { lock.force_release().await.map(drop) }),
            }
        }
        if let Some(companion) = operation.companion {
            let delay = if companion == Companion::First { Duration::ZERO } else { self.draw(2 * MS) };
            let (lock, holder) = (subject.lock(), subject.holder);
            rivals.spawn("the companion", delay, async move { lock.lock().holder(&holder).await?.release().await });
            if companion == Companion::First {
                let alone = contention == Contention::Free;
                let waiters = self.server.waiters(NAME);
                self.within(LATE, "the companion is first", || {
                    rivals.have_ended() || self.server.waiters(NAME) > waiters || alone && rivals.have_begun()
                });
            }
        }
        held
    }

    fn inflict(&self, fault: Fault, subject: &Subject) {
        let after = self.machine.random(|random| random.below(3));
        match fault {
            Fault::None => {}
            Fault::RequestLost => self.lossy.lose(subject.process, after, Lost::Request),
            Fault::ReplyLost => self.lossy.lose(subject.process, after, Lost::Reply),
            Fault::Cut | Fault::SubscriptionCut => {
                let (sleep, outage) = (self.world.sleep(self.draw(6 * MS)), self.draw(OUTAGE));
                let link = subject.link.clone();
                self.world.spawn(Box::pin(async move {
                    sleep.await;
                    link.cut(fault == Fault::Cut, fault == Fault::SubscriptionCut, outage);
                }));
            }
        }
    }

    fn others_are_served(&self, operation: &Operation, fault: Fault, rivals: &Rivals, ended: &Ended, robbed: bool) {
        self.within(LATE, "the others begin", || rivals.have_begun());
        // Every hand-over takes two messages; the subject's own, and those of three others.
        self.within(bound(fault, 8 * LONGEST), "the others are served", || rivals.have_ended());
        for (who, kind) in rivals.failed() {
            let expected = match kind {
                ErrorKind::Lost => robbed,
                ErrorKind::Closed => operation.closes,
                _ => false,
            };
            self.must(expected, &format!("{who}: {kind:?}"));
        }
        if let Ended::Done(Err(kind)) = ended {
            let faulty = fault != Fault::None && matches!(kind, ErrorKind::Unavailable);
            self.must(faulty || operation.fails.contains(kind), &format!("it failed: {kind:?}"));
        }
        self.another_client_acquires(bound(fault, 4 * LONGEST));
    }

    fn another_client_acquires(&self, bound: Duration) {
        let lock = self.other.lock(NAME);
        let again = self.spawn(async move { lock.lock().await });
        self.within(bound, "another client acquires", || again.lock().unwrap().is_some());
        let guard = again.lock().unwrap().take().unwrap().unwrap();
        self.run("release", guard.release()).unwrap();
    }

    fn nothing_is_left(&self, operation: &Operation, fault: Fault, subject: &Subject, idle: (usize, usize)) {
        let (tasks, timers) = idle;
        let scratch = operation.before == Before::Nothing;
        // After a fault, the request may come late: its ticket is dead in the end, but lies there until somebody asks.
        let calm = fault == Fault::None;
        let clean = || (!calm || self.keys(scratch).is_empty()) && subject.tracking.live().0 <= tasks;
        let cleaned = self.is_within(bound(fault, 4 * LONGEST), clean);
        let (live, keys) = (subject.tracking.live(), self.keys(scratch));
        self.must(cleaned, &format!("left: {keys:?}; {live:?} tasks and timers, {idle:?} when idle"));
        // The watchdog may still sleep until the next renewal of what was held; and a clean-up until its next try.
        self.must(
            live.1 <= timers + 1 || fault != Fault::None,
            &format!("{live:?} tasks and timers are left, {idle:?} when idle"),
        );
        // Nothing comes back, and the timer goes.
        self.pass(if scratch { Duration::from_secs(3601) } else { bound(fault, LEASE) });
        if !calm {
            self.another_client_acquires(4 * LONGEST);
        }
        let (live, keys) = (subject.tracking.live(), self.keys(false));
        self.must(keys.is_empty() && live <= idle, &format!("in the end: {keys:?}, {live:?} tasks and timers"));
        self.must(self.server.violation().is_none(), &format!("{:?}", self.server.violation()));
    }

    /// After the subject's client nothing at all is left of it.
    pub fn end_client(&mut self) {
        let Some((mut subject, _, tasks_before)) = self.idle.take() else { return };
        if let Some(client) = subject.client.take().filter(|_| self.machine.random(|random| random.one_in(2))) {
            self.run("close", async move { client.close().await });
        }
        subject.guard = None;
        let Subject { tracking, id, .. } = subject;
        let listeners = || self.server.listeners(&format!("bowline:inbox:{id}"));
        let ended = self.is_within(4 * LONGEST, || tracking.live() == (0, 0) && listeners() == 0);
        let (live, listeners) = (tracking.live(), listeners());
        self.must(ended, &format!("after the client: {live:?} tasks and timers, {listeners} subscriptions"));
        // The network's too.
        self.within(2 * LATE, "the link's tasks end", || self.machine.live().0 <= tasks_before);
    }

    /// Keys but the counters, and the scratch keys if they are left out.
    fn keys(&self, without_scratch: bool) -> Vec<String> {
        let mut keys = self.server.keys();
        keys.retain(|key| !key.ends_with(":fence") && !(without_scratch && key.contains("{bowline-check}")));
        keys
    }

    fn draw(&self, longest: Duration) -> Duration {
        self.machine.random(|random| random.between(Duration::ZERO, longest))
    }

    fn pass(&self, duration: Duration) {
        let sleep = self.world.sleep(duration);
        run(&self.machine, duration + MS, sleep).expect("time passes");
    }

    fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Arc<Mutex<Option<T>>> {
        spawn(&self.machine, future)
    }

    fn run<T: Send + 'static>(&self, what: &str, future: impl Future<Output = T> + Send + 'static) -> T {
        let output = run(&self.machine, LATE * 2, future);
        self.must(output.is_some(), &format!("it does not end: {what}"));
        output.unwrap()
    }

    fn is_within(&self, bound: Duration, holds: impl FnMut() -> bool) -> bool {
        self.machine.run_until(self.machine.now() + bound, holds).is_ok()
    }

    fn within(&self, bound: Duration, what: &str, holds: impl FnMut() -> bool) {
        let held = self.is_within(bound, holds);
        self.must(held, &format!("not within {bound:?}: {what}"));
    }

    fn must(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}", self.doing);
    }
}

/// Without a fault, a few messages; with one, what is documented.
fn bound(fault: Fault, calm: Duration) -> Duration {
    if fault == Fault::None { calm } else { LATE }
}

fn spawn<T: Send + 'static>(
    machine: &Arc<Machine>,
    future: impl Future<Output = T> + Send + 'static,
) -> Arc<Mutex<Option<T>>> {
    let output = Arc::new(Mutex::new(None));
    let slot = output.clone();
    machine.process(WORLD).spawn(Box::pin(async move {
        let ended = future.await;
        *slot.lock().unwrap() = Some(ended);
    }));
    output
}

fn run<T: Send + 'static>(
    machine: &Arc<Machine>,
    bound: Duration,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let output = spawn(machine, future);
    let limit = machine.now() + bound;
    let _ = machine.run_until(limit, || output.lock().unwrap().is_some());
    output.lock().unwrap().take()
}

/// Polls the future when it is woken, at most so many times, then pauses and drops it.
async fn polled(
    mut future: BoxFuture<'static, Result<()>>,
    polls: usize,
    pause: Option<BoxFuture<'static, ()>>,
    mut deadline: BoxFuture<'static, ()>,
) -> Ended {
    if polls == 0 {
        return Ended::Unpolled;
    }
    let mut left = polls;
    let ended = poll_fn(|context| {
        if deadline.poll_unpin(context).is_ready() {
            return Poll::Ready(Ended::Starved);
        }
        left -= 1;
        match future.poll_unpin(context) {
            Poll::Ready(output) => Poll::Ready(Ended::Done(output.map_err(|error| error.kind()))),
            Poll::Pending if left == 0 => Poll::Ready(Ended::HalfWay),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if let Some(pause) = pause.filter(|_| ended == Ended::HalfWay) {
        pause.await;
    }
    ended
}
