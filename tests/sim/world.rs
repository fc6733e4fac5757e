//! One run: its processes, and what must hold all the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config};
use uuid::Uuid;

use crate::actor::Actor;
use crate::executor::{Machine, Process, Stuck, WORLD};
use crate::guard::{Guard, What};
use crate::judge::Known;
use crate::judge::view::{WRITE, is_latch};
use crate::network::{COMMAND_TIMEOUT, Link, SimConnection};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::storm::Storm;

pub const MS: Duration = Duration::from_millis(1);

/// No operation of a run may take the world past this.
const LIMIT: Duration = Duration::from_secs(1800);

/// Which faults a run may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Connections break, requests and replies are lost or late, messages are lost.
    pub network: bool,
    /// Processes and the server stand still for a while.
    pub freezes: bool,
    /// Processes die.
    pub crashes: bool,
    /// The server loses everything, or one key, or its clock is set. Exclusion is waived for holds granted before.
    pub losses: bool,
}

impl Faults {
    pub fn any(self) -> bool {
        self.network || self.freezes || self.crashes || self.losses
    }
}

/// What the processes of a run use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    Locks,
    /// Semaphores and read-write locks.
    Permits,
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
    pub patience: Duration,
    /// Most want the same, and stand in lines.
    pub crowd: bool,
    pub state: Mutex<State>,
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

/// A guard that somebody has.
pub struct Seen {
    pub process: Process,
    pub started: Duration,
    pub guard: Arc<Guard>,
    pub got: Got,
}

/// How somebody came to a guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Got {
    Granted,
    /// A writer that goes on as a reader, or what could not be changed.
    Kept,
    /// The hold, with that many units, is another guard's too.
    Entered {
        units: u64,
    },
}

pub fn run(seed: u64, workload: Workload, faults: Faults) -> Report {
    run_with(seed, workload, faults, Scripts::default())
}

