//! Answers that come late count once another node has confirmed the master.

use super::*;
use crate::redis::link::limit::SLOW;

fn answers_after(scene: &Scene, time: Duration) {
    scene.lab.nodes[&1]
        .answers(move |_, words| words[0].starts_with("EVAL").then(|| Said::After(time, ":1\r\n".to_owned())));
}

/// The answer to a call of a master that is frozen until `meanwhile` is done, and how long it took.
fn thawed(scene: &mut Scene, meanwhile: impl AsyncFnOnce(&Lab, &Cluster)) -> (Answer, Duration) {
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
    let frozen = &lab.nodes[&1];
    frozen.frozen.store(true, Ordering::SeqCst);
    let asked = lab.now();
    let thaws = async {
        meanwhile(&lab, cluster).await;
        frozen.thaw();
    };
    let (answer, ()) = scene.lab.run(&mut scene.tasks, futures::future::join(call(cluster), thaws));
    assert_eq!(*lock(&frozen.scripts), 2, "it has executed the call");
    (answer, lab.now() - asked)
}

/// The replacement knows, and so does the other one. The old master does not.
fn replace(lab: &Lab) {
    for port in [2, 3] {
        *lock(&lab.nodes[&port].owner) = (2, 5);
    }
}

/// The master is frozen, another node takes its place, and it thaws before the client has heard of that: its answer
/// must not count.
#[test]
fn the_answer_of_a_master_that_thaws_after_its_replacement_does_not_count() {
    for freeze in [150, 450, 2_000].map(Duration::from_millis) {
        for is_replaced in [true, false] {
            let meanwhile = async |lab: &Lab, _: &Cluster| {
                lab.sleep(freeze).await;
                if is_replaced {
                    replace(lab);
                }
            };
            let (answer, took) = thawed(&mut Scene::new(), meanwhile);
            // While a call is slow, the others are asked every now and then, and not twice at the same time.
            let pause = if freeze < SLOW { Duration::ZERO } else { ms(313) };
            let waited = took - freeze;
            assert!(waited <= pause, "the map is read at once, not {waited:?} after the answer");
            match is_replaced {
                true => assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{freeze:?} {answer:?}"),
                false => assert_eq!(answer.unwrap(), Reply::Integer(1), "{freeze:?}"),
            }
        }
    }
}

/// The master stands still for all of them at once. That says nothing about the network.
#[test]
fn no_answer_to_many_calls_counts_after_the_replacement() {
    let mut scene = Scene::over(ms(1));
    scene.run(call).unwrap();
    let lab = Arc::clone(&scene.lab);
    let frozen = &lab.nodes[&1];
    frozen.frozen.store(true, Ordering::SeqCst);
    let thaws = async {
        lab.sleep(ms(1000)).await;
        replace(&lab);
        frozen.thaw();
    };
    let calls = futures::future::join_all((0..100).map(|_| call(&scene.cluster)));
    let (answers, ()) = lab.run(&mut scene.tasks, futures::future::join(calls, thaws));
    let counts = answers.iter().filter(|answer| !matches!(answer, Err(ConnectionError::Unknown(_)))).count();
    assert_eq!((counts, *lock(&frozen.scripts)), (0, 101), "{answers:?}");
}

/// Many slow calls at once count as one. Slow calls again and again raise the limit.
#[test]
fn what_is_late_follows_a_network_that_becomes_slower() {
    let mut scene = Scene::over(ms(10));
    scene.run(call).unwrap();
    let lab = Arc::clone(&scene.lab);
    *lock(&lab.nodes[&1].round_trip) = ms(150);
    let link = scene.cluster.router.link_to(0).unwrap();
    let patient = link.patient();
    let calls = futures::future::join_all((0..100).map(|_| call(&scene.cluster)));
    lab.run(&mut scene.tasks, calls);
    assert!(link.patient() < patient * 5 / 4, "{:?} after {patient:?}", link.patient());
    for _ in 0..60 {
        scene.run(call).unwrap();
        scene.sleep(ms(1000));
    }
    let before = lab.sum(|node| &node.readings);
    scene.run(call).unwrap();
    assert_eq!(lab.sum(|node| &node.readings), before, "it is not late");
}

/// Its seed has another name for the master than the map does. The other nodes take longer to answer.
#[test]
fn a_master_does_not_confirm_itself_under_another_name() {
    let mut scene = Scene::connect_to(Lab::new(&[1, 2, 3], 1), "redis-cluster://other:1");
    let meanwhile = async |lab: &Lab, _: &Cluster| {
        lab.sleep(ms(450)).await;
        replace(lab);
        [2, 3].iter().for_each(|port| *lock(&lab.nodes[port].round_trip) = ms(250));
    };
    let (answer, took) = thawed(&mut scene, meanwhile);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
    assert!(took < scene.cluster.router.config.command_timeout, "another node has answered");
}

/// The map is read while the master is frozen, and it is replaced after that: only a reading that began after the
/// answer counts.
#[test]
fn a_reading_from_before_a_late_answer_does_not_confirm_it() {
    let meanwhile = async |lab: &Lab, cluster: &Cluster| {
        let other = cluster.router.map().masters()[0].clone();
        let asked = lab.now();
        lab.sleep(ms(1)).await;
        cluster.router.signals.suspect_map();
        while !cluster.router.has_read_since(asked, &other) {
            lab.sleep(ms(10)).await;
        }
        replace(lab);
        lab.sleep(ms(1)).await;
    };
    let (answer, _) = thawed(&mut Scene::new(), meanwhile);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
}

/// The master was busy at the login, and answers at once after that.
fn after_a_slow_login() -> Scene {
    let lab = Lab::new(&[1, 2, 3], 1);
    lab.nodes[&1].answers(|_, words| (words[0] == "HELLO").then(|| Said::After(ms(1000), links::hello())));
    Scene::connect(lab)
}

