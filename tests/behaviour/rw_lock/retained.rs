//! Writers' holds that a client keeps after their guard, for its next writer or until somebody else asks.

use std::time::Duration;

use bowline::{ErrorKind, Token};

use super::{LONG, free_at_once, queued, reader, writer};
use crate::lab::{Acquire, Env, RwLock, TestClient, WriteGuard, on_every_server};

on_every_server! {
    it_is_taken_again_without_a_command,
    the_next_tokens_are_asked_for_ahead,
    whoever_waits_gets_an_idle_one_at_once,
    whoever_waits_gets_a_used_one_after_its_guard,
    a_try_of_another_client_gets_an_idle_one_and_not_a_used_one,
    a_try_takes_and_keeps_one_without_a_command,
    what_is_changed_to_read_is_not_kept,
    after_its_time_it_is_free,
    closing_releases_an_idle_one,
    an_idle_one_that_was_taken_away_is_asked_for_again,
    an_idle_one_is_seen_as_held_by_its_client,
    only_writers_are_retained,
}

/// Longer than any test, and a third of the lease.
const TIME: Duration = Duration::from_secs(10);

/// A client whose lease is so long that nothing here depends on how fast the machine is.
async fn client(env: &Env) -> TestClient {
    env.client_with(|config| config.lease(Duration::from_secs(30))).await
}

