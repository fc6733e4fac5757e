use super::super::super::map::Nodes;
use super::*;
use crate::connection::Reply;

fn host(port: u16) -> Host {
    Host::new("127.0.0.1", port)
}

/// A map of two masters of 127.0.0.1, with half of the slots each.
pub(in super::super) fn map_of(ports: [u16; 2]) -> Arc<SlotMap> {
    let range = |first, last, port: u16| {
        let node = Reply::Array(vec![Reply::Bytes(b"127.0.0.1".to_vec()), Reply::Integer(port.into())]);
        Reply::Array(vec![Reply::Integer(first), Reply::Integer(last), node])
    };
    let ranges = [range(0, 8_191, ports[0]), range(8_192, 16_383, ports[1])];
    Arc::new(SlotMap::parse(&Reply::Array(ranges.into()), &host(1), &Nodes::default(), |host| host).unwrap())
}

fn changed(places: &mut Places, port: u16) -> Vec<Arc<str>> {
    let mut all: Vec<_> = places.take_changed(&host(port)).into_iter().collect();
    all.sort_unstable();
    all
}

fn owners(places: &Places) -> Vec<u16> {
    let mut all: Vec<_> = places.owners().map(|host| host.port).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_change_concerns_one_master() {
    let mut places = Places::default();
    let [low, high]: [Arc<str>; 2] = ["low".into(), "high".into()];
    places.want(&low, 1);
    assert!(owners(&places).is_empty(), "no map is known");
    places.follow(&map_of([1, 2]));
    assert_eq!((owners(&places), places.take_woken().1), (vec![1], true));
    assert_eq!(changed(&mut places, 1), [Arc::clone(&low)]);
    places.want(&high, 16_000);
    let (woken, is_new) = places.take_woken();
    assert_eq!((woken.len(), is_new), (1, true));
    assert!(Arc::ptr_eq(&woken[0], &places.masters[&host(2)].event));
    assert!(changed(&mut places, 1).is_empty());
    assert_eq!(changed(&mut places, 2), [Arc::clone(&high)]);
    places.unwant(&high, 16_000);
    assert_eq!(owners(&places), [1]);
    assert_eq!(changed(&mut places, 2), [high]);
    assert_eq!(places.take_woken().0.len(), 1);
    assert!(!places.by_slot.contains_key(&16_000));
}

#[test]
fn only_channels_of_slots_that_move_are_changed() {
    let mut places = Places::default();
    places.follow(&map_of([1, 2]));
    let [low, high]: [Arc<str>; 2] = ["low".into(), "high".into()];
    places.want(&low, 1);
    places.want(&high, 16_000);
    for port in [1, 2] {
        changed(&mut places, port);
    }
    places.take_woken();
    places.follow(&map_of([1, 3]));
    assert_eq!((owners(&places), places.take_woken().1), (vec![1, 3], true));
    assert!(changed(&mut places, 1).is_empty());
    for port in [2, 3] {
        assert_eq!(changed(&mut places, port), [Arc::clone(&high)], "{port}");
    }
    places.follow(&map_of([1, 3]));
    assert_eq!(places.take_woken().0.len(), 0, "nothing has moved");
}

/// The task of a master without a socket does not look at changes, but has to be woken when no channel is wanted any
/// more.
#[test]
fn the_last_channel_that_goes_wakes_a_master_that_has_not_looked() {
    let mut places = Places::default();
    places.follow(&map_of([1, 2]));
    let channel: Arc<str> = "low".into();
    places.want(&channel, 1);
    assert_eq!(places.take_woken().0.len(), 1);
    places.unwant(&channel, 1);
    assert_eq!(places.take_woken().0.len(), 1);
    places.forget(&host(1));
    assert!(places.masters.is_empty());
}

/// A program may want very many channels at once.
#[test]
fn a_master_is_woken_once_until_it_has_looked_and_is_new_with_its_first_channel_only() {
    let mut places = Places::default();
    places.follow(&map_of([1, 2]));
    let channels: Vec<Arc<str>> = (0..6).map(|n| n.to_string().into()).collect();
    let woken = |places: &mut Places| {
        let (woken, is_new) = places.take_woken();
        (woken.len(), is_new)
    };
    channels[..3].iter().for_each(|channel| places.want(channel, 1));
    assert_eq!(woken(&mut places), (1, true));
    places.want(&channels[3], 1);
    places.unwant(&channels[0], 1);
    assert_eq!(woken(&mut places), (0, false), "it has not looked since");
    assert_eq!(changed(&mut places, 1).len(), 4);
    places.want(&channels[4], 1);
    assert_eq!(woken(&mut places), (1, false), "it has channels already");
    places.want(&channels[5], 16_000);
    assert_eq!(woken(&mut places), (1, true), "the other master has none");
}

/// The tasks of the masters end.
#[test]
fn all_masters_are_woken_when_all_channels_are_forgotten() {
    let mut places = Places::default();
    places.follow(&map_of([1, 2]));
    places.want(&"low".into(), 1);
    places.want(&"high".into(), 16_000);
    places.take_woken();
    places.clear();
    assert!(owners(&places).is_empty() && places.by_slot.is_empty());
    assert_eq!(places.take_woken().0.len(), 2);
}