#[test]
fn a_slow_login_makes_no_late_answer_one_that_came_soon() {
    let mut scene = after_a_slow_login();
    for _ in 0..20 {
        scene.run(call).unwrap();
    }
    *lock(&scene.lab.nodes[&1].scripts) = 0;
    let meanwhile = async |lab: &Lab, _: &Cluster| {
        lab.sleep(ms(450)).await;
        replace(lab);
    };
    let (answer, _) = thawed(&mut scene, meanwhile);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
}

/// Its link is used for readings of the map only.
#[test]
fn readings_correct_a_slow_login() {
    let mut scene = after_a_slow_login();
    scene.run(call).unwrap();
    let link = scene.cluster.router.link_to(0).unwrap();
    let slow = link.patient();
    assert!(slow > ms(1000), "{slow:?}");
    for _ in 0..30 {
        scene.cluster.router.signals.suspect_map();
        scene.sleep(ms(1000));
    }
    assert!(link.patient() < slow / 4, "{:?}", link.patient());
}

/// A node that refuses at once, or whose connection breaks, does not say how long its answers take.
#[test]
fn a_reading_that_fails_corrects_nothing() {
    let mut scene = after_a_slow_login();
    scene.run(call).unwrap();
    let link = scene.cluster.router.link_to(0).unwrap();
    let slow = link.patient();
    scene.lab.nodes[&1].answers(|_, words| (words[0] == "CLUSTER").then(|| Said::Now("-ERR no\r\n".to_owned())));
    let before = scene.lab.sum(|node| &node.readings);
    for _ in 0..30 {
        scene.cluster.router.signals.suspect_map();
        scene.sleep(ms(1000));
    }
    assert!(scene.lab.sum(|node| &node.readings) > before);
    assert_eq!(link.patient(), slow);
}

/// An answer that comes at once needs no other node.
#[test]
fn an_answer_in_time_is_not_confirmed() {
    let scene = Scene::new();
    let (lab, mut tasks, cluster) = (scene.lab, scene.tasks, scene.cluster);
    let before = lab.sum(|node| &node.readings);
    for _ in 0..100 {
        lab.run(&mut tasks, call(&cluster)).unwrap();
    }
    assert_eq!(lab.sum(|node| &node.readings), before);
}

/// Nothing else asks for the map before a call has waited for half a second. One that may not take so long would be in
/// vain.
#[test]
fn a_late_answer_has_the_map_read_at_once() {
    for within in [ms(200), ms(3000)] {
        let mut scene = Scene::new();
        scene.run(call).unwrap();
        scene.sleep(ms(1000));
        answers_after(&scene, ms(150));
        let (began, before) = (scene.lab.now(), scene.lab.sum(|node| &node.readings));
        let script = Script::all().next().unwrap();
        let answer = scene.run(async |cluster| cluster.run(Call::new(script, &["{a}"], &[]).within(within)).await);
        assert_eq!((answer, scene.lab.now() - began), (Ok(Reply::Integer(1)), ms(150)), "{within:?}");
        assert!(scene.lab.sum(|node| &node.readings) > before, "another node was asked");
    }
}

/// Four round trips. Fewer would have each call confirmed on a slow network.
#[test]
fn what_is_late_depends_on_the_network() {
    for (round_trip, late) in [(ms(0), ms(100)), (ms(20), ms(100)), (ms(80), ms(320))] {
        for (time, is_late) in [(late - ms(1), false), (late, true)] {
            let mut scene = Scene::over(round_trip);
            scene.run(call).unwrap();
            scene.sleep(ms(1000));
            answers_after(&scene, time - round_trip);
            let before = scene.lab.sum(|node| &node.readings);
            scene.run(call).unwrap();
            assert_eq!(scene.lab.sum(|node| &node.readings) > before, is_late, "{time:?} over {round_trip:?}");
        }
    }
}

/// There is no node that could have taken its place.
#[test]
fn the_only_node_needs_no_confirmation() {
    let lab = Lab::new(&[1], 1);
    lab.nodes[&1].answers(|_, words| match words {
        ["CLUSTER", "SLOTS"] => {
            Some(Said::Now("*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$1\r\nh\r\n:1\r\n$2\r\nn1\r\n".to_owned()))
        }
        ["EVAL" | "EVALSHA", ..] => Some(Said::After(ms(450), ":1\r\n".to_owned())),
        _ => None,
    });
    let mut scene = Scene::connect(lab);
    let began = scene.lab.now();
    scene.run(call).unwrap();
    assert_eq!(scene.lab.now() - began, ms(450));
}

/// No other node answers, so the call waits for a reading that does not end. So does one that no node accepts.
#[test]
fn a_call_that_waits_for_a_reading_ends_with_the_connection() {
    for is_late in [true, false] {
        let mut scene = Scene::new();
        scene.run(call).unwrap();
        if is_late {
            answers_after(&scene, ms(150));
            [2, 3].iter().for_each(|port| scene.lab.nodes[port].frozen.store(true, Ordering::SeqCst));
        } else {
            scene.lab.nodes.values().for_each(|node| node.up.store(false, Ordering::SeqCst));
        }
        let (lab, cluster, began) = (Arc::clone(&scene.lab), &scene.cluster, scene.lab.now());
        let closes = async {
            lab.sleep(ms(1_777)).await;
            cluster.close();
        };
        let (answer, ()) = scene.lab.run(&mut scene.tasks, futures::future::join(call(cluster), closes));
        assert_eq!((answer, lab.now() - began), (Err(ConnectionError::Closed), ms(1_777)), "late: {is_late}");
    }
}
