//! Locks in Redisson's format, between clients of bowline. `tests/interop` has the real Redisson beside them.

// Tests that need futures: polled by hand, or dropped half-way.
mod cancel;
mod channel;
mod clock;
mod latch;
mod permit_semaphore;
mod semaphore;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss, RedissonOwner, Result};
use futures::future::{BoxFuture, join_all};

use crate::lab::{Client, Env, RedissonGuard, TestClient, on_every_server};

on_every_server! {
    one_holds_at_a_time,
    a_holder_that_enters_again_is_counted_in_the_client,
    a_waiter_is_woken_by_the_release_and_not_by_the_lease,
    a_waiter_is_served_when_the_lease_ends,
    a_wait_ends_with_its_timeout,
    a_hold_that_is_taken_away_is_lost,
    a_hold_is_renewed_and_a_fixed_one_is_extended,
    a_hold_that_is_kept_stays,
    tasks_of_one_client_hand_the_lock_over,
    after_a_budget_the_lock_is_released_for_others,
    tokens_of_a_fenced_lock_grow_over_all_clients,
    what_needs_a_queue_is_an_error_before_anything_is_sent,
    names_are_keys,
    closing_fails_waiters_and_frees_the_lock,
}

/// Longer than any test, so that nothing here ends with a lease.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Redisson's names have no prefix, so the documented user has no right to them.
async fn client(env: &Env) -> TestClient {
    env.client_with_all_rights(|config| config.lease(HOUR).handoff_time(Duration::from_secs(10))).await
}

/// Whether as many acquisitions of the client wait.
async fn waits(env: &Env, client: &Client, waiters: u64) {
    env.eventually(&format!("{waiters} wait"), async || client.stats().waiting == waiters).await;
}

/// A task that waits for the lock.
async fn waiter(env: &Env, client: &Client) -> BoxFuture<'static, Result<RedissonGuard>> {
    let (lock, waiters) = (client.redisson().lock("a"), client.stats().waiting);
    let waiter = env.spawn(async move { lock.lock().await });
    waits(env, client, waiters + 1).await;
    waiter
}

async fn one_holds_at_a_time(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (mine, others) = (a.redisson().lock("a"), b.redisson().lock("a"));
    assert_eq!(mine.inspect().await.unwrap().holder, None);
    assert!(!mine.force_release().await.unwrap());
    let guard = mine.try_lock().await.unwrap().unwrap();
    assert!(guard.is_valid() && guard.name() == "a");
    for lock in [&mine, &others] {
        assert!(lock.try_lock().await.unwrap().is_none());
        let RedissonOwner { owner, entries, remaining, .. } = lock.inspect().await.unwrap().holder.unwrap();
        assert!(owner.starts_with(&format!("{}:", a.id())), "{owner}");
        assert!(entries == 1 && remaining.unwrap() > HOUR / 2);
    }
    // The lock of bowline of the same name is another one.
    b.lock("a").try_lock().await.unwrap().unwrap().release().await.unwrap();
    a.counts.reset();
    guard.release().await.unwrap();
    assert_eq!((a.counts.of("redisson_release"), a.counts.total()), (1, 1));
    a.counts.reset();
    let guard = mine.lock().await.unwrap();
    assert_eq!((a.counts.of("redisson_acquire"), a.counts.total()), (1, 1));
    drop(guard);
    env.soon("the drop releases", others.lock()).await.unwrap().release().await.unwrap();
}

async fn a_holder_that_enters_again_is_counted_in_the_client(env: Env) {
    let client = client(&env).await;
    let (lock, holder) = (client.redisson().lock("a"), Holder::new());
    let first = lock.lock().holder(&holder).await.unwrap();
    client.counts.reset();
    let second = lock.lock().holder(&holder).await.unwrap();
    assert!(lock.try_lock().holder(&Holder::new()).await.unwrap().is_none());
    assert_eq!((first.guard_count(), second.guard_count()), (2, 2));
    assert_eq!(lock.inspect().await.unwrap().holder.unwrap().entries, 1);
    let denied = lock.lock().holder(&holder).deny_reentry().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::WouldDeadlock);
    first.release().await.unwrap();
    assert!(lock.try_lock().await.unwrap().is_none());
    assert_eq!(client.counts.of("redisson_release"), 0);
    second.release().await.unwrap();
    lock.try_lock().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_waiter_is_woken_by_the_release_and_not_by_the_lease(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    for _ in 0..3 {
        let held = a.redisson().lock("a").lock().await.unwrap();
        let waiting = waiter(&env, &b).await;
        held.release().await.unwrap();
        env.soon("it is woken", waiting).await.unwrap().release().await.unwrap();
        // By force, and by a drop.
        let lost = a.redisson().lock("a").lock().await.unwrap();
        let waiting = waiter(&env, &b).await;
        assert!(b.redisson().lock("a").force_release().await.unwrap());
        let held = env.soon("it is woken", waiting).await.unwrap();
        assert_eq!(lost.release().await.unwrap_err().kind(), ErrorKind::Lost);
        let waiting = waiter(&env, &a).await;
        drop(held);
        env.soon("it is woken", waiting).await.unwrap().release().await.unwrap();
    }
}

