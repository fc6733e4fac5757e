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
mod tests {
    use super::super::map::Nodes;
    use super::*;
    use crate::connection::Reply;

    /// The masters of thirds of the slots, with their config epochs.
    fn map(masters: [(&str, u64); 3]) -> SlotMap {
        with_epochs(masters, true)
    }

    fn with_epochs(masters: [(&str, u64); 3], epochs: bool) -> SlotMap {
        let text = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
        let ranges =
            masters.iter().zip([(0, 5000), (5001, 10_000), (10_001, 16_383)]).map(|((name, _), (first, last))| {
                let node = Reply::Array(vec![text(name), Reply::Integer(1), text(name)]);
                Reply::Array(vec![Reply::Integer(first), Reply::Integer(last), node])
            });
        let slots = Reply::Array(ranges.collect());
        let nodes = masters.map(|(name, epoch)| format!("{name} x:1@2 master - 0 0 {epoch} connected\n")).concat();
        let epochs = if epochs { Nodes::parse(&text(&nodes)) } else { Nodes::default() };
        SlotMap::parse(&slots, &Host::new("x", 1), &epochs, |host| host).unwrap()
    }

    fn heard(name: &str, map: SlotMap, up: bool, epoch: u64) -> Heard {
        Heard { host: Host::new(name, 1), map, up, epoch }
    }

    const BEFORE: [(&str, u64); 3] = [("a", 1), ("b", 2), ("c", 3)];
    const AFTER: [(&str, u64); 3] = [("r", 4), ("b", 2), ("c", 3)];

    fn first_owner(choice: &Choice) -> String {
        choice.map.owner(0).map_or_else(String::new, |host| host.name.to_string())
    }

    /// The current epoch grows when an election begins. A node that knows of the election may not know of the winner.
    #[test]
    fn the_old_map_with_the_new_epoch_is_not_taken_for_no_news() {
        let mut choice = Choice::new(&map(BEFORE), Vec::new());
        assert!(!choice.hear(heard("b", map(BEFORE), true, 4), &mut 3), "another node may know more");
        assert!(choice.hear(heard("c", map(AFTER), true, 4), &mut 3));
        assert_eq!(first_owner(&choice), "r");
        let mut choice = Choice::new(&map(BEFORE), Vec::new());
        assert!(!choice.hear(heard("b", map(BEFORE), true, 4), &mut 3));
        assert!(choice.hear(heard("c", map(BEFORE), true, 4), &mut 3), "most masters agree");
    }

    #[test]
    fn an_older_map_with_the_new_epoch_replaces_nothing() {
        let mut choice = Choice::new(&map(AFTER), Vec::new());
        assert!(!choice.hear(heard("a", map(BEFORE), true, 9), &mut 4));
        assert!(!choice.hear(heard("x", map(BEFORE), true, 9), &mut 4), "not a master");
        choice.end();
        assert_eq!((first_owner(&choice).as_str(), choice.anew), ("r", false));
    }

    #[test]
    fn an_older_map_counts_if_most_of_its_masters_report_it() {
        let mut choice = Choice::new(&map(AFTER), Vec::new());
        assert!(!choice.hear(heard("a", map(BEFORE), true, 9), &mut 4));
        assert_eq!(choice.disputed().count(), 3, "they are asked too");
        assert!(choice.hear(heard("b", map(BEFORE), true, 9), &mut 4));
        assert_eq!((first_owner(&choice).as_str(), choice.anew), ("a", true));
    }

    #[test]
    fn a_node_that_is_cut_off_ends_no_reading() {
        let mut choice = Choice::new(&map(BEFORE), Vec::new());
        for name in ["a", "b", "c"] {
            assert!(!choice.hear(heard(name, map(AFTER), false, 4), &mut 3));
        }
        choice.end();
        assert_eq!((first_owner(&choice).as_str(), choice.up.len()), ("r", 0), "but its news count");
        let mut choice = Choice::new(&map(BEFORE), Vec::new());
        for (name, up) in [("a", false), ("b", false), ("c", true)] {
            assert!(!choice.hear(heard(name, map(BEFORE), up, 4), &mut 3), "a node that is cut off agrees to nothing");
        }
    }

