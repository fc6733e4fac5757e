//! A replica becomes the master.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{Astray, Follower, Node, Nodes, Record, dump};
use crate::judge::view::Dump;

/// What becomes of the last writes, and of the old master.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failover {
    /// The replicas catch up before, and the old master follows the new one.
    Orderly,
    /// What is on its way is lost, and the old master follows the new one.
    Lossy,
    /// What is on its way is lost. The old master goes on until it is told: what it does is lost as well.
    Split,
}

/// What the old master had, and what the new one has.
pub struct Fork {
    pub had: Dump,
    pub has: Dump,
    /// The writes that were on their way.
    pub late: usize,
    /// The slots that had moved to the old master and whose keys have not all arrived at the new one. No client has
    /// waited for replicas to acknowledge such a move.
    pub moved: BTreeSet<String>,
}

impl Nodes {
    /// Those who are connected stay where they are. `draw` says which replica. `None` while an old master has not been
    /// told yet.
    pub fn fail_over(self: &Arc<Self>, how: Failover, draw: u64) -> Option<Fork> {
        let mut state = self.lock();
        let at = (draw / 8 % state.shards.len() as u64) as usize;
        let moving = state.slots.as_ref().is_some_and(|slots| slots.is_moving());
        if moving || !state.astray.is_empty() || state.shards[at].followers.is_empty() {
            return None;
        }
        let (old, mut followers) = (state.shards[at].master, std::mem::take(&mut state.shards[at].followers));
        let late = followers.iter().map(|follower| follower.on_the_way.len()).max().unwrap_or(0);
        for follower in &mut followers {
            let records: Vec<Record> = follower.on_the_way.drain(..).collect();
            follower.stalled = Duration::ZERO;
            for record in records.iter().filter(|_| how == Failover::Orderly) {
                state.arrive(follower.node, record);
            }
        }
        let promoted = followers.swap_remove((draw % followers.len() as u64) as usize);
        let new = promoted.node;
        state.places[new].server.refuse_writes(None);
        let arrived = state.places[new].written;
        let moved = state.slots.as_mut().map(|slots| slots.late_arrivals(old, arrived)).unwrap_or_default();
        let fork = Fork { had: dump(&state.places[old].server), has: dump(&state.places[new].server), late, moved };
        state.shards[at].master = new;
        (state.shards[at].epoch, state.altered) = (state.next_epoch(), self.machine.now());
        let mut lag = promoted.lag;
        for follower in followers {
            lag = follower.lag;
            state.follow(at, follower.node, lag);
        }
        if how == Failover::Split {
            state.astray.push(Astray { node: old, shard: at, lag, since: self.machine.now() });
        } else {
            state.follow(at, old, lag);
        }
        drop(state);
        self.announce(&[new, old][..if how == Failover::Split { 1 } else { 2 }]);
        self.arrived.notify(usize::MAX);
        Some(fork)
    }

    /// The master that a failover with this draw replaces.
    pub fn master_of(&self, draw: u64) -> Node {
        let state = self.lock();
        state.shards[(draw / 8 % state.shards.len() as u64) as usize].master
    }

    /// A master that was replaced is told so. What it has done since is lost.
    pub fn heal(self: &Arc<Self>) -> Option<Node> {
        let mut state = self.lock();
        let Astray { node, shard, lag, .. } = state.astray.pop()?;
        state.follow(shard, node, lag);
        state.altered = self.machine.now();
        drop(state);
        self.announce(&[node]);
        self.arrived.notify(usize::MAX);
        Some(node)
    }

    /// Whether the server executes what a newer master knows nothing of.
    pub fn is_astray(&self, node: Node) -> bool {
        self.lock().astray.iter().any(|astray| astray.node == node)
    }
}

impl super::State {
    /// The number of a change of who serves what.
    pub(super) fn next_epoch(&mut self) -> u64 {
        self.slots.as_mut().map_or(0, |slots| {
            slots.epoch += 1;
            slots.epoch
        })
    }

    /// The server becomes a copy of the master, and follows it.
    fn follow(&mut self, at: usize, node: Node, lag: Duration) {
        let master = self.shards[at].master;
        let (wanted, written) = (dump(&self.places[master].server), self.places[master].written);
        let place = &mut self.places[node];
        place.follow(&wanted);
        place.written = written;
        place.demoted += 1;
        let stalled = Duration::ZERO;
        self.shards[at].followers.push(Follower { node, lag, stalled, on_the_way: VecDeque::new() });
    }
}
