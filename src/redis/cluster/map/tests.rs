use super::*;

fn text(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

fn node(name: Reply, port: i64, more: &[Reply]) -> Reply {
    Reply::Array([&[name, Reply::Integer(port), text("id")], more].concat())
}

fn range(first: i64, last: i64, nodes: &[Reply]) -> Reply {
    Reply::Array([&[Reply::Integer(first), Reply::Integer(last)], nodes].concat())
}

fn parse(ranges: &[Reply]) -> Option<SlotMap> {
    SlotMap::parse(&Reply::Array(ranges.to_vec()), &Host::new("10.0.0.9", 7000), &Nodes::default(), |host| host)
}

fn two_masters() -> SlotMap {
    let ranges = [
        range(0, 8191, &[node(text("a"), 1, &[]), node(text("c"), 3, &[])]),
        range(8192, 16_382, &[node(text("b"), 2, &[])]),
    ];
    parse(&ranges).unwrap()
}

fn owner(map: &SlotMap, slot: u16) -> Option<String> {
    map.owner(slot).map(ToString::to_string)
}

#[test]
fn ranges_have_a_master_and_replicas() {
    let map = two_masters();
    assert_eq!(owner(&map, 0).as_deref(), Some("a:1"));
    assert_eq!(owner(&map, 8191).as_deref(), Some("a:1"));
    assert_eq!(owner(&map, 8192).as_deref(), Some("b:2"));
    assert_eq!(owner(&map, 16_383), None, "no node serves it");
    assert_eq!(map.masters(), [Host::new("a", 1), Host::new("b", 2)]);
    assert_eq!(map.replicas(), [Host::new("c", 3)]);
    assert!(!map.is_empty() && SlotMap::empty().is_empty());
}

/// Redis 6.2 sends an empty name, later versions send none.
#[test]
fn a_node_without_a_name_is_where_the_answer_came_from() {
    for name in [Reply::Nil, text("")] {
        let map = parse(&[range(0, 16_383, &[node(name, 7001, &[])])]).unwrap();
        assert_eq!(owner(&map, 7).as_deref(), Some("10.0.0.9:7001"));
    }
}

#[test]
fn a_node_whose_name_is_unknown_has_an_address() {
    let names = Reply::Array(vec![text("ip"), text("10.0.0.3")]);
    let map = parse(&[range(0, 16_383, &[node(text("?"), 7001, &[names])])]).unwrap();
    assert_eq!(owner(&map, 7).as_deref(), Some("10.0.0.3:7001"));
    let map = parse(&[range(0, 16_383, &[node(text("?"), 7001, &[])])]).unwrap();
    assert_eq!(owner(&map, 7), None);
}

#[test]
fn addresses_are_translated() {
    let ranges = Reply::Array(vec![range(0, 16_383, &[node(text("a"), 1, &[]), node(text("b"), 2, &[])])]);
    let public = |host: Host| Host { port: host.port + 100, ..host };
    let map = SlotMap::parse(&ranges, &Host::new("x", 9), &Nodes::default(), public).unwrap();
    assert_eq!((map.masters(), map.replicas()), (&[Host::new("a", 101)][..], &[Host::new("b", 102)][..]));
}

#[test]
fn a_node_finds_its_own_address_by_its_id() {
    let named = |id: &str, port| Reply::Array(vec![text("a"), Reply::Integer(port), text(id)]);
    let slots = Reply::Array(vec![range(0, 9, &[named("m", 1), named("r", 2)]), range(10, 19, &[named("n", 3)])]);
    let own = |id: &str| {
        let known = Nodes::parse(&text(&format!("x a:9@9 master\n{id} other:1@1 myself,slave m 0 0 3 connected\n")));
        let public = |host: Host| Host { port: host.port + 100, ..host };
        SlotMap::own_address(&slots, &Host::new("other", 1), &known, public)
    };
    assert_eq!(["m", "r", "n"].map(own), [101, 102, 103].map(|port| Some(Host::new("a", port))));
    assert_eq!(own("gone"), None, "it serves no slots");
    assert_eq!(SlotMap::own_address(&slots, &Host::new("x", 1), &Nodes::default(), |host| host), None);
}

#[test]
fn other_forms_are_no_map() {
    for ranges in [
        vec![Reply::Nil],
        vec![range(0, 16_384, &[node(text("a"), 1, &[])])],
        vec![range(0, 1, &[])],
        vec![range(0, 1, &[text("a:1")])],
    ] {
        assert!(parse(&ranges).is_none(), "{ranges:?}");
    }
}

#[test]
fn a_slot_that_moves() {
    let (map, mut moved) = (two_masters(), two_masters());
    assert!(!moved.set(3, &Host::new("a", 1)), "as before");
    assert!(!map.differs(&moved));
    assert!(moved.set(3, &Host::new("b", 2)));
    assert_eq!(owner(&moved, 3).as_deref(), Some("b:2"));
    assert!(map.differs(&moved) && !map.lost_a_master(&moved));
    assert!(moved.set(16_383, &Host::new("d", 4)));
    assert_eq!(owner(&moved, 16_383).as_deref(), Some("d:4"));
}

#[test]
fn a_master_that_is_replaced() {
    let (before, mut after) = (two_masters(), SlotMap::empty());
    for slot in 0..SLOTS {
        after.set(slot, &if slot < 8192 { Host::new("c", 3) } else { Host::new("b", 2) });
    }
    assert!(before.lost_a_master(&after));
    assert!(after.lost_a_master(&before), "and back");
}
