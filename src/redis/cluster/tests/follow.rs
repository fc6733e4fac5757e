//! How a call goes from node to node. Single calls, batches, and calls that wait for replicas go the same way.

use futures::future::join;

use super::*;

const ALONE: How = How { replicas: None, calls: 1 };
const IN_A_BATCH: How = How { replicas: None, calls: 2 };
const ACKNOWLEDGED: How = How { replicas: Some(1), calls: 1 };
const ALL: [How; 3] = [ALONE, IN_A_BATCH, ACKNOWLEDGED];

/// How calls are sent.
#[derive(Clone, Copy, Debug)]
struct How {
    replicas: Option<u32>,
    calls: usize,
}

impl How {
    /// Nodes at these ports, of which the first three are in the map, and a client that has called so before.
    fn scene(self, ports: &[u16]) -> Scene {
        let mut scene = Scene::of(ports);
        for answer in scene.run(async |cluster| self.run(cluster).await) {
            answer.unwrap();
        }
        scene
    }

    /// The answer to each call.
    async fn run(self, cluster: &Cluster) -> Vec<Answer> {
        let calls = vec![Call::new(Script::all().next().unwrap(), &["{a}"], &[]); self.calls];
        match self.replicas {
            Some(replicas) => {
                let answers = cluster.run_acknowledged(&calls, replicas, Config::default().command_timeout).await;
                answers.into_iter().map(|answer| answer.map(|acknowledged| acknowledged.reply)).collect()
            }
            None if self.calls == 1 => vec![cluster.run(calls[0]).await],
            None => cluster.run_batch(&calls).await,
        }
    }

    /// As [`run`](Self::run). After that time, node 2 takes the place of node 1.
    fn run_while_replaced(self, scene: &mut Scene, after: Duration) -> Vec<Answer> {
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let replaced = async {
            lab.sleep(after).await;
            replace(&lab);
        };
        lab.run(&mut scene.tasks, join(self.run(cluster), replaced)).0
    }
}

/// All nodes but node 1 know of its replacement.
pub(super) fn replace(lab: &Lab) {
    [2, 3].iter().for_each(|port| *lock(&lab.nodes[port].owner) = (2, 5));
}

/// The master is frozen, is replaced by another node, and thaws before the client has heard of that.
#[test]
fn no_late_answer_of_a_replaced_master_counts() {
    for (how, is_replaced) in ALL.into_iter().flat_map(|how| [(how, true), (how, false)]) {
        let mut scene = how.scene(&[1, 2, 3]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let frozen = &lab.nodes[&1];
        frozen.frozen.store(true, Ordering::SeqCst);
        let thaws = async {
            lab.sleep(ms(450)).await;
            if is_replaced {
                replace(&lab);
            }
            frozen.thaw();
        };
        let (answers, ()) = lab.run(&mut scene.tasks, join(how.run(cluster), thaws));
        assert_eq!(answers.len(), how.calls);
        for answer in answers {
            match is_replaced {
                true => assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{how:?} {answer:?}"),
                false => assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}"),
            }
        }
    }
}

/// A silent master may have been replaced. The map says so before the time of the call is over.
#[test]
fn the_map_is_read_while_a_node_is_silent() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        scene.lab.nodes[&1].frozen.store(true, Ordering::SeqCst);
        let began = scene.lab.now();
        let answers = how.run_while_replaced(&mut scene, ms(1_000));
        assert!(answers.iter().all(|answer| matches!(answer, Err(ConnectionError::Unknown(_)))), "{how:?} {answers:?}");
        let took = scene.lab.now() - began;
        assert!(took < Duration::from_secs(2), "{how:?}: after {took:?}");
    }
}

