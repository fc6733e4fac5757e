//! A run over a cluster, and what happens to its nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use super::{Cluster, SimCluster};
use crate::executor::{Machine, Process, WORLD};
use crate::network::{COMMAND_TIMEOUT, Link};
use crate::nodes::{BUS, Failover};
use crate::random::Random;
use crate::scripts::Scripts;
use crate::server::SimServer;
use crate::world::{Crew, Faults, LIMIT, MS, Report, Workload, World};

/// Faults happen until then; afterwards everybody must come to an end.
const FAULTS_END: Duration = Duration::from_secs(30);

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
        let cluster = Cluster::new(machine, &server, process, (MS / 10, longest));
        clusters.push(cluster.clone());
        let id = Uuid::from_u64_pair(random.next(), random.next() | 1);
        server.judge.introduce(id.to_string(), process, cluster.clone(), longest + BUS);
        machine.set_rate(process, *random.pick(&[-1000, -500, 0, 500, 1000]));
        let seeds = (0..=random.below(5)).map(|_| random.next()).collect();
        let operations = 2 + random.below(8);
        let (connection, names) = (Arc::new(SimCluster(cluster)), names.clone());
        world.start(Crew { process, connection, id, lease, names, seeds, operations }, &started);
    }
    let connected = machine.run_until(LIMIT, || *started.lock().unwrap() == processes);
    world.must(connected.is_ok(), || format!("connecting: {connected:?}"));
    if faults.any() {
        let random = Random::new(random.next());
        let storm = Storm { world: world.clone(), clusters, names, random };
        machine.process(WORLD).spawn(Box::pin(storm.rage()));
    }
    let ended = machine.run_until(LIMIT, || world.is_over());
    world.end(ended, lease);
    world.report()
}

/// What happens to the cluster, and to the ways to its nodes.
struct Storm {
    world: Arc<World>,
    clusters: Vec<Arc<Cluster>>,
    names: Vec<String>,
    random: Random,
}

impl Storm {
    async fn rage(mut self) {
        let machine = self.world.machine.clone();
        let executor = machine.process(WORLD);
        while machine.now() < FAULTS_END && !self.world.is_over() {
            executor.sleep(self.random.between(MS, 400 * MS)).await;
            self.strike();
        }
    }

    fn strike(&mut self) {
        let outage = self.random.between(MS, 1000 * MS);
        let long = self.random.between(10 * MS, 4000 * MS);
        let cluster = self.random.pick(&self.clusters).clone();
        let links = cluster.links();
        let link = Some(&links).filter(|links| !links.is_empty()).map(|links| self.random.pick(links).clone());
        let kinds: &[u64] =
            if self.world.faults.forks { &[0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10] } else { &[0, 1, 2, 3, 8, 8, 9] };
        let kind = *self.random.pick(kinds);
        let what = match kind {
            0 => self.of(link, |link| link.cut(true, false, outage), "is cut"),
            1 => {
                self.inbox(&cluster).cut(false, true, outage);
                format!("messages of {cluster:?} cut for {outage:?}")
            }
            2 => {
                self.inbox(&cluster).lag(long, outage);
                format!("messages of {cluster:?} take {long:?} longer for {outage:?}")
            }
            3 => self.of(link, |link| link.silence(), "has no replies any more"),
            4..=6 => {
                let how = [Failover::Orderly, Failover::Lossy, Failover::Split][kind as usize - 4];
                let told = self.world.server.fail_over(how, self.random.next());
                if how == Failover::Split {
                    self.world.server.heal_after(long);
                }
                format!("a failover: {told}, for {long:?}")
            }
            7 => self.world.server.stall(self.random.next(), long),
            8 => {
                let (slot, to) = (self.random.pick(&self.names).clone(), self.random.below(8) as usize);
                let moves = self.world.server.move_slot(&slot, to, outage / 8);
                format!("slot {slot} moves: {moves}")
            }
            9 => {
                self.world.server.nodes.take_down(outage);
                format!("the cluster is down for {outage:?}")
            }
            _ => self.of(link, |link| link.mute(long), "is half open"),
        };
        self.world.state.lock().unwrap().fault_count += 1;
        self.world.log(format!("-- {what}"));
    }

    /// One of those that carry messages.
    fn inbox(&mut self, cluster: &Cluster) -> Arc<Link> {
        let mut links = cluster.shards();
        if links.is_empty() {
            return cluster.inbox().clone();
        }
        links.push(cluster.inbox().clone());
        self.random.pick(&links).clone()
    }

    fn of(&self, link: Option<Arc<Link>>, fault: impl Fn(&Arc<Link>), what: &str) -> String {
        link.iter().for_each(fault);
        format!("{link:?} {what}")
    }
}
