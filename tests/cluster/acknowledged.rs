//! Grants and renewals that wait for the replicas of the master that serves their slot.

use std::time::Duration;

use bowline::{ErrorKind, LockGuard};
use futures::future::join_all;

use crate::support::cluster::Cluster;
use crate::support::env::{Env, TestClient};
use crate::support::server::Server;
use crate::tests;

tests! {
    a_frozen_replica_holds_up_the_names_of_its_master_only,
    what_was_acknowledged_is_on_the_promoted_replica,
    renewals_are_acknowledged_where_a_moving_slot_has_their_keys,
}

fn start(masters: usize) -> Cluster {
    let cluster = Cluster::start_with(masters, masters, &["--cluster-node-timeout", "3000"]);
    cluster.nodes().iter().for_each(Server::allow_to_wait);
    cluster
}

async fn client(env: &Env, cluster: &Cluster, lease: Duration) -> TestClient {
    let configure = |config: bowline::ConfigBuilder| {
        let timeout = Duration::from_millis(600);
        config.acknowledged_by(1).lease(lease).command_timeout(timeout).retry_timeout(2 * timeout)
    };
    env.client_at(&cluster.user_url(), configure).await.unwrap()
}

pub(crate) fn key(name: &str) -> String {
    format!("bowline:lock:{{{name}}}")
}

/// Names whose keys the master `node` has.
pub(crate) fn names_of(cluster: &Cluster, node: usize, count: usize) -> Vec<String> {
    let names = (0..).map(|n| format!("name:{n}")).filter(|name| cluster.owner_of(&key(name)) == node);
    names.take(count).collect()
}

async fn all(client: &TestClient, names: &[String]) -> Vec<bowline::Result<LockGuard>> {
    let locks: Vec<_> = names.iter().map(|name| client.lock(name)).collect();
    join_all(locks.iter().map(|lock| lock.lock().into_future())).await
}

async fn a_frozen_replica_holds_up_the_names_of_its_master_only(env: Env) {
    let mut cluster = start(2);
    let client = client(&env, &cluster, Duration::from_secs(15)).await;
    let names = [0, 1].map(|master| names_of(&cluster, master, 5));
    client.counts.reset();
    for name in names.concat() {
        client.lock(&name).lock().await.unwrap().release().await.unwrap();
    }
    assert_eq!((client.counts.total(), client.counts.acknowledged()), (2 * 10, 10), "{:?}", client.counts.all());
    for guard in all(&client, &names.concat()).await {
        guard.unwrap().release().await.unwrap();
    }
    let replica = cluster.replicas_of(&key(&names[0][0]))[0];
    cluster.freeze(replica);
    let (held_up, others) = futures::join!(all(&client, &names[0]), all(&client, &names[1]));
    for failed in held_up {
        let error = failed.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unacknowledged, "{error:#}");
    }
    for guard in others {
        guard.unwrap().release().await.unwrap();
    }
    env.eventually("nothing is left", async || client.stats().held == 0).await;
    cluster.thaw(replica);
    for guard in all(&client, &names[0]).await {
        guard.unwrap().release().await.unwrap();
    }
    client.close().await;
}

async fn what_was_acknowledged_is_on_the_promoted_replica(env: Env) {
    // Two of three masters are a majority, which promotes the replica.
    let mut cluster = start(3);
    let client = client(&env, &cluster, Duration::from_secs(30)).await;
    let names = names_of(&cluster, 0, 100);
    let guards: Vec<LockGuard> = all(&client, &names).await.into_iter().map(Result::unwrap).collect();
    cluster.kill(0);
    let promoted = cluster.await_owner(&key(&names[0]), |node| node != 0);
    let mut there = cluster.node(promoted).client();
    for guard in &guards {
        let tokens: Vec<u64> = redis::cmd("HVALS").arg(key(guard.name())).query(&mut there).unwrap();
        assert_eq!(tokens, [guard.token().get()], "{}", guard.name());
    }
    join_all(guards.into_iter().map(LockGuard::release)).await.into_iter().for_each(|released| released.unwrap());
    client.close().await;
}

/// For longer than the lease, the old master has the slot and the new one has the keys.
async fn renewals_are_acknowledged_where_a_moving_slot_has_their_keys(env: Env) {
    let cluster = start(2);
    let client = client(&env, &cluster, Duration::from_secs(3)).await;
    let name = names_of(&cluster, 0, 1).remove(0);
    let other = client.lock(&names_of(&cluster, 0, 2)[1]).lock().await.unwrap();
    let guard = client.lock(&name).lock().await.unwrap();
    let renewed_again = async |what: &str| {
        let renewals = client.stats().renewals;
        env.eventually(what, async || client.stats().renewals >= renewals + 8).await;
        assert!(guard.is_valid(), "{what}");
    };
    let slot = cluster.slot_of(&key(&name));
    cluster.open_slot(slot, 0, 1);
    renewed_again("the slot is open").await;
    while cluster.move_keys(slot, 0, 1, 100) > 0 {}
    renewed_again("the keys have moved").await;
    cluster.close_slot(slot, 0, 1);
    renewed_again("the slot has moved").await;
    assert_eq!(client.stats().lost, 0);
    guard.release().await.unwrap();
    other.release().await.unwrap();
    client.close().await;
}