    #[test]
    fn a_node_counts_once_and_one_in_doubt_does_not_count() {
        for epochs in [true, false] {
            let mut choice = Choice::new(&map(BEFORE), vec![Host::new("a", 1)]);
            for name in ["a", "b", "b"] {
                let view = with_epochs(BEFORE, epochs);
                assert!(!choice.hear(heard(name, view, true, 3), &mut 3), "{name}, config epochs: {epochs}");
            }
            assert!(choice.hear(heard("c", with_epochs(BEFORE, epochs), true, 3), &mut 3));
        }
        let mut choice = Choice::new(&map(BEFORE), vec![Host::new("a", 1)]);
        assert!(choice.hear(heard("a", map(AFTER), true, 4), &mut 3), "but its news count");
    }

    #[test]
    fn nodes_that_are_cut_off_do_not_bring_an_older_map_back() {
        let mut choice = Choice::new(&map(AFTER), Vec::new());
        for name in ["a", "b", "c"] {
            assert!(!choice.hear(heard(name, map(BEFORE), false, 9), &mut 4));
        }
        choice.end();
        assert_eq!((first_owner(&choice).as_str(), choice.anew), ("r", false));
    }

    #[test]
    fn older_maps_that_contradict_each_other_do_not_count_together() {
        let mut choice = Choice::new(&map(AFTER), Vec::new());
        assert!(!choice.hear(heard("a", map(BEFORE), true, 9), &mut 4));
        assert!(!choice.hear(heard("b", map([("q", 1), ("b", 2), ("c", 3)]), true, 9), &mut 4));
        choice.end();
        assert_eq!((first_owner(&choice).as_str(), choice.anew), ("r", false));
    }

    #[test]
    fn one_of_two_masters_is_not_most_of_them() {
        let two = |first| map([(first, 1), ("b", 2), ("b", 2)]);
        let mut choice = Choice::new(&two("r"), Vec::new());
        choice.map = map(AFTER);
        assert!(!choice.hear(heard("a", two("a"), true, 9), &mut 4));
        choice.end();
        assert_eq!((first_owner(&choice).as_str(), choice.anew), ("r", false));
    }

    #[test]
    fn without_config_epochs_a_reading_ends_when_most_masters_agree() {
        let after = with_epochs(AFTER, false);
        let mut choice = Choice::new(&after, Vec::new());
        assert!(!choice.hear(heard("r", after.clone(), true, 4), &mut 4));
        assert!(choice.hear(heard("b", after.clone(), true, 4), &mut 4));
        let mut choice = Choice::new(&after, Vec::new());
        assert!(choice.hear(heard("r", with_epochs(BEFORE, false), true, 5), &mut 4), "news end it at once");
        assert_eq!(choice.agree, 0);
    }

    #[test]
    fn without_config_epochs_the_first_of_the_newest_views_is_better_than_none() {
        let [before, other] = [BEFORE, [("q", 1), ("b", 2), ("c", 3)]].map(|masters| with_epochs(masters, false));
        for (views, owner) in [([(&before, 2), (&other, 3)], "q"), ([(&other, 3), (&before, 3)], "q")] {
            let mut choice = Choice::new(&with_epochs(AFTER, false), Vec::new());
            for (map, epoch) in views {
                assert!(!choice.hear(heard("a", map.clone(), true, epoch), &mut 4));
            }
            choice.end();
            assert_eq!(first_owner(&choice), owner);
        }
    }

    #[test]
    fn without_config_epochs_the_current_one_decides() {
        let [before, after] = [BEFORE, AFTER].map(|masters| with_epochs(masters, false));
        let mut choice = Choice::new(&after, Vec::new());
        let mut newest = 4;
        assert!(!choice.hear(heard("a", before.clone(), true, 3), &mut newest));
        assert!(!choice.hear(heard("b", after.clone(), true, 4), &mut newest));
        choice.end();
        assert_eq!(first_owner(&choice), "r");
        let mut choice = Choice::new(&before, Vec::new());
        assert!(choice.hear(heard("b", after.clone(), true, 5), &mut newest));
        assert_eq!((first_owner(&choice).as_str(), newest), ("r", 5));
        let mut choice = Choice::new(&after, Vec::new());
        assert!(!choice.hear(heard("a", before.clone(), false, 9), &mut newest), "cut off");
        assert_eq!((first_owner(&choice).as_str(), newest), ("r", 5));
        let mut choice = Choice::new(&after, Vec::new());
        assert!(!choice.hear(heard("a", before, true, 3), &mut newest));
        choice.end();
        assert_eq!(first_owner(&choice), "a", "better than none");
    }
}
