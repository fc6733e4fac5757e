//! Slots that move from one master to another.

use crate::scene::Scene;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    slots_move_there_and_back,
}

/// So many slots move, from the first one on.
const MOVED: u16 = 500;

async fn slots_move_there_and_back(env: Env) {
    let cluster = Cluster::start(3, 3);
    let moves = |name: &String| cluster.slot_of(&format!("{{{name}}}")) < MOVED;
    let all = || (0..).map(|n| format!("name:{n}"));
    let moving = all().filter(moves).take(4);
    let staying = all().filter(|name| !moves(name)).take(4);
    let names = moving.chain(staying).collect();
    let scene = Scene::start(env, cluster, names).await;
    let start = std::time::Instant::now();
    scene.disturb(|cluster| cluster.reshard(0..=MOVED - 1, 1)).await;
    eprintln!("there: {:?}", start.elapsed());
    scene.served_again().await;
    scene.disturb(|cluster| cluster.reshard(0..=MOVED - 1, 0)).await;
    eprintln!(
        "and back: {:?}; at most {:?} without a grant",
        start.elapsed(),
        scene.log.longest_gap(&scene.names[..1])
    );
    scene.finish().await;
}
