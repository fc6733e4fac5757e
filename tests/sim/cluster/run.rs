//! A run over a cluster.

use std::sync::{Arc, Mutex};

use uuid::Uuid;

use super::storm::Storm;
use super::{Cluster, connect};
use crate::executor::{Machine, Process, WORLD};
use crate::network::COMMAND_TIMEOUT;
use crate::nodes::BUS;
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::world::{Crew, Faults, LIMIT, MS, Report, Workload, World};

pub fn run_on(machine: &Arc<Machine>, seed: u64, workload: Workload, faults: Faults, scripts: Scripts) -> Report {
    let mut random = Random::new(!seed);
    let server = SimServer::new(machine, scripts);
    server.nodes.clocks_differ(seed);
    server.spread(2 + random.below(2) as usize);
    if faults.sharded {
        server.shard_messages();
    }
    let replicas = if faults.forks { 1 + random.below(2) as u32 } else { 0 };
    (0..replicas).for_each(|_| server.replicate(*random.pick(&[MS / 5, 20 * MS, 300 * MS])));
    let longest = *random.pick(&[MS / 2, 2 * MS, 20 * MS]);
    let retry_timeout = *random.pick(&[500 * MS, 10_000 * MS]);
    let calm = !faults.any() && random.one_in(2);
    server.nodes.gossip_takes(*random.pick(&[MS, 50 * MS, 800 * MS]));
    let mut world = World::new(machine, &server, workload, faults, longest + BUS, retry_timeout);
    let replicas = if faults.acknowledged { replicas } else { 0 };
    if replicas > 0 {
        server.judge.waits_for_replicas(COMMAND_TIMEOUT);
    }
    (world.calm, world.replicas) = (calm, replicas);
    let world = Arc::new(world);
    let processes = 1 + random.below(3) as Process;
    let names: Vec<String> = (0..=1 + random.below(3)).map(|n| format!("name {n}")).collect();
    let lease = *random.pick(&[500 * MS, 3000 * MS, 30_000 * MS]);
    let started = Arc::new(Mutex::new(0));
    let mut clusters = Vec::new();
    for process in 1..=processes {
        let cluster = Cluster::new(machine, &server, process, (MS / 10, longest), random.next());
        clusters.push(cluster.clone());
        let id = Uuid::from_u64_pair(random.next(), random.next() | 1);
        server.judge.introduce(id.to_string(), process, cluster.clone(), longest + BUS);
        machine.set_rate(process, *random.pick(&[-1000, -500, 0, 500, 1000]));
        let seeds = (0..=random.below(5)).map(|_| random.next()).collect();
        let operations = 2 + random.below(8);
        let (executor, names) = (machine.process(process), names.clone());
        let connection: crate::world::Connecting =
            Box::new(move |config| Box::pin(async move { Arc::new(connect(cluster, executor, config).await) as _ }));
        world.start(Crew { process, connection, id, lease, names, seeds, operations }, &started);
    }
    let connected = machine.run_until(LIMIT, || *started.lock().unwrap() == processes);
    world.must(connected.is_ok(), || format!("connecting: {connected:?}"));
    if faults.any() {
        let storm = Storm::new(&world, clusters, names, Random::new(random.next()));
        machine.process(WORLD).spawn(Box::pin(storm.rage()));
    }
    let ended = machine.run_until(LIMIT, || world.is_over());
    world.end(ended, lease);
    world.report()
}

/// A run of one process that takes a lock and releases it.
#[test]
fn the_router_of_the_library_takes_a_lock_over_simulated_sockets() {
    let faults = Faults { cluster: true, ..crate::NONE };
    let report = crate::world::run(1, Workload::Locks, faults);
    assert_eq!(report.violation, None, "{}", report.history);
    assert!(report.acquired > 0);
    assert_eq!(report.history, crate::world::run(1, Workload::Locks, faults).history, "a seed repeats");
}
