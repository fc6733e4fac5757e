//! One run: its processes, and what must hold all the time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config, Connection};
use bowline_testkit::memory::is_memory;
use futures::future::{BoxFuture, FutureExt, ready};
use uuid::Uuid;

use crate::actor::Actor;
use crate::census::Counted;
use crate::cluster;
use crate::executor::{Machine, Process, Stuck, WORLD, on_new_machine};
use crate::guard::Guard;
use crate::histories::Histories;
use crate::judge::view::is_latch;
use crate::network::{COMMAND_TIMEOUT, Link, SimConnection};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::storm::Storm;

mod guards;
mod histories;

pub use guards::{Got, Seen};
use histories::Owner;

pub const MS: Duration = Duration::from_millis(1);

/// No operation of a run may take the world past this.
pub const LIMIT: Duration = Duration::from_secs(1800);

/// Which faults a run may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Connections break, requests and replies are lost or late, messages are lost.
    pub network: bool,
    /// Processes and the server stand still for a while, or it refuses writes.
    pub freezes: bool,
    /// Processes die.
    pub crashes: bool,
    /// The server loses everything, or one key, or its clock is set. Exclusion is waived for holds granted before.
    pub losses: bool,
    /// A replica, which is behind, becomes the primary behind the one address, and catches up before. Connections stay
    /// where they are, or break.
    pub failovers: bool,
    /// One or two replicas. A failover loses what is on its way to them; the old master may go on for a while; nothing
    /// arrives at a replica for a while. Exclusion is waived for grants and renewals that a failover has lost.
    pub forks: bool,
    /// No fault: every grant and renewal waits for all replicas. Nothing is waived for failovers then.
    pub acknowledged: bool,
    /// No fault: a cluster, whose slots move if there are faults.
    pub cluster: bool,
    /// No fault: the cluster shards its messages.
    pub sharded: bool,
}

impl Faults {
    pub fn any(self) -> bool {
        self.network || self.freezes || self.crashes || self.losses || self.failovers || self.forks
    }
}

/// What the processes of a run use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    Locks,
    /// Semaphores and read-write locks.
    Permits,
    /// All of them, with leases that are fixed and extended, or renewed up to a limit, and in sections and scopes.
    Leases,
    Latches,
    /// Locks that their clients keep idle, beside others.
    Retained,
}

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    pub acquired: u64,
    pub faults: u64,
    /// How many guards overlapped others, as the documentation says that they can.
    pub waived: u64,
    /// The first thing that must not happen, if it did.
    pub violation: Option<String>,
    pub history: String,
}

pub struct World {
    pub machine: Arc<Machine>,
    pub server: Arc<SimServer>,
    pub workload: Workload,
    pub faults: Faults,
    /// No actor gives up, so that every hand-over can be timed.
    pub calm: bool,
    pub longest_delay: Duration,
    /// How long operations try against a server that gives no answer.
    pub retry_timeout: Duration,
    /// Most want the same, and stand in lines.
    pub crowd: bool,
    /// How many replicas must acknowledge a grant.
    pub replicas: u32,
    pub state: Mutex<State>,
    _counted: Counted,
}

#[derive(Default)]
pub struct State {
    /// By the key of who holds it, as the following ones.
    pub guards: HashMap<String, Vec<Seen>>,
    /// The tokens of those that are not shared.
    pub tokens: HashMap<String, BTreeSet<u64>>,
    /// Holds asked for before this may overlap others: the server lost data, or its clock was set.
    pub lost_at: Option<Duration>,
    /// When the last release of a name was begun, while a waiter was known.
    pub released_at: HashMap<String, Duration>,
    /// Every hold of a lock or writer, by key.
    pub histories: Histories<Guard, Owner>,
    pub running: BTreeMap<Process, u64>,
    pub acquired: u64,
    pub fault_count: u64,
    /// How many guards overlap others, and may.
    pub waived: u64,
    pub violation: Option<String>,
}

pub fn run(seed: u64, workload: Workload, faults: Faults) -> Report {
    run_with(seed, workload, faults, Scripts::default())
}

pub fn run_with(seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    on_new_machine(seed, |machine| match faults.cluster {
        true => cluster::run_on(machine, seed, workload, faults, scripts),
        false => run_on(machine, seed, workload, faults, scripts),
    })
}