async fn a_waiter_is_served_when_the_lease_ends(env: Env) {
    let a = client(&env).await;
    for _ in 0..5 {
        // A client of its own for each round. One that still listens would hear the message of its last release, late,
        // and ask once more.
        let b = client(&env).await;
        b.counts.reset();
        let left = a.redisson().lock("a").lock().expires_after(Duration::from_millis(150)).await.unwrap();
        let waiting = waiter(&env, &b).await;
        left.keep().unwrap();
        env.soon("the lease has ended", waiting).await.unwrap().release().await.unwrap();
        // Once, once more since it listens, and when the lease is over, not a moment before.
        let asked = b.counts.of("redisson_acquire");
        assert!(asked <= 3, "it asked {asked} times");
    }
}

async fn a_wait_ends_with_its_timeout(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let held = a.redisson().lock("a").lock().await.unwrap();
    for timeout in [1, 50, 300] {
        let late = b.redisson().lock("a").lock().timeout(Duration::from_millis(timeout)).await.unwrap_err();
        assert_eq!((late.kind(), late.name()), (ErrorKind::TimedOut, Some("a")));
    }
    assert!(held.is_valid() && b.stats().waiting == 0);
    held.release().await.unwrap();
    env.soon("it is free", b.redisson().lock("a").lock()).await.unwrap().release().await.unwrap();
}

