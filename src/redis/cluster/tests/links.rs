//! The links to the nodes: made anew, left and given up.

use std::sync::atomic::AtomicBool;

use futures::FutureExt;

use super::super::super::link::Link;
use super::super::host::Host;
use super::super::node::{self, Node};
use super::super::place::Place;
use super::super::signals::Signals;
use super::*;
use crate::redis::lab::{lasting, late, soon};

/// The socket to the master is open, but the master is silent.
#[test]
fn a_link_without_answers_is_given_up() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let master = Arc::clone(&scene.lab.nodes[&1]);
    let silent = *master.sockets().last().unwrap();
    master.answers(move |socket, _| (socket == silent).then_some(Said::Never));
    assert!(matches!(scene.run(call), Err(ConnectionError::Unknown(_))));
    let began = scene.lab.now();
    scene.run(call).unwrap();
    assert!(scene.lab.now() < began + ms(1000), "over another socket");
    assert!(!master.sockets().contains(&silent));
}

/// All slots have moved. One node redirects the call for one of them.
#[test]
fn a_redirection_has_the_map_read() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    for node in scene.lab.nodes.values() {
        *lock(&node.owner) = (2, 5);
        node.strict.store(true, Ordering::SeqCst);
    }
    scene.run(call).unwrap();
    assert_eq!(*lock(&scene.lab.nodes[&1].scripts), 2, "it has sent the call on");
    scene.sleep(ms(1000));
    scene.run(async |cluster| call_of(cluster, "{b}").await).unwrap();
    assert_eq!(*lock(&scene.lab.nodes[&1].scripts), 2, "the call for another slot took the short way");
}

/// A node that is not in the map takes a slot over. Its link is kept while calls use it.
#[test]
fn a_link_beside_the_map_is_given_up_when_it_is_idle() {
    let mut scene = Scene::of(&[1, 2, 3, 4]);
    scene.lab.nodes[&1]
        .answers(|_, words| words[0].starts_with("EVAL").then(|| Said::Now("-ASK 0 h:4\r\n".to_owned())));
    let beside = Arc::clone(&scene.lab.nodes[&4]);
    for _ in 0..3 {
        scene.run(call).unwrap();
        scene.sleep(ms(9000));
        assert_eq!((beside.sockets().len(), *lock(&beside.logins)), (1, 1), "it is kept");
    }
    scene.sleep(ms(2000));
    assert_eq!(beside.sockets().len(), 0);
    assert_eq!(scene.lab.nodes[&1].sockets().len(), 1, "one in the map is kept");
}

/// The answer to the login of a master.
pub(super) fn hello() -> String {
    "%2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n".to_owned()
}

/// How long a call waits depends only on the links to masters in the map.
#[test]
fn a_slow_node_beside_the_map_makes_no_call_slow() {
    let mut scene = Scene::of(&[1, 2, 3, 4]);
    scene.lab.nodes[&4].answers(|_, words| (words[0] == "HELLO").then(|| Said::After(ms(400), hello())));
    let router = Arc::clone(&scene.cluster.router);
    let slow = router.to_host(host::Host::new("h", 4)).unwrap().node.unwrap();
    scene.lab.run(&mut scene.tasks, slow.link.ready()).unwrap();
    assert_eq!(slow.link.patient(), ms(800));
    scene.run(call).unwrap();
    scene.lab.nodes[&1].answers(|_, words| words[0].starts_with("EVAL").then_some(Said::Never));
    let began = scene.lab.now();
    let script = Script::all().next().unwrap();
    let answer = scene.run(async |cluster| cluster.run(Call::new(script, &["{a}"], &[]).within(ms(150))).await);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
    assert_eq!(scene.lab.now() - began, ms(150));
}

/// The link to the master of all slots.
fn link(scene: &Scene) -> Arc<Link> {
    scene.cluster.router.link_to(0).unwrap()
}

/// Closes the sockets of the master. Returns after how long the link stands again.
fn cut(scene: &mut Scene) -> Duration {
    let (link, node, began) = (link(scene), Arc::clone(&scene.lab.nodes[&1]), scene.lab.now());
    let generation = link.ready().now_or_never().unwrap().unwrap().generation;
    node.sockets().into_iter().for_each(|socket| node.cut(socket));
    let again = async {
        link.gone(generation).await;
        link.ready().await.unwrap();
    };
    scene.lab.run(&mut scene.tasks, again);
    scene.lab.now() - began
}

