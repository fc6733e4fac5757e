use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt;
use futures::future::{BoxFuture, pending, select};

use super::super::super::dial::Dialled;
use super::super::super::link::limit::Limit;
use super::super::map::Nodes;
use super::super::reading::{About, Reading};
use super::super::refresh::Found;
use super::super::subscription::CutOff;
use super::*;
use crate::connection::Reply;
use crate::runtime::still::Still;

/// Reaches no node.
#[derive(Debug)]
struct Nowhere;

impl Dial for Nowhere {
    fn tcp<'a>(&'a self, _host: &'a str, _port: u16) -> BoxFuture<'a, Dialled> {
        pending().boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _path: &'a Path) -> BoxFuture<'a, Dialled> {
        pending().boxed()
    }
}

fn router() -> Router {
    let seeds = Seeds::parse("redis-cluster://a:1").unwrap();
    Router::new(Arc::new(Still::new()), Arc::new(Nowhere), seeds, Config::default(), 7)
}

/// A map of two masters, with half of the slots each.
fn map_of(ports: [u16; 2]) -> SlotMap {
    map_up_to(8_191, ports)
}

/// A map of two masters. The first one has the slots up to this one.
fn map_up_to(last: i64, ports: [u16; 2]) -> SlotMap {
    let range = |first, last, port| {
        let node = Reply::Array(vec![Reply::Bytes(b"a".to_vec()), Reply::Integer(port)]);
        Reply::Array(vec![Reply::Integer(first), Reply::Integer(last), node])
    };
    let ranges = [range(0, last, ports[0].into()), range(last + 1, 16_383, ports[1].into())];
    SlotMap::parse(&Reply::Array(ranges.into()), &Host::new("a", 1), &Nodes::default(), |host| host).unwrap()
}

fn learn(router: &Router, map: SlotMap) -> Found {
    let began = router.executor.now();
    router.learn(Reading { began, map, anew: false, up: vec![Host::new("a", 1)], about: About::default() })
}

/// Checks the nodes when the link to the first of them is closed.
struct Look {
    router: Router,
    nodes: [Arc<Node>; 2],
    seen: Mutex<Vec<[bool; 2]>>,
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        let new = self.router.to_slot(0).unwrap().node.unwrap();
        assert_eq!(new.host.port, 3, "other calls see the new map");
        lock(&self.seen).extend(self.nodes.each_ref().map(|node| [node.link.is_closed(), node.link.is_disowned(1)]));
    }
}

