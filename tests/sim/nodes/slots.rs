//! The slots of a cluster, and how they move from one master to another. Every name has a slot of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Node, Nodes, Shard, State, dump};
use crate::judge::view::Dump;

/// Which shard serves which slot.
#[derive(Default)]
pub struct Slots {
    /// Those that have moved; the others are where they were at first.
    moved: BTreeMap<String, usize>,
    /// For each slot that has moved: its new master, and the number of the write that stored its last key there.
    arrivals: BTreeMap<String, (Node, u64)>,
    /// Moves now, and to which shard.
    open: Option<(String, usize)>,
    /// Until then no master takes calls.
    down: Duration,
    /// Messages go through shard channels.
    sharded: bool,
}

impl Slots {
    pub fn is_moving(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets what has arrived at this master, which is being replaced and will number its writes anew. Returns the slots of which a
    /// key arrived after that write.
    pub fn late_arrivals(&mut self, master: Node, written: u64) -> BTreeSet<String> {
        let mut late = BTreeSet::new();
        self.arrivals.retain(|slot, (node, number)| {
            if *node == master && *number > written {
                late.insert(slot.clone());
            }
            *node != master
        });
        late
    }
}

/// The masters, and the slots that have moved, as a client learns them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    pub masters: Vec<Node>,
    pub moved: BTreeMap<String, Node>,
}

impl Map {
    pub fn owner(&self, slot: &str) -> Node {
        self.moved.get(slot).copied().unwrap_or_else(|| self.masters[first(slot, self.masters.len())])
    }
}

/// The slot of a key: what stands in its braces.
pub fn slot(key: &str) -> &str {
    key.split(['{', '}']).nth(1).unwrap_or(key)
}

/// The shard of a slot that has never moved.
fn first(slot: &str, shards: usize) -> usize {
    slot.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003) % shards
}

impl State {
    fn serves(&self, slot: &str) -> usize {
        let moved = self.slots.as_ref().and_then(|slots| slots.moved.get(slot).copied());
        moved.unwrap_or_else(|| first(slot, self.shards.len()))
    }

    /// The master that has the key.
    pub(super) fn master_of(&self, key: &str) -> Node {
        let shard = if self.slots.is_some() { self.serves(slot(key)) } else { 0 };
        self.shards[shard].master
    }

    fn is_open(&self, slot: &str) -> Option<usize> {
        self.slots.as_ref()?.open.as_ref().filter(|(open, _)| open == slot).map(|(_, to)| *to)
    }
}

impl Nodes {
    /// From now on these are the masters of a cluster: so many, the first of which has all the data.
    pub fn spread(&self, shards: usize) {
        let mut state = self.lock();
        for _ in 1..shards {
            let place = state.place(&self.machine);
            state.places.push(place);
            let master = state.places.len() - 1;
            state.shards.push(Shard { master, followers: Vec::new() });
        }
        state.slots = Some(Slots::default());
    }

    /// From now on messages are sharded.
    pub fn shard_messages(&self) {
        if let Some(slots) = &mut self.lock().slots {
            slots.sharded = true;
        }
    }

    pub fn is_sharded(&self) -> bool {
        self.lock().slots.as_ref().is_some_and(|slots| slots.sharded)
    }

    /// Until the server knows that it does not serve the slot any more.
    pub async fn left(&self, node: Node, slot: &str) {
        loop {
            let changed = self.arrived.listen();
            if self.map().owner(slot) != node && !self.is_astray(node) {
                return;
            }
            changed.await;
        }
    }

    pub fn is_master(&self, node: Node) -> bool {
        self.lock().shards.iter().any(|shard| shard.master == node)
    }

    pub fn count(&self) -> usize {
        self.lock().places.len()
    }

    /// Whether the server says that it is a part of a cluster which takes calls.
    pub fn is_up(&self, node: Node) -> bool {
        let state = self.lock();
        let down = state.slots.as_ref().is_some_and(|slots| slots.down > self.machine.now());
        !down && state.astray.iter().all(|(astray, ..)| *astray != node)
    }

    /// Those that are on the bus of the cluster, or the primary.
    pub fn on_the_bus(&self) -> Vec<Node> {
        let state = self.lock();
        if state.slots.is_none() {
            return vec![state.shards[0].master];
        }
        (0..state.places.len()).filter(|node| state.astray.iter().all(|(astray, ..)| astray != node)).collect()
    }

    /// As every node knows it that is not cut off.
    pub fn map(&self) -> Map {
        let state = self.lock();
        let masters: Vec<Node> = state.shards.iter().map(|shard| shard.master).collect();
        let moved = state.slots.iter().flat_map(|slots| &slots.moved);
        let moved = moved.map(|(slot, shard)| (slot.clone(), masters[*shard])).collect();
        Map { masters, moved }
    }

    /// Since when masters and slots are what they are; `None` while a slot moves or the cluster is down.
    pub fn settled(&self) -> Option<Duration> {
        let state = self.lock();
        let slots = state.slots.as_ref()?;
        (slots.open.is_none() && slots.down <= self.machine.now()).then_some(state.altered.max(slots.down))
    }

