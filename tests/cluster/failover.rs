//! Masters that die, freeze or hand over.

use std::time::{Duration, Instant};

use crate::scene::Scene;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::support::server::Server;
use crate::tests;

tests! {
    a_master_is_killed,
    a_master_freezes_and_thaws,
    a_replica_takes_over_as_an_operator_wants,
}

/// Names that every master has some of.
fn names() -> Vec<String> {
    (0..8).map(|n| format!("name:{n}")).collect()
}

/// The key of the lock of a name.
fn key(name: &str) -> String {
    format!("bowline:lock:{{{name}}}")
}

async fn a_master_is_killed(env: Env) {
    let cluster = Cluster::start(3, 3);
    let dies = cluster.owner_of(&key(&names()[0]));
    let others: Vec<String> = names().into_iter().filter(|name| cluster.owner_of(&key(name)) != dies).collect();
    let scene = Scene::start(env, cluster, names()).await;
    let key = key(&scene.names[0]);
    let (down, up) = scene
        .disturb(move |cluster| {
            let master = cluster.owner_of(&key);
            let other = cluster.shards().into_iter().map(|shard| shard.master).find(|other| *other != master).unwrap();
            cluster.kill(master);
            // With the settings of these tests, all masters refuse calls while one is missing.
            let [down, up] = ["fail", "ok"].map(|state| when_it_is(cluster.node(other), state));
            cluster.await_owner(&key, |node| node != master);
            (down, up)
        })
        .await;
    scene.served_again().await;
    scene.report("a master was killed");
    let first = scene.log.first_since(&others, up).expect("they are served");
    println!("the others refused calls for {:?}; a name of theirs was granted {:?} after that", up - down, first - up);
    scene.finish().await;
}

/// Waits for this state of the cluster, as the node sees it.
fn when_it_is(node: &Server, state: &str) -> Instant {
    let (mut client, start) = (node.client(), Instant::now());
    loop {
        let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut client).unwrap();
        if info.contains(&format!("cluster_state:{state}")) {
            return Instant::now();
        }
        assert!(start.elapsed() < Duration::from_secs(30), "never {state}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

async fn a_master_freezes_and_thaws(env: Env) {
    let scene = Scene::start(env, Cluster::start(3, 3), names()).await;
    let key = key(&scene.names[0]);
    let master = scene
        .disturb(move |cluster| {
            let master = cluster.owner_of(&key);
            cluster.freeze(master);
            cluster.await_owner(&key, |node| node != master);
            master
        })
        .await;
    // Then every client knows the new master. Until it does, the answers of a thawed master count.
    scene.served_again().await;
    scene
        .disturb(move |cluster| {
            cluster.thaw(master);
            cluster.await_agreement();
        })
        .await;
    scene.served_again().await;
    scene.report("a master froze");
    scene.finish().await;
}

async fn a_replica_takes_over_as_an_operator_wants(env: Env) {
    let scene = Scene::start(env, Cluster::start(3, 3), names()).await;
    let key = key(&scene.names[0]);
    scene
        .disturb(move |cluster| {
            let (master, replica) = (cluster.owner_of(&key), cluster.replicas_of(&key)[0]);
            cluster.fail_over(replica);
            cluster.await_owner(&key, |node| node == replica);
            cluster.fail_over(master);
        })
        .await;
    scene.served_again().await;
    scene.report("a replica took over");
    scene.finish().await;
}
