//! What a master executes when it thaws, although its replica has taken over.

use std::time::Duration;

use bowline::{Config, ConnectionError, LockGuard};
use futures::FutureExt;
use futures::future::join_all;

use crate::acknowledged::{key, names_of};
use crate::support::adapters::{Keys, acquire, word};
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    a_release_that_a_thawed_master_has_executed_is_repeated,
    what_a_replaced_master_has_answered_does_not_count,
}

/// The client has sent its releases before it can know of the other master, and the answers are those of the old one.
async fn a_release_that_a_thawed_master_has_executed_is_repeated(env: Env) {
    const HOLDS: usize = 20;
    let mut cluster = Cluster::start_with(3, 3, &["--cluster-node-timeout", "15000"]);
    let lease = |config: bowline::ConfigBuilder| config.lease(Duration::from_secs(60));
    let client = env.client_at(&cluster.user_url(), lease).await.unwrap();
    let mut names = names_of(&cluster, 0, HOLDS + 1);
    let other = names.pop().unwrap();
    let locks: Vec<_> = names.iter().map(|name| client.lock(name)).collect();
    let guards = join_all(locks.iter().map(|lock| async { lock.lock().await.unwrap() })).await;
    let replica = cluster.replicas_of(&key(&other))[0];
    let held_there = |cluster: &Cluster| {
        let keys = cluster.node(replica).keys();
        names.iter().filter(|name| keys.contains(&key(name))).count()
    };
    env.eventually("the replica has the holds", async || held_there(&cluster) == HOLDS).await;
    cluster.freeze(0);
    redis::cmd("CLUSTER").arg(&["FAILOVER", "TAKEOVER"]).exec(&mut cluster.node(replica).client()).unwrap();
    client.counts.reset();
    let released = env.spawn(join_all(guards.into_iter().map(LockGuard::release)));
    env.eventually("the releases are sent", async || client.counts.of("lock_release") == HOLDS as u64).await;
    cluster.thaw(0);
    released.await;
    println!("{} of {HOLDS} releases were executed by the old master only", held_there(&cluster));
    // The next call learns of the new master.
    env.eventually("the client knows", async || {
        client.lock(&other).lock().await.unwrap().release().await.unwrap();
        cluster.node(replica).keys().iter().any(|key| key.contains(&other))
    })
    .await;
    env.eventually("they are released there, too", async || held_there(&cluster) == 0).await;
    client.close().await;
}

/// The answer has come, and its caller has not looked at it yet, when the connection learns of the new master.
async fn what_a_replaced_master_has_answered_does_not_count(env: Env) {
    let cluster = Cluster::start_with(3, 3, &["--cluster-node-timeout", "15000"]);
    let connection = env.open(&cluster.url(), &Config::default()).await.unwrap();
    let names = names_of(&cluster, 0, 100);
    // The first call waits for its connection.
    assert_eq!(word(&acquire(&connection, &Keys::of("any"), "c1:1").await), "GRANTED");
    let locks: Vec<Keys> = names.iter().map(|name| Keys::of(name)).collect();
    let (mut called, mut first) = (None, true);
    for lock in &locks {
        let mut granted = acquire(&connection, lock, "c1:1").boxed();
        if std::mem::take(&mut first) {
            granted.await.unwrap();
            continue;
        }
        // With several threads, the answer may be there at the first poll.
        if futures::poll!(&mut granted).is_pending() {
            called = Some((lock, granted));
            break;
        }
    }
    let (lock, granted) = called.expect("a call that waits for its answer");
    env.eventually("the master grants", async || cluster.node(0).keys().iter().any(|key| key == lock.lock())).await;
    let replica = cluster.replicas_of(&key(&names[0]))[0];
    redis::cmd("CLUSTER").arg(&["FAILOVER", "TAKEOVER"]).exec(&mut cluster.node(replica).client()).unwrap();
    let [old, new] = [0, replica].map(|node| cluster.node(node).port().to_string());
    env.eventually("the connection learns of the new master", async || {
        let _ = acquire(&connection, &locks[0], "c1:2").await;
        let shown = format!("{connection:?}");
        shown.contains(&new) && !shown.contains(&old)
    })
    .await;
    let answered = granted.await;
    assert!(matches!(answered, Err(ConnectionError::Unknown(_))), "{answered:?}");
}