    /// What a server says instead of executing a call.
    pub fn redirect(&self, node: Node, keys: &[&str], asking: bool) -> Option<String> {
        let state = self.lock();
        let slots = state.slots.as_ref()?;
        let slot = slot(keys[0]);
        let owner = state.serves(slot);
        if let Some((_, was, _)) = state.astray.iter().find(|(astray, ..)| *astray == node) {
            // The node has not heard of the move.
            return (*was != owner).then(|| format!("MOVED {slot} {}", state.shards[owner].master));
        }
        if slots.down > self.machine.now() {
            return Some("CLUSTERDOWN The cluster is down".to_owned());
        }
        let has = dump(&state.places[node].server);
        let missing = keys.iter().filter(|key| !has.contains_key(**key)).count();
        let later = || Some("TRYAGAIN Multiple keys request during rehashing of slot".to_owned());
        let is = |shard: usize| state.shards[shard].master == node;
        match state.is_open(slot) {
            Some(_) if is(owner) && missing == 0 => None,
            Some(to) if is(owner) && missing == keys.len() => Some(format!("ASK {slot} {}", state.shards[to].master)),
            Some(_) if is(owner) => later(),
            Some(to) if is(to) && asking => {
                if keys.len() > 1 && missing > 0 {
                    later()
                } else {
                    None
                }
            }
            _ if is(owner) => None,
            _ => Some(format!("MOVED {slot} {}", state.shards[owner].master)),
        }
    }

    /// Whether the slot is moving away from the server.
    pub fn is_leaving(&self, node: Node, slot: &str) -> bool {
        let state = self.lock();
        state.is_open(slot).is_some() && state.shards[state.serves(slot)].master == node
    }

    /// What all masters have, each of its own slots, and of a slot that moves here. A master that a failover has promoted may still have
    /// keys of a slot that moved away before, as in Redis. If that slot moves back, the keys that its present master has are newer.
    pub fn truth(&self) -> Dump {
        let state = self.lock();
        let Some(_) = &state.slots else { return dump(&state.places[state.shards[0].master].server) };
        let (mut all, mut arrived) = (Dump::new(), Dump::new());
        for (at, shard) in state.shards.iter().enumerate() {
            for (key, entry) in dump(&state.places[shard.master].server) {
                if state.serves(slot(&key)) == at {
                    all.insert(key, entry);
                } else if state.is_open(slot(&key)) == Some(at) {
                    arrived.insert(key, entry);
                }
            }
        }
        for (key, entry) in arrived {
            all.entry(key).or_insert(entry);
        }
        all
    }

    /// A slot begins to move. False: another one does, it is there already, or a master does not know that it was replaced.
    pub fn open(&self, slot: &str, to: usize) -> bool {
        let mut state = self.lock();
        let to = to % state.shards.len();
        let here = state.serves(slot) == to;
        let busy = !state.astray.is_empty();
        let now = self.machine.now();
        let Some(slots) = state.slots.as_mut().filter(|slots| slots.open.is_none() && !here && !busy) else {
            return false;
        };
        slots.open = Some((slot.to_owned(), to));
        state.altered = now;
        true
    }

    /// One key of the slot that moves goes to the other master. When none is left, the slot is there.
    pub fn move_key(self: &Arc<Self>, draw: u64) -> bool {
        let mut state = self.lock();
        let Some((open, to)) = state.slots.as_ref().and_then(|slots| slots.open.clone()) else { return false };
        let (from, to_node) = (state.shards[state.serves(&open)].master, state.shards[to].master);
        let all = dump(&state.places[from].server);
        let keys: Vec<_> = all.iter().filter(|(key, _)| slot(key) == open).collect();
        if keys.is_empty() {
            state.altered = self.machine.now();
            if let Some(slots) = &mut state.slots {
                slots.open = None;
                slots.moved.insert(open, to);
            }
            drop(state);
            self.arrived.notify(usize::MAX);
            return false;
        }
        let (key, entry) = keys[(draw % keys.len() as u64) as usize];
        // As `MIGRATE` does it: what is left of the time to live goes along, not when that ends.
        let (sent, received) = (state.places[from].server.now(), state.places[to_node].server.now());
        let mut moved = entry.clone();
        moved.expires = entry.expires.map(|ends| ends + received - sent);
        state.places[to_node].restore(key, Some(&moved));
        state.places[from].restore(key, None);
        drop(state);
        self.changed(from, true);
        self.changed(to_node, true);
        let mut state = self.lock();
        let arrival = (to_node, state.places[to_node].written);
        if let Some(slots) = &mut state.slots {
            slots.arrivals.insert(open, arrival);
        }
        true
    }

    /// For a while every master says that the cluster is down.
    pub fn take_down(&self, duration: Duration) {
        let until = self.machine.now() + duration;
        if let Some(slots) = &mut self.lock().slots {
            slots.down = until;
        }
    }
}
