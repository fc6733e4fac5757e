use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt;
use futures::future::{BoxFuture, pending, select};

use super::super::super::dial::Dialled;
use super::super::map::Epochs;
use super::super::reading::{About, Reading};
use super::super::refresh::Found;
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
    let seeds = Seeds::parse("redis-cluster://a:1").unwrap().unwrap();
    Router::new(Arc::new(Still::new()), Arc::new(Nowhere), seeds, Config::default(), 7)
}

/// A map of two masters, with half of the slots each.
fn map_of(ports: [u16; 2]) -> SlotMap {
    let range = |first, last, port| {
        let node = Reply::Array(vec![Reply::Bytes(b"a".to_vec()), Reply::Integer(port)]);
        Reply::Array(vec![Reply::Integer(first), Reply::Integer(last), node])
    };
    let ranges = [range(0, 8_191, ports[0].into()), range(8_192, 16_383, ports[1].into())];
    SlotMap::parse(&Reply::Array(ranges.into()), &Host::new("a", 1), &Epochs::default(), |host| host).unwrap()
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
