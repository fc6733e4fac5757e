//! One world: a server, a subject whose operations are dropped, and what must hold afterwards.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config, Executor, Holder};
use uuid::Uuid;

use super::NAME;
use super::afterwards::LATE;
use super::lossy::{Lossy, Lost};
use super::operation::{Before, Companion, Operation, Subject};
use super::polled::{Ended, Then, polled};
use super::rivals::Rivals;
use crate::executor::{Machine, Process, WORLD};
use crate::guard::{Guard, What};
use crate::network::{Link, SimConnection};
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::tracking::Tracking;
use crate::world::MS;

const SHORTEST: Duration = Duration::from_micros(100);
pub const LONGEST: Duration = MS;
pub const LEASE: Duration = Duration::from_secs(3);

/// The longest interruption of a connection.
pub const OUTAGE: Duration = Duration::from_millis(200);

/// An operation that is not done by then waits for something that comes after its drop.
const STARVED: Duration = Duration::from_secs(5);

/// What the others do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contention {
    /// Nothing.
    Free,
    /// Another client holds the lock until the drop; if the subject holds it, a waiter queues up.
    Held,
    /// The same, with waiters before and behind.
    Queue,
    /// The other client releases meanwhile; if the subject holds the lock, it is taken from it.
    Released,
    /// The other client keeps the lock idle. Only for operations on a lock that the subject does not hold.
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    RequestLost,
    ReplyLost,
    Cut,
    SubscriptionCut,
}

pub struct Scene {
    pub machine: Arc<Machine>,
    lossy: Arc<Lossy>,
    pub server: Arc<SimServer>,
    pub world: Arc<dyn Executor>,
    pub other: Client,
    last_process: Process,
    /// An idle client, its tasks and timers, and how many tasks there were without it.
    pub idle: Option<(Subject, (usize, usize), usize)>,
    /// What is being done, for messages.
    pub doing: String,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.machine.end();
        }
    }
}

