//! A run of `RedLock` over several servers. Crashes, restarts and partitions of a minority of them, and of a majority
//! for a while, neither grant a lock twice nor let tokens go back. Nothing is waived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::embedded::Content;
use bowline::wire::{PREFIX, Resource};
use bowline::{Config, ErrorKind, LockGuard, RedLock};

use crate::actor::GiveUp;
use crate::executor::{Machine, Process, WORLD, on_new_machine};
use crate::fleet::{Fleet, Number};
use crate::histories::{Histories, Planted};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::world::{LIMIT, MS, Report};

mod task;

use task::Task;

/// Faults happen until then.
const FAULTS_END: Duration = Duration::from_secs(20);

/// What the processes have, and what must hold of it.
pub struct Ring {
    machine: Arc<Machine>,
    fleet: Arc<Fleet>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    guards: Vec<Seen>,
    /// By name.
    highest: HashMap<String, u64>,
    histories: Histories<LockGuard, Process>,
    connected: Process,
    /// Tasks that are not done.
    running: u64,
    acquired: u64,
    faults: u64,
    violation: Option<String>,
}

struct Seen {
    process: Process,
    name: String,
    guard: Arc<LockGuard>,
}

impl Ring {
    fn must(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.machine.log(format!("VIOLATION {what}"));
            self.state.lock().unwrap().violation.get_or_insert(what);
        }
    }

    /// A guard was given out, which was asked for at that time.
    fn acquired(&self, process: Process, name: &str, started: Duration, guard: &Arc<LockGuard>) {
        let token = guard.token().get();
        let votes = self.votes(name, token, started);
        let (other, highest) = {
            let mut state = self.state.lock().unwrap();
            state.acquired += 1;
            let mut others = state.guards.iter().filter(|seen| seen.name == name && seen.guard.is_valid());
            let other =
                others.next().map(|seen| format!("process {} until +{:?}", seen.process, seen.guard.remaining()));
            let now = self.machine.now();
            state.histories.remember(name, guard, process, started, now);
            let highest = state.highest.insert(name.to_owned(), token).unwrap_or(0);
            state.guards.push(Seen { process, name: name.to_owned(), guard: guard.clone() });
            (other.filter(|_| guard.is_valid()), highest)
        };
        self.must(other.is_none(), || format!("I1 {name}: process {process} has it, and so has {other:?}"));
        self.must(token > highest, || format!("I2 {name}: token {token} after {highest}"));
        let all = self.fleet.servers().len();
        self.must(2 * votes > all || !guard.is_valid(), || format!("I1 {name}: {votes} of {all} masters have voted"));
    }

    fn gone(&self, name: &str, guard: &Arc<LockGuard>) {
        let mut state = self.state.lock().unwrap();
        state.guards.retain(|seen| !Arc::ptr_eq(&seen.guard, guard));
        state.histories.ends(name, guard, self.machine.now());
    }

    /// How many masters have accepted the token, or may have lost since then that they had.
    fn votes(&self, name: &str, token: u64, since: Duration) -> usize {
        let (vote, token) = (Resource::vote(PREFIX, name).unwrap(), token.to_string().into_bytes());
        let has = |server: &Arc<crate::server::SimServer>| {
            let voted = server.entry(vote.main()).is_some_and(|entry| match entry.content {
                Content::Hash(fields) => fields.iter().any(|(_, vote)| *vote == token),
                _ => false,
            });
            voted || self.machine.now().saturating_sub(server.uptime()) >= since
        };
        self.fleet.servers().iter().filter(|server| has(server)).count()
    }

    /// Everybody is done: nothing is left but what ends by itself, and that after at most one lease.
    fn end(&self, lease: Duration) {
        if self.state.lock().unwrap().violation.is_some() || self.fleet.violation().is_some() {
            return;
        }
        let histories = std::mem::take(&mut self.state.lock().unwrap().histories);
        if let Err(error) = histories.check(|_, _| false) {
            self.must(false, || error);
        }
        let quiet = self.machine.run_until(LIMIT + Duration::from_secs(300), || self.machine.live().0 == 0);
        self.must(quiet.is_ok(), || format!("I7 tasks are left after the last handle is gone: {quiet:?}"));
        let world = self.machine.process(WORLD);
        world.clone().spawn(Box::pin(async move { world.sleep(lease + 10 * MS).await }));
        let _ = self.machine.run_until(Duration::MAX, || self.machine.live().0 == 0);
        for (number, server) in self.fleet.servers().iter().enumerate() {
            let held = |key: &String| key.ends_with('}');
            let left: Vec<String> = server.keys().into_iter().filter(held).collect();
            self.must(left.is_empty(), || format!("I7 left at master {number} after {lease:?}: {left:?}"));
        }
    }
}

pub fn run(seed: u64) -> Report {
    on_new_machine(seed, |machine| run_on(machine, seed, None))
}

