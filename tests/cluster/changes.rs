//! Who holds a name, as others see it, while its slot gets another master.

use std::time::Duration;

use bowline::{HoldChange, HoldChanges};
use futures::StreamExt;

use crate::acknowledged::key;
use crate::support::cluster::Cluster;
use crate::support::env::{Env, TestClient};
use crate::tests;

tests! {
    changes_are_seen_after_a_slot_has_moved,
    changes_are_seen_after_failovers,
}

async fn next(env: &Env, changes: &mut HoldChanges) -> char {
    match env.soon("a change", changes.next()).await.unwrap().unwrap() {
        HoldChange::Granted(_) => '+',
        HoldChange::Released(_) => '-',
        HoldChange::Lost(_) => '!',
        other => panic!("{other:?}"),
    }
}

/// The lease is so long that nobody looks without being told.
async fn client(env: &Env, cluster: &Cluster) -> TestClient {
    env.client_at(&cluster.user_url(), |config| config.lease(Duration::from_secs(90))).await.unwrap()
}

/// The observer follows the name, which is held or free, and hears what happens at its new master.
async fn changes_are_seen_after_a_slot_has_moved(env: Env) {
    let cluster = Cluster::start_with(3, 0, &["--cluster-node-timeout", "15000"]);
    let (client, observer) = (client(&env, &cluster).await, client(&env, &cluster).await);
    let mut changes = observer.lock("a").changes();
    let slot = cluster.slot_of(&key("a"));
    let moves = || {
        let from = cluster.owner_of_slot(slot);
        let to = cluster.shards().iter().map(|shard| shard.master).find(|master| *master != from).unwrap();
        cluster.reshard(slot..=slot, to);
    };
    for _ in 0..2 {
        let guard = client.lock("a").lock().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, '+');
        moves();
        guard.release().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, '-');
        // What the first move has caused is over, and nothing else makes the observer look at the map.
        env.sleep(Duration::from_secs(3)).await;
        moves();
    }
    client.close().await;
    observer.close().await;
}

async fn changes_are_seen_after_failovers(env: Env) {
    let cluster = Cluster::start_with(3, 3, &["--cluster-node-timeout", "15000"]);
    let (client, observer) = (client(&env, &cluster).await, client(&env, &cluster).await);
    let mut changes = observer.rw_lock("a").changes();
    for _ in 0..2 {
        let guard = client.rw_lock("a").write().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, '+');
        cluster.await_agreement();
        cluster.fail_over(cluster.replicas_of(&key("a"))[0]);
        guard.release().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, '-');
    }
    client.close().await;
    observer.close().await;
}
