//! Semaphores in Redisson's format whose permits have leases, between clients of bowline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Loss, Result};
use futures::future::{BoxFuture, join_all};

use super::semaphore::{CHANNEL, NAME};
use super::{HOUR, client, waits};
use crate::lab::{Client, Env, RedissonPermitGuard, on_every_server};

on_every_server! {
    permits_with_leases_are_taken_and_given_back,
    a_waiter_for_a_permit_is_woken_by_a_release_and_not_by_a_lease,
    a_waiter_for_a_permit_is_served_when_a_lease_ends,
    permits_with_leases_that_are_dropped_are_given_back,
    a_permit_is_renewed_and_a_fixed_one_is_extended,
    a_permit_that_is_taken_away_is_lost,
    a_permit_that_is_kept_is_given_back_by_its_id,
    the_number_of_permits_is_set_and_changed,
    never_more_permits_with_leases_are_out_than_there_are,
    a_wait_for_a_permit_with_a_lease_ends_with_its_timeout,
    what_a_permit_cannot_be_is_an_error_before_anything_is_sent,
    closing_gives_back_permits_with_leases_and_ends_waits,
}

pub(super) const LEASES: &str = "{java:s}:timeout";

/// Deletes both keys, of which the second one is there only if permits are taken.
pub(super) fn delete(env: &crate::support::env::Env) {
    if env.is_embedded() {
        let keys = [NAME.as_bytes(), LEASES.as_bytes()];
        env.embedded().eval("redis.call('DEL', KEYS[1]) redis.call('DEL', KEYS[2])", &keys, &[]).unwrap();
    } else {
        env.redis::<i64>(&["DEL", NAME]);
        env.redis::<i64>(&["DEL", LEASES]);
    }
}

/// A task that waits for a permit, and is subscribed.
async fn waiter(env: &Env, client: &Client) -> BoxFuture<'static, Result<RedissonPermitGuard>> {
    let semaphore = client.redisson().permit_semaphore(NAME);
    let waiting = env.spawn(async move { semaphore.acquire().await });
    env.eventually("it listens", async || env.listeners(CHANNEL) == 1).await;
    waiting
}

async fn permits_with_leases_are_taken_and_given_back(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (one, other) = (a.redisson().permit_semaphore(NAME), b.redisson().permit_semaphore(NAME));
    assert!(one.try_acquire().await.unwrap().is_none(), "nothing is set");
    assert!(one.try_set_permits(2).await.unwrap());
    assert!(!other.try_set_permits(5).await.unwrap());
    a.counts.reset();
    let first = one.acquire().await.unwrap();
    assert_eq!((a.counts.of("timed_acquire"), a.counts.total()), (1, 1));
    assert!(first.is_valid() && first.name() == NAME);
    let second = other.try_acquire().await.unwrap().unwrap();
    assert!(one.try_acquire().await.unwrap().is_none());
    assert_eq!((other.available().await.unwrap(), other.acquired().await.unwrap()), (0, 2));
    let state = one.inspect().await.unwrap();
    let mut ids: Vec<_> = state.permits.iter().map(|permit| permit.id.clone()).collect();
    let mut own = vec![first.id(), second.id()];
    ids.sort();
    own.sort();
    assert_eq!((ids, state.available, state.acquired), (own, 0, 2));
    assert!(state.permits.iter().all(|permit| permit.remaining.unwrap() > HOUR / 2));
    a.counts.reset();
    first.release().await.unwrap();
    assert_eq!((a.counts.of("timed_release"), a.counts.total()), (1, 1));
    assert_eq!(a.stats().held, 0);
    second.release().await.unwrap();
    assert_eq!((one.available().await.unwrap(), one.acquired().await.unwrap()), (2, 0));
    assert_eq!(env.keys(), [NAME]);
    delete(&env);
}

async fn a_waiter_for_a_permit_is_woken_by_a_release_and_not_by_a_lease(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    for way in 0..4 {
        let held = semaphore.acquire().await.unwrap();
        let waiting = waiter(&env, &b).await;
        // The lease is an hour, so that nothing but messages wakes it.
        let mut held = Some(held);
        match way {
            0 => held.take().unwrap().release().await.unwrap(),
            1 => assert!(semaphore.release_id(&held.take().unwrap().id()).await.unwrap()),
            2 => semaphore.set_permits(2).await.unwrap(),
            _ => semaphore.add_permits(1).await.unwrap(),
        }
        env.soon("it is woken", waiting).await.unwrap().release().await.unwrap();
        if let Some(held) = held {
            held.release().await.unwrap();
            semaphore.add_permits(-1).await.unwrap();
        }
        env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    }
    delete(&env);
}

