//! Locks that a client keeps after their guard, for its next acquisition or until another client asks.

use std::time::Duration;

use bowline::{ErrorKind, Token};

use super::{LONG, free_at_once, queued, wait_once, waiter};
use crate::lab::{Acquire, Env, Lock, LockGuard, TestClient, on_every_server};

on_every_server! {
    it_is_taken_again_without_a_command,
    without_hand_offs_it_is_retained_as_well,
    the_next_tokens_are_asked_for_ahead,
    another_client_that_waits_gets_an_idle_one_at_once,
    another_client_gets_a_used_one_after_its_guard,
    a_try_of_another_client_gets_an_idle_one_and_not_a_used_one,
    a_try_takes_and_keeps_one_without_a_command,
    every_other_acquisition_of_the_client_gets_an_idle_one,
    after_its_time_it_is_free,
    closing_releases_an_idle_one,
    the_last_handle_releases_an_idle_one,
    an_idle_one_that_was_taken_away_is_asked_for_again,
    clients_that_alternate_need_few_commands,
    an_idle_one_is_seen_as_held_by_its_client,
    what_cannot_be_retained_is_refused,
}

/// Longer than any test, and a third of the lease.
const TIME: Duration = Duration::from_secs(10);

/// A client whose lease is so long that nothing here depends on how fast the machine is.
async fn client(env: &Env) -> TestClient {
    env.client_with(|config| config.lease(Duration::from_secs(30))).await
}

async fn take(env: &Env, acquire: Acquire<LockGuard>) -> Token {
    let guard = env.soon("the lock", acquire).await.unwrap();
    assert!(guard.is_valid());
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// A client that keeps the lock idle, and the token of its last guard.
async fn idle(env: &Env) -> (TestClient, Lock, Token) {
    let client = client(env).await;
    let lock = client.lock("a");
    let token = take(env, lock.lock().retained(TIME)).await;
    client.counts.reset();
    (client, lock, token)
}

async fn it_is_taken_again_without_a_command(env: Env) {
    let (client, lock, mut last) = idle(&env).await;
    for _ in 0..100 {
        let token = take(&env, lock.lock().retained(TIME)).await;
        assert!(token > last);
        last = token;
    }
    // Dropped guards keep it too.
    drop(lock.lock().retained(TIME).await.unwrap());
    assert!(take(&env, lock.lock().retained(TIME)).await > last);
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    let stats = client.stats();
    assert_eq!((stats.retained, stats.acquired, stats.passed_on, stats.held), (102, 103, 0, 0));
}

/// With a hand-off time of zero, waiters of the same client queue up at the server. A lock that nobody waits for is
/// kept all the same.
async fn without_hand_offs_it_is_retained_as_well(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_secs(30)).handoff_time(Duration::ZERO)).await;
    let lock = client.lock("a");
    let mut last = take(&env, lock.lock().retained(TIME)).await;
    client.counts.reset();
    for _ in 0..10 {
        let token = take(&env, lock.lock().retained(TIME)).await;
        assert!(token > last);
        last = token;
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    assert_eq!((client.stats().retained, client.stats().acquired), (10, 11));
    let guard = lock.lock().retained(TIME).await.unwrap();
    let waits = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().retained(TIME).await.unwrap() }
    });
    env.eventually("it waits", async || client.stats().waiting == 1).await;
    // Longer than the next tokens would be asked for.
    env.sleep(Duration::from_millis(50)).await;
    guard.release().await.unwrap();
    env.soon("its turn", waits).await.release().await.unwrap();
    assert_eq!(client.stats().passed_on, 0, "it has the lock from the server");
}

async fn the_next_tokens_are_asked_for_ahead(env: Env) {
    const ACQUISITIONS: u64 = 3_000;
    let (client, lock, mut last) = idle(&env).await;
    for _ in 0..ACQUISITIONS {
        let token = take(&env, lock.lock().retained(TIME)).await;
        assert!(token > last);
        last = token;
    }
    let commands = client.counts.total() as f64 / ACQUISITIONS as f64;
    assert!(commands <= 0.02, "{commands} commands per acquisition: {:?}", client.counts.all());
}