impl Scene {
    pub fn new(seed: u64) -> Self {
        let machine = Machine::new(seed);
        let server = SimServer::new(&machine, Scripts::default());
        let lossy = Lossy::new(server.clone());
        let world = machine.process(WORLD);
        let link = Link::new(&machine, lossy.clone(), 1, SHORTEST, LONGEST);
        let config = Config::builder().lease(LEASE).client_id(Uuid::from_u128(1)).build().unwrap();
        let other = run(&machine, LATE, Client::connect(machine.process(1), Arc::new(SimConnection(link)), config));
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
        let (mut subject, idle, tasks_before) = self.idle_subject(operation);
        let rivals = Rivals::new(&self.world);
        let held = self.prepare(operation, contention, &mut subject, &rivals);
        self.inflict(fault, &subject);

        let ended = self.poll(operation, &mut subject, polls, then);
        let closed = operation.closes && ended != Ended::Unpolled;
        let taken = contention == Contention::Released || fault != Fault::None;
        match &subject.guard {
            // The guard is kept while the others acquire, because closing has released its hold.
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

    /// Polls the operation's future so many times, and drops it.
    pub fn poll(&self, operation: &Operation, subject: &mut Subject, polls: usize, then: Then) -> Ended {
        let future = (operation.start)(subject);
        let pause = if then == Then::Wait { self.draw(8 * MS) } else { Duration::ZERO };
        let (pause, deadline) = (self.world.sleep(pause), self.world.sleep(STARVED));
        self.run("the future", polled(future, polls, (then == Then::Wait).then_some(pause), deadline))
    }

    /// The idle client, or a new one.
    pub fn idle_subject(&mut self, operation: &Operation) -> (Subject, (usize, usize), usize) {
        match self.idle.take() {
            Some(idle) => idle,
            None => self.subject(operation),
        }
    }

    fn subject(&mut self, operation: &Operation) -> (Subject, (usize, usize), usize) {
        self.pass(4 * LONGEST);
        let tasks_before = self.machine.live().0;
        self.last_process += 1;
        let process = self.last_process;
        let link = Link::new(&self.machine, self.lossy.clone(), process, SHORTEST, LONGEST);
        let mut subject = Subject {
            process,
            connection: Arc::new(SimConnection(link.clone())),
            link,
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
    ) -> Option<Guard> {
        let (all, key) = (operation.on.all(NAME), operation.on.key(NAME));
        let mut held = None;
        if operation.before == Before::Hold {
            let client = subject.client.clone().unwrap();
            let acquired = operation.on.acquire_as(!operation.cohort, client, NAME);
            let guard = self.run("hold", acquired).unwrap();
            subject.guard = Some(Arc::new(guard));
        } else if contention == Contention::Idle {
            if operation.on == What::Lock {
                let lock = self.other.lock(NAME).retained(LEASE / 3);
                self.run("keep", async move { lock.lock().await?.release().await }).unwrap();
            } else {
                let lock = self.other.rw_lock(NAME).retained(LEASE / 3);
                self.run("keep", async move { lock.write().await?.release().await }).unwrap();
            }
        } else if contention != Contention::Free {
            held = Some(self.run("hold", all.acquire(self.other.clone(), NAME)).unwrap());
        }
        let waits = operation.before == Before::Hold && contention != Contention::Free;
        if waits || contention == Contention::Queue {
            rivals.wait("the waiter before", Duration::ZERO, &self.other, all);
            self.within(LATE, "queued", || self.server.queued(&key) == 1);
        }
        if contention == Contention::Queue {
            let neighbour = subject.client.as_ref().filter(|_| self.machine.random(|random| random.one_in(2)));
            rivals.wait("the waiter behind", self.draw(4 * MS), neighbour.unwrap_or(&self.other), all);
        }
        if contention == Contention::Released {
            let delay = self.draw(5 * MS);
            match held.take() {
                Some(held) => rivals.spawn("the holder", delay, held.release()),
                // Only locks can be released by force.
                None if operation.on != What::Lock => {}
                None => rivals.spawn("the operator", delay, {
                    let lock = self.other.lock(NAME);
                    async move { lock.force_release().await.map(drop) }
                }),
            }
        }
        if let Some(companion) = operation.companion {
            let delay = if companion == Companion::First { Duration::ZERO } else { self.draw(2 * MS) };
            let (lock, holder) = (subject.lock(), subject.holder);
            rivals.spawn("the companion", delay, async move { lock.lock().holder(&holder).await?.release().await });
            if companion == Companion::First {
                let alone = contention == Contention::Free;
                let waiters = self.server.queued(&key);
                self.within(LATE, "the companion is first", || {
                    rivals.have_ended() || self.server.queued(&key) > waiters || alone && rivals.have_begun()
                });
            }
        }
        for who in ["the first neighbour", "the second neighbour", "the third neighbour"] {
            if operation.cohort {
                let (client, what) = (subject.client.clone().unwrap(), operation.on);
                let stands = async move { what.acquire_in_cohort(client, NAME).await?.release().await };
                rivals.spawn(who, self.draw(3 * MS), stands);
            }
        }
        held
    }

    pub fn inflict(&self, fault: Fault, subject: &Subject) {
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

    pub fn draw(&self, longest: Duration) -> Duration {
        self.machine.random(|random| random.between(Duration::ZERO, longest))
    }

    pub fn pass(&self, duration: Duration) {
        let sleep = self.world.sleep(duration);
        run(&self.machine, duration + MS, sleep).expect("time passes");
    }

    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Arc<Mutex<Option<T>>> {
        spawn(&self.machine, future)
    }

    pub fn run<T: Send + 'static>(&self, what: &str, future: impl Future<Output = T> + Send + 'static) -> T {
        let output = run(&self.machine, LATE * 2, future);
        self.must(output.is_some(), &format!("it does not end: {what}"));
        output.unwrap()
    }

    pub fn is_within(&self, bound: Duration, holds: impl FnMut() -> bool) -> bool {
        self.machine.run_until(self.machine.now() + bound, holds).is_ok()
    }

    pub fn within(&self, bound: Duration, what: &str, holds: impl FnMut() -> bool) {
        let held = self.is_within(bound, holds);
        self.must(held, &format!("not within {bound:?}: {what}"));
    }

    pub fn must(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}", self.doing);
    }
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
