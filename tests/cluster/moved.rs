//! Calls that a node sends to another one, at the addresses that clients reach.

use std::time::Duration;

use bowline::{ConnectOptions, ErrorKind};

use crate::acknowledged::{key, names_of};
use crate::support::adapters::admin;
use crate::support::cluster::Cluster;
use crate::support::env::{Env, TestClient};
use crate::support::server::Server;
use crate::tests;

tests! {
    calls_follow_their_keys_before_the_slot_has_moved,
    redirections_name_announced_addresses_too,
    passwords_are_those_of_every_node,
}

const MINUTE: Duration = Duration::from_secs(60);

fn start() -> Cluster {
    Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"])
}

/// How many refusals of this kind the node has given.
fn refused(node: &Server, code: &str) -> u64 {
    let info: String = redis::cmd("INFO").arg("errorstats").query(&mut node.client()).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

/// The lock's key is at the other node, and the slot is still this one's.
async fn works_while_asked(cluster: &Cluster, client: &TestClient, name: &str) {
    let lock = client.lock(name);
    let held = lock.lock().expires_after(MINUTE).await.unwrap();
    let slot = slot(cluster, name);
    cluster.open_slot(slot, 0, 1);
    while cluster.move_keys(slot, 0, 1, 100) > 0 {}
    // The new node does not have the script, has it, or has lost it.
    for (n, flushed) in [(1, false), (2, false), (3, true)] {
        if flushed {
            admin(cluster.node(1), &["SCRIPT", "FLUSH"]);
        }
        let asked = refused(cluster.node(0), "ASK");
        held.extend(MINUTE * n).await.unwrap();
        assert!(held.remaining() > MINUTE * (n - 1), "{:?}", held.remaining());
        assert_eq!(refused(cluster.node(0), "ASK"), asked + 1);
    }
    cluster.close_slot(slot, 0, 1);
    let moved = refused(cluster.node(0), "MOVED");
    held.release().await.unwrap();
    assert_eq!(refused(cluster.node(0), "MOVED"), moved + 1);
}

async fn calls_follow_their_keys_before_the_slot_has_moved(env: Env) {
    let cluster = start();
    let client = env.client_at(&cluster.user_url(), |config| config).await.unwrap();
    let name = names_of(&cluster, 0, 1).remove(0);
    works_while_asked(&cluster, &client, &name).await;
    client.close().await;
}

/// Each node announces a port at which no one listens.
async fn redirections_name_announced_addresses_too(env: Env) {
    const AWAY: u16 = 20_000;
    let cluster = start();
    let name = names_of(&cluster, 0, 1).remove(0);
    let urls = [cluster.user_url(), cluster.node(1).url().replace("://", "://bowline:secret@")];
    for node in cluster.nodes() {
        admin(node, &["CONFIG", "SET", "cluster-announce-port", &(node.port() + AWAY).to_string()]);
    }
    let knows = |node: &Server, other: &Server| {
        let nodes: String = redis::cmd("CLUSTER").arg("NODES").query(&mut node.client()).unwrap();
        nodes.contains(&format!(":{}@", other.port() + AWAY))
    };
    let all = || cluster.nodes().iter().all(|node| cluster.nodes().iter().all(|other| knows(node, other)));
    env.eventually("each node knows what the others announce", async || all()).await;
    // The URL has addresses that the client can reach.
    let reached = |url: &str| {
        let reached = |host: &str, port: u16| (host.to_owned(), port.checked_sub(AWAY).expect("an announced port"));
        ConnectOptions::new(url).addresses(reached)
    };
    for url in &urls {
        let client = env.client_at(reached(url), |config| config).await.unwrap();
        client.lock(&name).lock().await.unwrap().release().await.unwrap();
        client.close().await;
    }
    let client = env.client_at(reached(&urls[0]), |config| config).await.unwrap();
    works_while_asked(&cluster, &client, &name).await;
    client.close().await;
}

/// The testkit's own map knows no announced ports.
fn slot(cluster: &Cluster, name: &str) -> u16 {
    redis::cmd("CLUSTER").arg("KEYSLOT").arg(key(name)).query(&mut cluster.node(0).client()).unwrap()
}

async fn passwords_are_those_of_every_node(env: Env) {
    let cluster = start();
    let names = [0, 1].map(|node| names_of(&cluster, node, 1).remove(0));
    let (open, user) = (cluster.url(), cluster.user_url());
    let password = |of: &[usize]| of.iter().for_each(|node| default_password(cluster.node(*node), "s,@3/x"));
    let with = |login: &str| open.replace("://", &format!("://{login}@"));
    password(&[1]);
    // The second node refuses what the first one accepts.
    let denied = match env.client_at(&open, |config| config).await {
        Ok(client) => client.lock(&names[1]).lock().await.map(drop),
        // The subscription is refused when it is made.
        Err(error) => Err(error),
    };
    assert_eq!(denied.unwrap_err().kind(), ErrorKind::Denied);
    password(&[0]);
    for url in [with(":s%2C%403%2Fx"), with("default:s%2C%403%2Fx"), user] {
        let client = env.client_at(&url, |config| config).await.unwrap();
        for name in &names {
            client.lock(name).lock().await.unwrap().release().await.unwrap();
        }
        client.close().await;
    }
    for url in [open.clone(), with(":wrong"), with("nobody:s%2C%403%2Fx")] {
        let error = env.client_at(&url, |config| config).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
        assert!(!format!("{error:#} {error:?}").contains("wrong@"), "{error:?}");
    }
}

fn default_password(node: &Server, password: &str) {
    admin(node, &["ACL", "SETUSER", "default", "resetpass", &format!(">{password}")]);
}
