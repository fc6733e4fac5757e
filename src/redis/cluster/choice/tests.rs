use super::super::map::Nodes;
use super::*;
use crate::connection::Reply;

/// The masters of equal parts of the slots, with their config epochs.
fn map<const N: usize>(masters: [(&str, u64); N]) -> SlotMap {
    with_epochs(masters, true)
}

fn with_epochs<const N: usize>(masters: [(&str, u64); N], epochs: bool) -> SlotMap {
    let text = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    let part = |n: usize| i64::try_from(n * 16_384 / N).unwrap();
    let ranges = masters.iter().enumerate().map(|(n, (name, _))| {
        let node = Reply::Array(vec![text(name), Reply::Integer(1), text(name)]);
        Reply::Array(vec![Reply::Integer(part(n)), Reply::Integer(part(n + 1) - 1), node])
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
fn an_older_map_counts_once_from_each_node_and_not_from_one_in_doubt() {
    let mut choice = Choice::new(&map(AFTER), Vec::new());
    assert!(!choice.hear(heard("b", map(BEFORE), true, 9), &mut 4));
    assert!(!choice.hear(heard("b", map(BEFORE), true, 9), &mut 4), "the same node at another address");
    let mut choice = Choice::new(&map(AFTER), vec![Host::new("a", 1)]);
    assert!(!choice.hear(heard("a", map(BEFORE), true, 9), &mut 4));
    assert!(!choice.hear(heard("b", map(BEFORE), true, 9), &mut 4));
    assert!(choice.hear(heard("c", map(BEFORE), true, 9), &mut 4));
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
fn three_masters_that_agree_are_enough_of_many() {
    let seven = map([("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6), ("g", 7)]);
    let mut choice = Choice::new(&seven, Vec::new());
    let ends = ["a", "b", "c"].map(|name| choice.hear(heard(name, seven.clone(), true, 7), &mut 7));
    assert_eq!(ends, [false, false, true]);
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
