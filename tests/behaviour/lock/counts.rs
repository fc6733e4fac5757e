//! What it costs, counted at the connection.

use std::time::Duration;

use bowline::Holder;

use crate::lab::cost::an_acquisition_costs_two_commands;
use crate::lab::{Env, on_every_server};

on_every_server! {
    an_uncontended_acquisition_and_release_are_two_commands,
    a_contended_fair_acquisition_costs_two_commands,
    a_thousand_held_locks_are_renewed_in_few_calls,
    nothing_is_sent_after_the_release,
    fixed_leases_are_never_renewed;
    there_is_one_subscription_however_many_locks,
}

async fn an_uncontended_acquisition_and_release_are_two_commands(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    for _ in 0..3 {
        client.counts.reset();
        lock.lock().await.unwrap().release().await.unwrap();
        assert_eq!(client.counts.total(), 2, "{:?}", client.counts.all());
        client.counts.reset();
        let guard = lock.try_lock().await.unwrap().unwrap();
        drop(guard);
        env.eventually("released", async || env.keys().is_empty()).await;
        assert_eq!(client.counts.total(), 2, "{:?}", client.counts.all());
    }
}

async fn a_contended_fair_acquisition_costs_two_commands(env: Env) {
    an_acquisition_costs_two_commands(&env, 64, 1_000, |client| {
        let lock = client.lock("a");
        Box::new(move || {
            let lock = lock.clone();
            Box::pin(async move { lock.lock().fair().await.unwrap().release().await.unwrap() })
        })
    })
    .await;
}

async fn a_thousand_held_locks_are_renewed_in_few_calls(env: Env) {
    const LOCKS: usize = 1_000;
    let lease = Duration::from_secs(9);
    let client = env.client_with(|config| config.lease(lease)).await;
    let locks: Vec<_> = (0..LOCKS).map(|n| client.lock(&format!("lock {n}"))).collect();
    let guards = futures::future::try_join_all(locks.iter().map(|lock| lock.lock().into_future())).await.unwrap();
    // In the first round, the renewals are not in step yet.
    env.eventually("the first round", async || client.counts.of("lock_renew") >= 4).await;
    client.counts.reset();
    let (start, interval) = (env.now(), lease / 3);
    env.sleep(interval * 5 / 2).await;
    let (calls, rounds) = (client.counts.of("lock_renew"), (env.now() - start).as_secs_f64() / interval.as_secs_f64());
    println!("{calls} renewal calls for {LOCKS} locks in {rounds:.2} rounds");
    assert!(calls as f64 <= 5.0 * rounds.ceil(), "{calls} calls in {rounds} rounds");
    assert_eq!(client.counts.total(), calls, "{:?}", client.counts.all());
    assert!(guards.iter().all(|guard| guard.is_valid()), "a lease was lost");
    drop(guards);
    env.eventually("all are released", async || env.keys().is_empty()).await;
}

async fn there_is_one_subscription_however_many_locks(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for n in 0..50 {
        let name = format!("lock {n}");
        let held = other.lock(&name).lock().await.unwrap();
        let next = super::waiter(&env, &client.lock(&name)).await;
        held.release().await.unwrap();
        next.await.release().await.unwrap();
    }
    assert_eq!((client.counts.subscribes(), other.counts.subscribes()), (1, 1));
    // Each client subscribes its inbox and a probe. The probe is the channel by which the client proves that both of
    // its connections lead to the same server.
    let channels: Vec<String> = env.redis(&["PUBSUB", "CHANNELS", "bowline:*"]);
    let (probes, inboxes): (Vec<_>, Vec<_>) =
        channels.iter().partition(|channel| channel.trim_start_matches("bowline:inbox:").contains(':'));
    assert_eq!((inboxes.len(), probes.len()), (2, 2), "{channels:?}");
}

async fn nothing_is_sent_after_the_release(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(1500))).await;
    let lock = client.lock("a");
    let guard = lock.lock().await.unwrap();
    env.eventually("renewals", async || client.counts.of("lock_renew") >= 2).await;
    guard.release().await.unwrap();
    // Many cycles leave as little behind as one.
    for _ in 0..100 {
        let holder = Holder::new();
        let guard = lock.lock().holder(&holder).await.unwrap();
        drop(lock.lock().holder(&holder).await.unwrap());
        guard.release().await.unwrap();
    }
    client.counts.reset();
    env.sleep(Duration::from_millis(1200)).await;
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    assert!(env.keys().is_empty());
}

async fn fixed_leases_are_never_renewed(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(300))).await;
    let guard = client.lock("a").lock().expires_after(Duration::from_millis(900)).await.unwrap();
    client.counts.reset();
    env.soon("it ends", guard.lost()).await;
    assert_eq!(client.counts.of("lock_renew"), 0);
    drop(guard);
}
