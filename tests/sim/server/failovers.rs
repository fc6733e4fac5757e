//! What becomes of the servers behind the address: replicas, failovers, masters that do not know that they were
//! replaced.

use std::sync::Arc;
use std::time::Duration;

use super::SimServer;
use crate::executor::WORLD;
use crate::nodes::{Failover, Node};

impl SimServer {
    /// From now on every master has one replica more, which is as far behind.
    pub fn replicate(&self, lag: Duration) {
        self.nodes.replicate(lag);
        self.note_listeners();
    }

    /// From now on this is a cluster of so many masters.
    pub fn spread(&self, shards: usize) {
        self.nodes.spread(shards);
        self.judge.tells_everyone();
        self.note_listeners();
    }

    /// From now on messages of the cluster go through shard channels.
    pub fn shard_messages(&self) {
        self.nodes.shard_messages();
        self.judge.shards_messages();
    }

    fn note_listeners(&self) {
        self.listening.lock().unwrap().moved(&self.judge, &self.nodes);
    }

    /// A slot moves to another master, key by key, with pauses. False: something is in its way.
    pub fn move_slot(self: &Arc<Self>, slot: &str, to: usize, longest: Duration) -> bool {
        if !self.nodes.open(slot, to) {
            return false;
        }
        if self.nodes.has_old_keys() {
            // The list of a queue may be among them without the set, or the other way round.
            *self.evicted.lock().unwrap() = true;
            self.judge.damaged(&self.dump(), &self.clock());
        }
        let (server, world) = (self.clone(), self.machine.process(WORLD));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            loop {
                let (pause, draw) =
                    server.machine.random(|random| (random.between(Duration::ZERO, longest), random.next()));
                world.sleep(pause).await;
                if !server.move_key(draw) {
                    return server.machine.log("-- the slot has moved");
                }
            }
        }));
        true
    }

    /// One key of the slot that moves goes to the other master. False: none is left, and the slot is there.
    pub fn move_key(&self, draw: u64) -> bool {
        let more = self.nodes.move_key(draw);
        if !more {
            self.note_listeners();
        }
        more
    }

    /// For a while, nothing arrives at one of the replicas.
    pub fn stall(&self, draw: u64, duration: Duration) -> String {
        format!("nothing arrives at replica {:?} for {duration:?}", self.nodes.stall(draw, duration))
    }

    /// A replica becomes the primary; `draw` says which. Who is connected stays where he is. Says what has become of
    /// the last writes.
    pub fn fail_over(&self, how: Failover, draw: u64) -> String {
        self.judge.look(&self.clock());
        let Some(fork) = self.nodes.fail_over(how, draw) else { return "none".to_owned() };
        self.note_listeners();
        if let Some((line, _)) = &*self.refusal.lock().unwrap() {
            self.nodes.server().refuse_writes(Some(line));
        }
        if how != Failover::Orderly {
            self.judge.forked(&fork);
            // Of a queue that had moved, only the list or only the set may have arrived.
            *self.evicted.lock().unwrap() |= !fork.moved.is_empty();
            self.judge.damaged(&self.dump(), &self.clock());
        }
        let what = match how {
            Failover::Orderly => "arrive before",
            Failover::Lossy => "are lost",
            Failover::Split => "are lost, and the old master goes on",
        };
        format!("{} writes {what}", fork.late)
    }

    /// A node stands still for so long. What reaches it is executed afterwards.
    pub fn freeze_node(&self, node: Node, duration: Duration) {
        self.judge.look(&self.clock());
        self.judge.server_stands_still(self.machine.now() + duration);
        self.nodes.freeze(node, duration);
    }

    /// A master stands still, and is replaced after `replaced`. Later it goes on, executes what has reached it, and
    /// learns after `told` that it is a replica. Says which one it is.
    pub fn replace_frozen(self: &Arc<Self>, draw: u64, replaced: Duration, frozen: Duration, told: Duration) -> String {
        let node = self.nodes.master_of(draw);
        let frozen = frozen.max(replaced);
        self.freeze_node(node, frozen);
        let (server, world) = (self.clone(), self.machine.process(WORLD));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(replaced).await;
            let promoted = server.fail_over(Failover::Split, draw);
            server.machine.log(format!("-- node {node} is replaced: {promoted}"));
            if promoted != "none" {
                server.heal_after(frozen - replaced + told);
            }
        }));
        format!("node {node}, after {replaced:?}, for {frozen:?}, told {told:?} later")
    }

    /// After that time a master that was replaced is told so.
    pub fn heal_after(self: &Arc<Self>, duration: Duration) {
        let (server, sleep) = (self.clone(), self.machine.process(WORLD).sleep(duration));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            if let Some(node) = server.nodes.heal() {
                server.note_listeners();
                server.machine.log(format!("-- server {node} follows the new master"));
            }
        }));
    }
}