fn run_on(machine: &Arc<Machine>, seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    let mut random = Random::new(!seed);
    let server = SimServer::new(machine, scripts);
    // Not drawn from the seed either: see below.
    if workload == Workload::Latches && seed % 3 == 1 {
        server.tell_one_at_a_time();
    }
    if faults.failovers || faults.forks {
        server.nodes.clocks_differ(seed);
    }
    if faults.failovers {
        server.replicate(*random.pick(&[MS / 5, 20 * MS, 300 * MS]));
    }
    let mut replicas = 0;
    if faults.forks {
        replicas = 1 + random.below(2) as u32;
        (0..replicas).for_each(|_| server.replicate(*random.pick(&[MS / 5, 20 * MS, 300 * MS])));
    }
    let (shortest, longest) = (MS / 10, *random.pick(&[MS / 2, 2 * MS, 20 * MS]));
    let calm = !faults.any() && random.one_in(2);
    let retry_timeout = *random.pick(&[500 * MS, 10_000 * MS]);
    // Not drawn from the seed, so that the seeds of the other runs keep their meaning.
    let crowd = match workload {
        Workload::Permits => seed.is_multiple_of(3),
        Workload::Locks | Workload::Retained => matches!(seed % 7, 0 | 4 | 6),
        Workload::Latches | Workload::Leases => false,
    };
    let world = World::new(machine, &server, workload, faults, longest, retry_timeout);
    let replicas = if faults.acknowledged { replicas } else { 0 };
    if replicas > 0 {
        server.judge.waits_for_replicas(COMMAND_TIMEOUT);
    }
    let world = Arc::new(World { calm, crowd, replicas, ..world });

    let processes = 1 + random.below(4) as Process;
    let names: Vec<String> = (0..=random.below(3)).map(|n| format!("name {n}")).collect();
    let lease = *random.pick(&[500 * MS, 3000 * MS, 30_000 * MS]);
    let mut links = Vec::new();
    let started = Arc::new(Mutex::new(0));
    let clocks_differ = faults.any() || random.one_in(2);
    for process in 1..=processes {
        let link = Link::new(machine, server.clone(), process, shortest, longest);
        links.push(link.clone());
        let tasks = 1 + random.below(6) + if world.crowd { 4 } else { 0 };
        let operations = 2 + random.below(10);
        let seeds: Vec<u64> = (0..tasks).map(|_| random.next()).collect();
        let id = Uuid::from_u64_pair(random.next(), random.next() | 1);
        server.judge.introduce(id.to_string(), process, link.clone(), longest);
        machine.set_rate(process, if clocks_differ { *random.pick(&[-1000, -500, 0, 500, 1000]) } else { 0 });
        let connection = made(Arc::new(SimConnection(link)));
        world.start(Crew { process, connection, id, lease, names: names.clone(), seeds, operations }, &started);
    }
    let connected = machine.run_until(LIMIT, || *started.lock().unwrap() == processes);
    world.must(connected.is_ok(), || format!("connecting: {connected:?}"));
    if faults.any() {
        let sets_clock = random.one_in(2);
        let storm =
            Storm { world: world.clone(), links: links.clone(), random: Random::new(random.next()), sets_clock };
        machine.process(WORLD).spawn(Box::pin(storm.rage()));
    }
    let ended = machine.run_until(LIMIT, || world.is_over());
    world.end(ended, lease);
    world.report()
}

/// Makes the connection of a process.
pub type Connecting = Box<dyn FnOnce(Config) -> BoxFuture<'static, Arc<dyn Connection>> + Send>;

/// There it is.
pub fn made(connection: Arc<dyn Connection>) -> Connecting {
    Box::new(|_| ready(connection).boxed())
}

/// What the tasks of a process do at one server.
pub struct Crew {
    pub process: Process,
    pub connection: Connecting,
    pub id: Uuid,
    pub lease: Duration,
    pub names: Vec<String>,
    /// One for each task.
    pub seeds: Vec<u64>,
    pub operations: u64,
}

impl World {
    /// Connects a client and starts its tasks. Counts it in `started` once it is connected.
    pub fn start(self: &Arc<Self>, crew: Crew, started: &Arc<Mutex<usize>>) {
        let Crew { process, connection, id, lease, names, seeds, operations } = crew;
        self.state.lock().unwrap().running.insert(process, seeds.len() as u64);
        let (world, started) = (self.clone(), started.clone());
        let executor = self.machine.process(process);
        executor.clone().spawn(Box::pin(async move {
            let mut config = Config::builder().lease(lease).retry_timeout(world.retry_timeout).client_id(id);
            config = config.acknowledged_by(world.replicas);
            if world.crowd {
                config = config.handoff_time(10 * MS);
            }
            let config = config.build().unwrap();
            let connection = connection(config.clone()).await;
            let client = Client::connect(executor.clone(), connection, config).await.unwrap();
            *started.lock().unwrap() += 1;
            for (number, seed) in seeds.into_iter().enumerate() {
                let actor = Actor {
                    world: world.clone(),
                    process,
                    name: format!("{process}.{number}"),
                    client: client.clone(),
                    executor: executor.clone(),
                    names: names.clone(),
                    lease,
                    random: Random::new(seed),
                };
                executor.spawn(Box::pin(actor.live(operations)));
            }
        }));
    }

