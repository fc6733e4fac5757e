//! What each node of a cluster knows of it. A node that is promoted, or to which a slot has moved, knows at once; the
//! others learn it one by one, and say until then what was right before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bowline::Script;
use event_listener::EventListener;

use super::inbox::NAMES;
use super::{Node, Nodes, State};
use crate::cluster::address;
use crate::executor::WORLD;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

/// How long a master that is cut off from the others takes until it says so.
pub const NODE_TIMEOUT: Duration = Duration::from_secs(1);

/// The numbers of the slots that the names have.
static NUMBERS: LazyLock<[u16; NAMES.len()]> = LazyLock::new(|| NAMES.map(number));

/// The number of the slot of this hash tag: CRC-16/XMODEM.
pub fn number(tag: &str) -> u16 {
    let crc = tag.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % SLOTS
}

#[test]
fn the_slots_of_keys_are_those_of_redis() {
    assert_eq!(number("123456789"), 0x31c3 % SLOTS);
}

/// The shard of a slot that has never moved.
pub(super) fn first(slot: &str, shards: usize) -> usize {
    first_of(number(slot), shards)
}

/// The names have slots all over the cluster. The others are in as many runs as there are shards.
fn first_of(number: u16, shards: usize) -> usize {
    let name = NUMBERS.iter().position(|other| *other == number).map(|at| NAMES[at]);
    match name {
        Some(name) => name.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003) % shards,
        None => usize::from(number) * shards / usize::from(SLOTS),
    }
}

/// A cluster as it is at some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    pub shards: Vec<Members>,
    pub moved: BTreeMap<String, usize>,
    /// Grows with each failover, and with each slot that has moved.
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Members {
    pub master: Node,
    pub replicas: Vec<Node>,
    /// The epoch in which the master got what it serves.
    pub epoch: u64,
}

impl View {
    pub fn owner(&self, slot: &str) -> Node {
        let shard = self.moved.get(slot).copied().unwrap_or_else(|| first(slot, self.shards.len()));
        self.shards[shard].master
    }

    /// The shard of every slot.
    pub fn owners(&self) -> Vec<usize> {
        let mut owners: Vec<usize> = (0..SLOTS).map(|number| first_of(number, self.shards.len())).collect();
        for (slot, shard) in &self.moved {
            owners[usize::from(number(slot))] = *shard;
        }
        owners
    }

    pub fn epoch_of(&self, node: Node) -> u64 {
        let shard = self.shards.iter().find(|shard| shard.master == node || shard.replicas.contains(&node));
        shard.map_or(0, |shard| shard.epoch)
    }
}

/// Who knows what.
#[derive(Default)]
pub(super) struct Gossip {
    views: Vec<Arc<View>>,
    /// The number of the view that a node has.
    knows: BTreeMap<Node, usize>,
    /// The largest epoch that a node has heard of. It spreads faster than what has happened in it.
    heard: BTreeMap<Node, u64>,
    /// The longest time until a node has learned of a change.
    longest: Duration,
    /// Nodes that learn nothing any more.
    deaf: BTreeSet<Node>,
    /// The scripts that nodes have.
    scripts: BTreeSet<(Node, &'static str)>,
}

impl Gossip {
    fn newest(&self) -> usize {
        self.views.len().saturating_sub(1)
    }

    fn of(&self, node: Node) -> Arc<View> {
        self.views[self.knows.get(&node).copied().unwrap_or(0)].clone()
    }
}

impl State {
    fn truth(&self) -> View {
        let members = self.shards.iter().map(|shard| Members {
            master: shard.master,
            replicas: shard.followers.iter().map(|follower| follower.node).collect(),
            epoch: shard.epoch,
        });
        let slots = self.slots.as_ref();
        let (moved, epoch) = slots.map(|slots| (slots.moved.clone(), slots.epoch)).unwrap_or_default();
        View { shards: members.collect(), moved, epoch }
    }

    fn gossip(&mut self) -> Option<&mut Gossip> {
        self.slots.as_mut().map(|slots| &mut slots.gossip)
    }

    pub(super) fn view(&self, node: Node) -> Arc<View> {
        self.slots.as_ref().map_or_else(Arc::default, |slots| slots.gossip.of(node))
    }

    /// Everyone knows everything.
    pub(super) fn nothing_is_new(&mut self) {
        let (truth, nodes) = (Arc::new(self.truth()), self.places.len());
        if let Some(gossip) = self.gossip() {
            gossip.views.push(truth.clone());
            let newest = gossip.newest();
            gossip.knows = (0..nodes).map(|node| (node, newest)).collect();
            gossip.heard = (0..nodes).map(|node| (node, truth.epoch)).collect();
        }
    }

    fn is_cut_off(&self, node: Node) -> bool {
        let is_deaf = self.slots.as_ref().is_some_and(|slots| slots.gossip.deaf.contains(&node));
        is_deaf || self.astray.iter().any(|astray| astray.node == node)
    }

    /// Whether all nodes know how the cluster is.
    pub(super) fn all_know(&self) -> bool {
        let gossip = self.slots.as_ref().map(|slots| &slots.gossip);
        gossip.is_none_or(|gossip| gossip.knows.values().all(|known| *known == gossip.newest()))
    }
}

impl Nodes {
    /// From now on it takes up to that long until a node has learned of a change.
    pub fn gossip_takes(&self, longest: Duration) {
        if let Some(gossip) = self.lock().gossip() {
            gossip.longest = longest;
        }
    }