/// Node 1 answers `ASK` with node 4, and node 4 redirects the call back. During the pause that follows, the slot stops
/// moving, and node 4 vanishes.
#[test]
fn after_a_pause_the_owner_of_the_slot_is_asked() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3, 4]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let (mut asked, mut denied) = (0, 0);
        let is_script = |words: &[&str]| words[0].starts_with("EVAL");
        lab.nodes[&1].answers(move |_, words| {
            asked += usize::from(is_script(words));
            (is_script(words) && asked <= 3 * how.calls).then(|| Said::Now("-ASK 0 h:4\r\n".to_owned()))
        });
        lab.nodes[&4].answers(move |_, words| {
            denied += usize::from(is_script(words));
            let said = if denied <= 2 * how.calls { Said::Now("-MOVED 0 h:1\r\n".to_owned()) } else { Said::Never };
            is_script(words).then_some(said)
        });
        for answer in lab.run(&mut scene.tasks, how.run(cluster)) {
            assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}");
        }
    }
}

/// The node refuses the call, and vanishes while the call waits to be sent again.
#[test]
fn a_call_says_how_it_was_refused_and_not_that_it_waits_for_a_link() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        lab.nodes.values().for_each(|node| node.up.store(false, Ordering::SeqCst));
        let vanishes = async {
            lab.sleep(ms(1_500)).await;
            lab.nodes[&1].dead.store(true, Ordering::SeqCst);
            lab.nodes[&1].sockets().into_iter().for_each(|socket| lab.nodes[&1].cut(socket));
        };
        let (answers, ()) = lab.run(&mut scene.tasks, join(how.run(cluster), vanishes));
        for answer in answers {
            let is_refusal = matches!(&answer, Err(ConnectionError::Refused { code, .. }) if code == "CLUSTERDOWN");
            assert!(is_refusal, "{how:?} {answer:?}");
        }
    }
}

/// The node says "later" again and again, or that it accepts no calls.
#[test]
fn a_call_that_is_put_off_ends_when_its_time_is_over() {
    for refusal in ["TRYAGAIN later", "CLUSTERDOWN down"] {
        for how in ALL {
            let mut scene = how.scene(&[1, 2, 3]);
            let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
            lab.nodes[&1]
                .answers(move |_, words| words[0].starts_with("EVAL").then(|| Said::Now(format!("-{refusal}\r\n"))));
            let began = lab.now();
            let answers = lab.run(&mut scene.tasks, how.run(cluster));
            assert_eq!(lab.now() - began, Config::default().command_timeout, "{refusal} {how:?}");
            for answer in answers {
                assert_eq!(answer, Err(ConnectionError::refused(refusal)), "{how:?}");
            }
        }
    }
}

/// A slot moves from node 1 to node 4, which executes a call only directly behind an `ASKING`.
#[test]
fn a_node_that_is_taking_a_slot_over_is_asked_to() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3, 4]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let is_script = |words: &[&str]| words[0].starts_with("EVAL");
        lab.nodes[&1].answers(move |_, words| is_script(words).then(|| Said::Now("-ASK 0 h:4\r\n".to_owned())));
        let mut is_asking = false;
        lab.nodes[&4].answers(move |_, words| {
            let was_asking = std::mem::replace(&mut is_asking, words == ["ASKING"]);
            (is_script(words) && !was_asking).then(|| Said::Now("-MOVED 0 h:1\r\n".to_owned()))
        });
        for answer in lab.run(&mut scene.tasks, how.run(cluster)) {
            assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}");
        }
        assert_eq!(*lock(&lab.nodes[&4].scripts), how.calls as u64);
    }
}

/// A master that has thawed knows of its replacement, and says so. That needs no other node's word.
#[test]
fn a_late_redirection_is_followed() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let frozen = &lab.nodes[&1];
        frozen.frozen.store(true, Ordering::SeqCst);
        let thaws = async {
            lab.sleep(ms(450)).await;
            for node in lab.nodes.values() {
                *lock(&node.owner) = (2, 5);
                node.strict.store(true, Ordering::SeqCst);
            }
            frozen.thaw();
        };
        let (answers, ()) = lab.run(&mut scene.tasks, join(how.run(cluster), thaws));
        for answer in answers {
            assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}");
        }
        assert_eq!(*lock(&lab.nodes[&2].scripts), how.calls as u64);
    }
}