    /// A world without crowds and without calm waiters.
    pub fn new(
        machine: &Arc<Machine>,
        server: &Arc<SimServer>,
        workload: Workload,
        faults: Faults,
        longest_delay: Duration,
        retry_timeout: Duration,
    ) -> Self {
        Self {
            machine: machine.clone(),
            server: server.clone(),
            workload,
            faults,
            calm: false,
            longest_delay,
            retry_timeout,
            crowd: false,
            replicas: 0,
            state: Mutex::default(),
            _counted: Counted::new("world"),
        }
    }

    /// The server loses data now, or its clock is set.
    pub fn lose(&self) {
        let now = self.machine.now();
        self.state.lock().unwrap().lost_at = Some(now);
    }

    pub fn is_wrong(&self) -> bool {
        self.server.judge.violation().is_some() || self.state.lock().unwrap().violation.is_some()
    }

    /// Everybody is done, or something happened that must not.
    pub fn is_over(&self) -> bool {
        self.server.look();
        self.is_wrong() || self.state.lock().unwrap().running.is_empty()
    }

    /// The history is that of the machine, and taken.
    pub fn report(&self) -> Report {
        let mut state = self.state.lock().unwrap();
        Report {
            acquired: state.acquired,
            faults: state.fault_count,
            waived: state.waived,
            violation: state.violation.take().or_else(|| self.server.judge.violation()),
            history: self.machine.take_history(),
        }
    }

    /// How long one question to the server may take: the client's retry timeout, whatever the server does.
    pub fn longest_try(&self) -> Duration {
        let asked = self.retry_timeout;
        // Then the client waits for the replicas, and once more after a grant that was gone.
        let confirmed = self.retry_timeout.max(COMMAND_TIMEOUT) + COMMAND_TIMEOUT;
        if self.replicas > 0 { asked + confirmed + COMMAND_TIMEOUT } else { asked }
    }

    pub fn log(&self, line: impl AsRef<str>) {
        self.machine.log(line);
    }

    pub fn must(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.log(format!("VIOLATION {what}"));
            self.state.lock().unwrap().violation.get_or_insert(what);
        }
    }

    /// Everybody is done: nothing may be left.
    pub fn end(&self, ended: Result<(), Stuck>, lease: Duration) {
        if self.is_wrong() {
            return;
        }
        self.must(ended.is_ok(), || format!("I3 not everybody came to an end: {ended:?}"));
        self.linearizable();
        let quiet = self.machine.run_until(LIMIT + Duration::from_secs(300), || {
            self.server.look();
            self.machine.live().0 == 0
        });
        self.must(quiet.is_ok(), || format!("I7 tasks are left after the last handle is gone: {quiet:?}"));
        let timers = self.machine.live().1;
        self.must(timers == 0, || format!("I7 {timers} timers are left"));
        let listeners = self.server.judge.listeners();
        self.must(listeners.is_empty(), || format!("I7 subscriptions are left: {listeners:?}"));
        if !self.faults.any() {
            let keys = self.server.keys();
            // A latch lives as long as its time to live, its calls until no copy of them can arrive, and a limit for a
            // day.
            let lives_on = |key: &String| key.ends_with('}') || key.ends_with(":calls");
            let outlives = |key: &String| (is_latch(key) || key.starts_with("bowline:sem:")) && lives_on(key);
            let stays = |key: &String| is_memory(key) || outlives(key);
            self.must(keys.iter().all(stays), || format!("I7 keys are left: {keys:?}"));
        }
        // Everything that could not be cleaned up expires.
        let world = self.machine.process(WORLD);
        let longest = lease.max(2000 * MS) + self.server.set_back() + lease / 1000 + 10 * MS;
        world.clone().spawn(Box::pin(async move { world.sleep(longest).await }));
        let _ = self.machine.run_until(Duration::MAX, || self.machine.live().0 == 0);
        let living = self.server.living();
        self.must(living.is_empty(), || format!("I7 left after {longest:?}: {living:?}"));
    }
}
