//! Subscriptions to shard channels.

use futures::future::select;

use super::super::super::lab::push;
use super::*;

const DENIED: &str = "-NOPERM this user has no permissions to run the 'ssubscribe' command\r\n";

type Notices = BoxStream<'static, Notice>;

impl Scene {
    pub(super) fn subscribe(&mut self, channel: &str) -> std::result::Result<Notices, ConnectionError> {
        self.lab.run(&mut self.tasks, self.cluster.subscribe(channel))
    }

    /// The notices that arrive within this time.
    pub(super) fn hear(&mut self, notices: &mut Notices, time: Duration) -> Vec<Notice> {
        let (lab, mut heard) = (Arc::clone(&self.lab), Vec::new());
        let all = async {
            while let Some(notice) = notices.next().await {
                heard.push(notice);
            }
        };
        self.lab.run(&mut self.tasks, async { drop(select(pin!(all), lab.sleep(time)).await) });
        heard
    }
}

/// The slot moves away and comes back before a client has noticed. Messages may have been missed.
#[test]
fn a_slot_that_was_away_leaves_a_gap() {
    let mut scene = Scene::sharded();
    let mut notices = scene.subscribe("{a}").unwrap();
    let master = Arc::clone(&scene.lab.nodes[&1]);
    let socket = *master.sockets().last().unwrap();
    master.push(socket, push("sunsubscribe", "{a}"));
    let heard = scene.hear(&mut notices, ms(1000));
    assert!(matches!(heard[..], [Notice::Gap, Notice::Gap]), "one when it ended, and one when it is back: {heard:?}");
    master.push(socket, ">3\r\n$8\r\nsmessage\r\n$3\r\n{a}\r\n$1\r\nx\r\n".to_owned());
    let heard = scene.hear(&mut notices, ms(100));
    assert!(matches!(&heard[..], [Notice::Message(text)] if text == b"x"), "{heard:?}");
}

#[test]
fn a_denied_subscription_is_refused_at_once() {
    let mut scene = Scene::sharded();
    scene.lab.nodes[&1].answers(|_, words| (words[0] == "SSUBSCRIBE").then(|| Said::Now(DENIED.to_owned())));
    let began = scene.lab.now();
    let answer = scene.subscribe("{a}").map(drop);
    assert!(matches!(&answer, Err(ConnectionError::Refused { code, .. }) if code == "NOPERM"), "{answer:?}");
    assert!(scene.lab.now() < began + ms(100), "{:?}", scene.lab.now() - began);
}

/// An operator revokes the right, and grants it again.
#[test]
fn a_subscription_that_was_denied_for_a_while_is_made_again() {
    let mut scene = Scene::sharded();
    let mut notices = scene.subscribe("{a}").unwrap();
    let master = Arc::clone(&scene.lab.nodes[&1]);
    master.answers(|_, words| (words[0] == "SSUBSCRIBE").then(|| Said::Now(DENIED.to_owned())));
    master.cut(*master.sockets().last().unwrap());
    let heard = scene.hear(&mut notices, ms(5000));
    assert!(matches!(heard[..], [Notice::Gap, Notice::Refused(_)]), "told once: {heard:?}");
    master.answers(|_, _| None);
    let heard = scene.hear(&mut notices, ms(2000));
    assert!(matches!(heard[..], [Notice::Gap]), "{heard:?}");
}

/// A lost subscription is restored, although that takes longer than the limit of the first attempts.
#[test]
fn a_network_that_becomes_slow_does_not_keep_subscriptions_down() {
    for sharded in [true, false] {
        let mut scene = if sharded { Scene::sharded() } else { Scene::new() };
        let mut notices = scene.subscribe("{a}").unwrap();
        slow(&scene.lab, ms(400));
        let sockets = scene.lab.nodes[&1].sockets();
        scene.lab.nodes[&1].cut(*sockets.last().unwrap());
        let heard = scene.hear(&mut notices, ms(10_000));
        assert!(matches!(heard[..], [Notice::Gap, Notice::Gap]), "sharded: {sharded}, {heard:?}");
        // Heartbeats do not take the slow socket for a dead one.
        assert!(scene.hear(&mut notices, ms(60_000)).is_empty(), "sharded: {sharded}");
    }
}

/// Attempts that are too short must not use up the command timeout of the first subscription.
#[test]
fn a_slow_network_leaves_time_for_the_first_subscription() {
    for sharded in [true, false] {
        let lab = Lab::new(&[1, 2, 3], 1);
        lab.nodes.values().for_each(|node| node.sharded.store(sharded, Ordering::SeqCst));
        slow(&lab, ms(550));
        let mut scene = Scene::connect(lab);
        // A waiter subscribes after its call has been answered.
        scene.run(call).unwrap();
        let answer = scene.subscribe("{a}").map(drop);
        assert!(answer.is_ok(), "sharded: {sharded}, {answer:?}");
    }
}

/// A program waits in more and more slots. Each wait looks at its own channel.
#[test]
fn first_waits_in_many_slots_cost_the_same_each() {
    let mut scene = Scene::sharded();
    let mut all: Vec<Notices> = (0..1000).map(|n| scene.subscribe(&format!("{{{n}}}")).unwrap()).collect();
    let channels = Arc::clone(scene.cluster.sharded.as_ref().unwrap());
    assert_eq!(channels.look(|table| table.places.looked), 1001, "the first one also by the map");
    all.truncate(1);
    assert!(scene.hear(&mut all[0], ms(1000)).is_empty());
    assert_eq!(channels.look(|table| table.places.looked), 2000, "and each that ends");
    // The slots have another master.
    for node in scene.lab.nodes.values() {
        *lock(&node.owner) = (2, 5);
    }
    scene.cluster.router.signals.suspect_map();
    assert_eq!(scene.hear(&mut all[0], ms(1000)).len(), 2, "a gap, and another when it is subscribed there");
    assert_eq!(channels.look(|table| table.places.looked), 2003, "by the map, and by both masters");
}

/// The last subscription ends while the master cannot be reached.
#[test]
fn a_master_of_which_no_channel_is_wanted_any_more_is_left_alone() {
    let mut scene = Scene::sharded();
    let notices = scene.subscribe("{a}").unwrap();
    let master = Arc::clone(&scene.lab.nodes[&1]);
    master.dead.store(true, Ordering::SeqCst);
    master.cut(*master.sockets().last().unwrap());
    scene.sleep(ms(5000));
    drop(notices);
    scene.sleep(ms(5000));
    master.dead.store(false, Ordering::SeqCst);
    let before = *lock(&master.logins);
    scene.sleep(ms(5000));
    assert!(*lock(&master.logins) - before <= 1, "but for the link that carries calls");
    let channels = Arc::clone(scene.cluster.sharded.as_ref().unwrap());
    assert_eq!(channels.look(|table| table.places.masters()), 0, "and forgotten");
    assert_eq!(scene.subscribe("{a}").map(drop).ok(), Some(()), "another one is served");
}

#[test]
fn more_channels_than_one_write_carries_are_made_again_with_a_new_socket() {
    let mut scene = Scene::sharded();
    let mut all: Vec<Notices> = (0..600).map(|n| scene.subscribe(&format!("{{{n}}}")).unwrap()).collect();
    let master = Arc::clone(&scene.lab.nodes[&1]);
    master.cut(*master.sockets().last().unwrap());
    scene.sleep(ms(1000));
    for notices in &mut all {
        assert_eq!(scene.hear(notices, ms(0)), [Notice::Gap, Notice::Gap]);
    }
}
