//! Calls that wait for replicas.

use super::*;

const WITHIN: Duration = Duration::from_secs(1);

/// Runs one call that waits for one replica.
async fn acknowledged(cluster: &Cluster) -> std::result::Result<Acknowledged, ConnectionError> {
    let script = Script::all().next().unwrap();
    cluster.run_acknowledged(&[Call::new(script, &["{a}"], &[])], 1, WITHIN).await.remove(0)
}

/// The script found that a key had moved, and may have written to other keys before.
#[test]
fn what_a_script_has_done_that_stopped_half_way_is_unknown() {
    let mut scene = Scene::new();
    assert_eq!(scene.run(acknowledged).unwrap().replicas, 1);
    scene.lab.nodes[&1].answers(|_, words| {
        let refusal = "-ERR Script attempted to access a non local key in a cluster node script: 0123\r\n";
        words[0].starts_with("EVAL").then(|| Said::Now(refusal.to_owned()))
    });
    let answer = scene.run(acknowledged);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
}

/// The node has executed the script before it begins to load. It would execute it once more.
#[test]
fn a_script_behind_which_the_node_does_not_wait_is_not_sent_again() {
    let mut scene = Scene::new();
    scene.run(acknowledged).unwrap();
    let (before, mut waits) = (scene.lab.sum(|node| &node.scripts), 0);
    scene.lab.nodes[&1].answers(move |_, words| {
        waits += usize::from(words[0] == "WAIT");
        (words[0] == "WAIT" && waits == 1).then(|| Said::Now("-LOADING wait\r\n".to_owned()))
    });
    let answer = scene.run(acknowledged);
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
    assert_eq!(scene.lab.sum(|node| &node.scripts), before + 1);
}

/// A replica is slow. What is late at its master depends on the network.
#[test]
fn waiting_for_replicas_says_nothing_about_the_network() {
    let mut scene = Scene::over(ms(10));
    scene.run(acknowledged).unwrap();
    let link = scene.cluster.router.link_to(0).unwrap();
    let patient = link.patient();
    scene.lab.nodes[&1].answers(|_, words| (words[0] == "WAIT").then(|| Said::After(ms(500), ":1\r\n".to_owned())));
    for _ in 0..20 {
        scene.run(acknowledged).unwrap();
        scene.sleep(ms(1000));
    }
    assert_eq!(link.patient(), patient);
}

/// A node that says "later" again and again, slowly.
#[test]
fn all_rounds_together_take_no_longer_than_one() {
    let mut scene = Scene::new();
    scene.run(acknowledged).unwrap();
    let (lab, waits) = (Arc::clone(&scene.lab), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&waits);
    scene.lab.nodes[&1].answers(move |_, words| match words {
        ["EVAL" | "EVALSHA", ..] => Some(Said::After(ms(200), "-TRYAGAIN later\r\n".to_owned())),
        ["WAIT", _, limit] => {
            lock(&heard).push(lab.now() + Duration::from_millis(limit.parse().unwrap()));
            None
        }
        _ => None,
    });
    let began = scene.lab.now();
    let answer = scene.run(acknowledged);
    // The time limit may cut the last round short.
    assert!(matches!(answer, Err(ConnectionError::Refused { .. } | ConnectionError::Unknown(_))), "{answer:?}");
    let ends = lock(&waits).clone();
    assert!(ends.len() > 2, "{} rounds", ends.len());
    // The answer to the last request may have come after the time limit.
    let slow = ms(300);
    let latest = ends.into_iter().max().unwrap() - began;
    assert!(latest <= WITHIN + slow, "a replica may acknowledge the call until {latest:?}");
    assert!(scene.lab.now() <= began + WITHIN + slow, "{:?}", scene.lab.now() - began);
}

/// A call that needs neither a new link nor a confirmation by another node sets no timer.
#[test]
fn calls_that_are_answered_soon_set_no_timers() {
    let mut scene = Scene::new();
    scene.run(acknowledged).unwrap();
    let before = scene.lab.timers();
    for _ in 0..100 {
        scene.run(acknowledged).unwrap();
    }
    assert!(scene.lab.timers() - before <= 1, "{} timers", scene.lab.timers() - before);
}

#[test]
fn a_link_that_waits_for_replicas_is_ended_when_it_is_idle() {
    let mut scene = Scene::new();
    scene.run(acknowledged).unwrap();
    assert_eq!(scene.lab.nodes[&1].sockets().len(), 2);
    scene.sleep(Duration::from_secs(121));
    assert_eq!(scene.lab.nodes[&1].sockets().len(), 1);
    assert_eq!(scene.run(acknowledged).unwrap().replicas, 1);
}
