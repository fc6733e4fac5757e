//! What work in a cluster costs.

use std::time::Duration;

use bowline::LockGuard;
use futures::future::join_all;

use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::support::server::Server;
use crate::tests;

tests! {
    an_uncontended_acquisition_and_release_are_two_commands,
    calls_share_timers,
    a_thousand_holds_are_renewed_in_few_writes,
}

async fn an_uncontended_acquisition_and_release_are_two_commands(env: Env) {
    let cluster = Cluster::start(3, 0);
    let client = env.client_at(&cluster.user_url(), |config| config).await.unwrap();
    // Connects to all masters and loads the scripts there.
    for n in 0..20 {
        client.lock(&format!("warm:{n}")).lock().await.unwrap().release().await.unwrap();
    }
    client.counts.reset();
    let before: u64 = cluster.nodes().iter().map(calls).sum();
    for n in 0..20 {
        client.lock(&format!("name:{n}")).lock().await.unwrap().release().await.unwrap();
    }
    assert_eq!(client.counts.total(), 40);
    let after: u64 = cluster.nodes().iter().map(calls).sum();
    assert_eq!(after - before, 40, "as the servers count them");
    client.close().await;
}

async fn calls_share_timers(env: Env) {
    const PAIRS: usize = 300;
    let cluster = Cluster::start(3, 0);
    let client = env.client_at(&cluster.user_url(), |config| config).await.unwrap();
    let names: Vec<_> = (0..10).map(|n| client.lock(&format!("name:{n}"))).collect();
    for lock in &names {
        lock.lock().await.unwrap().release().await.unwrap();
    }
    let before = env.timers_set();
    for n in 0..PAIRS {
        names[n % names.len()].lock().await.unwrap().release().await.unwrap();
    }
    // Timers of calls and of the connection's own work fire a few times per second, however many calls there are.
    let timers = env.timers_set() - before;
    assert!(timers < PAIRS / 2, "{timers} timers for {} calls", 2 * PAIRS);
    client.close().await;
}

/// Scripts that the server has run.
fn calls(server: &Server) -> u64 {
    let info: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
    let calls = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
    info.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

async fn a_thousand_holds_are_renewed_in_few_writes(env: Env) {
    const HOLDS: usize = 1_000;
    const MASTERS: u64 = 3;
    let lease = Duration::from_secs(9);
    let cluster = Cluster::start(3, 0);
    let client = env.client_at(&cluster.user_url(), |config| config.lease(lease)).await.unwrap();
    let locks: Vec<_> = (0..HOLDS).map(|n| client.lock(&format!("name:{n}"))).collect();
    let guards = join_all(locks.iter().map(|lock| async { lock.lock().await.unwrap() })).await;
    // The renewals are in step from the second round on.
    env.eventually("the first round", async || client.counts.of("lock_renew") >= HOLDS as u64).await;
    client.counts.reset();
    let start = env.now();
    env.eventually("two rounds", async || client.counts.of("lock_renew") >= 2 * HOLDS as u64).await;
    let rounds = (env.now() - start).as_secs_f64() / (lease / 3).as_secs_f64();
    let writes = client.counts.batches();
    println!("{writes} writes to {MASTERS} masters for {HOLDS} holds in {rounds:.2} rounds");
    assert!(writes <= 4 * MASTERS * (rounds.ceil() as u64).max(2), "{writes} writes in {rounds} rounds");
    assert_eq!(client.counts.total(), client.counts.of("lock_renew"), "{:?}", client.counts.all());
    assert!(guards.iter().all(LockGuard::is_valid), "a lease was lost");
    join_all(guards.into_iter().map(LockGuard::release)).await;
    client.close().await;
}