/// Two masters are replaced at once. While the link to one of them is being closed, a caller may read what the other
/// one has answered.
#[test]
fn no_answer_of_a_replaced_master_counts_once_a_call_can_see_the_new_map() {
    let router = router();
    assert_eq!(learn(&router, map_of([1, 2])), Found::News);
    let nodes = [0, 16_383].map(|slot| router.to_slot(slot).unwrap().node.unwrap());
    assert_eq!(nodes.each_ref().map(|node| node.link.is_disowned(1)), [false; 2]);
    let look = Arc::new(Look { router, nodes, seen: Mutex::default() });
    let waker = Waker::from(Arc::clone(&look));
    let mut closed = pin!(select(look.nodes[0].link.closed().boxed(), look.nodes[1].link.closed().boxed()));
    assert!(closed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(learn(&look.router, map_of([3, 4])), Found::News);
    let seen = lock(&look.seen).clone();
    let first = &seen[..2];
    assert_eq!(first.iter().filter(|[is_closed, _]| *is_closed).count(), 1, "{first:?}");
    assert!(first.iter().all(|[_, is_disowned]| *is_disowned), "{first:?}");
    assert!(matches!(closed.poll(&mut Context::from_waker(&waker)), Poll::Ready(_)));
}

fn version(router: &Router) -> u64 {
    router.to_slot(0).unwrap().version
}

#[test]
fn a_change_of_the_map_makes_another_version() {
    let router = router();
    let first = version(&router);
    assert_eq!(router.number_of(0), u64::MAX, "no map is known");
    assert_eq!(learn(&router, map_of([1, 2])), Found::News);
    let mut other = pin!(router.other_than(first + 1));
    assert_eq!((version(&router), learn(&router, map_of([1, 2]))), (first + 1, Found::Same));
    assert!(router.other_than(first).now_or_never().is_some() && other.as_mut().now_or_never().is_none());
    assert_eq!([0, 1, 8_191, 8_192, 16_383].map(|slot| router.number_of(slot)), [0, 0, 0, 1, 1]);
    router.moved(16_383, &Host::new("a", 2));
    assert_eq!(version(&router), first + 1, "that was known");
    router.moved(0, &Host::new("a", 2));
    assert_eq!((version(&router), [0, 1].map(|slot| router.number_of(slot))), (first + 2, [1, 0]));
    assert!(other.now_or_never().is_some());
    let (began, map) = (router.executor.now(), (*router.map()).clone());
    let reading = Reading { began, map, anew: false, up: Vec::new(), about: About::default() };
    assert_eq!(router.learn(reading), Found::Down, "no node accepts calls");
}

/// It concerns what the master has granted.
#[test]
fn a_master_that_is_replaced_leaves_a_gap() {
    let router = router();
    learn(&router, map_of([1, 2]));
    let (gaps, host) = (router.signals.gaps(), Host::new("a", 2));
    let mut disturbed = pin!(router.disturbed(gaps, |map| map.masters().contains(&host)));
    assert!(disturbed.as_mut().now_or_never().is_none());
    assert!(router.disturbed(gaps, |_| false).now_or_never().is_some(), "it is no master");
    learn(&router, map_of([3, 2]));
    assert_eq!(router.signals.gaps(), gaps + 1);
    assert!(disturbed.now_or_never().is_some(), "although this master has stayed");
}

/// A call was told of the new owner of its last slot before, so the reading finds that no slot has another owner.
#[test]
fn a_master_without_slots_is_left_with_the_reading_that_does_not_name_it() {
    let router = router();
    learn(&router, map_up_to(16_382, [1, 2]));
    let (gaps, host) = (router.signals.gaps(), Host::new("a", 2));
    let mut disturbed = pin!(router.disturbed(gaps, |map| map.masters().contains(&host)));
    assert!(disturbed.as_mut().now_or_never().is_none());
    router.moved(16_383, &Host::new("a", 1));
    assert!(disturbed.as_mut().now_or_never().is_none(), "it is in the map until the next reading");
    assert_eq!(learn(&router, map_up_to(16_382, [1, 1])), Found::Same);
    assert_eq!(router.signals.gaps(), gaps, "it was not replaced");
    // Only what was woken looks at the map again.
    assert!(disturbed.now_or_never().is_some());
}

#[test]
fn the_reconnects_of_links_that_are_closed_still_count() {
    let router = router();
    learn(&router, map_of([1, 2]));
    let [gone, kept] = [0, 16_383].map(|slot| router.to_slot(slot).unwrap().node.unwrap());
    gone.link.reconnects.store(3, Ordering::Relaxed);
    kept.link.reconnects.store(5, Ordering::Relaxed);
    assert_eq!(router.reconnects(), 8);
    learn(&router, map_of([3, 2]));
    assert_eq!(router.reconnects(), 8);
    router.resubscribed();
    assert_eq!(router.reconnects(), 9);
}

#[test]
fn a_router_that_is_closed_closes_its_links_and_ends_all_waits() {
    let router = router();
    learn(&router, map_of([1, 2]));
    let node = router.to_slot(0).unwrap().node.unwrap();
    let now = router.executor.now();
    let (begins, over) = (Limit { started: now, limit: NODE_IDLE }, Limit { started: now, limit: Duration::ZERO });
    assert!(!router.is_closed() && !router.is_shut_down(over) && router.is_shut_down(begins));
    let mut closed = pin!(router.closed());
    assert!(closed.as_mut().now_or_never().is_none());
    router.close();
    assert!(router.is_closed() && node.link.is_closed() && router.links().is_empty());
    assert!(router.is_shut_down(over) && closed.now_or_never().is_some());
}

/// A socket is given up for the second such answer in a row, unless no node accepts calls.
#[test]
fn when_a_node_is_surely_cut_off() {
    let router = router();
    let says = |answers: &[bool]| {
        let mut cut_off = CutOff::default();
        answers.iter().map(|is_alive| cut_off.is_sure(&router, *is_alive)).collect::<Vec<_>>()
    };
    assert_eq!(says(&[true, true, false, true, false]), [false; 5]);
    assert_eq!(says(&[false, false, true, false, false]), [false, true, false, false, true]);
    router.signals.done(Found::Down);
    assert_eq!(says(&[false, false, false, true]), [false; 4]);
    router.signals.done(Found::Same);
    assert_eq!(says(&[false, false]), [false, true]);
}