async fn take(env: &Env, acquire: Acquire<WriteGuard>) -> Token {
    let guard = env.soon("the lock", acquire).await.unwrap();
    assert!(guard.is_valid());
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// A client that keeps the lock idle, and the token of its last guard.
async fn idle(env: &Env) -> (TestClient, RwLock, Token) {
    let client = client(env).await;
    let lock = client.rw_lock("a");
    let token = take(env, lock.write().retained(TIME)).await;
    client.counts.reset();
    (client, lock, token)
}

async fn it_is_taken_again_without_a_command(env: Env) {
    let (client, lock, mut last) = idle(&env).await;
    for _ in 0..10 {
        let token = take(&env, lock.write().retained(TIME)).await;
        assert!(token > last);
        last = token;
    }
    // Dropped guards keep it too.
    drop(lock.write().retained(TIME).await.unwrap());
    assert!(take(&env, lock.write().retained(TIME)).await > last);
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    let stats = client.stats();
    assert_eq!((stats.retained, stats.acquired, stats.passed_on, stats.held), (12, 13, 0, 0));
}

async fn the_next_tokens_are_asked_for_ahead(env: Env) {
    const ACQUISITIONS: u64 = 3_000;
    let (client, lock, mut last) = idle(&env).await;
    for _ in 0..ACQUISITIONS {
        let token = take(&env, lock.write().retained(TIME)).await;
        assert!(token > last);
        last = token;
    }
    let commands = client.counts.total() as f64 / ACQUISITIONS as f64;
    assert!(commands <= 0.02, "{commands} commands per acquisition: {:?}", client.counts.all());
}

async fn whoever_waits_gets_an_idle_one_at_once(env: Env) {
    let (owner, lock, token) = idle(&env).await;
    let other = client(&env).await;
    let there = other.rw_lock("a");
    // A reader of another client, and one of this client.
    for lock in [&there, &lock] {
        let guard = env.soon("the reader", lock.read()).await.unwrap();
        assert!(guard.token() >= token);
        guard.release().await.unwrap();
        assert!(take(&env, owner.rw_lock("a").write().retained(TIME)).await > token);
    }
    let guard = env.soon("the upgradable reader", there.upgradable_read()).await.unwrap();
    guard.release().await.unwrap();
    let last = take(&env, lock.write().retained(TIME)).await;
    let guard = env.soon("the other writer", there.write()).await.unwrap();
    assert!(guard.token() > last);
    // And back.
    let waits = writer(&env, &lock).await;
    guard.release().await.unwrap();
    env.soon("it is served", waits).await.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn whoever_waits_gets_a_used_one_after_its_guard(env: Env) {
    let (owner, lock, _) = idle(&env).await;
    let other = client(&env).await;
    let there = other.rw_lock("b");
    let held = there.write().await.unwrap();
    let waits = reader(&env, &there).await;
    held.release().await.unwrap();
    env.soon("its inbox is open", waits).await.release().await.unwrap();
    let guard = lock.write().retained(TIME).await.unwrap();
    let waits = reader(&env, &other.rw_lock("a")).await;
    assert!(guard.is_valid());
    owner.counts.reset();
    let token = guard.token();
    guard.release().await.unwrap();
    let reading = env.soon("it is served", waits).await;
    assert!(reading.token() >= token);
    reading.release().await.unwrap();
    // The release hands over. If the client has not heard of the other one yet, it does so when it hears.
    let ended = owner.counts.of("permit_release") + owner.counts.of("permit_cancel");
    assert_eq!(ended, 1, "{:?}", owner.counts.all());
    free_at_once(&env, &lock).await;
}

async fn a_try_of_another_client_gets_an_idle_one_and_not_a_used_one(env: Env) {
    let (_owner, lock, token) = idle(&env).await;
    let other = client(&env).await;
    let there = other.rw_lock("a");
    assert!(there.try_read().for_retained(Duration::ZERO).await.unwrap().is_none(), "it does not wait");
    let guard = env.soon("it waits", there.try_write().for_retained(LONG)).await.unwrap().unwrap();
    assert!(guard.token() > token);
    guard.release().await.unwrap();
    take(&env, lock.write().retained(TIME)).await;
    env.soon("a reader", there.try_read().for_retained(LONG)).await.unwrap().unwrap().release().await.unwrap();
    let used = lock.write().retained(TIME).await.unwrap();
    assert!(there.try_read().await.unwrap().is_none(), "it is used");
    used.release().await.unwrap();
    free_at_once(&env, &there).await;
}

async fn a_try_takes_and_keeps_one_without_a_command(env: Env) {
    let (client, lock, token) = idle(&env).await;
    let guard = lock.try_write().retained(TIME).await.unwrap().unwrap();
    assert!(guard.token() > token);
    assert!(lock.try_write().retained(TIME).await.unwrap().is_none(), "it is used");
    guard.release().await.unwrap();
    take(&env, lock.write().retained(TIME)).await;
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
}

/// The hold of a reader is another one, which ends with its guard.
async fn what_is_changed_to_read_is_not_kept(env: Env) {
    let (client, lock, token) = idle(&env).await;
    let other = env.client().await;
    let there = other.rw_lock("a");
    let reading = lock.write().retained(TIME).await.unwrap().downgrade().await.unwrap();
    assert!(reading.token() >= token);
    env.soon("another reader", there.read()).await.unwrap().release().await.unwrap();
    reading.release().await.unwrap();
    assert!(there.try_write().for_retained(Duration::ZERO).await.unwrap().is_some(), "nobody keeps it");
    let upgradable = lock.write().retained(TIME).await.unwrap().downgrade_to_upgradable().await.unwrap();
    let writing = upgradable.upgrade().await.unwrap();
    assert!(writing.token() > token);
    writing.release().await.unwrap();
    assert!(there.try_write().for_retained(Duration::ZERO).await.unwrap().is_some(), "nobody keeps it");
    assert_eq!(client.stats().held, 0);
    free_at_once(&env, &lock).await;
}

async fn after_its_time_it_is_free(env: Env) {
    let client = client(&env).await;
    let lock = client.rw_lock("a");
    let token = take(&env, lock.write().retained(Duration::from_millis(50))).await;
    env.eventually("it is free", async || lock.inspect().await.unwrap().writer.is_none()).await;
    client.counts.reset();
    assert!(take(&env, lock.write().retained(TIME)).await > token);
    assert_eq!((client.counts.of("permit_acquire"), client.stats().retained), (1, 0));
}

async fn closing_releases_an_idle_one(env: Env) {
    let (client, ..) = idle(&env).await;
    client.close().await;
    let other = env.client().await;
    let guard = other.rw_lock("a").try_read().for_retained(Duration::ZERO).await.unwrap();
    guard.expect("closing has released it").release().await.unwrap();
    assert_eq!(client.stats().lost, 0);
}

async fn an_idle_one_that_was_taken_away_is_asked_for_again(env: Env) {
    let (client, lock, token) = idle(&env).await;
    assert_eq!(lock.force_release(bowline::Whose::Everybody).await.unwrap().holds, 1);
    let other = env.client().await;
    let between = take(&env, other.rw_lock("a").write()).await;
    assert!(between > token);
    let again = async || {
        let guard = lock.write().retained(TIME).await.unwrap();
        let is_new = guard.token() > between;
        // Until the message comes, the client takes the hold that it has no more. Such a guard is told of the loss.
        let released = guard.release().await;
        assert!(released.as_ref().is_ok_and(|()| is_new) || !is_new, "{released:?}");
        is_new
    };
    env.eventually("the client asks the server", again).await;
    assert!(client.counts.of("permit_acquire") > 0);
}

async fn an_idle_one_is_seen_as_held_by_its_client(env: Env) {
    let (owner, lock, token) = idle(&env).await;
    let other = env.client().await;
    for (lock, idle) in [(&lock, Some(true)), (&other.rw_lock("a"), None)] {
        let writer = lock.inspect().await.unwrap().writer.unwrap();
        // The token of the hold is that of its first guard, until its next tokens are asked for.
        assert_eq!((writer.client, writer.idle), (Some(owner.id()), idle));
        assert!(writer.token <= token);
    }
    let guard = lock.write().retained(TIME).await.unwrap();
    assert_eq!(lock.inspect().await.unwrap().writer.unwrap().idle, Some(false));
    queued(&env, &lock, 0).await;
    guard.release().await.unwrap();
    free_at_once(&env, &other.rw_lock("a")).await;
}

async fn only_writers_are_retained(env: Env) {
    let client = client(&env).await;
    let lock = client.rw_lock("a");
    client.counts.reset();
    for error in [
        lock.read().retained(TIME).await.map(drop).unwrap_err(),
        lock.upgradable_read().retained(TIME).await.map(drop).unwrap_err(),
        lock.try_read().retained(TIME).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains("that is acquired to write, can be retained"), "{error}");
    }
    assert_eq!(client.counts.total(), 0);
    // Of a handle, all that write.
    let handle = client.rw_lock("a").retained(TIME);
    handle.read().await.unwrap().release().await.unwrap();
    handle.try_write().await.unwrap().unwrap().release().await.unwrap();
    let last = take(&env, handle.write()).await;
    assert_eq!(client.stats().retained, 1);
    assert!(take(&env, handle.write().fair()).await > last);
    assert!(lock.inspect().await.unwrap().writer.is_none(), "it is not kept");
}
