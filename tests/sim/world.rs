//! One run: its processes, and what must hold all the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config};
use uuid::Uuid;

use crate::actor::Actor;
use crate::census::{Counted, nothing_stays};
use crate::executor::{Machine, Process, Stuck, WORLD};
use crate::judge::view::is_latch;
use crate::network::{COMMAND_TIMEOUT, Link, SimConnection};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::storm::Storm;

mod guards;

pub use guards::{Got, Seen};

pub const MS: Duration = Duration::from_millis(1);

/// No operation of a run may take the world past this.
const LIMIT: Duration = Duration::from_secs(1800);

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
    /// A replica, which is behind, becomes the primary behind the one address, and catches up before. Connections stay where
    /// they are, or break.
    pub failovers: bool,
}

impl Faults {
    pub fn any(self) -> bool {
        self.network || self.freezes || self.crashes || self.losses || self.failovers
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
}

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    pub acquired: u64,
    pub faults: u64,
    /// The first thing that must not happen, if it did.
    pub violation: Option<String>,
    pub history: String,
}

pub struct World {
    pub machine: Arc<Machine>,
    pub server: Arc<SimServer>,
    pub workload: Workload,
    pub faults: Faults,
    /// Nobody gives up, so that every hand-over can be timed.
    pub calm: bool,
    pub longest_delay: Duration,
    /// How long operations try against a server that gives no answer.
    pub retry_timeout: Duration,
    /// Most want the same, and stand in lines.
    pub crowd: bool,
    pub state: Mutex<State>,
    _counted: Counted,
}

#[derive(Default)]
pub struct State {
    /// By the key of who holds it, as the following ones.
    pub guards: HashMap<String, Vec<Seen>>,
    /// The highest token of those that nobody shares.
    pub highest: HashMap<String, u64>,
    /// Holds asked for before this may overlap others: the server lost data, or its clock was set.
    pub lost_at: Option<Duration>,
    /// When the last release of a name was begun, while somebody was known to wait.
    pub released_at: HashMap<String, Duration>,
    pub running: BTreeMap<Process, u64>,
    pub acquired: u64,
    pub fault_count: u64,
    pub violation: Option<String>,
}

pub fn run(seed: u64, workload: Workload, faults: Faults) -> Report {
    run_with(seed, workload, faults, Scripts::default())
}

pub fn run_with(seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    nothing_stays(|| {
        let machine = Machine::new(seed);
        let report = run_on(&machine, seed, workload, faults, scripts);
        machine.end();
        report
    })
}

fn run_on(machine: &Arc<Machine>, seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    let mut random = Random::new(!seed);
    let server = SimServer::new(machine, scripts);
    // Not drawn either, see below.
    if workload == Workload::Latches && seed % 3 == 1 {
        server.tell_one_at_a_time();
    }
    if faults.failovers {
        server.replicate(*random.pick(&[MS / 5, 20 * MS, 300 * MS]));
    }
    let (shortest, longest) = (MS / 10, *random.pick(&[MS / 2, 2 * MS, 20 * MS]));
    let world = Arc::new(World {
        machine: machine.clone(),
        server: server.clone(),
        workload,
        faults,
        calm: !faults.any() && random.one_in(2),
        longest_delay: longest,
        retry_timeout: *random.pick(&[500 * MS, 10_000 * MS]),
        // Not drawn, so that the seeds of the other runs stay what they are.
        crowd: workload == Workload::Permits && seed.is_multiple_of(3),
        state: Mutex::default(),
        _counted: Counted::new("world"),
    });

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
        let (world, names, started) = (world.clone(), names.clone(), started.clone());
        world.state.lock().unwrap().running.insert(process, tasks);
        server.judge.introduce(id.to_string(), process, &link, longest);
        machine.set_rate(process, if clocks_differ { *random.pick(&[-1000, -500, 0, 500, 1000]) } else { 0 });
        let executor = machine.process(process);
        executor.clone().spawn(Box::pin(async move {
            let mut config = Config::builder().lease(lease).retry_timeout(world.retry_timeout).client_id(id);
            if world.crowd {
                config = config.handoff_time(10 * MS);
            }
            let config = config.build().unwrap();
            let client = Client::connect(executor.clone(), Arc::new(SimConnection(link)), config).await.unwrap();
            *started.lock().unwrap() += 1;
            for (number, seed) in seeds.into_iter().enumerate() {
                let actor = Actor {
                    world: world.clone(),
                    process,
                    name: format!("{process}.{number}"),
                    client: client.clone(),
                    executor: executor.clone(),
                    names: names.clone(),
                    random: Random::new(seed),
                };
                executor.spawn(Box::pin(actor.live(operations)));
            }
        }));
    }
    let connected = machine.run_until(LIMIT, || *started.lock().unwrap() == processes);
    world.must(connected.is_ok(), || format!("connecting: {connected:?}"));
    if faults.any() {
        let sets_clock = random.one_in(2);
        let storm =
            Storm { world: world.clone(), links: links.clone(), random: Random::new(random.next()), sets_clock };
        machine.process(WORLD).spawn(Box::pin(storm.rage()));
    }
    let ended = machine.run_until(LIMIT, || {
        server.look();
        if server.judge.violation().is_some() {
            return true;
        }
        let state = world.state.lock().unwrap();
        state.running.is_empty() || state.violation.is_some()
    });
    world.end(ended, lease);

    let mut state = world.state.lock().unwrap();
    Report {
        acquired: state.acquired,
        faults: state.fault_count,
        violation: state.violation.take().or_else(|| server.judge.violation()),
        history: machine.take_history(),
    }
}

impl World {
    /// How long one question to the server may take: tries for as long as the client's retry timeout, and the last of them.
    /// When the server's clock is set, or it stood still, that one may be told that it came too late, and is sent once more.
    pub fn longest_try(&self) -> Duration {
        self.retry_timeout + COMMAND_TIMEOUT * if self.faults.losses || self.faults.freezes { 2 } else { 1 }
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
    fn end(&self, ended: Result<(), Stuck>, lease: Duration) {
        if self.state.lock().unwrap().violation.is_some() || self.server.judge.violation().is_some() {
            return;
        }
        self.must(ended.is_ok(), || format!("I3 not everybody came to an end: {ended:?}"));
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
            // A latch lives as long as it was set to, its calls until no copy of them can come, and a limit for a day.
            let lives_on = |key: &String| key.ends_with('}') || key.ends_with(":calls");
            let outlives = |key: &String| (is_latch(key) || key.starts_with("bowline:sem:")) && lives_on(key);
            let stays = |key: &String| key.ends_with(":fence") || outlives(key);
            self.must(keys.iter().all(stays), || format!("I7 keys are left: {keys:?}"));
        }
        // Whatever could not be cleaned up ends by itself.
        let world = self.machine.process(WORLD);
        let longest = lease.max(2000 * MS) + self.server.set_back() + 10 * MS;
        world.clone().spawn(Box::pin(async move { world.sleep(longest).await }));
        let _ = self.machine.run_until(Duration::MAX, || self.machine.live().0 == 0);
        let living = self.server.living();
        self.must(living.is_empty(), || format!("I7 left after {longest:?}: {living:?}"));
    }
}
