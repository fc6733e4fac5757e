//! Masters that die, freeze or hand over.

use std::time::Duration;

use crate::scene::Scene;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    a_master_is_killed,
    a_master_freezes_and_thaws,
    a_replica_takes_over_as_an_operator_wants,
}

/// Some of every master.
fn names() -> Vec<String> {
    (0..8).map(|n| format!("name:{n}")).collect()
}

/// The key of the lock of a name.
fn key(name: &str) -> String {
    format!("bowline:lock:{{{name}}}")
}

async fn a_master_is_killed(env: Env) {
    let scene = Scene::start(env, Cluster::start(3, 3), names()).await;
    let key = key(&scene.names[0]);
    scene
        .disturb(move |cluster| {
            let master = cluster.owner_of(&key);
            cluster.kill(master);
            cluster.await_owner(&key, |node| node != master);
        })
        .await;
    scene.served_again().await;
    scene.report("a master was killed");
    scene.finish().await;
}

async fn a_master_freezes_and_thaws(env: Env) {
    let scene = Scene::start(env, Cluster::start(3, 3), names()).await;
    let key = key(&scene.names[0]);
    scene
        .disturb(move |cluster| {
            let master = cluster.owner_of(&key);
            cluster.freeze(master);
            cluster.await_owner(&key, |node| node != master);
            std::thread::sleep(Duration::from_millis(500));
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
