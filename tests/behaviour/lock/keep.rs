//! Holds that outlive their guards.

use std::time::Duration;

use bowline::{ErrorKind, Holder, Token};

use super::LONG;
use crate::lab::{Env, Lock, on_every_server};

on_every_server! {
    a_kept_hold_outlives_its_guard_and_its_client,
    a_kept_hold_ends_with_its_lease,
    a_kept_hold_is_not_renewed,
    a_hold_is_kept_when_its_last_guard_is_gone,
    what_is_lost_is_not_kept,
    the_cohort_of_a_kept_hold_waits_for_its_end,
    a_retained_hold_is_kept_until_its_lease_ends,
    readers_writers_permits_and_several_are_kept,
    what_is_kept_is_kept_after_a_downgrade,
}

const MS: Duration = Duration::from_millis(1);

async fn token_of(lock: &Lock) -> Option<Token> {
    lock.inspect().await.unwrap().holder.map(|holder| holder.token)
}

async fn a_kept_hold_outlives_its_guard_and_its_client(env: Env) {
    for closes in [false, true] {
        let other = env.client().await;
        let before = env.live();
        let client = env.client().await;
        let guard = client.lock("a").lock().expires_after(60_000 * MS).await.unwrap();
        let token = guard.token();
        client.counts.reset();
        guard.keep().unwrap();
        assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
        assert_eq!(client.stats().held, 0);
        if closes {
            client.close().await;
        } else {
            drop(client);
            env.eventually("only the other client runs", async || env.live() == before).await;
        }
        let lock = other.lock("a");
        assert_eq!(token_of(&lock).await, Some(token));
        assert!(lock.try_lock().await.unwrap().is_none());
        // Operators can end it.
        assert!(lock.force_release().await.unwrap().unwrap() > token);
        lock.try_lock().await.unwrap().unwrap().release().await.unwrap();
    }
}

async fn a_kept_hold_ends_with_its_lease(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lease = 1000 * MS;
    let before = env.now();
    let guard = client.lock("a").lock().expires_after(lease).await.unwrap();
    let token = guard.token();
    guard.keep().unwrap();
    let next = env.soon("it ends", other.lock("a").lock().timeout(LONG).into_future()).await.unwrap();
    assert!(env.now() >= before + lease && next.token() > token);
    next.release().await.unwrap();
    // An extended lease is kept, too.
    let guard = client.lock("a").lock().expires_after(lease).await.unwrap();
    guard.extend(60_000 * MS).await.unwrap();
    guard.keep().unwrap();
    let holder = other.lock("a").inspect().await.unwrap().holder.unwrap();
    assert!(holder.remaining > 30_000 * MS, "{holder:?}");
    other.lock("a").force_release().await.unwrap();
}

async fn a_kept_hold_is_not_renewed(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lease = 900 * MS;
    let kept = client.lock("a").lock().lease(lease).await.unwrap();
    let held = client.lock("b").lock().lease(lease).await.unwrap();
    kept.keep().unwrap();
    let next = env.soon("it ends", other.lock("a").lock().timeout(LONG).into_future()).await.unwrap();
    env.eventually("the client renews what it holds", async || client.stats().renewals > 0).await;
    assert!(held.is_valid());
    next.release().await.unwrap();
    held.release().await.unwrap();
}

async fn a_hold_is_kept_when_its_last_guard_is_gone(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    for released in [false, true] {
        let holder = Holder::new();
        let one = lock.lock().expires_after(60_000 * MS).holder(&holder).await.unwrap();
        let two = lock.lock().expires_after(60_000 * MS).holder(&holder).await.unwrap();
        let token = one.token();
        one.keep().unwrap();
        assert!(two.is_valid() && client.stats().held == 1);
        client.counts.reset();
        if released {
            two.release().await.unwrap()
        } else {
            drop(two)
        }
        env.eventually("nobody has it", async || client.stats().held == 0).await;
        assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
        assert_eq!(token_of(&lock).await, Some(token));
        // The holder has no guard to enter by.
        assert!(lock.try_lock().holder(&holder).await.unwrap().is_none());
        lock.force_release().await.unwrap();
    }
}