fn run_on(machine: &Arc<Machine>, seed: u64, planted: Option<Planted>) -> Report {
    let mut random = Random::new(!seed);
    let longest = *random.pick(&[MS / 2, 2 * MS, 10 * MS]);
    let fleet = Fleet::new(machine, *random.pick(&[3, 3, 5]), (MS / 10, longest), &Scripts::default());
    let ring = Arc::new(Ring { machine: machine.clone(), fleet: fleet.clone(), state: Mutex::default() });
    ring.state.lock().unwrap().histories.plant(planted);
    let lease = *random.pick(&[1000 * MS, 3000 * MS]);
    // They must agree to well within a tenth of the longest lease.
    fleet.clocks_differ(seed, lease / 20);
    let processes = 2 + random.below(3) as Process;
    let names: Vec<String> = (0..=random.below(2)).map(|n| format!("red {n}")).collect();
    for process in 1..=processes {
        machine.set_rate(process, *random.pick(&[-1000, -500, 0, 500, 1000]));
        let tasks = 1 + random.below(3);
        ring.state.lock().unwrap().running += tasks;
        let (ring, fleet, names, mut random) = (ring.clone(), fleet.clone(), names.clone(), Random::new(random.next()));
        let executor = machine.process(process);
        executor.clone().spawn(Box::pin(async move {
            let config = Config::builder().lease(lease).retry_timeout(2000 * MS);
            let clients = fleet.enter(process, &config, &mut random).await;
            let lock = RedLock::builder(clients).node_timeout(100 * MS).longest_lease(lease).build().unwrap();
            ring.state.lock().unwrap().connected += 1;
            for number in 0..tasks {
                let task = Task {
                    ring: ring.clone(),
                    process,
                    name: format!("{process}.{number}"),
                    lock: lock.clone(),
                    executor: executor.clone(),
                    names: names.clone(),
                    random: Random::new(random.next()),
                };
                executor.spawn(Box::pin(task.live(2 + random.below(6))));
            }
        }));
    }
    let connected = machine.run_until(LIMIT, || ring.state.lock().unwrap().connected == processes);
    ring.must(connected.is_ok(), || format!("connecting: {connected:?}"));
    let storm = Storm { ring: ring.clone(), random: Random::new(random.next()), processes };
    machine.process(WORLD).spawn(Box::pin(storm.rage()));
    let ended = machine.run_until(LIMIT, || {
        let wrong = fleet.violation().is_some();
        let state = ring.state.lock().unwrap();
        state.running == 0 || state.violation.is_some() || wrong
    });
    ring.must(ended.is_ok(), || format!("I3 not everybody came to an end: {ended:?}"));
    ring.end(lease);
    let mut state = ring.state.lock().unwrap();
    Report {
        acquired: state.acquired,
        faults: state.faults,
        waived: 0,
        violation: state.violation.take().or_else(|| fleet.violation()),
        history: machine.take_history(),
    }
}

/// What happens to the servers and the processes.
struct Storm {
    ring: Arc<Ring>,
    random: Random,
    processes: Process,
}

impl Storm {
    async fn rage(mut self) {
        let machine = self.ring.machine.clone();
        let executor = machine.process(WORLD);
        while machine.now() < FAULTS_END && self.ring.state.lock().unwrap().running > 0 {
            executor.sleep(self.random.between(10 * MS, 600 * MS)).await;
            self.strike();
        }
    }

    fn strike(&mut self) {
        let fleet = self.ring.fleet.clone();
        let number = self.random.below(fleet.servers().len() as u64) as Number;
        let outage = self.random.between(MS, 1500 * MS);
        let what = match self.random.below(7) {
            0 => {
                fleet.crash(number, outage, true);
                format!("master {number} restarts with its data")
            }
            1 | 2 => {
                fleet.crash(number, outage, false);
                format!("master {number} restarts empty")
            }
            3 => {
                fleet.cut_off(number, outage);
                format!("master {number} is cut off")
            }
            4 => {
                let by = self.random.between(MS, 300 * MS);
                fleet.slow_down(number, by, outage);
                format!("master {number} is slow")
            }
            5 => {
                fleet.freeze(number, outage);
                format!("master {number} stands still")
            }
            _ => {
                let process = 1 + self.random.below(self.processes as u64) as Process;
                self.ring.machine.freeze(process, outage);
                format!("process {process} stands still")
            }
        };
        self.ring.state.lock().unwrap().faults += 1;
        self.ring.machine.log(format!("-- {what} for {outage:?}"));
    }
}

/// Whether an operation may fail like that.
fn is_expected(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::TimedOut | ErrorKind::Unavailable | ErrorKind::Lost)
}

/// The histories of the locks are looked at.
#[test]
fn planted_mistakes_are_found() {
    for planted in [Planted::Overlap, Planted::StaleToken] {
        let found = on_new_machine(1, |machine| run_on(machine, 1, Some(planted))).violation;
        assert!(found.as_ref().is_some_and(|found| found.starts_with("I15 ")), "{planted:?}: {found:?}");
    }
}
