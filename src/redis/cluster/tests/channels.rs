//! How shard channels are left, and how subscriptions end.

use super::super::super::lab::push;
use super::super::host::Host;
use super::*;

/// The commands about this channel that a node gets.
fn commands(scene: &Scene, port: u16, channel: &'static str) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&heard);
    scene.lab.nodes[&port].answers(move |_, words| {
        if words.len() == 2 && words[1] == channel {
            lock(&all).push(words[0].to_owned());
        }
        None
    });
    heard
}

#[test]
fn a_channel_that_is_not_wanted_any_more_is_left_once() {
    let mut scene = Scene::sharded();
    let mut kept = scene.subscribe("{a}").unwrap();
    let left = scene.subscribe("{b}").unwrap();
    let heard = commands(&scene, 1, "{b}");
    drop(left);
    assert!(scene.hear(&mut kept, ms(5000)).is_empty());
    assert_eq!(*lock(&heard), ["SUNSUBSCRIBE"]);
}

/// The server confirms the end of the old subscription. That is not the end of the new one.
#[test]
fn a_channel_that_is_wanted_again_while_it_is_left_has_no_gap() {
    let mut scene = Scene::sharded();
    let _kept = scene.subscribe("{a}").unwrap();
    let left = scene.subscribe("{b}").unwrap();
    *lock(&scene.lab.nodes[&1].round_trip) = ms(50);
    let heard = commands(&scene, 1, "{b}");
    drop(left);
    scene.sleep(ms(20));
    let mut again = scene.subscribe("{b}").unwrap();
    assert_eq!(*lock(&heard), ["SUNSUBSCRIBE", "SSUBSCRIBE"]);
    assert_eq!(scene.hear(&mut again, ms(1000)), []);
}

/// The node hands the slot of a channel over while the channel is being left. It says so, and then refuses the command
/// to leave it, so that the refusal stands in the place of the next answer.
#[test]
fn a_redirection_counts_only_for_the_slot_that_it_names() {
    let mut scene = Scene::sharded();
    let _kept = scene.subscribe("{a}").unwrap();
    let left = scene.subscribe("{b}").unwrap();
    let before = scene.cluster.reconnects();
    scene.lab.nodes[&1].answers(|_, words| {
        let refused = || format!("{}-MOVED {} h:2\r\n", push("sunsubscribe", "{b}"), slot::of("{b}"));
        (words == ["SUNSUBSCRIBE", "{b}"]).then(|| Said::Now(refused()))
    });
    // Both commands are in one write.
    drop(left);
    let mut new = scene.subscribe("{c}").unwrap();
    assert_eq!(scene.cluster.router.map().owner(slot::of("{c}")), Some(&Host::new("h", 1)));
    assert_eq!(scene.cluster.reconnects(), before + 1, "the socket was given up");
    assert_eq!(scene.hear(&mut new, ms(5000)), []);
}

/// A client tries again and again.
#[test]
fn a_channel_that_was_refused_is_not_asked_for_before_a_pause() {
    let mut scene = Scene::sharded();
    let _kept = scene.subscribe("{a}").unwrap();
    scene.lab.nodes[&1].answers(|_, words| {
        (words == ["SSUBSCRIBE", "{b}"]).then(|| Said::Now("-NOPERM not this channel\r\n".to_owned()))
    });
    let began = scene.lab.now();
    for _ in 0..10 {
        assert!(scene.subscribe("{b}").is_err());
    }
    let took = scene.lab.now() - began;
    assert!(took > ms(500), "{took:?}");
}

/// The only master says that the cluster has failed. The other nodes do not.
#[test]
fn a_socket_to_a_node_that_is_cut_off_is_given_up() {
    for sharded in [true, false] {
        let mut scene = if sharded { Scene::sharded() } else { Scene::new() };
        let mut notices = scene.subscribe("{a}").unwrap();
        assert_eq!(scene.hear(&mut notices, ms(5000)), [], "sharded: {sharded}");
        let before = scene.cluster.reconnects();
        scene.lab.nodes[&1].up.store(false, Ordering::SeqCst);
        assert_eq!(scene.hear(&mut notices, ms(10_000)), [Notice::Gap], "sharded: {sharded}");
        scene.lab.nodes[&1].up.store(true, Ordering::SeqCst);
        assert_eq!(scene.hear(&mut notices, ms(5000)), [Notice::Gap], "sharded: {sharded}");
        assert_eq!(scene.cluster.reconnects(), before + 1, "sharded: {sharded}");
    }
}

