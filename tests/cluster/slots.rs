//! Slots that move from one master to another.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::scene::Scene;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    slots_move_there_and_back,
    slots_move_at_once_there_and_back,
}

/// The number of slots that move, from slot 0 on.
const MOVED: u16 = 500;

async fn slots_move_there_and_back(env: Env) {
    there_and_back(env, start(), move_slots, "slots moved there and back").await;
}

/// Valkey moves slots with all their keys in one operation from version 9 on.
async fn slots_move_at_once_there_and_back(env: Env) {
    let cluster = start();
    let known: Vec<Option<redis::Value>> =
        cmd(&mut cluster.node(0).client(), &["COMMAND", "INFO", "cluster|migrateslots"]).unwrap();
    if known.iter().all(Option::is_none) {
        println!("skipped: this server has no CLUSTER MIGRATESLOTS");
        return;
    }
    there_and_back(env, cluster, migrate_slots, "slots moved at once there and back").await;
}

/// A long timeout, so that no failover begins on a busy machine. Valkey waits for the replicas at each step of a move.
fn start() -> Cluster {
    Cluster::start_with(3, 0, &["--cluster-node-timeout", "15000"])
}

async fn there_and_back(env: Env, cluster: Cluster, moves_slots: fn(&Cluster, usize, usize), what: &str) {
    let moves = |name: &String| cluster.slot_of(&format!("{{{name}}}")) < MOVED;
    let all = || (0..).map(|n| format!("name:{n}"));
    let moving = all().filter(moves).take(4);
    let staying = all().filter(|name| !moves(name)).take(4);
    let names = moving.chain(staying).collect();
    let scene = Scene::start(env, cluster, names).await;
    scene.disturb(move |cluster| moves_slots(cluster, 0, 1)).await;
    scene.served_again().await;
    scene.disturb(move |cluster| moves_slots(cluster, 1, 0)).await;
    scene.report(what);
    scene.finish().await;
}

/// Moves all slots in one operation, and waits for its end.
fn migrate_slots(cluster: &Cluster, from: usize, to: usize) {
    let to: String = cmd(&mut cluster.node(to).client(), &["CLUSTER", "MYID"]).unwrap();
    let (mut client, last) = (cluster.node(from).client(), (MOVED - 1).to_string());
    cmd::<()>(&mut client, &["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", &last, "NODE", &to]).unwrap();
    let start = Instant::now();
    loop {
        let migrations: Vec<HashMap<String, String>> = cmd(&mut client, &["CLUSTER", "GETSLOTMIGRATIONS"]).unwrap();
        // The latest comes first.
        let latest = migrations.iter().find(|migration| migration["operation"] == "EXPORT").unwrap();
        match latest["state"].as_str() {
            "success" => break,
            state => assert!(!["failed", "cancelled"].contains(&state), "{latest:?}"),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{latest:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    cluster.await_agreement();
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
