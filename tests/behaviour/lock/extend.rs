//! What an acquisition says of its lease: renewed, renewed for a limited time, or fixed and extended by hand.

use std::time::Duration;

use bowline::{ErrorKind, Loss};

use super::waiter;
use crate::lab::{Env, on_every_server};

on_every_server! {
    a_lease_of_its_own_is_renewed,
    a_hold_with_a_limit_is_renewed_and_ends_by_itself,
    a_limit_below_the_lease_is_the_lease,
    an_extended_hold_outlives_its_lease,
    an_extension_never_shortens,
    an_extension_of_what_is_gone_is_a_loss,
    what_is_renewed_is_not_extended,
}

const MS: Duration = Duration::from_millis(1);

async fn a_lease_of_its_own_is_renewed(env: Env) {
    let client = env.client().await;
    let lease = 1500 * MS;
    let lock = client.lock("a");
    let guard = lock.lock().lease(lease).await.unwrap();
    assert!(guard.remaining() <= lease);
    let tried = client.lock("b").try_lock().lease(lease).await.unwrap().unwrap();
    env.eventually("both outlive it", async || client.stats().renewals >= 8).await;
    assert!(guard.is_valid() && tried.is_valid());
    assert!(lock.inspect().await.unwrap().holder.unwrap().remaining <= lease);
    guard.release().await.unwrap();
    tried.release().await.unwrap();
}

async fn a_hold_with_a_limit_is_renewed_and_ends_by_itself(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lease, limit) = (1200 * MS, 2600 * MS);
    let before = env.now();
    let guard = client.lock("a").lock().lease(lease).hold_at_most(limit).await.unwrap();
    let granted = env.now();
    let next = waiter(&env, &other.lock("a")).await;
    while guard.is_valid() {
        assert!(env.now() + guard.remaining() <= granted + limit);
        env.sleep(20 * MS).await;
    }
    assert!(env.now() - before > lease, "it was not renewed");
    assert!(client.counts.of("lock_renew") >= 2);
    assert_eq!(env.soon("the loss is told", guard.lost()).await, Loss::Expired);
    // The server has ended the hold, or will be told to.
    env.soon("the next one gets it", next).await.release().await.unwrap();
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_limit_below_the_lease_is_the_lease(env: Env) {
    let client = env.client().await;
    let limit = 300 * MS;
    let guard = client.lock("a").try_lock().hold_at_most(limit).await.unwrap().unwrap();
    assert!(client.lock("a").inspect().await.unwrap().holder.is_none_or(|holder| holder.remaining <= limit));
    assert_eq!(env.soon("it ends", guard.lost()).await, Loss::Expired);
    assert_eq!(client.counts.of("lock_renew"), 0);
}

async fn an_extended_hold_outlives_its_lease(env: Env) {
    let client = env.client().await;
    let (lease, longer) = (1000 * MS, 60_000 * MS);
    let lock = client.lock("a");
    let guard = lock.lock().expires_after(lease).await.unwrap();
    let first = env.now() + lease;
    client.counts.reset();
    guard.extend(longer).await.unwrap();
    assert_eq!(client.counts.total(), 1, "{:?}", client.counts.all());
    assert!(guard.remaining() <= longer && guard.remaining() > longer / 2);
    let holder = lock.inspect().await.unwrap().holder.unwrap();
    assert!(guard.remaining() <= holder.remaining, "the client trusts the lease for longer");
    env.eventually("its first lease is over", async || env.now() > first).await;
    assert!(guard.is_valid());
    assert_eq!(lock.inspect().await.unwrap().holder.map(|holder| holder.token), Some(guard.token()));
    guard.release().await.unwrap();
    assert!(env.keys().iter().all(|key| key.ends_with(":fence")));
}

async fn an_extension_never_shortens(env: Env) {
    let client = env.client().await;
    let long = 60_000 * MS;
    let (lock, semaphore) = (client.lock("a"), client.semaphore("a", 1));
    let guard = lock.lock().expires_after(long).await.unwrap();
    let permit = semaphore.acquire().expires_after(long).await.unwrap();
    guard.extend(200 * MS).await.unwrap();
    permit.extend(200 * MS).await.unwrap();
    assert!(guard.remaining() > long / 2 && permit.remaining() > long / 2);
    assert!(lock.inspect().await.unwrap().holder.unwrap().remaining > long / 2);
    assert!(semaphore.inspect().await.unwrap().holders[0].remaining > long / 2);
    permit.extend(2 * long).await.unwrap();
    assert!(permit.remaining() > long && semaphore.inspect().await.unwrap().holders[0].remaining > long);
    guard.release().await.unwrap();
    permit.release().await.unwrap();
}

async fn an_extension_of_what_is_gone_is_a_loss(env: Env) {
    let (client, operator) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    let late = lock.lock().expires_after(100 * MS).await.unwrap();
    env.eventually("it is over", async || !late.is_valid()).await;
    let error = late.extend(60_000 * MS).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "extend", Some("a")));
    drop(late);
    let taken = env.soon("the lock is free", lock.lock().expires_after(60_000 * MS)).await.unwrap();
    operator.lock("a").force_release().await.unwrap().unwrap();
    assert_eq!(taken.extend(60_000 * MS).await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(!taken.is_valid());
    let loss = env.soon("it is told", taken.lost()).await;
    assert!(matches!(loss, Loss::Gone | Loss::Revoked), "{loss}");
    assert!(lock.inspect().await.unwrap().holder.is_none(), "an extension brings nothing back");
}

async fn what_is_renewed_is_not_extended(env: Env) {
    let client = env.client().await;
    let renewed = client.lock("a").lock().await.unwrap();
    let limited = client.rw_lock("a").write().hold_at_most(60_000 * MS).await.unwrap();
    let fixed = client.semaphore("a", 1).acquire().expires_after(60_000 * MS).await.unwrap();
    client.counts.reset();
    let mut errors = vec![renewed.extend(1000 * MS).await, limited.extend(1000 * MS).await];
    for lease in [Duration::ZERO, 99 * MS, bowline::MAX_LEASE + MS] {
        errors.push(fixed.extend(lease).await);
    }
    for error in errors {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    assert!(renewed.is_valid() && limited.is_valid() && fixed.is_valid());
}
