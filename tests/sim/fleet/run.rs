//! A run of locks on several servers. What happens to one of them must not be noticed at the others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Config, LockGuard};

use super::{Fleet, Number};
use crate::executor::{Machine, Process, WORLD, on_new_machine};
use crate::histories::Planted;
use crate::network::SimConnection;
use crate::random::Random;
use crate::scripts::Scripts;
use crate::world::{Crew, Faults, LIMIT, MS, Report, Workload, World, made};

/// Faults happen until then.
const FAULTS_END: Duration = Duration::from_secs(20);

/// Servers restart and stand still, connections break. Exclusion is waived at a server that has lost its data, there
/// alone.
const FAULTS: Faults = Faults { network: true, freezes: true, losses: true, ..crate::NONE };

pub fn run(seed: u64) -> Report {
    on_new_machine(seed, |machine| run_on(machine, seed, None))
}

fn run_on(machine: &Arc<Machine>, seed: u64, planted: Option<Planted>) -> Report {
    let mut random = Random::new(!seed);
    let longest = *random.pick(&[MS / 2, 2 * MS, 20 * MS]);
    let fleet = Fleet::new(machine, *random.pick(&[3, 5]), (MS / 10, longest), &Scripts::default());
    fleet.clocks_differ(seed, 5000 * MS);
    let retry_timeout = *random.pick(&[500 * MS, 10_000 * MS]);
    let worlds = fleet.servers().iter().map(|server| {
        let world = World::new(machine, server, Workload::Locks, FAULTS, longest, retry_timeout);
        world.state.lock().unwrap().histories.plant(planted);
        Arc::new(world)
    });
    let worlds: Vec<Arc<World>> = worlds.collect();
    let processes = 2 + random.below(2) as Process;
    let lease = *random.pick(&[500 * MS, 3000 * MS, 30_000 * MS]);
    let started = Arc::new(Mutex::new(0));
    for process in 1..=processes {
        machine.set_rate(process, *random.pick(&[-1000, -500, 0, 500, 1000]));
        for (number, world) in worlds.iter().enumerate() {
            let (link, id) = fleet.link(process, number, &mut random);
            let seeds = (0..=random.below(2)).map(|_| random.next()).collect();
            let (names, operations) = (vec!["name 0".to_owned()], 2 + random.below(6));
            let connection = made(Arc::new(SimConnection(link)));
            world.start(Crew { process, connection, id, lease, names, seeds, operations }, &started);
        }
    }
    let clients = processes * worlds.len();
    let connected = machine.run_until(LIMIT, || *started.lock().unwrap() == clients);
    worlds[0].must(connected.is_ok(), || format!("connecting: {connected:?}"));
    let storm = Storm { fleet, worlds: worlds.clone(), random: Random::new(random.next()) };
    machine.process(WORLD).spawn(Box::pin(storm.rage()));
    let ended = machine.run_until(LIMIT, || {
        let over = worlds.iter().filter(|world| world.is_over()).count();
        over == worlds.len() || worlds.iter().any(|world| world.is_wrong())
    });
    worlds[0].must(ended.is_ok(), || format!("I3 not everybody came to an end: {ended:?}"));
    worlds.iter().for_each(|world| world.end(Ok(()), lease));
    let reports: Vec<Report> = worlds.iter().map(|world| world.report()).collect();
    Report {
        acquired: reports.iter().map(|report| report.acquired).sum(),
        faults: reports.iter().map(|report| report.faults).sum(),
        waived: reports.iter().map(|report| report.waived).sum(),
        history: reports.iter().map(|report| &*report.history).collect(),
        violation: reports.into_iter().find_map(|report| report.violation),
    }
}

/// What happens to the servers.
struct Storm {
    fleet: Arc<Fleet>,
    worlds: Vec<Arc<World>>,
    random: Random,
}

impl Storm {
    async fn rage(mut self) {
        let machine = self.worlds[0].machine.clone();
        let executor = machine.process(WORLD);
        while machine.now() < FAULTS_END && self.worlds.iter().any(|world| !world.is_over()) {
            executor.sleep(self.random.between(MS, 400 * MS)).await;
            let number = self.random.below(self.worlds.len() as u64) as Number;
            self.strike(number);
        }
    }

    fn strike(&mut self, number: Number) {
        let outage = self.random.between(MS, 1500 * MS);
        let what = match self.random.below(5) {
            0 => {
                self.fleet.crash(number, outage, true);
                "restarts with its data"
            }
            1 => {
                self.worlds[number].lose();
                self.fleet.crash(number, outage, false);
                "restarts empty"
            }
            2 => {
                self.fleet.cut_off(number, outage);
                "is cut off"
            }
            3 => {
                let by = self.random.between(MS, 500 * MS);
                self.fleet.slow_down(number, by, outage);
                "is slow"
            }
            _ => {
                self.fleet.freeze(number, outage);
                "stands still"
            }
        };
        let world = &self.worlds[number];
        world.state.lock().unwrap().fault_count += 1;
        world.log(format!("-- server {number} {what} for {outage:?}"));
    }
}

/// The histories of each server's locks are looked at.
#[test]
fn planted_mistakes_are_found() {
    for planted in [Planted::Overlap, Planted::StaleToken] {
        let found = on_new_machine(1, |machine| run_on(machine, 1, Some(planted))).violation;
        assert!(found.as_ref().is_some_and(|found| found.starts_with("I15 ")), "{planted:?}: {found:?}");
    }
}

/// One process holds the same name at three servers, and one of them restarts empty: the lease there is lost, no other.
#[test]
fn what_happens_to_one_server_is_not_noticed_at_the_others() {
    on_new_machine(1, |machine| {
        let done = Arc::new(Mutex::new(false));
        let (playing, end) = (machine.clone(), done.clone());
        machine.process(1).spawn(Box::pin(async move {
            let fleet = Fleet::new(&playing, 3, (MS / 10, MS), &Scripts::default());
            let clients = fleet.enter(1, &Config::builder(), &mut Random::new(1)).await;
            let mut guards = Vec::new();
            for client in &clients {
                guards.push(client.lock("name 0").lock().await.unwrap());
            }
            let executor = playing.process(1);
            executor.sleep(500 * MS).await;
            fleet.crash(1, 200 * MS, false);
            executor.sleep(1000 * MS).await;
            let valid: Vec<bool> = guards.iter().map(LockGuard::is_valid).collect();
            assert_eq!(valid, [true, false, true]);
            let ages: Vec<bool> = fleet.servers().iter().map(|server| server.uptime() > 1400 * MS).collect();
            assert_eq!(ages, [true, false, true]);
            assert_eq!(fleet.violation(), None);
            *end.lock().unwrap() = true;
        }));
        machine.run_until(LIMIT, || *done.lock().unwrap()).unwrap();
    });
}