    /// Something has changed. These nodes know at once, and the others learn it one by one.
    pub(super) fn announce(self: &Arc<Self>, witnesses: &[Node]) {
        let mut state = self.lock();
        let (truth, nodes) = (Arc::new(state.truth()), state.places.len());
        let Some(gossip) = state.gossip() else { return };
        gossip.views.push(truth.clone());
        let (newest, longest) = (gossip.newest(), gossip.longest);
        for node in witnesses {
            gossip.knows.insert(*node, newest);
            gossip.heard.insert(*node, truth.epoch);
        }
        drop(state);
        let world = self.machine.process(WORLD);
        for node in (0..nodes).filter(|node| !witnesses.contains(node)) {
            let takes = self.machine.random(|random| random.between(Duration::ZERO, longest));
            let hears = self.machine.random(|random| random.between(Duration::ZERO, takes));
            let (nodes, heard, known) = (self.clone(), world.sleep(hears), world.sleep(takes));
            let epoch = truth.epoch;
            world.spawn(Box::pin(async move {
                heard.await;
                nodes.hear(node, epoch);
                known.await;
                nodes.learn(node, newest);
            }));
        }
        self.arrived.notify(usize::MAX);
    }

    fn hear(&self, node: Node, epoch: u64) {
        let mut state = self.lock();
        if state.is_cut_off(node) {
            return;
        }
        if let Some(gossip) = state.gossip() {
            let heard = gossip.heard.entry(node).or_default();
            *heard = epoch.max(*heard);
        }
    }

    fn learn(&self, node: Node, number: usize) {
        let now = self.machine.now();
        let mut state = self.lock();
        if state.is_cut_off(node) || state.frozen.get(&node).is_some_and(|until| *until > now) {
            return;
        }
        if let Some(gossip) = state.gossip() {
            let known = gossip.knows.entry(node).or_default();
            *known = number.max(*known);
        }
        state.altered = now;
        drop(state);
        self.arrived.notify(usize::MAX);
    }

    /// The node learns all that has happened.
    pub(super) fn catch_up(&self, node: Node) {
        let mut state = self.lock();
        let epoch = state.slots.as_ref().map_or(0, |slots| slots.epoch);
        let Some(newest) = state.gossip().map(|gossip| gossip.newest()) else { return };
        drop(state);
        self.hear(node, epoch);
        self.learn(node, newest);
    }

    /// The node comes back with what it knew at first, and learns nothing any more.
    pub fn forgets(&self, node: Node) {
        if let Some(gossip) = self.lock().gossip() {
            let epoch = gossip.views[0].epoch;
            gossip.knows.insert(node, 0);
            gossip.heard.insert(node, epoch);
            gossip.deaf.insert(node);
        }
    }

    pub fn view(&self, node: Node) -> Arc<View> {
        self.lock().view(node)
    }

    /// The largest epoch that the node has heard of.
    pub fn current_epoch(&self, node: Node) -> u64 {
        self.lock().gossip().and_then(|gossip| gossip.heard.get(&node).copied()).unwrap_or(0)
    }

    /// Notified when a node has learned of a change.
    pub fn learns(&self) -> EventListener {
        self.arrived.listen()
    }

    /// Whether the node says that it serves the slot.
    pub fn takes(&self, node: Node, slot: &str) -> bool {
        self.lock().view(node).owner(slot) == node
    }

    /// Whether the node knows that it is a replica.
    pub fn is_replica(&self, node: Node) -> bool {
        let state = self.lock();
        let is_astray = state.astray.iter().any(|astray| astray.node == node);
        !is_astray && state.shards.iter().all(|shard| shard.master != node)
    }

    /// What the node says of a slot that it does not serve.
    pub fn moved(&self, node: Node, slot: &str) -> String {
        format!("MOVED {} {}", number(slot), address(self.lock().view(node).owner(slot)))
    }

    pub fn has_script(&self, node: Node, script: &'static Script) -> bool {
        self.lock().gossip().is_some_and(|gossip| gossip.scripts.contains(&(node, script.sha1())))
    }

    pub fn keep_script(&self, node: Node, script: &'static Script) {
        if let Some(gossip) = self.lock().gossip() {
            gossip.scripts.insert((node, script.sha1()));
        }
    }

    /// The node stands still for so long. What reaches it is executed afterwards.
    pub fn freeze(self: &Arc<Self>, node: Node, duration: Duration) {
        let (now, mut state) = (self.machine.now(), self.lock());
        state.frozen.insert(node, now + duration);
        drop(state);
        let (nodes, sleep) = (self.clone(), self.machine.process(WORLD).sleep(duration));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            let now = nodes.machine.now();
            nodes.lock().frozen.retain(|_, until| *until > now);
            nodes.catch_up(node);
        }));
    }

    /// For how long the node stands still from now.
    pub fn frozen_for(&self, node: Node) -> Duration {
        let until = self.lock().frozen.get(&node).copied().unwrap_or_default();
        until.saturating_sub(self.machine.now())
    }

    /// Whether the node says that it is a part of a cluster which takes calls. One that is cut off takes a while to
    /// notice.
    pub fn is_up(&self, node: Node) -> bool {
        let (state, now) = (self.lock(), self.machine.now());
        let down = state.slots.as_ref().is_some_and(|slots| slots.down > now);
        let astray = state.astray.iter().find(|astray| astray.node == node);
        !down && astray.is_none_or(|astray| astray.since + NODE_TIMEOUT > now)
    }
}