pub fn run_with(seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    let machine = Machine::new(seed);
    let mut random = Random::new(!seed);
    let server = SimServer::new(&machine, scripts);
    let (shortest, longest) = (MS / 10, *random.pick(&[MS / 2, 2 * MS, 20 * MS]));
    let world = Arc::new(World {
        machine: machine.clone(),
        server: server.clone(),
        workload,
        faults,
        calm: !faults.any() && random.one_in(2),
        longest_delay: longest,
        patience: *random.pick(&[500 * MS, 10_000 * MS]),
        // Not drawn, so that the seeds of the other runs stay what they are.
        crowd: workload == Workload::Permits && seed.is_multiple_of(3),
        state: Mutex::default(),
    });

    let processes = 1 + random.below(4) as Process;
    let names: Vec<String> = (0..=random.below(3)).map(|n| format!("name {n}")).collect();
    let lease = *random.pick(&[500 * MS, 3000 * MS, 30_000 * MS]);
    let mut links = Vec::new();
    let started = Arc::new(Mutex::new(0));
    let clocks_differ = faults.any() || random.one_in(2);
    for process in 1..=processes {
        let link = Link::new(&machine, server.clone(), process, shortest, longest);
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
            let mut config = Config::builder().lease(lease).patience(world.patience).client_id(id);
            if world.crowd {
                config = config.line_time(10 * MS);
            }
            let config = config.build().unwrap();
            let client = Client::new(executor.clone(), Arc::new(SimConnection(link)), config).await.unwrap();
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
    /// How long one question to the server may take: tries for as long as the client's patience, and the last of them.
    /// When the server's clock is set, or it stood still, that one may be told that it came too late, and is sent once more.
    pub fn longest_try(&self) -> Duration {
        self.patience + COMMAND_TIMEOUT * if self.faults.losses || self.faults.freezes { 2 } else { 1 }
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
            // A latch lives as long as it was set to, and a limit for a day.
            let outlives = |key: &String| (is_latch(key) || key.starts_with("bowline:sem:")) && key.ends_with('}');
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

    /// A guard was given out.
    pub fn acquired(&self, actor: &Actor, name: &str, started: Duration, guard: &Arc<Guard>, got: Got) {
        let now = self.machine.now();
        let key = guard.what().key(name);
        let mut seen = Seen { process: actor.process, started, guard: guard.clone(), got };
        let client = actor.client.id().to_string();
        // Readers do not line up; unless they are inside a writer, who may.
        let known = seen.known(&key, &client);
        let asked = self.server.judge.asked(&known).filter(|_| guard.what() != What::Read || known.units == WRITE);
        let started = asked.map_or(started, |asked| asked.min(started));
        seen.started = started;
        self.server.judge.delivered(&seen.known(&key, &client));
        self.backed(&key, &client, &seen);
        let most = self.server.judge.most(&key, started);
        let broken = {
            let mut state = self.state.lock().unwrap();
            state.acquired += 1;
            let broken = state.overlaps(&key, &seen, most).or_else(|| state.token(&key, &seen));
            state.guards.entry(key.clone()).or_default().push(seen);
            let released = if got == Got::Granted { state.released_at.remove(&key) } else { None };
            let bound = 2 * self.longest_delay + MS / 10;
            let late = released.map(|released| now - released).filter(|took| *took > bound);
            broken.or_else(|| Some(format!("I3 {key}: handed over after {:?}, not {bound:?}", late?)))
        };
        if let Some(broken) = broken {
            self.must(false, || broken);
        }
    }

    /// I1, whether anybody else comes or not: a guard never counts on more than the server has left of its lease.
    fn backed(&self, key: &str, client: &str, seen: &Seen) {
        let Seen { process, started, guard, .. } = seen;
        if self.state.lock().unwrap().waived(*started) {
            return;
        }
        let counted = self.machine.takes(*process, guard.remaining());
        let left = self.server.left(&seen.known(key, client));
        // In its last millisecond a key still exists.
        let backed = counted.is_zero() || counted <= left + MS;
        self.must(backed, || format!("I1 {key}: process {process} counts on {counted:?}, and the server on {left:?}"));
    }

    /// The last guard of a hold goes: whoever waits now gets the lock within two messages. So it is with permits if
    /// nobody else has any.
    pub fn handing_over(&self, key: &str) {
        if self.calm && self.server.queued(key) > 0 {
            let mut state = self.state.lock().unwrap();
            if state.guards.get(key).is_none_or(Vec::is_empty) {
                state.released_at.insert(key.to_owned(), self.machine.now());
            }
        }
    }

    /// The guard goes.
    pub fn gone(&self, actor: &Actor, name: &str, guard: &Arc<Guard>) {
        let key = guard.what().key(name);
        let gone = {
            let mut state = self.state.lock().unwrap();
            let seen = state.guards.entry(key.clone()).or_default();
            seen.iter().position(|seen| Arc::ptr_eq(&seen.guard, guard)).map(|at| seen.remove(at))
        };
        if let Some(seen) = gone {
            self.backed(&key, &actor.client.id().to_string(), &seen);
        }
    }
}

impl State {
    /// What was asked for before data was lost may overlap with others.
    fn waived(&self, since: Duration) -> bool {
        self.lost_at.is_some_and(|lost| since <= lost)
    }

    /// I1, I5, I6: valid guards have no more together than there was at most since the last of them was asked for.
    fn overlaps(&self, key: &str, new: &Seen, most: u64) -> Option<String> {
        if !new.guard.is_valid() || matches!(new.got, Got::Entered { .. }) || self.waived(new.started) {
            return None;
        }
        let others = self.guards.get(key).into_iter().flatten();
        let counts = |seen: &&Seen| seen.guard.is_valid() && !matches!(seen.got, Got::Entered { .. });
        let others: Vec<&Seen> = others.filter(counts).filter(|seen| !self.waived(seen.started)).collect();
        let used: u64 = others.iter().map(|seen| seen.guard.units()).sum();
        if used + new.guard.units() <= most {
            return None;
        }
        let invariant = match new.guard.what() {
            What::Lock => "I1",
            What::Read | What::Write => "I6",
            What::Permits(_) => "I5",
        };
        let others: Vec<_> = others.iter().map(|seen| seen.tell()).collect();
        Some(format!("{invariant} {key}: {}, and {others:?} are valid", new.tell()))
    }

    /// I2. Readers share the token of the last writer.
    fn token(&mut self, key: &str, new: &Seen) -> Option<String> {
        let (token, highest) = (new.guard.token(), self.highest.get(key).copied().unwrap_or(0));
        if new.got != Got::Granted || matches!(new.guard.what(), What::Permits(_)) {
            return None;
        }
        let reads = new.guard.what() == What::Read;
        if !reads {
            self.highest.insert(key.to_owned(), highest.max(token));
        }
        let right = if reads { token >= highest } else { token > highest };
        (!right && !self.waived(new.started)).then(|| format!("I2 {key}: token {token} after {highest}"))
    }
}

impl Seen {
    fn known<'a>(&self, key: &'a str, client: &'a str) -> Known<'a> {
        let units = match self.got {
            Got::Entered { units } => units,
            Got::Granted | Got::Kept => self.guard.units(),
        };
        Known { key, client, units, token: self.guard.token(), is_new: self.got == Got::Granted }
    }

    fn tell(&self) -> String {
        let Self { process, guard, .. } = self;
        format!("process {process} has {:?} token {} until +{:?}", guard.what(), guard.token(), guard.remaining())
    }
}
