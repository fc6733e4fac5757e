//! What happens to the nodes of a cluster, and to the ways to them.

use std::sync::Arc;
use std::time::Duration;

use super::Cluster;
use crate::executor::WORLD;
use crate::nodes::{Failover, Node};
use crate::random::Random;
use crate::world::{MS, World};

/// Faults happen until then; afterwards everybody must come to an end.
const FAULTS_END: Duration = Duration::from_secs(30);

pub struct Storm {
    world: Arc<World>,
    clusters: Vec<Arc<Cluster>>,
    names: Vec<String>,
    random: Random,
    /// The longest pause between two faults.
    pause: Duration,
}

impl Storm {
    pub fn new(world: &Arc<World>, clusters: Vec<Arc<Cluster>>, names: Vec<String>, mut random: Random) -> Self {
        let pause = *random.pick(&[400 * MS, 400 * MS, 3000 * MS]);
        Self { world: world.clone(), clusters, names, random, pause }
    }

    pub async fn rage(mut self) {
        let machine = self.world.machine.clone();
        let executor = machine.process(WORLD);
        while machine.now() < FAULTS_END && !self.world.is_over() {
            executor.sleep(self.random.between(MS, self.pause)).await;
            self.strike();
        }
    }

    fn strike(&mut self) {
        let outage = self.random.between(MS, 1000 * MS);
        let long = self.random.between(10 * MS, 4000 * MS);
        let cluster = self.random.pick(&self.clusters).clone();
        let nodes = cluster.reached();
        let node = if nodes.is_empty() { 0 } else { *self.random.pick(&nodes) };
        let draw = self.random.next();
        let kinds: &[u64] = if self.world.faults.forks {
            &[0, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10, 11, 12, 12]
        } else {
            &[0, 1, 2, 3, 8, 8, 9]
        };
        let kind = *self.random.pick(kinds);
        let server = self.world.server.clone();
        let what = match kind {
            0 => {
                cluster.cut(node, outage, draw.is_multiple_of(2));
                format!("{cluster:?} is cut off from node {node} for {outage:?}")
            }
            1 => {
                cluster.cut_messages(draw, outage);
                format!("messages of {cluster:?} cut for {outage:?}")
            }
            2 => {
                cluster.lag_messages(draw, long, outage);
                format!("messages of {cluster:?} take {long:?} longer for {outage:?}")
            }
            3 => {
                cluster.silence(node);
                format!("{cluster:?} has no answers of node {node} any more")
            }
            4..=6 => {
                let how = [Failover::Orderly, Failover::Lossy, Failover::Split][kind as usize - 4];
                let told = server.fail_over(how, draw);
                if how == Failover::Split {
                    server.heal_after(long);
                }
                format!("a failover: {told}, for {long:?}")
            }
            7 => server.stall(draw, long),
            8 => {
                let (slot, to) = (self.random.pick(&self.names).clone(), self.random.below(8) as usize);
                let moves = server.move_slot(&slot, to, outage / 8);
                format!("slot {slot} moves: {moves}")
            }
            9 => {
                server.nodes.take_down(outage);
                format!("the cluster is down for {outage:?}")
            }
            10 => {
                cluster.mute(node, long);
                format!("{cluster:?} and node {node} are half open for {long:?}")
            }
            11 => {
                let node = draw as Node % server.nodes.count();
                server.freeze_node(node, outage);
                format!("node {node} stands still for {outage:?}")
            }
            _ => {
                let told = server.replace_frozen(draw, outage, long, self.random.between(Duration::ZERO, 400 * MS));
                format!("a master stands still and is replaced: {told}")
            }
        };
        self.world.state.lock().unwrap().fault_count += 1;
        self.world.log(format!("-- {what}"));
    }
}
