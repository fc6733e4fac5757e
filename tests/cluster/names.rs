//! Names on all masters of a cluster, also while a slot is about to move.

use std::collections::BTreeSet;

use bowline::{ErrorKind, PrimitiveKind};

use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    names_are_listed_while_slots_are_about_to_move,
    names_of_java_whose_channel_is_in_another_slot_are_invalid,
}

const NAMES: usize = 50;

/// A master hands calls about such a slot to the one that gets it, if it does not have the key.
async fn names_are_listed_while_slots_are_about_to_move(env: Env) {
    let cluster = Cluster::start_with(3, 0, &["--cluster-node-timeout", "15000"]);
    let client = env.client_at(&cluster.user_url(), |config| config).await.unwrap();
    let mut guards = Vec::new();
    for n in 0..NAMES {
        guards.push(client.lock(&format!("held:{n}")).lock().await.unwrap());
    }
    let names = async || -> BTreeSet<String> {
        let names = client.names().of_kind(PrimitiveKind::Lock).starting_with("held:").all().await.unwrap();
        names.into_iter().map(|name| name.name).collect()
    };
    assert_eq!(names().await.len(), NAMES);
    let mut nodes: Vec<redis::Connection> = cluster.nodes().iter().map(|node| node.client()).collect();
    let ask = |node: &mut redis::Connection, command: &[&str]| -> String {
        redis::cmd("CLUSTER").arg(command).query(node).unwrap()
    };
    let ids: Vec<String> = nodes.iter_mut().map(|node| ask(node, &["MYID"])).collect();
    // The first slots of two masters, each to the next one; more than one slot of the first.
    for (slot, from, to) in [("0", 0, 1), ("1", 0, 1), ("2", 0, 2)] {
        ask(&mut nodes[to], &["SETSLOT", slot, "IMPORTING", &ids[from]]);
        ask(&mut nodes[from], &["SETSLOT", slot, "MIGRATING", &ids[to]]);
    }
    assert_eq!(names().await.len(), NAMES);
    for (node, slot) in [(0, "0"), (0, "1"), (0, "2"), (1, "0"), (1, "1"), (2, "2")] {
        ask(&mut nodes[node], &["SETSLOT", slot, "STABLE"]);
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    client.close().await;
}

/// Redisson cannot use them there either. `a:{b}c` is one for latches only, because Redisson puts braces around it.
async fn names_of_java_whose_channel_is_in_another_slot_are_invalid(env: Env) {
    let cluster = Cluster::start_with(3, 0, &["--cluster-node-timeout", "15000"]);
    let client = env.client_at(&cluster.url(), |config| config).await.unwrap();
    let sent = client.counts.total();
    for name in ["a}b", "a:{b}c"] {
        let latch = client.redisson().count_down_latch(name);
        let errors = [
            latch.try_set_count(1).await.map(drop),
            latch.count_down().await.map(drop),
            latch.count().await.map(drop),
            latch.wait().await,
        ];
        for (n, error) in errors.into_iter().enumerate() {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput, "{name}: {n}");
        }
    }
    let semaphore = client.redisson().semaphore("a}b");
    let errors = [
        semaphore.try_set_permits(1).await.map(drop),
        semaphore.acquire().await.map(drop),
        semaphore.try_acquire().await.map(drop),
        semaphore.drain().await.map(drop),
        semaphore.release(1).await,
        semaphore.add_permits(1).await,
        semaphore.available().await.map(drop),
    ];
    for (n, error) in errors.into_iter().enumerate() {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput, "{n}");
    }
    // Nor is anything sent in the background.
    env.sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(client.counts.total(), sent);
    let name = "a:{b}c";
    let (semaphore, node) = (client.redisson().semaphore(name), cluster.node(cluster.owner_of(name)));
    node.allow_forever(name);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    semaphore.acquire().await.unwrap().release().await.unwrap();
    redis::cmd("DEL").arg(name).exec(&mut node.client()).unwrap();
    client.close().await;
}
