//! Slots that move from one master to another.

use crate::scene::Scene;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    slots_move_there_and_back,
}

/// The number of slots that move, from slot 0 on.
const MOVED: u16 = 500;

async fn slots_move_there_and_back(env: Env) {
    // A long timeout, so that no failover begins on a busy machine. Valkey waits for the replicas at each step of a move.
    let cluster = Cluster::start_with(3, 0, &["--cluster-node-timeout", "15000"]);
    let moves = |name: &String| cluster.slot_of(&format!("{{{name}}}")) < MOVED;
    let all = || (0..).map(|n| format!("name:{n}"));
    let moving = all().filter(moves).take(4);
    let staying = all().filter(|name| !moves(name)).take(4);
    let names = moving.chain(staying).collect();
    let scene = Scene::start(env, cluster, names).await;
    scene.disturb(|cluster| move_slots(cluster, 0, 1)).await;
    scene.served_again().await;
    scene.disturb(|cluster| move_slots(cluster, 1, 0)).await;
    scene.report("slots moved there and back");
    scene.finish().await;
}

/// Moves the slots one after the other with their keys, as an operator does, over connections that stay open.
fn move_slots(cluster: &Cluster, from: usize, to: usize) {
    let mut clients: Vec<redis::Connection> = cluster.nodes().iter().map(|node| node.client()).collect();
    let ids: Vec<String> = clients.iter_mut().map(|client| cmd(client, &["CLUSTER", "MYID"]).unwrap()).collect();
    let port = cluster.node(to).port().to_string();
    for slot in 0..MOVED {
        let slot = slot.to_string();
        let set = |client: &mut redis::Connection, what: &[&str]| -> redis::RedisResult<()> {
            cmd(client, &[&["CLUSTER", "SETSLOT", &slot], what].concat())
        };
        set(&mut clients[to], &["IMPORTING", &ids[from]]).unwrap();
        set(&mut clients[from], &["MIGRATING", &ids[to]]).unwrap();
        // The old master does not give up a slot that has keys, and a key may have been written again.
        while set(&mut clients[from], &["NODE", &ids[to]]).is_err() {
            let keys: Vec<String> = cmd(&mut clients[from], &["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).unwrap();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            if !keys.is_empty() {
                let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"];
                cmd::<()>(&mut clients[from], &[&migrate, &keys[..]].concat()).unwrap();
            }
        }
        set(&mut clients[to], &["NODE", &ids[to]]).unwrap();
    }
    cluster.await_agreement();
}

fn cmd<T: redis::FromRedisValue>(client: &mut redis::Connection, command: &[&str]) -> redis::RedisResult<T> {
    redis::cmd(command[0]).arg(&command[1..]).query(client)
}
