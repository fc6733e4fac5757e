//! Which of two reports about a slot is the newer one.
//!
//! | the view names | config epoch of that owner | result |
//! |---|---|---|
//! | the known owner | any | nothing changes |
//! | another owner | at least that of the known owner | it is taken over |
//! | another owner | lower | it is not taken over: the view is older |
//! | another owner | unknown, or that of the known owner is | it is taken over, because nothing says which one is newer |
//! | another owner, and a `MOVED` has named the known one | at most that of the owner before the `MOVED` | it is not taken over: the view is older |
//! | no owner | | the known owner stays: the view is older |

use super::{NONE, SlotMap};
use crate::protocol::slot::SLOTS;

/// A map with what a view adds to it.
pub(in super::super) struct Merged {
    pub(in super::super) map: SlotMap,
    /// Whether a slot has another owner than before.
    pub(in super::super) news: bool,
    /// Whether the view names other owners that are not taken over.
    pub(in super::super) older: bool,
}

impl SlotMap {
    /// Whether the node that reported this map also reported config epochs.
    pub(in super::super) fn has_epochs(&self) -> bool {
        self.epochs.iter().any(Option::is_some)
    }

    /// Returns the known map with what is newer in the `view`.
    pub(in super::super) fn merged(&self, view: &Self) -> Merged {
        let mut map = Self { replicas: view.replicas.clone(), ..Self::empty() };
        let (mut news, mut older) = (false, false);
        // The index of a master in the new map, by its index in the known map and by its index in the view.
        let (mut of_known, mut of_view) = (vec![None; self.masters.len()], vec![None; view.masters.len()]);
        let known_as = |index: u16| {
            let host = view.masters.get(usize::from(index))?;
            self.masters.iter().position(|known| known == host).and_then(|place| u16::try_from(place).ok())
        };
        let same: Vec<Option<u16>> = (0..view.masters.len()).map(|n| known_as(u16::try_from(n).ok()?)).collect();
        for slot in 0..SLOTS {
            let place = usize::from(slot);
            let (known, viewed) = (self.owners[place], view.owners[place]);
            let is_same = match (known, viewed) {
                (NONE, NONE) => true,
                (NONE, _) | (_, NONE) => false,
                _ => same[usize::from(viewed)] == Some(known),
            };
            let takes = !is_same && (known == NONE || self.gives_way(view, slot));
            news |= takes;
            older |= !takes && !is_same;
            let (from, index, made) = if takes { (view, viewed, &mut of_view) } else { (self, known, &mut of_known) };
            // A view that names the same owner confirms it.
            let is_confirmed = is_same && !view.moved.contains_key(&slot);
            if let Some(before) = self.moved.get(&slot).filter(|_| !takes && !is_confirmed) {
                map.moved.insert(slot, *before);
            }
            let Some(host) = from.masters.get(usize::from(index)) else { continue };
            let made = &mut made[usize::from(index)];
            let new = match *made {
                Some(new) => new,
                None => {
                    let Some(new) = map.index_of(host.clone()) else { continue };
                    let epoch =
                        |of: &Self| of.masters.iter().position(|other| other == host).and_then(|n| of.epochs[n]);
                    map.epochs[usize::from(new)] = epoch(self).max(epoch(view));
                    *made = Some(new);
                    new
                }
            };
            map.owners[place] = new;
        }
        map.replicas.retain(|replica| !map.masters.contains(replica));
        Merged { map, news, older }
    }

