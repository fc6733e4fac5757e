//! A cluster of two masters, and readings of several nodes.

use futures::future::join;

use super::*;

/// Of slots that belong to nodes 1 and 2.
const KEYS: [&str; 2] = ["{b}", "{a}"];

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The first half of the slots belongs to node 1, the other one to node 2.
fn halves(words: &[&str]) -> Option<Said> {
    let range =
        |slots: &str, port: u16| format!("*3\r\n{slots}*3\r\n{}:{port}\r\n{}", bulk("h"), bulk(&format!("n{port}")));
    match words {
        ["CLUSTER", "SLOTS"] => {
            Some(Said::Now(format!("*2\r\n{}{}", range(":0\r\n:8191\r\n", 1), range(":8192\r\n:16383\r\n", 2))))
        }
        ["CLUSTER", "NODES"] => {
            let line = |port: u16, slots: &str| format!("n{port} h:{port}@1 master - 0 0 1 connected {slots}\n");
            Some(Said::Now(bulk(&(line(1, "0-8191") + &line(2, "8192-16383")))))
        }
        _ => None,
    }
}

/// A client of that cluster.
fn scene() -> Scene {
    scene_with(&Config::default())
}

fn scene_with(config: &Config) -> Scene {
    let lab = Lab::new(&[1, 2, 3], 1);
    lab.nodes.values().for_each(|node| node.answers(|_, words| halves(words)));
    let mut scene = Scene::with(lab, "redis-cluster://h:1", config, 7);
    for key in KEYS {
        scene.run(async |cluster| call_of(cluster, key).await).unwrap();
    }
    scene
}

/// The map still names it.
#[test]
fn a_frozen_master_leaves_time_for_the_first_subscription() {
    for command_timeout in [ms(3000), ms(1000), ms(500)] {
        let config = Config::builder().command_timeout(command_timeout).build().unwrap();
        let mut scene = scene_with(&config);
        scene.lab.nodes[&1].frozen.store(true, Ordering::SeqCst);
        for n in 0..4 {
            // Each begins with another master than the one before.
            let subscribed = scene.subscribe(&format!("inbox {n}")).map(drop);
            assert!(subscribed.is_ok(), "{command_timeout:?}, {n}: {subscribed:?}");
        }
    }
}

/// An attempt takes more than half of the command timeout.
#[test]
fn a_slow_network_has_time_for_the_first_subscription() {
    let config = Config::builder().command_timeout(ms(1000)).build().unwrap();
    let mut scene = scene_with(&config);
    scene.lab.nodes.values().for_each(|node| {
        *lock(&node.round_trip) = ms(300);
        node.sockets().into_iter().for_each(|socket| node.cut(socket));
    });
    scene.sleep(ms(5000));
    let subscribed = scene.subscribe("inbox").map(drop);
    assert!(subscribed.is_ok(), "{subscribed:?}");
}

#[test]
fn calls_are_grouped_by_their_masters() {
    let mut scene = scene();
    for port in [1, 2] {
        scene.lab.nodes[&port].answers(move |_, words| {
            if words[0].starts_with("EVAL") {
                let answer = if words[3] == KEYS[usize::from(port) - 1] { ":1\r\n" } else { ":0\r\n" };
                return Some(Said::Now(answer.to_owned()));
            }
            halves(words)
        });
    }
    let script = Script::all().next().unwrap();
    let calls: Vec<Call<'_>> =
        (0..600).map(|n| Call::new(script, std::slice::from_ref(&KEYS[n % 3 % 2]), &[])).collect();
    let answers = scene.run(async |cluster| cluster.run_batch(&calls).await);
    assert_eq!(answers, vec![Ok(Reply::Integer(1)); 600], "none was sent to the master of others");
}

#[test]
fn each_key_has_its_node() {
    let scene = scene();
    let nodes = KEYS.map(|key| scene.cluster.node_of(key));
    assert_eq!(nodes, [0, 1]);
    assert_eq!(scene.cluster.node_of("{b}:other"), nodes[0]);
}

#[test]
fn the_reason_why_a_node_is_down_is_that_of_the_key() {
    let mut scene = scene();
    assert_eq!(KEYS.map(|key| scene.cluster.why_down(key)), [None, None]);
    let node = Arc::clone(&scene.lab.nodes[&2]);
    node.dead.store(true, Ordering::SeqCst);
    node.sockets().into_iter().for_each(|socket| node.cut(socket));
    scene.sleep(ms(1000));
    let why = KEYS.map(|key| scene.cluster.why_down(key).map(|why| why.to_string()));
    assert!(why[0].is_none() && why[1].as_ref().is_some_and(|why| why.contains("h:2")), "{why:?}");
    let error = scene.run(async |cluster| call_of(cluster, KEYS[1]).await).unwrap_err();
    assert!(error.to_string().contains("h:2"), "{error}");
}

