//! How one reading of the map combines the views of several nodes. Pure.
//!
//! | a view | what follows |
//! |---|---|
//! | with something newer than what is known | the reading ends with it, if its node accepts calls |
//! | with nothing newer, and nothing older | the reading ends after [`AGREE`] of them, or a majority of the masters if that is less |
//! | with something older | is left out, unless a majority of the masters that it names report the same: the cluster was made anew |
//!
//! A node that accepts no calls is cut off from the others. What is newer in its view counts all the same, but other
//! nodes may know more. A node counts once, even if it was asked at two addresses, and a node in doubt does not count:
//! it may have been replaced without knowing it. It may still confirm the late answer of another node: after a pause of
//! the client itself, all nodes are in doubt.

use super::host::Host;
use super::map::SlotMap;
use crate::mutant::{self, Mutant};

/// The most nodes that have to agree that nothing has changed. One of them may not have heard of a change.
const AGREE: usize = 3;

/// What one node has reported.
pub(super) struct Heard {
    pub(super) host: Host,
    pub(super) map: SlotMap,
    /// Whether the node accepts calls. A node that is cut off from the others does not.
    pub(super) up: bool,
    /// The current epoch of the cluster. It decides only if the config epochs are unknown, because the user lacks a
    /// right.
    pub(super) epoch: u64,
}

/// The views of one reading.
pub(super) struct Choice {
    /// The known map with what is newer in the views.
    pub(super) map: SlotMap,
    /// Whether the map replaces the known one, although it is older.
    pub(super) anew: bool,
    /// The nodes that accept calls.
    pub(super) up: Vec<Host>,
    /// Whether one of the views was not older than what is known.
    accepted: bool,
    enough: usize,
    agree: usize,
    /// The views with something older, from nodes that accept calls.
    older: Vec<(Host, SlotMap)>,
    /// The best view without config epochs that was not accepted.
    fallback: Option<(bool, u64, SlotMap)>,
    /// The nodes in doubt.
    doubted: Vec<Host>,
}

impl Choice {
    pub(super) fn new(known: &SlotMap, doubted: Vec<Host>) -> Self {
        let masters = known.masters().len();
        Self {
            map: known.clone(),
            anew: false,
            up: Vec::new(),
            accepted: false,
            enough: AGREE.min(masters / 2 + 1),
            agree: 0,
            older: Vec::new(),
            fallback: None,
            doubted,
        }
    }

    /// Takes a view into account. `newest` is the newest current epoch that was seen. Returns whether the reading is
    /// over.
    pub(super) fn hear(&mut self, heard: Heard, newest: &mut u64) -> bool {
        let Heard { host, map, up, epoch } = heard;
        let counts = up && !self.up.contains(&host) && !self.doubted.contains(&host);
        if up {
            self.up.push(host.clone());
        }
        if !map.has_epochs() {
            return self.hear_without_epochs(map, (up, counts), epoch, newest);
        }
        let merged = self.map.merged(&map);
        if merged.older && mutant::on(Mutant::OlderMapTaken) {
            (self.map, self.anew, self.accepted) = (map, true, true);
            return true;
        }
        if up && merged.older && !merged.news {
            if !counts {
                return false;
            }
            self.older.push((host, map));
            return self.is_made_anew();
        }
        self.map = merged.map;
        self.accepted = true;
        self.agree += usize::from(counts && !merged.news);
        up && (merged.news || self.agree >= self.enough)
    }

    fn hear_without_epochs(&mut self, map: SlotMap, (up, counts): (bool, bool), epoch: u64, newest: &mut u64) -> bool {
        if up && epoch >= *newest {
            *newest = epoch;
            let news = self.map.differs(&map);
            (self.map, self.anew, self.accepted) = (map, true, true);
            self.agree += usize::from(counts && !news);
            return news || self.agree >= self.enough;
        }
        if self.fallback.as_ref().is_none_or(|(was_up, other, _)| (*was_up, *other) < (up, epoch)) {
            self.fallback = Some((up, epoch, map));
        }
        false
    }

    /// Takes over an older map if most of the masters that it names report the same.
    fn is_made_anew(&mut self) -> bool {
        let is_of = |map: &SlotMap| {
            let same = self.older.iter().filter(|(host, other)| map.masters().contains(host) && !map.differs(other));
            same.count() > map.masters().len() / 2
        };
        let Some(place) = self.older.iter().position(|(_, map)| is_of(map)) else { return false };
        (self.map, self.anew) = (self.older.swap_remove(place).1, true);
        true
    }

    /// The masters that older views name. They are asked whether they report the same.
    pub(super) fn disputed(&self) -> impl Iterator<Item = &Host> {
        self.older.iter().flat_map(|(_, map)| map.masters())
    }

    /// Ends the reading after the last node was asked. If nothing better was found, a view without config epochs
    /// counts, although it may be older.
    pub(super) fn end(&mut self) {
        if let Some((_, _, map)) = self.fallback.take().filter(|_| !self.accepted) {
            (self.map, self.anew) = (map, true);
        }
    }
}

#[cfg(test)]
mod tests;