async fn a_hold_that_is_taken_away_is_lost(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let lock = a.redisson().lock("a");
    let taken = lock.lock().await.unwrap();
    assert!(b.redisson().lock("a").force_release().await.unwrap());
    let next = b.redisson().lock("a").lock().await.unwrap();
    assert_eq!(taken.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(next.is_valid() && lock.try_lock().await.unwrap().is_none(), "the late release frees nothing");
    next.release().await.unwrap();
    // The watchdog finds out before that.
    let taken = lock.lock().lease(Duration::from_millis(900)).await.unwrap();
    assert!(b.redisson().lock("a").force_release().await.unwrap());
    assert_eq!(env.soon("the loss is told", taken.lost()).await, Loss::Gone);
    assert!(!taken.is_valid());
    // A lease that ends, too.
    let short = lock.lock().expires_after(Duration::from_millis(150)).await.unwrap();
    assert_eq!(env.soon("the loss is told", short.lost()).await, Loss::Expired);
    assert_eq!(short.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_hold_is_renewed_and_a_fixed_one_is_extended(env: Env) {
    let client = client(&env).await;
    let renewed = client.redisson().lock("a").lock().lease(Duration::from_secs(2)).await.unwrap();
    let fixed = client.redisson().lock("b").lock().expires_after(Duration::from_secs(2)).await.unwrap();
    fixed.extend(HOUR).await.unwrap();
    env.sleep(Duration::from_secs(3)).await;
    assert!(renewed.is_valid() && fixed.remaining() > HOUR / 2);
    let left = client.redisson().lock("b").inspect().await.unwrap().holder.unwrap().remaining.unwrap();
    assert!(left > HOUR / 2, "{left:?}");
    // Java programs read it as a number.
    assert_eq!(client.redisson().lock("b").inspect().await.unwrap().holder.unwrap().entries, 1);
    assert!(client.counts.of("lock_renew") >= 3, "{:?}", client.counts.all());
    renewed.release().await.unwrap();
    fixed.release().await.unwrap();
}

async fn a_hold_that_is_kept_stays(env: Env) {
    let client = client(&env).await;
    let lock = client.redisson().lock("a");
    lock.lock().expires_after(Duration::from_millis(500)).await.unwrap().keep().unwrap();
    assert!(lock.try_lock().await.unwrap().is_none());
    env.soon("it ends with its lease", lock.lock()).await.unwrap().release().await.unwrap();
}

/// So many tasks of a client take the lock in turn. Returns how often the server was asked.
async fn take_turns(env: &Env, client: &TestClient, tasks: usize) -> (u64, u64) {
    let held = Arc::new(AtomicBool::new(false));
    let first = client.redisson().lock("a").lock().await.unwrap();
    let waiting: Vec<_> = (0..tasks)
        .map(|_| {
            let (lock, held) = (client.redisson().lock("a"), held.clone());
            env.spawn(async move {
                let guard = lock.lock().await.unwrap();
                assert!(!held.swap(true, Ordering::SeqCst), "two hold it");
                held.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            })
        })
        .collect();
    waits(env, client, tasks as u64).await;
    client.counts.reset();
    first.release().await.unwrap();
    env.soon("all are served", join_all(waiting)).await;
    (client.counts.of("redisson_acquire"), client.counts.of("redisson_release"))
}

async fn tasks_of_one_client_hand_the_lock_over(env: Env) {
    let client = client(&env).await;
    // The first of the budget was the one before them.
    assert_eq!(take_turns(&env, &client, 31).await, (0, 1));
}

async fn after_a_budget_the_lock_is_released_for_others(env: Env) {
    let client = client(&env).await;
    assert_eq!(take_turns(&env, &client, 32).await, (1, 2));
    assert_eq!(take_turns(&env, &client, 100).await, (3, 4));
    // A waiter elsewhere is woken between two budgets, and races.
    let other = env.client_with_all_rights(|config| config.lease(HOUR)).await;
    let held = client.redisson().lock("a").lock().await.unwrap();
    let elsewhere = waiter(&env, &other).await;
    held.release().await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let (lock, stop) = (client.redisson().lock("a"), stop.clone());
            env.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    lock.lock().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    env.soon("it gets its turn", elsewhere).await.unwrap().release().await.unwrap();
    stop.store(true, Ordering::SeqCst);
    env.soon("they stop", join_all(busy)).await;
}

async fn tokens_of_a_fenced_lock_grow_over_all_clients(env: Env) {
    let clients = [client(&env).await, client(&env).await];
    let last = Arc::new(AtomicU64::new(0));
    let tasks = clients.iter().flat_map(|client| std::iter::repeat_n(client, 8)).map(|client| {
        let (lock, last) = (client.redisson().fenced_lock("a"), last.clone());
        env.spawn(async move {
            for _ in 0..8 {
                let guard = lock.lock().await.unwrap();
                let token = guard.token().get();
                assert!(last.swap(token, Ordering::SeqCst) < token, "token {token} came late");
                guard.release().await.unwrap();
            }
        })
    });
    env.soon("all are served", join_all(tasks.collect::<Vec<_>>())).await;
    let guard = clients[0].redisson().fenced_lock("a").try_lock().await.unwrap().unwrap();
    assert!(guard.token().get() > last.load(Ordering::SeqCst));
    let fenced = clients[1].redisson().fenced_lock("a");
    assert_eq!(fenced.inspect().await.unwrap().holder.unwrap().entries, 1);
    assert!(fenced.try_lock().await.unwrap().is_none());
    assert!(clients[1].redisson().lock("a").try_lock().await.unwrap().is_none(), "it is the same lock");
    guard.release().await.unwrap();
}

async fn what_needs_a_queue_is_an_error_before_anything_is_sent(env: Env) {
    let client = client(&env).await;
    let lock = client.redisson().lock("a");
    let errors = [
        lock.lock().fair().await.unwrap_err(),
        lock.lock().max_waiters(3).await.unwrap_err(),
        lock.lock().retained(Duration::from_secs(1)).await.unwrap_err(),
        lock.try_lock().retained(Duration::from_secs(1)).await.unwrap_err(),
        client.redisson().lock("").lock().await.unwrap_err(),
        client.redisson().lock(&"x".repeat(513)).inspect().await.unwrap_err(),
        client.redisson().map_names(|_| String::new()).fenced_lock("a").force_release().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(client.counts.total(), 0);
}

async fn names_are_keys(env: Env) {
    let client = client(&env).await;
    for name in ["a", "orders:42", "a{b}c", "{a}:queue", " ü", "a%7Bb"] {
        let guard = client.redisson().lock(name).lock().await.unwrap();
        assert_eq!((env.keys(), guard.name()), (vec![name.to_owned()], name));
        guard.release().await.unwrap();
    }
    let mapped = client.redisson().map_names(|name| format!("shop:{name}"));
    let guard = mapped.lock("a").lock().await.unwrap();
    assert_eq!((env.keys(), guard.name()), (vec!["shop:a".to_owned()], "a"));
    assert!(client.redisson().lock("shop:a").try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
}

async fn closing_fails_waiters_and_frees_the_lock(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let held = a.redisson().lock("a").lock().await.unwrap();
    let (elsewhere, here) = (waiter(&env, &b).await, waiter(&env, &a).await);
    let alone = b.redisson().lock("a");
    let alone = env.spawn(async move { alone.lock().lease(HOUR / 2).await });
    waits(&env, &b, 2).await;
    b.close().await;
    for waiting in [elsewhere, alone] {
        assert_eq!(env.soon("it fails", waiting).await.unwrap_err().kind(), ErrorKind::Closed);
    }
    a.close().await;
    assert_eq!(env.soon("it fails", here).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(held.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let next = client(&env).await;
    next.redisson().lock("a").try_lock().await.unwrap().unwrap().release().await.unwrap();
}