/// One call of a batch was executed by a master that was replaced. The other one was not, and the master says where to
/// send it.
#[test]
fn of_a_late_batch_what_was_not_executed_is_sent_on() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    let (lab, cluster) = (Arc::clone(&scene.lab), &scene.cluster);
    lab.nodes[&1].answers(|_, words| match words {
        ["EVAL" | "EVALSHA", _, _, "{b}", ..] => Some(Said::Now("-MOVED 3300 h:2\r\n".to_owned())),
        ["EVAL" | "EVALSHA", ..] => Some(Said::After(ms(450), ":1\r\n".to_owned())),
        _ => None,
    });
    lab.nodes[&2].answers(|_, words| words[0].starts_with("EVAL").then(|| Said::Now(":2\r\n".to_owned())));
    let replaced = async {
        lab.sleep(ms(200)).await;
        [2, 3].iter().for_each(|port| *lock(&lab.nodes[port].owner) = (2, 5));
    };
    let script = Script::all().next().unwrap();
    let calls = [["{a}"], ["{b}"]];
    let calls = calls.each_ref().map(|keys| Call::new(script, keys, &[]));
    let (answers, ()) = lab.run(&mut scene.tasks, join(cluster.run_batch(&calls), replaced));
    assert!(matches!(answers[0], Err(ConnectionError::Unknown(_))), "{answers:?}");
    assert_eq!(answers[1], Ok(Reply::Integer(2)), "{answers:?}");
}

/// Each login is work for a cluster. The answer of one master of two is not enough, but there is a link to one only.
#[test]
fn no_node_without_a_link_is_asked_while_others_answer() {
    let lab = Lab::new(&[1, 2, 3], 1);
    lab.nodes.values().for_each(|node| node.answers(|_, words| halves(words)));
    let mut scene = Scene::connect(lab);
    scene.run(async |cluster| call_of(cluster, KEYS[0]).await).unwrap();
    for _ in 0..20 {
        scene.cluster.router.signals.suspect_map();
        scene.sleep(ms(1000));
    }
    assert_eq!([2, 3].map(|port| *lock(&scene.lab.nodes[&port].logins)), [0, 0]);
}

/// Whichever of them is asked first.
#[test]
fn a_refusal_says_more_than_a_node_that_is_not_there() {
    for seed in 0..20 {
        let lab = Lab::new(&[1, 2, 3], 1);
        for port in [1, 3] {
            lab.nodes[&port].dead.store(true, Ordering::SeqCst);
        }
        lab.nodes[&2].answers(|_, _| Some(Said::Now("-WRONGPASS invalid username-password pair\r\n".to_owned())));
        let seeds = Seeds::parse("redis-cluster://h:1,h:2,h:3").unwrap();
        let config = Config::default();
        let connecting = Cluster::connect(lab.clone(), lab.clone(), seeds, &config, seed);
        let error = lab.run(&mut Tasks::new(), connecting).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{seed}: {error}");
    }
}

/// A server that evicts keys may drop locks.
#[test]
fn the_warnings_of_the_first_node_are_those_of_the_client() {
    let lab = Lab::new(&[1, 2, 3], 1);
    lab.nodes[&1]
        .answers(|_, words| (words == ["INFO", "memory"]).then(|| Said::Now(bulk("maxmemory_policy:allkeys-lru\r\n"))));
    let seeds = Seeds::parse("redis-cluster://h:1").unwrap();
    let config = Config::default();
    let connecting = Cluster::connect(lab.clone(), lab.clone(), seeds, &config, 7);
    let (_, warnings) = lab.run(&mut Tasks::new(), connecting).unwrap();
    assert_eq!(warnings, [Warning::Eviction { policy: "allkeys-lru".to_owned() }]);
}

#[test]
fn one_sign_of_an_old_map_asks_for_one_reading() {
    let mut scene = Scene::new();
    scene.run(call).unwrap();
    scene.sleep(ms(1000));
    let before = scene.lab.sum(|node| &node.readings);
    scene.cluster.router.signals.suspect_map();
    scene.sleep(ms(20_000));
    assert_eq!(scene.lab.sum(|node| &node.readings), before + 1);
}

/// No majority of the masters of either view reports the same, and a reading asks no node again for that.
#[test]
fn a_reading_of_older_views_that_differ_ends() {
    let lab = Lab::new(&[1, 2, 3], 1);
    lab.nodes.values().for_each(|node| *lock(&node.owner) = (1, 9));
    let mut scene = Scene::with(lab, "redis-cluster://h:1,h:2,h:3", &Config::default(), 7);
    scene.run(call).unwrap();
    let lab = Arc::clone(&scene.lab);
    [(1, 3), (2, 3), (3, 2)].iter().for_each(|(port, owner)| *lock(&lab.nodes[port].owner) = (*owner, 1));
    lab.nodes[&1].dead.store(true, Ordering::SeqCst);
    lab.nodes[&1].sockets().into_iter().for_each(|socket| lab.nodes[&1].cut(socket));
    let before = lab.sum(|node| &node.readings);
    scene.sleep(Duration::from_secs(10));
    let read = lab.sum(|node| &node.readings) - before;
    assert!(read > 1, "{read} nodes were asked");
}

/// The new cluster has older epochs, and the known master is gone. Whichever node is asked first, the one master of the
/// new cluster is asked as well.
#[test]
fn a_cluster_that_was_made_anew_is_found() {
    for seed in 0..10 {
        let lab = Lab::new(&[1, 2, 3], 1);
        lab.nodes.values().for_each(|node| *lock(&node.owner) = (1, 9));
        let mut scene = Scene::with(lab, "redis-cluster://h:1,h:2,h:3", &Config::default(), seed);
        scene.run(call).unwrap();
        let lab = Arc::clone(&scene.lab);
        lab.nodes.values().for_each(|node| *lock(&node.owner) = (2, 1));
        lab.nodes[&1].dead.store(true, Ordering::SeqCst);
        lab.nodes[&1].sockets().into_iter().for_each(|socket| lab.nodes[&1].cut(socket));
        scene.sleep(Duration::from_secs(30));
        assert_eq!(scene.run(call), Ok(Reply::Integer(1)), "seed {seed}");
    }
}