/// Otherwise a node that hangs up after each login would be dialled all the time, and one that has restarted would be
/// missed for a second.
#[test]
fn the_pauses_grow_until_a_link_has_lasted() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let gaps = scene.cluster.router.signals.gaps();
    let pauses: Vec<Duration> = (0..9).map(|_| cut(&mut scene)).collect();
    assert!(soon().contains(&pauses[0]), "{pauses:?}");
    assert!(pauses[7] >= late() && pauses[8] >= late(), "{pauses:?}");
    scene.sleep(lasting() - ms(1));
    assert!(cut(&mut scene) >= late(), "it did not last for long enough");
    scene.sleep(lasting());
    assert!(soon().contains(&cut(&mut scene)), "it has lasted");
    assert_eq!(scene.cluster.reconnects(), 11);
    assert_eq!(scene.cluster.router.signals.gaps(), gaps + 11, "messages may have been missed each time");
}

/// A lost link may mean that the master was replaced. Waiters must hear of that although no call is made.
#[test]
fn a_lost_link_has_the_map_read_until_it_stands_again() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    scene.sleep(ms(1000));
    let (link, node) = (link(&scene), Arc::clone(&scene.lab.nodes[&1]));
    let readings = |scene: &Scene| scene.lab.sum(|node| &node.readings);
    let before = readings(&scene);
    node.cut(*node.sockets().last().unwrap());
    scene.lab.run(&mut scene.tasks, link.gone(1));
    let why = |link: &Link| link.why_down().unwrap().to_string();
    assert!(why(&link).contains("the connection was lost"), "{}", why(&link));
    scene.sleep(ms(5));
    assert!(readings(&scene) > before, "at once");
    node.dead.store(true, Ordering::SeqCst);
    scene.sleep(ms(500));
    let before = readings(&scene);
    scene.sleep(ms(5000));
    assert!(readings(&scene) > before + 2, "after failed attempts too");
    assert!(why(&link).contains("connection refused"), "{}", why(&link));
}

/// A runtime drops its tasks one after the other when it shuts down.
#[test]
fn without_its_task_a_link_is_closed() {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let (seeds, host) = (Seeds::parse("redis-cluster://h:1").unwrap(), Host::new("h", 1));
    let place = Arc::new(Place::new(&seeds.access, host.clone()));
    let link = Arc::new(Link::new(lab.clone(), lab.clone(), place, &Config::default(), 7));
    node::start(&Node::new(host, Arc::clone(&link)), Arc::new(Signals::new(lab.clone(), 7)));
    lab.run(&mut tasks, link.ready()).unwrap();
    tasks.clear();
    assert!(link.is_closed());
}

/// Two answers of the node may be late at the same time.
#[test]
fn a_node_is_in_doubt_until_all_its_late_answers_are_confirmed() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let node = scene.cluster.router.to_slot(0).unwrap().node.unwrap();
    let (first, second) = (node.doubt(), node.doubt());
    drop(first);
    assert!(node.is_in_doubt());
    drop(second);
    assert!(!node.is_in_doubt());
}

/// No link to it is ever made. The nodes that are there were loading their data when they were asked.
#[test]
fn a_reading_ends_although_a_node_is_gone_for_good() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let (lab, loading) = (Arc::clone(&scene.lab), Arc::new(AtomicBool::new(true)));
    for port in [1, 2] {
        let loading = Arc::clone(&loading);
        lab.nodes[&port].answers(move |_, words| {
            let needs_data = words[0] == "CLUSTER" || words[0].starts_with("EVAL");
            let refuses = needs_data && loading.load(Ordering::SeqCst);
            refuses.then(|| Said::Now("-LOADING Redis is loading the dataset in memory\r\n".to_owned()))
        });
    }
    let cut = |port| lab.nodes[&port].sockets().into_iter().for_each(|socket| lab.nodes[&port].cut(socket));
    lab.nodes[&3].dead.store(true, Ordering::SeqCst);
    cut(1);
    scene.sleep(ms(2_000));
    loading.store(false, Ordering::SeqCst);
    follow::replace(&lab);
    lab.nodes[&1].dead.store(true, Ordering::SeqCst);
    cut(1);
    scene.sleep(Duration::from_secs(10));
    assert_eq!(scene.run(call).unwrap(), Reply::Integer(1));
}
