//! Answers that come late.

use super::super::super::link::SLOW;
use super::*;

/// The master is frozen, another node takes its place, and it thaws before the client has heard of that: its answer
/// must not count.
#[test]
fn the_answer_of_a_master_that_thaws_after_its_replacement_does_not_count() {
    for freeze in [150, 450, 2_000].map(Duration::from_millis) {
        for is_replaced in [true, false] {
            let mut scene = Scene::new();
            let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
            scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
            let frozen = &lab.nodes[&1];
            frozen.frozen.store(true, Ordering::SeqCst);
            let asked = lab.now();
            let thaws = async {
                lab.sleep(freeze).await;
                if is_replaced {
                    // The replacement knows, and so does the other one. The old master does not.
                    for port in [2, 3] {
                        *lock(&lab.nodes[&port].owner) = (2, 5);
                    }
                }
                frozen.thaw();
            };
            let (answer, ()) = scene.lab.run(&mut scene.tasks, futures::future::join(call(cluster), thaws));
            assert_eq!(*lock(&frozen.scripts), 2, "it has executed the call");
            // While a call is slow, the others are asked every now and then, and not twice at the same time.
            let pause = if freeze < SLOW { Duration::ZERO } else { Duration::from_millis(313) };
            let waited = lab.now() - asked - freeze;
            assert!(waited <= pause, "the map is read at once, not {waited:?} after the answer");
            match is_replaced {
                true => assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{freeze:?} {answer:?}"),
                false => assert_eq!(answer.unwrap(), Reply::Integer(1), "{freeze:?}"),
            }
        }
    }
}

/// The map is read while the master is frozen, and it is replaced after that: only a reading that began after the
/// answer counts.
#[test]
fn a_reading_from_before_a_late_answer_does_not_confirm_it() {
    let mut scene = Scene::new();
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    scene.lab.run(&mut scene.tasks, call(cluster)).unwrap();
    let frozen = &lab.nodes[&1];
    frozen.frozen.store(true, Ordering::SeqCst);
    let thaws = async {
        let other = cluster.router.map().masters()[0].clone();
        let asked = lab.now();
        lab.sleep(Duration::from_millis(1)).await;
        cluster.router.signals.suspect_map();
        while !cluster.router.has_read_since(asked, &other) {
            lab.sleep(Duration::from_millis(10)).await;
        }
        for port in [2, 3] {
            *lock(&lab.nodes[&port].owner) = (2, 5);
        }
        lab.sleep(Duration::from_millis(1)).await;
        frozen.thaw();
    };
    let (answer, ()) = scene.lab.run(&mut scene.tasks, futures::future::join(call(cluster), thaws));
    assert_eq!(*lock(&frozen.scripts), 2, "it has executed the call");
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
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

/// Where a round trip takes long, a few of them are no sign of anything.
#[test]
fn an_answer_is_late_after_some_round_trips() {
    let round_trip = Duration::from_millis(200);
    for (after, is_late) in [(400, false), (700, true)].map(|(ms, is_late)| (Duration::from_millis(ms), is_late)) {
        let lab = Lab::new(&[1, 2, 3], 1);
        lab.nodes.values().for_each(|node| *lock(&node.round_trip) = round_trip);
        let mut scene = Scene::connect(lab);
        scene.run(call).unwrap();
        // Nothing else is on its way.
        scene.sleep(Duration::from_secs(5));
        scene.lab.nodes[&1]
            .answers(move |_, words| words[0].starts_with("EVAL").then(|| Said::After(after, ":1\r\n".to_owned())));
        let asked = scene.lab.now();
        scene.run(call).unwrap();
        let waited = scene.lab.now() - asked - round_trip - after;
        assert_eq!(waited > Duration::ZERO, is_late, "{waited:?} after the answer, which came after {after:?}");
    }
}