async fn a_waiter_for_a_permit_is_served_when_a_lease_ends(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let short = semaphore.acquire().expires_after(Duration::from_millis(700)).await.unwrap();
    let waiting = waiter(&env, &b).await;
    assert_eq!(env.soon("the lease ends", short.lost()).await, Loss::Expired);
    let next = env.soon("it is served", waiting).await.unwrap();
    assert_eq!(short.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(next.is_valid() && semaphore.acquired().await.unwrap() == 1);
    next.release().await.unwrap();
    delete(&env);
}

async fn permits_with_leases_that_are_dropped_are_given_back(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    for _ in 0..3 {
        let permit = semaphore.acquire().await.unwrap();
        let waiting = waiter(&env, &b).await;
        drop(permit);
        drop(env.soon("it is woken", waiting).await.unwrap());
        env.eventually("it is back", async || semaphore.available().await.unwrap() == 1).await;
        env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    }
    delete(&env);
}

async fn a_permit_is_renewed_and_a_fixed_one_is_extended(env: Env) {
    let (client, other) = (client(&env).await, client(&env).await);
    let semaphore = client.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    let renewed = semaphore.acquire().lease(Duration::from_secs(2)).await.unwrap();
    let fixed = semaphore.acquire().expires_after(Duration::from_secs(2)).await.unwrap();
    fixed.extend(HOUR).await.unwrap();
    assert_eq!(renewed.extend(HOUR).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    env.sleep(Duration::from_secs(3)).await;
    assert!(renewed.is_valid() && fixed.remaining() > HOUR / 2);
    // Whoever asks would give back what is over.
    assert!(other.redisson().permit_semaphore(NAME).try_acquire().await.unwrap().is_none());
    assert!(client.counts.of("timed_renew") >= 3, "{:?}", client.counts.all());
    renewed.release().await.unwrap();
    fixed.release().await.unwrap();
    let limited = semaphore.acquire().lease(Duration::from_secs(1)).hold_at_most(Duration::from_millis(1500));
    let limited = limited.await.unwrap();
    assert_eq!(env.soon("it ends", limited.lost()).await, Loss::Expired);
    env.eventually("it is back", async || semaphore.available().await.unwrap() == 2).await;
    delete(&env);
}

async fn a_permit_that_is_taken_away_is_lost(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (semaphore, others) = (a.redisson().permit_semaphore(NAME), b.redisson().permit_semaphore(NAME));
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let taken = semaphore.acquire().await.unwrap();
    let [permit] = &others.inspect().await.unwrap().permits[..] else { panic!("one is taken") };
    assert_eq!(permit.id, taken.id());
    assert!(others.release_id(&permit.id).await.unwrap());
    assert!(!others.release_id(&permit.id).await.unwrap());
    let next = others.acquire().await.unwrap();
    assert_eq!(taken.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(next.is_valid() && semaphore.try_acquire().await.unwrap().is_none(), "the late release frees nothing");
    next.release().await.unwrap();
    // The watchdog finds out before that.
    let taken = semaphore.acquire().lease(Duration::from_millis(900)).await.unwrap();
    assert!(others.release_id(&taken.id().to_uppercase()).await.unwrap());
    assert_eq!(env.soon("the loss is told", taken.lost()).await, Loss::Gone);
    assert!(!taken.is_valid());
    delete(&env);
}

async fn a_permit_that_is_kept_is_given_back_by_its_id(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (semaphore, others) = (a.redisson().permit_semaphore(NAME), b.redisson().permit_semaphore(NAME));
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let permit = semaphore.acquire().expires_after(HOUR).await.unwrap();
    let id = permit.id();
    permit.keep().unwrap();
    a.close().await;
    assert_eq!(semaphore.release_id(&id).await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(others.try_acquire().await.unwrap().is_none());
    assert!(others.release_id(&id).await.unwrap());
    // Without anybody who gives it back, it ends with its lease.
    others.acquire().expires_after(Duration::from_millis(500)).await.unwrap().keep().unwrap();
    assert!(others.try_acquire().await.unwrap().is_none());
    env.soon("it ends with its lease", others.acquire()).await.unwrap().release().await.unwrap();
    delete(&env);
}

async fn the_number_of_permits_is_set_and_changed(env: Env) {
    let client = client(&env).await;
    let semaphore = client.redisson().permit_semaphore(NAME);
    semaphore.add_permits(1).await.unwrap();
    let one = semaphore.acquire().await.unwrap();
    semaphore.set_permits(3).await.unwrap();
    assert_eq!((semaphore.available().await.unwrap(), semaphore.acquired().await.unwrap()), (2, 1));
    semaphore.add_permits(-2).await.unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let state = semaphore.inspect().await.unwrap();
    assert_eq!((state.available, state.acquired), (0, 1));
    semaphore.add_permits(-1).await.unwrap();
    one.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 0, "it is missing");
    semaphore.set_permits(1).await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 1);
    delete(&env);
}

async fn never_more_permits_with_leases_are_out_than_there_are(env: Env) {
    let clients = [client(&env).await, client(&env).await];
    let out = Arc::new(AtomicU32::new(0));
    assert!(clients[0].redisson().permit_semaphore(NAME).try_set_permits(3).await.unwrap());
    let tasks = clients.iter().flat_map(|client| std::iter::repeat_n(client, 6)).map(|client| {
        let (semaphore, out, inner) = (client.redisson().permit_semaphore(NAME), out.clone(), env.clone());
        env.spawn(async move {
            for _ in 0..5 {
                let permit = semaphore.acquire().await.unwrap();
                assert!(out.fetch_add(1, Ordering::SeqCst) < 3, "more are out than there are");
                inner.sleep(Duration::from_millis(1)).await;
                out.fetch_sub(1, Ordering::SeqCst);
                permit.release().await.unwrap();
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    env.soon("all are served", join_all(tasks)).await;
    assert_eq!(clients[1].redisson().permit_semaphore(NAME).available().await.unwrap(), 3);
    delete(&env);
}

async fn a_wait_for_a_permit_with_a_lease_ends_with_its_timeout(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = a.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let held = semaphore.acquire().await.unwrap();
    for timeout in [1, 50, 300] {
        let late = b.redisson().permit_semaphore(NAME).acquire().timeout(Duration::from_millis(timeout));
        let late = late.await.unwrap_err();
        assert_eq!((late.kind(), late.name()), (ErrorKind::TimedOut, Some(NAME)));
    }
    assert!(held.is_valid() && b.stats().waiting == 0);
    held.release().await.unwrap();
    env.eventually("it is free", async || semaphore.available().await.unwrap() == 1).await;
    env.eventually("nobody listens", async || env.listeners(CHANNEL) == 0).await;
    delete(&env);
}

async fn what_a_permit_cannot_be_is_an_error_before_anything_is_sent(env: Env) {
    let client = client(&env).await;
    let (semaphore, empty) = (client.redisson().permit_semaphore(NAME), client.redisson().permit_semaphore(""));
    let errors = [
        semaphore.try_set_permits(0).await.unwrap_err(),
        semaphore.set_permits(1 << 31).await.unwrap_err(),
        semaphore.add_permits(i32::MIN).await.unwrap_err(),
        semaphore.acquire().fair().await.unwrap_err(),
        semaphore.acquire().max_waiters(3).await.unwrap_err(),
        semaphore.acquire().retained(Duration::from_secs(1)).await.unwrap_err(),
        semaphore.acquire().timeout(Duration::ZERO).await.unwrap_err(),
        semaphore.acquire().lease(Duration::from_millis(1)).await.unwrap_err(),
        semaphore.try_acquire().lease(HOUR).expires_after(HOUR).await.unwrap_err(),
        semaphore.release_id("").await.unwrap_err(),
        semaphore.release_id(&"a".repeat(31)).await.unwrap_err(),
        semaphore.release_id(&"g".repeat(32)).await.unwrap_err(),
        semaphore.release_id(&"ä".repeat(16)).await.unwrap_err(),
        empty.acquire().await.unwrap_err(),
        empty.available().await.unwrap_err(),
        empty.set_permits(1).await.unwrap_err(),
        empty.release_id(&"a".repeat(32)).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(client.counts.total(), 0);
}

async fn closing_gives_back_permits_with_leases_and_ends_waits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let semaphore = b.redisson().permit_semaphore(NAME);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    let held = a.redisson().permit_semaphore(NAME).acquire().await.unwrap();
    let waiting = waiter(&env, &b).await;
    let own = a.redisson().permit_semaphore(NAME);
    let own = env.spawn(async move { own.acquire().await });
    waits(&env, &a, 1).await;
    a.close().await;
    assert_eq!(env.soon("it fails", own).await.unwrap_err().kind(), ErrorKind::Closed);
    env.soon("it is given back", waiting).await.unwrap().release().await.unwrap();
    assert_eq!(held.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(semaphore.available().await.unwrap(), 1);
    delete(&env);
}
