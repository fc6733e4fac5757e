//! What it costs, counted at the connection.

use std::time::Duration;

use crate::lab::cost::commands_per_acquisition;
use crate::lab::{Env, on_every_server};

on_every_server! {
    an_uncontended_acquisition_and_release_are_two_commands,
    a_contended_write_costs_two_commands,
    locks_and_permits_are_renewed_together,
    a_hold_that_is_joined_is_renewed_in_all_its_keys,
}

async fn an_uncontended_acquisition_and_release_are_two_commands(env: Env) {
    let client = env.client().await;
    let lock = client.rw_lock("a");
    for _ in 0..3 {
        client.counts.reset();
        lock.read().await.unwrap().release().await.unwrap();
        assert_eq!(client.counts.total(), 2, "{:?}", client.counts.all());
        lock.write().await.unwrap().release().await.unwrap();
        assert_eq!(client.counts.total(), 4, "{:?}", client.counts.all());
        drop(lock.try_write().await.unwrap().unwrap());
        env.eventually("released", async || env.keys().is_empty()).await;
        assert_eq!(client.counts.total(), 6, "{:?}", client.counts.all());
    }
}

async fn a_contended_write_costs_two_commands(env: Env) {
    let average = commands_per_acquisition(&env, 32, 400, |client| {
        let lock = client.rw_lock("a");
        Box::new(move || {
            let lock = lock.clone();
            Box::pin(async move { lock.write().fair().await.unwrap().release().await.unwrap() })
        })
    })
    .await;
    // On a slow machine, some who wait send a heartbeat.
    assert!(average <= 2.05, "{average} commands per acquisition");
}

async fn locks_and_permits_are_renewed_together(env: Env) {
    let lease = Duration::from_secs(6);
    let client = env.client_with(|config| config.lease(lease)).await;
    let mut guards: Vec<Box<dyn Fn() -> bool + Send>> = Vec::new();
    for n in 0..100 {
        let lock = client.lock(&format!("lock {n}")).lock().await.unwrap();
        let read = client.rw_lock(&format!("rw {n}")).read().await.unwrap();
        let permit = client.semaphore(&format!("semaphore {n}"), 3).acquire().await.unwrap();
        guards.push(Box::new(move || lock.is_valid() && read.is_valid() && permit.is_valid()));
    }
    client.counts.reset();
    env.sleep(lease).await;
    assert!(guards.iter().all(|valid| valid()), "a lease was lost");
    // The first reader of a name is stored in full.
    let counts = ["lock_renew", "permit_renew_short", "permit_renew"].map(|script| client.counts.of(script));
    let calls = counts.iter().sum();
    assert_eq!(client.counts.total(), calls);
    // Three rounds of 300 holds, in batches of up to 256, each split in three. The first rounds are not in step yet,
    // least of all on a slow machine, where the grants have taken long.
    assert!((3..=60).contains(&calls), "{counts:?} calls");
    drop(guards);
    env.eventually("all are released", async || env.keys().is_empty()).await;
}

/// A reader that is alone is stored in one key. When another reader comes, both are stored in full, and the first one
/// stays so when it is alone again.
async fn a_hold_that_is_joined_is_renewed_in_all_its_keys(env: Env) {
    let (client, other) = (env.client_with(|config| config.lease(Duration::from_secs(1))).await, env.client().await);
    // Without a token of a writer, a reader is not stored short.
    client.rw_lock("a").write().await.unwrap().release().await.unwrap();
    let guard = client.rw_lock("a").read().await.unwrap();
    let renewed = |script: &str| client.counts.of(script);
    env.eventually("it is renewed", async || renewed("permit_renew_short") >= 2).await;
    assert_eq!(renewed("permit_renew"), 0);
    let joined = other.rw_lock("a").read().await.unwrap();
    env.eventually("it is renewed with the other", async || renewed("permit_renew") >= 1).await;
    let short = renewed("permit_renew_short");
    joined.release().await.unwrap();
    env.eventually("it is alone", async || renewed("permit_renew") >= 3).await;
    assert_eq!(renewed("permit_renew_short"), short, "{:?}", client.counts.all());
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}