async fn another_client_that_waits_gets_an_idle_one_at_once(env: Env) {
    let (_client, lock, token) = idle(&env).await;
    let other = client(&env).await;
    let guard = env.soon("the other client", other.lock("a").lock()).await.unwrap();
    assert!(guard.token() > token);
    // And back.
    let waits = waiter(&env, &lock).await;
    guard.release().await.unwrap();
    env.soon("it is served", waits).await.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn another_client_gets_a_used_one_after_its_guard(env: Env) {
    let (owner, lock, _) = idle(&env).await;
    let other = client(&env).await;
    wait_once(&env, &other.lock("b"), &other.lock("b")).await;
    let guard = lock.lock().retained(TIME).await.unwrap();
    let waits = waiter(&env, &other.lock("a")).await;
    assert!(guard.is_valid());
    owner.counts.reset();
    guard.release().await.unwrap();
    env.soon("it is served", waits).await.release().await.unwrap();
    // The release hands over. If the client has not heard of the other one yet, it does so when it hears.
    let ended = owner.counts.of("lock_release") + owner.counts.of("lock_cancel");
    assert_eq!(ended, 1, "{:?}", owner.counts.all());
    free_at_once(&env, &lock).await;
}

async fn a_try_of_another_client_gets_an_idle_one_and_not_a_used_one(env: Env) {
    let (_owner, lock, token) = idle(&env).await;
    let other = client(&env).await;
    let there = other.lock("a");
    assert!(there.try_lock().for_retained(Duration::ZERO).await.unwrap().is_none(), "it does not wait");
    let guard = env.soon("it waits", there.try_lock().for_retained(LONG)).await.unwrap().unwrap();
    assert!(guard.token() > token);
    guard.release().await.unwrap();
    let used = lock.lock().retained(TIME).await.unwrap();
    assert!(there.try_lock().await.unwrap().is_none(), "it is used");
    used.release().await.unwrap();
    free_at_once(&env, &there).await;
}

async fn a_try_takes_and_keeps_one_without_a_command(env: Env) {
    let (client, lock, token) = idle(&env).await;
    let guard = lock.try_lock().retained(TIME).await.unwrap().unwrap();
    assert!(guard.token() > token);
    assert!(lock.try_lock().retained(TIME).await.unwrap().is_none(), "it is used");
    guard.release().await.unwrap();
    take(&env, lock.lock().retained(TIME)).await;
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    // The first one is a try, too.
    let other = client.lock("b");
    other.try_lock().retained(TIME).await.unwrap().unwrap().release().await.unwrap();
    other.try_lock().retained(TIME).await.unwrap().unwrap().release().await.unwrap();
    assert_eq!((client.counts.of("lock_acquire"), client.counts.total()), (1, 1), "{:?}", client.counts.all());
}

async fn every_other_acquisition_of_the_client_gets_an_idle_one(env: Env) {
    let (client, lock, token) = idle(&env).await;
    // In the same cohort: it takes the hold, and releases it.
    let plain = take(&env, lock.lock().non_fair()).await;
    assert_eq!((client.counts.of("lock_release"), client.counts.total()), (1, 1), "{:?}", client.counts.all());
    let again = take(&env, lock.lock().retained(TIME)).await;
    // Through the server, which asks the client.
    let fair = take(&env, lock.lock()).await;
    take(&env, lock.lock().retained(TIME)).await;
    let fixed = take(&env, lock.lock().expires_after(Duration::from_secs(20))).await;
    take(&env, lock.lock().retained(TIME)).await;
    let tried = env.soon("a try", lock.try_lock().for_retained(LONG)).await.unwrap().unwrap();
    let tokens = [token, plain, again, fair, fixed, tried.token()];
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    tried.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn after_its_time_it_is_free(env: Env) {
    let client = client(&env).await;
    let lock = client.lock("a");
    let token = take(&env, lock.lock().retained(Duration::from_millis(50))).await;
    env.eventually("it is free", async || lock.inspect().await.unwrap().holder.is_none()).await;
    client.counts.reset();
    assert!(take(&env, lock.lock().retained(TIME)).await > token);
    assert_eq!((client.counts.of("lock_acquire"), client.stats().retained), (1, 0));
}

async fn closing_releases_an_idle_one(env: Env) {
    let (client, ..) = idle(&env).await;
    client.close().await;
    let other = env.client().await;
    let guard = other.lock("a").try_lock().for_retained(Duration::ZERO).await.unwrap();
    guard.expect("closing has released it").release().await.unwrap();
    assert_eq!(client.stats().lost, 0);
}

async fn the_last_handle_releases_an_idle_one(env: Env) {
    let (client, lock, _) = idle(&env).await;
    drop((client, lock));
    let other = env.client().await;
    let lock = other.lock("a");
    env.eventually("it is free", async || lock.inspect().await.unwrap().holder.is_none()).await;
}

async fn an_idle_one_that_was_taken_away_is_asked_for_again(env: Env) {
    let (client, lock, _) = idle(&env).await;
    let token = lock.force_release().await.unwrap().unwrap();
    let again = async || {
        let guard = lock.lock().retained(TIME).await.unwrap();
        let is_new = guard.token() > token;
        // Until the message comes, the client takes the hold that it has no more. Such a guard is told of the loss.
        let released = guard.release().await;
        assert!(released.as_ref().is_ok_and(|()| is_new) || !is_new, "{released:?}");
        is_new
    };
    env.eventually("the client asks the server", again).await;
    assert!(client.counts.of("lock_acquire") > 0);
}

async fn clients_that_alternate_need_few_commands(env: Env) {
    const EACH: u64 = 50;
    let clients = [client(&env).await, client(&env).await];
    for client in &clients {
        wait_once(&env, &clients[0].lock("a"), &client.lock("a")).await;
        client.counts.reset();
    }
    let mut last = None;
    for _ in 0..EACH {
        for client in &clients {
            let token = take(&env, client.lock("a").lock().retained(TIME)).await;
            assert!(last.is_none_or(|last| last < token));
            last = Some(token);
        }
    }
    let commands = clients.iter().map(|client| client.counts.total()).sum::<u64>() as f64 / (2 * EACH) as f64;
    let counts = clients.each_ref().map(|client| client.counts.all());
    assert!(commands <= 3.0, "{commands} commands per acquisition: {counts:?}");
}

async fn an_idle_one_is_seen_as_held_by_its_client(env: Env) {
    let (owner, lock, token) = idle(&env).await;
    let other = env.client().await;
    for (lock, idle) in [(&lock, Some(true)), (&other.lock("a"), None)] {
        let holder = lock.inspect().await.unwrap().holder.unwrap();
        assert_eq!((holder.client, holder.token, holder.idle), (Some(owner.id()), token, idle));
    }
    let guard = lock.lock().retained(TIME).await.unwrap();
    assert_eq!(lock.inspect().await.unwrap().holder.unwrap().idle, Some(false));
    queued(&env, &lock, 0).await;
    guard.release().await.unwrap();
    free_at_once(&env, &other.lock("a")).await;
}

async fn what_cannot_be_retained_is_refused(env: Env) {
    let client = client(&env).await;
    let lock = || client.lock("a").lock();
    let lease = Duration::from_secs(30);
    let refused = [
        lock().retained(Duration::ZERO),
        lock().retained(lease / 3 + Duration::from_nanos(1)),
        lock().retained(TIME).lease(Duration::from_secs(60)),
        lock().retained(TIME).expires_after(lease),
        lock().retained(TIME).hold_at_most(lease),
    ];
    client.counts.reset();
    for (n, acquire) in refused.into_iter().enumerate() {
        assert_eq!(acquire.await.unwrap_err().kind(), ErrorKind::InvalidInput, "{n}");
    }
    let kinds = [
        client.rw_lock("a").read().retained(TIME).await.map(drop).unwrap_err(),
        client.semaphore("a", 1).acquire().retained(TIME).await.map(drop).unwrap_err(),
        client.lock_all(&["a", "b"]).acquire().retained(TIME).await.map(drop).unwrap_err(),
    ];
    for error in kinds {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(
            error.to_string().contains("only a Lock, or an RwLock that is acquired to write, can be retained"),
            "{error}"
        );
    }
    assert_eq!(client.counts.total(), 0);
    take(&env, lock().retained(lease / 3).lease(lease)).await;
}
