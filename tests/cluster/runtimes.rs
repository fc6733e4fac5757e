//! Clusters on the other runtimes, without a runtime, and after the end of one.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, ErrorKind, LockGuard, Loss};
use futures::future::join_all;

use crate::acknowledged::key;
use crate::support::adapters::bounded;
use crate::support::cluster::Cluster;
use crate::support::env::{Env, on_every_runtime};
use crate::support::server::Server;

on_every_runtime! { every_primitive_follows_a_failover_and_a_slot }

/// So many names are on all masters.
const NAMES: usize = 12;

/// No failover is wanted but those that the test asks for.
fn start() -> Cluster {
    Cluster::start_with(3, 3, &["--cluster-node-timeout", "15000"])
}

async fn every_primitive_follows_a_failover_and_a_slot(env: Env) {
    let cluster = start();
    let url = cluster.user_url();
    let client = env.client_at(&url, |config| config).await.unwrap();
    let other = env.client_at(&url, |config| config).await.unwrap();
    let held: Vec<_> = (0..NAMES).map(|n| client.lock(&n.to_string())).collect();
    let held: Vec<LockGuard> = join_all(held.iter().map(|lock| async { lock.lock().await.unwrap() })).await;
    // The lock and the semaphore wait for the other client's holds, while a failover changes the master of their names.
    let (lock, semaphore) = (client.lock("0"), client.semaphore("s", 2));
    let permits = semaphore.acquire_many(2).await.unwrap();
    let waits = env.spawn({
        let (lock, semaphore) = (other.lock("0"), other.semaphore("s", 2));
        async move {
            lock.lock().await.unwrap().release().await.unwrap();
            semaphore.acquire().await.unwrap().release().await.unwrap();
        }
    });
    env.eventually("it waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    // The clients retry meanwhile. On a runtime with one thread, they need that thread for it.
    let changed = env.on_a_thread(move || {
        let replica = cluster.replicas_of(&key("0"))[0];
        cluster.await_agreement();
        cluster.fail_over(replica);
        let slot = cluster.slot_of(&key("1"));
        let from = cluster.owner_of_slot(slot);
        let to = cluster.shards().iter().map(|shard| shard.master).find(|master| *master != from).unwrap();
        cluster.reshard(slot..=slot, to);
        cluster
    });
    let _cluster = changed.await;
    for guard in held {
        guard.release().await.unwrap();
    }
    permits.release().await.unwrap();
    env.soon("the other one", waits).await;
    let latch = client.latch("l");
    latch.try_set(1, Duration::from_secs(60)).await.unwrap();
    futures::join!(async { other.latch("l").wait().await.unwrap() }, async { latch.count_down().await.unwrap() });
    latch.delete().await.unwrap();
    let rw_lock = other.rw_lock("1");
    rw_lock.write().await.unwrap().downgrade().await.unwrap().release().await.unwrap();
    client.close().await;
    other.close().await;
}

#[cfg(feature = "blocking")]
#[test]
fn a_program_without_a_runtime_follows_the_master() {
    bounded(|| {
        let cluster = start();
        let client = bowline::blocking::connect(cluster.user_url()).unwrap();
        let held = client.lock("a").lock().block().unwrap();
        cluster.await_agreement();
        cluster.fail_over(cluster.replicas_of(&key("a"))[0]);
        held.release().unwrap();
        for n in 0..NAMES {
            client.lock(&n.to_string()).lock().block().unwrap().release().unwrap();
        }
        client.close().unwrap();
    });
}

/// A runtime with a client that holds these names.
fn holding(
    cluster: &Cluster,
    names: impl Iterator<Item = String>,
) -> (tokio::runtime::Runtime, Client, Vec<LockGuard>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config::builder().shutdown_timeout(Duration::from_secs(10)).lease(Duration::from_secs(300));
    let config = config.build().unwrap();
    let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
    let (client, guards) = runtime.block_on(async {
        let connection = bowline::tokio::open(executor.clone(), &cluster.user_url(), &config).await.unwrap();
        let client = Client::connect(executor, Arc::new(connection), config).await.unwrap();
        let held = names.map(|name| client.lock(&name).lock().into_future());
        let guards = join_all(held.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).collect();
        (client, guards)
    });
    (runtime, client, guards)
}

/// Whether a node has a hold of a name that begins so.
fn has_holds(node: &Server, begins: &str) -> bool {
    let hold = |key: &String| key.contains(&format!("{{{begins}")) && !key.ends_with(":fence");
    node.keys().iter().any(hold)
}

/// It does not matter which of the masters is asked first.
#[test]
fn the_last_good_bye_leaves_time_for_the_masters_that_are_there() {
    bounded(|| {
        let mut cluster = Cluster::start_with(3, 0, &["--cluster-node-timeout", "60000"]);
        for frozen in 0..3 {
            let begins = format!("{frozen} frozen ");
            let (runtime, _client, _guards) = holding(&cluster, (0..NAMES).map(|n| format!("{begins}{n}")));
            cluster.node(frozen).pause();
            drop(runtime);
            let others = (0..3).filter(|node| *node != frozen);
            let left: Vec<_> = others.filter(|node| has_holds(cluster.node(*node), &begins)).collect();
            cluster.node(frozen).resume();
            assert_eq!(left, [0; 0], "{frozen} is frozen");
            assert!(has_holds(cluster.node(frozen), &begins), "it was asked");
        }
        // More than are released in one batch.
        let (runtime, _client, _guards) = holding(&cluster, (0..600).map(|n| format!("killed {n}")));
        cluster.kill(0);
        drop(runtime);
        assert!(!has_holds(cluster.node(1), "killed") && !has_holds(cluster.node(2), "killed"));
    });
}

/// What a program leaves that returns from `main` while it holds: nothing, on any master, also after a failover.
#[test]
fn the_last_good_bye_goes_to_every_master() {
    bounded(|| {
        let cluster = start();
        for failed_over in [false, true] {
            let (runtime, client, guards) = holding(&cluster, (0..NAMES).map(|n| n.to_string()));
            let masters: Vec<usize> = (0..NAMES).map(|n| cluster.owner_of(&key(&n.to_string()))).collect();
            assert!((0..6).filter(|node| masters.contains(node)).count() == 3, "{masters:?}");
            if failed_over {
                cluster.await_agreement();
                cluster.fail_over(cluster.replicas_of(&key("0"))[0]);
                // The last calls follow no redirection. The client knows the new master from the calls before.
                for n in 0..NAMES {
                    runtime.block_on(client.lock(&n.to_string()).inspect()).unwrap();
                }
            }
            drop(runtime);
            let masters = cluster.shards().into_iter().map(|shard| cluster.node(shard.master));
            assert!(masters.filter(|node| has_holds(node, "")).count() == 0, "failed over: {failed_over}");
            for guard in guards {
                assert_eq!(futures::executor::block_on(guard.lost()), Loss::Closed);
            }
            let error = futures::executor::block_on(client.lock("a").lock().into_future()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
    });
}
