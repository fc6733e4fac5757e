//! What it costs, counted at the connection.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::{try_join_all, try_join3};

use crate::lab::cost::an_acquisition_costs_two_commands;
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
    an_acquisition_costs_two_commands(&env, 32, 400, |client| {
        let lock = client.rw_lock("a");
        Box::new(move || {
            let lock = lock.clone();
            Box::pin(async move { lock.write().fair().await.unwrap().release().await.unwrap() })
        })
    })
    .await;
}

async fn locks_and_permits_are_renewed_together(env: Env) {
    let lease = Duration::from_secs(6);
    let client = env.client_with(|config| config.lease(lease)).await;
    // All at the same time, because they are renewed together if they began together.
    let locks: Vec<_> = (0..100).map(|n| client.lock(&format!("lock {n}"))).collect();
    let rw_locks: Vec<_> = (0..100).map(|n| client.rw_lock(&format!("rw {n}"))).collect();
    let semaphores: Vec<_> = (0..100).map(|n| client.semaphore(&format!("semaphore {n}"), 3)).collect();
    let start = env.now();
    let held = try_join3(
        try_join_all(locks.iter().map(|lock| lock.lock().into_future())),
        try_join_all(rw_locks.iter().map(|lock| lock.read().into_future())),
        try_join_all(semaphores.iter().map(|semaphore| semaphore.acquire().into_future())),
    );
    let (locked, reading, permits) = held.await.unwrap();
    client.counts.reset();
    env.sleep(lease).await;
    let rounds = ((env.now() - start).as_secs_f64() / (lease / 3).as_secs_f64()).floor();
    let are_valid = locked.iter().all(|guard| guard.is_valid()) && reading.iter().all(|guard| guard.is_valid());
    assert!(are_valid && permits.iter().all(|permit| permit.is_valid()), "a lease was lost");
    // The first reader of a name is stored in full.
    let counts = ["lock_renew", "permit_renew_short", "permit_renew"].map(|script| client.counts.of(script));
    let calls = counts.iter().sum();
    assert_eq!(client.counts.total(), calls);
    // Rounds of 300 holds, in batches of up to 256, each split in three. The first round is not in step yet.
    assert!(calls >= 3 && calls as f64 <= 6.0 * rounds + 2.0, "{counts:?} calls in {rounds} rounds");
    drop((locked, reading, permits));
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