/// Without a pause, there would be more dials at the same time than the lab allows.
#[test]
fn a_subscription_pauses_between_attempts() {
    for sharded in [true, false] {
        let mut scene = if sharded { Scene::sharded() } else { Scene::new() };
        let mut notices = scene.subscribe("{a}").unwrap();
        let master = Arc::clone(&scene.lab.nodes[&1]);
        master.dead.store(true, Ordering::SeqCst);
        master.sockets().into_iter().for_each(|socket| master.cut(socket));
        assert_eq!(scene.hear(&mut notices, ms(5000)), [Notice::Gap], "sharded: {sharded}");
        master.dead.store(false, Ordering::SeqCst);
        let heard = scene.hear(&mut notices, ms(5000));
        assert_eq!(heard.last(), Some(&Notice::Gap), "sharded: {sharded}");
    }
}

/// The error is the last failure, or says that there was no answer.
#[test]
fn a_subscription_that_nobody_confirms_fails_when_its_time_is_over() {
    let mut scene = Scene::sharded();
    let _kept = scene.subscribe("{a}").unwrap();
    let limit = Config::default().command_timeout;
    for (said, expected) in [(None, "the node gave no answer"), (Some("-TRYAGAIN later\r\n"), "TRYAGAIN")] {
        scene.lab.nodes[&1].answers(move |_, words| {
            let said = || said.map_or(Said::Never, |said| Said::Now(said.to_owned()));
            (words == ["SSUBSCRIBE", "{b}"]).then(said)
        });
        let began = scene.lab.now();
        let error = scene.subscribe("{b}").map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{error:?}");
        assert_eq!(scene.lab.now() - began, limit, "{expected}");
    }
}

#[test]
fn a_connection_that_is_closed_ends_its_subscriptions_and_takes_no_other() {
    for sharded in [true, false] {
        let mut scene = if sharded { Scene::sharded() } else { Scene::new() };
        let mut notices = scene.subscribe("{a}").unwrap();
        scene.run(call).unwrap();
        scene.cluster.close();
        assert_eq!(scene.run(call), Err(ConnectionError::Closed));
        scene.lab.run(&mut scene.tasks, async { while let Some(Notice::Gap) = notices.next().await {} });
        assert_eq!(scene.subscribe("{a}").map(drop).unwrap_err(), ConnectionError::Closed, "sharded: {sharded}");
        assert!(scene.lab.nodes[&1].sockets().is_empty(), "sharded: {sharded}");
    }
}

#[test]
fn a_connection_that_is_dropped_is_closed() {
    let mut scene = Scene::sharded();
    let mut notices = scene.subscribe("{a}").unwrap();
    scene.run(call).unwrap();
    let Scene { lab, mut tasks, cluster } = scene;
    drop(cluster);
    lab.run(&mut tasks, async { while notices.next().await.is_some() {} });
    assert!(lab.nodes[&1].sockets().is_empty());
}

/// A runtime drops its tasks when it shuts down.
#[test]
fn without_its_tasks_a_connection_is_closed() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    scene.tasks.clear();
    assert!(scene.cluster.router.is_closed());
    assert_eq!(scene.run(call), Err(ConnectionError::Closed));
}

#[test]
fn a_call_under_way_ends_with_the_connection() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    lab.nodes[&1].frozen.store(true, Ordering::SeqCst);
    let closes = async {
        lab.sleep(ms(50)).await;
        cluster.close();
    };
    let (answer, ()) = lab.run(&mut scene.tasks, futures::future::join(call(cluster), closes));
    assert_eq!(answer, Err(ConnectionError::Closed));
}

/// A link that was made anew may mean that messages were missed. The socket of the subscription has not changed.
#[test]
fn a_subscription_stays_at_its_node_while_that_is_a_master() {
    let mut scene = Scene::new();
    let mut notices = scene.subscribe("{a}").unwrap();
    let before = scene.cluster.reconnects();
    scene.cluster.router.signals.gap();
    assert_eq!(scene.hear(&mut notices, ms(1000)), [Notice::Gap]);
    assert_eq!(scene.cluster.reconnects(), before);
    scene.lab.nodes.values().for_each(|node| *lock(&node.owner) = (2, 5));
    let heard = commands(&scene, 2, "{a}");
    scene.cluster.router.signals.suspect_map();
    let gaps = scene.hear(&mut notices, ms(1000));
    assert!(gaps.len() >= 2 && gaps.iter().all(|notice| *notice == Notice::Gap), "{gaps:?}");
    assert_eq!(*lock(&heard), ["SUBSCRIBE"]);
}
