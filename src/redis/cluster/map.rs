//! The map of slots to masters.

use std::collections::{BTreeMap, HashSet};

use super::host::Host;
use crate::connection::Reply;
use crate::protocol::slot::SLOTS;

pub(super) use self::nodes::Nodes;

mod merge;
mod nodes;

/// The owner of every slot, as nodes report it.
#[derive(Clone)]
pub(super) struct SlotMap {
    /// The masters. Since the map was read, some of them may have lost their last slot.
    masters: Vec<Host>,
    /// The config epoch of each master. `None`: unknown.
    epochs: Vec<Option<u64>>,
    replicas: Vec<Host>,
    /// An index into `masters` for each slot, or [`NONE`].
    owners: Vec<u16>,
    /// The slots whose owner was named by a `MOVED`, with the config epoch of the owner before.
    moved: BTreeMap<u16, Option<u64>>,
}

/// The slot has no owner.
const NONE: u16 = u16::MAX;

impl SlotMap {
    pub(super) fn empty() -> Self {
        let owners = vec![NONE; usize::from(SLOTS)];
        Self { masters: Vec::new(), epochs: Vec::new(), replicas: Vec::new(), owners, moved: BTreeMap::new() }
    }

    /// Reads the answer of the node `answered` to `CLUSTER SLOTS`: lists of a first slot, a last slot, a master and its
    /// replicas. `known` is what the same node says of all nodes. Addresses go through `public`. `None` if the answer
    /// has another form.
    pub(super) fn parse(reply: &Reply, answered: &Host, known: &Nodes, public: impl Fn(Host) -> Host) -> Option<Self> {
        let Reply::Array(ranges) = reply else { return None };
        let mut map = Self::empty();
        for range in ranges {
            let Reply::Array(fields) = range else { return None };
            let [Reply::Integer(first), Reply::Integer(last), nodes @ ..] = &fields[..] else { return None };
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            let (master, replicas) = nodes.split_first()?;
            if let Some(address) = host(master, answered)? {
                let index = map.index_of(public(address))?;
                map.epochs[usize::from(index)] = id(master).and_then(|id| known.epoch(&id));
                map.owners.get_mut(first..=last)?.fill(index);
            }
            for replica in replicas {
                let replica = host(replica, answered)?.map(&public);
                map.replicas.extend(replica.filter(|replica| !map.replicas.contains(replica)));
            }
        }
        Some(map)
    }

    /// The address of the node `answered` in its own answer to `CLUSTER SLOTS`, which may be spelled in another way
    /// than the one at which it was asked. `None` if its id is unknown or has no address.
    pub(super) fn own_address(
        reply: &Reply,
        answered: &Host,
        known: &Nodes,
        public: impl Fn(Host) -> Host,
    ) -> Option<Host> {
        let Reply::Array(ranges) = reply else { return None };
        let nodes = ranges.iter().flat_map(|range| if let Reply::Array(fields) = range { &fields[..] } else { &[] });
        let mut own = nodes.filter(|node| id(node).is_some_and(|id| known.is_own(&id)));
        host(own.next()?, answered)?.map(public)
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&Host> {
        self.masters.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// Records the owner that a `MOVED` named. Returns whether it differs from the map.
    pub(super) fn set(&mut self, slot: u16, owner: &Host) -> bool {
        if self.owner(slot) == Some(owner) {
            return false;
        }
        let before = self.epoch(slot);
        let Some(index) = self.index_of(owner.clone()) else { return false };
        if let Some(place) = self.owners.get_mut(usize::from(slot)) {
            *place = index;
        }
        self.moved.entry(slot).or_insert(before);
        true
    }

    /// The config epoch of the owner of a slot.
    fn epoch(&self, slot: u16) -> Option<u64> {
        *self.epochs.get(usize::from(*self.owners.get(usize::from(slot))?))?
    }

    pub(super) fn is_empty(&self) -> bool {
        self.masters.is_empty()
    }

    pub(super) fn masters(&self) -> &[Host] {
        &self.masters
    }

    /// The first slot of each master that has slots.
    pub(super) fn slot_of_each_master(&self) -> Vec<u16> {
        let mut first = BTreeMap::new();
        for (slot, owner) in (0..SLOTS).zip(&self.owners).filter(|(_, owner)| **owner != NONE) {
            first.entry(*owner).or_insert(slot);
        }
        first.into_values().collect()
    }

    pub(super) fn replicas(&self) -> &[Host] {
        &self.replicas
    }

    /// Whether a slot has another owner in `other`.
    pub(super) fn differs(&self, other: &Self) -> bool {
        (0..SLOTS).any(|slot| self.owner(slot) != other.owner(slot))
    }

    /// Whether a master that serves slots here is not a master in `other`, because its slots were taken over in a
    /// failover.
    pub(super) fn lost_a_master(&self, other: &Self) -> bool {
        let owning: HashSet<u16> = self.owners.iter().copied().filter(|index| *index != NONE).collect();
        owning
            .iter()
            .filter_map(|index| self.masters.get(usize::from(*index)))
            .any(|host| !other.masters.contains(host))
    }

    fn index_of(&mut self, host: Host) -> Option<u16> {
        let index = self.masters.iter().position(|other| *other == host).unwrap_or_else(|| {
            self.masters.push(host);
            self.epochs.push(None);
            self.masters.len() - 1
        });
        u16::try_from(index).ok().filter(|index| *index != NONE)
    }
}

fn id(node: &Reply) -> Option<String> {
    let Reply::Array(fields) = node else { return None };
    let Some(Reply::Bytes(id)) = fields.get(2) else { return None };
    String::from_utf8(id.clone()).ok()
}

/// The address of one node: a name, a port, an id and, from 7.0 on, further names. The outer `None`: the reply has
/// another form. The inner `None`: the node has no usable address.
fn host(node: &Reply, answered: &Host) -> Option<Option<Host>> {
    let Reply::Array(fields) = node else { return None };
    let [name, Reply::Integer(port), rest @ ..] = &fields[..] else { return None };
    let text = |reply: &Reply| match reply {
        Reply::Nil => Some(String::new()),
        Reply::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    let mut name = text(name)?;
    if name == "?" {
        // The server announces names, and this node has none. Its address is in the list of other names.
        let others = rest.iter().find_map(|field| if let Reply::Array(names) = field { Some(names) } else { None });
        let pairs = others.map_or(&[][..], |names| names);
        let address = pairs.chunks_exact(2).find(|pair| text(&pair[0]).as_deref() == Some("ip"));
        let Some(address) = address.and_then(|pair| text(&pair[1])) else { return Some(None) };
        name = address;
    }
    let Some(port) = u16::try_from(*port).ok().filter(|port| *port != 0) else { return Some(None) };
    Some(Some(if name.is_empty() { Host { port, ..answered.clone() } } else { Host::new(&name, port) }))
}

#[cfg(test)]
mod tests;