async fn what_is_lost_is_not_kept(env: Env) {
    let client = env.client().await;
    let expired = client.lock("a").lock().expires_after(200 * MS).await.unwrap();
    env.soon("it ends", expired.lost()).await;
    let error = expired.keep().unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "keep", Some("a")));
    let closed = client.lock("b").lock().await.unwrap();
    client.close().await;
    assert_eq!(closed.keep().unwrap_err().kind(), ErrorKind::Lost);
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn the_cohort_of_a_kept_hold_waits_for_its_end(env: Env) {
    let lease = 1500 * MS;
    let client = env.client_with(|config| config.lease(lease)).await;
    let lock = client.lock("a");
    let before = env.now();
    let first = lock.lock().non_fair().await.unwrap();
    let members: Vec<_> = (0..3)
        .map(|_| {
            let lock = lock.clone();
            env.spawn(async move {
                let guard = lock.lock().non_fair().timeout(LONG).await.unwrap();
                let token = guard.token();
                guard.release().await.map(|()| token)
            })
        })
        .collect();
    env.eventually("they wait", async || client.stats().waiting == 3).await;
    let token = first.token();
    first.keep().unwrap();
    for member in members {
        let later = env.soon("a member gets it", member).await.unwrap();
        assert!(env.now() >= before + lease && later > token);
    }
}

async fn a_retained_hold_is_kept_until_its_lease_ends(env: Env) {
    let lease = 1500 * MS;
    let (client, other) = (env.client_with(|config| config.lease(lease)).await, env.client().await);
    let before = env.now();
    let guard = client.lock("a").lock().retained(lease / 3).await.unwrap();
    guard.keep().unwrap();
    // It is not idle: nobody releases it for others, and its client cannot take it again.
    assert!(client.lock("a").try_lock().await.unwrap().is_none());
    let next = env.soon("it ends", other.lock("a").lock().timeout(LONG).into_future()).await.unwrap();
    assert!(env.now() >= before + lease);
    next.release().await.unwrap();
}

async fn readers_writers_permits_and_several_are_kept(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let long = 60_000 * MS;
    let (rw, semaphore) = (client.rw_lock("a"), client.semaphore("a", 3));
    rw.read().expires_after(long).await.unwrap().keep().unwrap();
    semaphore.acquire_many(2).expires_after(long).await.unwrap().keep().unwrap();
    client.rw_lock("b").write().expires_after(long).await.unwrap().keep().unwrap();
    client.lock_all(&["c", "d"]).acquire().expires_after(long).await.unwrap().keep().unwrap();
    client.close().await;
    assert!(other.rw_lock("a").try_write().await.unwrap().is_none());
    other.rw_lock("a").try_read().await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(other.semaphore("a", 3).available().await.unwrap(), 1);
    assert!(other.rw_lock("b").try_read().await.unwrap().is_none());
    for name in ["c", "d"] {
        assert!(other.lock(name).try_lock().await.unwrap().is_none(), "{name}");
    }
    // One of several is lost: the others are released.
    let guard = other.lock_all(&["e", "f"]).acquire().expires_after(300 * MS).await.unwrap();
    env.soon("the first is lost", guard.lost()).await;
    assert_eq!(guard.keep().unwrap_err().kind(), ErrorKind::Lost);
    other.lock_all(&["e", "f"]).acquire().timeout(LONG).await.unwrap().release().await.unwrap();
    env.leaves_keys();
}

async fn what_is_kept_is_kept_after_a_downgrade(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.rw_lock("a"), Holder::new());
    let write = async || lock.write().expires_after(60_000 * MS).holder(&holder).await.unwrap();
    let (one, two) = (write().await, write().await);
    one.keep().unwrap();
    drop(two.downgrade().await.unwrap());
    env.eventually("nobody has it", async || client.stats().held == 0).await;
    assert!(other.rw_lock("a").try_write().await.unwrap().is_none());
    other.rw_lock("a").try_read().await.unwrap().unwrap().release().await.unwrap();
    env.leaves_keys();
}