/// A refusal tells of the keys as the replaced master has them.
#[test]
fn no_late_refusal_of_a_replaced_master_counts() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        scene.lab.nodes[&1].answers(|_, words| {
            words[0].starts_with("EVAL").then(|| Said::After(ms(450), "-WRONGTYPE no\r\n".to_owned()))
        });
        let answers = how.run_while_replaced(&mut scene, ms(200));
        assert!(answers.iter().all(|answer| matches!(answer, Err(ConnectionError::Unknown(_)))), "{how:?} {answers:?}");
    }
}

/// The link to the master is lost, and cannot be made again. Another node takes its place meanwhile.
#[test]
fn a_call_that_waits_for_a_link_takes_the_way_of_a_new_map() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        let node = Arc::clone(&scene.lab.nodes[&1]);
        node.dead.store(true, Ordering::SeqCst);
        node.sockets().into_iter().for_each(|socket| node.cut(socket));
        scene.sleep(ms(50));
        for answer in how.run_while_replaced(&mut scene, ms(1_000)) {
            assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}");
        }
    }
}

/// As before, but there is no link to the other node either.
#[test]
fn a_call_that_finds_no_link_on_the_new_way_ends_in_time() {
    for how in ALL {
        let mut scene = how.scene(&[1, 2, 3]);
        for port in [1, 2] {
            let node = Arc::clone(&scene.lab.nodes[&port]);
            node.dead.store(true, Ordering::SeqCst);
            node.sockets().into_iter().for_each(|socket| node.cut(socket));
        }
        scene.sleep(ms(50));
        let (began, limit) = (scene.lab.now(), Config::default().command_timeout);
        let answers = how.run_while_replaced(&mut scene, limit - ms(1_000));
        assert!(answers.iter().all(Result::is_err), "{how:?} {answers:?}");
        assert!(scene.lab.now() - began <= limit, "{how:?}: after {:?}", scene.lab.now() - began);
    }
}

/// Nodes send a call to each other: five times at once, and after a pause as often again.
#[test]
fn there_is_one_pause_for_five_redirections() {
    for how in [ALONE, ACKNOWLEDGED] {
        let mut scene = how.scene(&[1, 2, 3, 4]);
        let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
        let sent = Arc::new(AtomicU64::new(0));
        for (port, other) in [(1, 4), (4, 1)] {
            let sent = Arc::clone(&sent);
            lab.nodes[&port].answers(move |_, words| {
                let is_script = words[0].starts_with("EVAL");
                (is_script && sent.fetch_add(1, Ordering::SeqCst) < 9)
                    .then(|| Said::Now(format!("-MOVED 0 h:{other}\r\n")))
            });
        }
        let began = lab.now();
        for answer in lab.run(&mut scene.tasks, how.run(cluster)) {
            assert_eq!(answer.unwrap(), Reply::Integer(1), "{how:?}");
        }
        // A first pause takes 10 ms, with a quarter of jitter, and the map moves on with each call.
        assert!(lab.now() - began <= ms(13), "{how:?}: {:?}", lab.now() - began);
    }
}

#[test]
fn the_answers_of_several_nodes_are_in_the_order_of_the_calls() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let script = Script::all().next().unwrap();
    let keys = [["{a}"], ["{b}"], ["{a}"]];
    let calls = keys.each_ref().map(|keys| Call::new(script, keys, &[]));
    // Node 2 has the slot of one of them.
    scene.lab.nodes[&1].answers(|_, words| {
        (words[0].starts_with("EVAL") && words[3] == "{b}").then(|| Said::Now("-MOVED 0 h:2\r\n".to_owned()))
    });
    scene.lab.nodes[&2].answers(|_, words| words[0].starts_with("EVAL").then(|| Said::Now(":2\r\n".to_owned())));
    for _ in 0..2 {
        let plain: Vec<_> = scene.run(async |cluster| cluster.run_batch(&calls).await);
        assert_eq!(plain, [1, 2, 1].map(|n| Ok(Reply::Integer(n))));
        let acknowledged = scene.run(async |cluster| cluster.run_acknowledged(&calls, 1, ms(1_000)).await);
        let replies: Vec<_> = acknowledged.into_iter().map(|answer| answer.unwrap().reply).collect();
        assert_eq!(replies, [1, 2, 1].map(Reply::Integer));
    }
}
