//! The slots of a cluster, and how they move from one master to another. Every name has a slot of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::views::{Gossip, first, number};
use super::{Node, Nodes, Shard, State, dump};
use crate::cluster::address;
use crate::judge::view::Dump;

/// Which shard serves which slot.
#[derive(Default)]
pub struct Slots {
    /// Those that have moved; the others are where they were at first.
    pub(super) moved: BTreeMap<String, usize>,
    /// For each slot that has moved: its new master, and the number of the write that stored its last key there.
    arrivals: BTreeMap<String, (Node, u64)>,
    /// Moves now, and to which shard.
    open: Option<(String, usize)>,
    /// Until then no master takes calls.
    pub(super) down: Duration,
    /// Counts the changes of who serves what.
    pub(super) epoch: u64,
    pub(super) gossip: Gossip,
    /// Messages go through shard channels.
    sharded: bool,
}

impl Slots {
    pub fn is_moving(&self) -> bool {
        self.open.is_some()
    }

    /// Forgets what has arrived at this master, which is being replaced and will number its writes anew. Returns the
    /// slots of which a key arrived after that write.
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

impl State {
    fn serves(&self, slot: &str) -> usize {
        let moved = self.slots.as_ref().and_then(|slots| slots.moved.get(slot).copied());
        moved.unwrap_or_else(|| first(slot, self.shards.len()))
    }

    /// The master that has the key.
    pub(super) fn master_with(&self, key: &str) -> Node {
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
            let epoch = state.shards.len() as u64 + 1;
            state.shards.push(Shard { master, followers: Vec::new(), epoch });
        }
        state.slots = Some(Slots { epoch: shards as u64, ..Slots::default() });
        state.nothing_is_new();
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

    pub fn is_master(&self, node: Node) -> bool {
        self.lock().shards.iter().any(|shard| shard.master == node)
    }

    pub fn count(&self) -> usize {
        self.lock().places.len()
    }

    /// Those that are on the bus of the cluster, or the primary.
    pub fn on_the_bus(&self) -> Vec<Node> {
        let state = self.lock();
        if state.slots.is_none() {
            return vec![state.shards[0].master];
        }
        (0..state.places.len()).filter(|node| state.astray.iter().all(|astray| astray.node != *node)).collect()
    }

    /// As every node knows it that is not cut off.
    pub fn map(&self) -> Map {
        let state = self.lock();
        let masters: Vec<Node> = state.shards.iter().map(|shard| shard.master).collect();
        let moved = state.slots.iter().flat_map(|slots| &slots.moved);
        let moved = moved.map(|(slot, shard)| (slot.clone(), masters[*shard])).collect();
        Map { masters, moved }
    }

    /// Since when masters and slots are what they are, and all nodes know it; `None` while a slot moves, a node stands
    /// still or is cut off, or the cluster is down.
    pub fn settled(&self) -> Option<Duration> {
        let state = self.lock();
        let slots = state.slots.as_ref()?;
        let is_calm = slots.open.is_none() && slots.down <= self.machine.now() && state.frozen.is_empty();
        (is_calm && state.astray.is_empty() && state.all_know()).then_some(state.altered.max(slots.down))
    }

    /// What a server says instead of executing a call.
    pub fn redirect(&self, node: Node, keys: &[&str], asking: bool) -> Option<String> {
        let state = self.lock();
        let slots = state.slots.as_ref()?;
        let slot = slot(keys[0]);
        let (owner, known) = (state.serves(slot), state.view(node).owner(slot));
        let moved = |to: Node| format!("MOVED {} {}", number(slot), address(to));
        let ask = |shard: usize| format!("ASK {} {}", number(slot), address(state.shards[shard].master));
        if let Some(astray) = state.astray.iter().find(|astray| astray.node == node) {
            // The node has not heard of the failover.
            return (astray.shard != owner)
                .then(|| moved(if known == node { state.shards[owner].master } else { known }));
        }
        if slots.down > self.machine.now() {
            return Some("CLUSTERDOWN The cluster is down".to_owned());
        }
        let missing = || {
            let has = dump(&state.places[node].server);
            keys.iter().filter(|key| !has.contains_key(**key)).count()
        };
        let later = || Some("TRYAGAIN Multiple keys request during rehashing of slot".to_owned());
        let is = |shard: usize| state.shards[shard].master == node;
        match state.is_open(slot) {
            Some(to) if is(owner) => match missing() {
                0 => None,
                missing if missing == keys.len() => Some(ask(to)),
                _ => later(),
            },
            Some(to) if is(to) && asking => {
                if keys.len() > 1 && missing() > 0 {
                    later()
                } else {
                    None
                }
            }
            _ if is(owner) => None,
            // All keys have gone to another node, and this one has not been told yet that the slot is there.
            _ if known == node => Some(ask(owner)),
            _ => Some(moved(known)),
        }
    }

    /// Whether the slot is moving away from the server.
    pub fn is_leaving(&self, node: Node, slot: &str) -> bool {
        let state = self.lock();
        state.is_open(slot).is_some() && state.shards[state.serves(slot)].master == node
    }

    /// What all masters have, each of its own slots, and of a slot that moves here. A master that a failover has
    /// promoted may still have keys of a slot that moved away before, as in Redis. If that slot moves back, the keys
    /// that its present master has are newer.
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

    /// A slot begins to move. False: another one does, it is there already, or a master does not know that it was
    /// replaced.
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

    /// Whether the master that a slot moves to has keys of it, which it has not got by this move: they were there
    /// before, and a failover has lost their removal.
    pub fn has_old_keys(&self) -> bool {
        let state = self.lock();
        let Some((open, to)) = state.slots.as_ref().and_then(|slots| slots.open.as_ref()) else { return false };
        dump(&state.places[state.shards[*to].master].server).keys().any(|key| slot(key) == open)
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
            state.shards[to].epoch = state.next_epoch();
            if let Some(slots) = &mut state.slots {
                slots.open = None;
                slots.moved.insert(open, to);
            }
            drop(state);
            self.announce(&[to_node]);
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