    /// Whether the owner that the `view` names for a slot takes the place of the known one.
    fn gives_way(&self, view: &Self, slot: u16) -> bool {
        if view.owner(slot).is_none() || view.moved.contains_key(&slot) {
            return false;
        }
        let (before, is_moved) = match self.moved.get(&slot) {
            Some(before) => (*before, true),
            None => (self.epoch(slot), false),
        };
        match (before, view.epoch(slot)) {
            (Some(before), Some(viewed)) if is_moved => viewed > before,
            (Some(before), Some(viewed)) => viewed >= before,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::host::Host;
    use super::super::Nodes;
    use super::*;
    use crate::connection::Reply;

    fn host(name: &str) -> Host {
        Host::new(name, 1)
    }

    /// A map of ranges of slots: the last slot, the master and its config epoch.
    fn map(ranges: &[(u16, &str, u64)]) -> SlotMap {
        let mut first = 0;
        let text = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
        let slots = ranges.iter().map(|(last, name, _)| {
            let node = Reply::Array(vec![text(name), Reply::Integer(1), text(name)]);
            let range = [Reply::Integer(first), Reply::Integer(i64::from(*last)), node];
            first = i64::from(*last) + 1;
            Reply::Array(range.into())
        });
        let slots = Reply::Array(slots.collect());
        let nodes: String =
            ranges.iter().map(|(_, name, epoch)| format!("{name} x:1@2 master - 0 0 {epoch} connected\n")).collect();
        SlotMap::parse(&slots, &host("x"), &Nodes::parse(&text(&nodes)), |host| host).unwrap()
    }

    fn owners(map: &SlotMap) -> [String; 2] {
        [0, 16_383].map(|slot| map.owner(slot).map_or_else(String::new, |host| host.name.to_string()))
    }

    #[test]
    fn the_owner_with_the_greater_epoch_is_right() {
        let known = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        for (epoch, expected, [news, older]) in
            [(5, "r", [true, false]), (1, "r", [true, false]), (0, "a", [false, true])]
        {
            let merged = known.merged(&map(&[(8191, "r", epoch), (16_383, "b", 2)]));
            assert_eq!(owners(&merged.map), [expected, "b"], "{epoch}");
            assert_eq!([merged.news, merged.older], [news, older], "{epoch}");
        }
    }

    /// A node may know of one failover, and not of another one.
    #[test]
    fn each_slot_is_compared_for_itself() {
        let known = map(&[(8191, "r", 5), (16_383, "b", 2)]);
        let merged = known.merged(&map(&[(8191, "a", 1), (16_383, "s", 6)]));
        assert_eq!(owners(&merged.map), ["r", "s"]);
        assert!(merged.news && merged.older);
        let again = merged.map.merged(&known);
        assert_eq!(owners(&again.map), ["r", "s"], "the epochs are kept");
        assert!(!again.news && again.older);
    }

    #[test]
    fn a_master_is_not_replaced_by_none() {
        let known = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        let merged = known.merged(&map(&[(8191, "a", 1)]));
        assert_eq!(owners(&merged.map), ["a", "b"]);
        assert!(!merged.news && merged.older);
        let merged = map(&[(8191, "a", 1)]).merged(&known);
        assert_eq!(owners(&merged.map), ["a", "b"]);
        assert!(merged.news && !merged.older);
    }

    /// A `MOVED` names no epoch. It is newer than the known owner, so a view with that owner is older.
    #[test]
    fn what_moved_names_is_kept_until_a_view_knows_better() {
        let mut known = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        assert!(known.set(0, &host("r")));
        let old = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        let merged = known.merged(&old);
        assert_eq!(owners(&merged.map)[0], "r");
        let merged = merged.map.merged(&old);
        assert_eq!(owners(&merged.map)[0], "r", "again");
        assert!(!merged.news && merged.older);
        let confirmed = merged.map.merged(&map(&[(8191, "r", 5), (16_383, "b", 2)]));
        assert_eq!(owners(&confirmed.map)[0], "r");
        assert!(confirmed.map.moved.is_empty());
        let back = confirmed.map.merged(&map(&[(8191, "a", 6), (16_383, "b", 2)]));
        assert_eq!(owners(&back.map)[0], "a");
        assert!(back.news);
    }

    /// The election may be of a third node.
    #[test]
    fn an_election_after_a_moved_counts() {
        let mut known = map(&[(8191, "a", 3), (16_383, "b", 2)]);
        assert!(known.set(0, &host("r")));
        for (epoch, expected) in [(2, "r"), (3, "r"), (4, "s")] {
            let merged = known.merged(&map(&[(8191, "s", epoch), (16_383, "b", 2)]));
            assert_eq!(merged.map.owner(0), Some(&host(expected)), "{epoch}");
        }
    }

    #[test]
    fn slots_that_no_master_serves_are_no_news() {
        let known = map(&[(8191, "a", 1)]);
        let merged = known.merged(&map(&[(8191, "a", 1)]));
        assert!(!merged.news && !merged.older);
        assert_eq!(owners(&merged.map), ["a", ""]);
    }

    /// A node that is behind reports an old epoch of the right master.
    #[test]
    fn a_lower_epoch_of_the_same_master_is_not_learned() {
        let known = map(&[(8191, "r", 5), (16_383, "b", 2)]);
        let merged = known.merged(&map(&[(8191, "r", 3), (16_383, "b", 2)]));
        let merged = merged.map.merged(&map(&[(8191, "a", 4), (16_383, "b", 2)]));
        assert_eq!(owners(&merged.map)[0], "r");
        assert!(merged.older);
    }

    /// The view has its owner from a `MOVED`, and the known map learns of an election before the reading ends.
    #[test]
    fn what_a_view_has_from_moved_replaces_nothing() {
        let known = map(&[(8191, "s", 6), (16_383, "b", 2)]);
        let mut view = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        assert!(view.set(0, &host("r")));
        assert_eq!(owners(&known.merged(&view).map)[0], "s");
    }

    /// A view is taken over in part, and names a master that stays as a replica.
    #[test]
    fn a_master_is_no_replica() {
        let known = map(&[(8191, "a", 5), (16_383, "b", 2)]);
        let mut view = map(&[(8191, "r", 1), (16_383, "b", 2)]);
        view.replicas = vec![host("a"), host("x")];
        assert_eq!(known.merged(&view).map.replicas, [host("x")]);
    }

    #[test]
    fn without_epochs_the_view_is_believed() {
        let mut known = map(&[(8191, "a", 1), (16_383, "b", 2)]);
        known.epochs = vec![None; 2];
        assert!(!known.has_epochs());
        let merged = known.merged(&map(&[(8191, "r", 0), (16_383, "b", 2)]));
        assert_eq!(owners(&merged.map), ["r", "b"]);
    }
}
