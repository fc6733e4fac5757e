//! Answers that come late count once another node has confirmed the master.

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn answers_after(scene: &Scene, time: Duration) {
    scene.lab.nodes[&1]
        .answers(move |_, words| words[0].starts_with("EVAL").then(|| Said::After(time, ":1\r\n".to_owned())));
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
        let answer = scene.run(async |cluster| cluster.run(&Call::new(script, &["{a}"], &[]).within(within)).await);
        assert_eq!((answer, scene.lab.now() - began), (Ok(Reply::Integer(1)), ms(150)), "{within:?}");
        assert!(scene.lab.sum(|node| &node.readings) > before, "another node was asked");
    }
}

/// Four round trips. Fewer would have each call confirmed on a slow network.
#[test]
fn what_is_late_depends_on_the_network() {
    for (round_trip, late) in [(ms(0), ms(100)), (ms(20), ms(100)), (ms(80), ms(320))] {
        let lab = Lab::new(&[1, 2, 3], 1);
        lab.nodes.values().for_each(|node| *lock(&node.round_trip) = round_trip);
        let mut scene = Scene::connect(lab);
        scene.run(call).unwrap();
        for (time, is_late) in [(late - ms(1), false), (late, true)] {
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
