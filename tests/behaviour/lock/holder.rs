//! Re-entrancy: one hold, several guards.

use std::sync::Arc;
use std::time::Duration;

use bowline::{ErrorKind, Holder};
use futures::FutureExt;

use super::{LONG, queued, waiter};
use crate::lab::{Env, on_every_server};
use crate::support::polled::{begun_at_once, poll_once};

on_every_server! {
    re_entry_is_another_guard_of_the_same_hold_without_a_command,
    only_the_last_guard_releases,
    guards_released_at_the_same_time_have_released_when_all_are_back,
    another_holder_and_no_holder_wait,
    without_a_holder_a_second_acquisition_waits_for_the_first,
    two_acquisitions_at_the_same_time_share_the_hold,
    try_lock_re_enters_and_does_not_wait_for_its_own_holder,
    after_a_loss_the_holder_gets_a_new_hold,
    every_guard_of_a_lost_hold_says_so,
    a_holder_is_one_of_its_client_only,
    a_denied_re_entry_is_an_error_at_once,
    a_denied_re_entry_waits_for_an_acquisition_of_its_holder,
    the_guards_of_a_hold_are_counted;
    re_entry_keeps_the_lease_of_the_hold,
}

/// Two threads have to meet within some nanoseconds.
const ROUNDS: u32 = 500;

async fn re_entry_is_another_guard_of_the_same_hold_without_a_command(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let holder = Holder::new();
    let outer = lock.lock().holder(&holder).await.unwrap();
    client.counts.reset();
    let inner = lock.lock().holder(&holder).await.unwrap();
    let copy = holder;
    let innermost = client.client.clone().lock("a").lock().holder(&copy).timeout(LONG).await.unwrap();
    assert_eq!((inner.token(), innermost.token()), (outer.token(), outer.token()));
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    innermost.release().await.unwrap();
    drop(inner);
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    outer.release().await.unwrap();
    assert_eq!(client.counts.total(), 1);
}

async fn only_the_last_guard_releases(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    let outer = lock.lock().holder(&holder).await.unwrap();
    let inner = lock.lock().holder(&holder).await.unwrap();
    let next = waiter(&env, &other.lock("a")).await;
    // Guards may end in any order. Here the outer one ends first.
    outer.release().await.unwrap();
    assert!(inner.is_valid());
    let state = other.lock("a").inspect().await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(inner.token()));
    inner.release().await.unwrap();
    let next = env.soon("the waiter is served", next).await;
    next.release().await.unwrap();
    // The holder acquires again from the beginning, with a larger token.
    let again = lock.lock().holder(&holder).await.unwrap();
    assert_eq!(client.counts.of("lock_acquire"), 2);
    drop(again);
}

async fn guards_released_at_the_same_time_have_released_when_all_are_back(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    for round in 0..ROUNDS {
        let outer = lock.lock().holder(&holder).await.unwrap();
        let inner = lock.lock().holder(&holder).await.unwrap();
        let [outer, inner] = begun_at_once(outer.release().boxed(), inner.release().boxed());
        outer.await.and(inner.await).unwrap();
        let free = other.lock("a").try_lock().await.unwrap();
        assert!(free.is_some(), "held after both guards had been released, round {round}");
        free.unwrap().release().await.unwrap();
    }
}

async fn another_holder_and_no_holder_wait(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let (one, two) = (Holder::new(), Holder::new());
    let guard = lock.lock().holder(&one).await.unwrap();
    assert!(lock.try_lock().holder(&two).await.unwrap().is_none());
    assert!(lock.try_lock().await.unwrap().is_none());
    let timeout = Duration::from_millis(100);
    assert_eq!(lock.lock().holder(&two).timeout(timeout).await.unwrap_err().kind(), ErrorKind::TimedOut);
    guard.release().await.unwrap();
    lock.lock().holder(&two).await.unwrap().release().await.unwrap();
}

async fn without_a_holder_a_second_acquisition_waits_for_the_first(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let guard = lock.lock().await.unwrap();
    let error = lock.lock().timeout(Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    guard.release().await.unwrap();
}

async fn two_acquisitions_at_the_same_time_share_the_hold(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    for contended in [false, true] {
        client.counts.reset();
        let held = if contended { Some(other.lock("a").lock().await.unwrap()) } else { None };
        let release = async {
            if let Some(held) = held {
                queued(&env, &other.lock("a"), 1).await;
                held.release().await.unwrap();
            }
        };
        let both = async {
            futures::join!(lock.lock().holder(&holder).into_future(), lock.lock().holder(&holder).into_future())
        };
        let ((one, two), ()) = futures::join!(env.soon("both acquire", both), release);
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.token(), two.token());
        assert_eq!(client.counts.of("lock_acquire"), 1);
        drop(one);
        assert!(two.is_valid());
        two.release().await.unwrap();
    }
}

/// The others hear of whatever becomes of the one that acquires.
async fn try_lock_re_enters_and_does_not_wait_for_its_own_holder(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    let guard = lock.try_lock().holder(&holder).await.unwrap().expect("free");
    client.counts.reset();
    let again = lock.try_lock().holder(&holder).await.unwrap().expect("re-entered");
    assert_eq!((again.token(), client.counts.total()), (guard.token(), 0));
    drop(guard);
    again.release().await.unwrap();

    let held = other.lock("a").lock().await.unwrap();
    let mut acquiring = Box::pin(async { lock.lock().holder(&holder).await });
    assert!(poll_once(&mut acquiring).await.is_none());
    queued(&env, &other.lock("a"), 1).await;
    client.counts.reset();
    assert!(lock.try_lock().holder(&holder).await.unwrap().is_none());
    assert_eq!(client.counts.total(), 0);
    held.release().await.unwrap();
    env.soon("the acquiring one acquires", acquiring).await.unwrap().release().await.unwrap();
}

async fn after_a_loss_the_holder_gets_a_new_hold(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let old = lock.lock().holder(&holder).expires_after(Duration::from_millis(150)).await.unwrap();
    env.soon("the loss", old.lost()).await;
    let new = env.soon("a new hold", lock.lock().holder(&holder)).await.unwrap();
    assert!(new.token() > old.token());
    assert!(new.is_valid() && !old.is_valid());
    assert_eq!(old.release().await.unwrap_err().kind(), ErrorKind::Lost);
    // The end of the old hold did not end the new one, which is still held and can be re-entered.
    let again = lock.lock().holder(&holder).await.unwrap();
    assert_eq!(again.token(), new.token());
    let state = lock.inspect().await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(new.token()));
    drop(again);
    new.release().await.unwrap();
}

async fn every_guard_of_a_lost_hold_says_so(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(lock.lock().holder(&holder).expires_after(Duration::from_millis(150)).await.unwrap());
    }
    env.soon("the loss", guards[0].lost()).await;
    for guard in guards {
        assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    }
}

async fn re_entry_keeps_the_lease_of_the_hold(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let outer = lock.lock().holder(&holder).await.unwrap();
    let inner = lock.lock().holder(&holder).expires_after(Duration::from_millis(100)).await.unwrap();
    let ttl = || env.ttl_ms("bowline:lock:{a}");
    assert!(ttl() > 20_000, "{}", ttl());
    assert!(inner.remaining() > Duration::from_secs(20), "{:?}", inner.remaining());
    inner.release().await.unwrap();
    assert!(ttl() > 20_000, "{}", ttl());
    assert!(outer.is_valid());
    outer.release().await.unwrap();
    // A longer lease in a re-entry does not prolong the hold.
    let outer = lock.lock().holder(&holder).expires_after(Duration::from_secs(5)).await.unwrap();
    let inner = lock.lock().holder(&holder).await.unwrap();
    assert!(inner.remaining() <= Duration::from_secs(5) && ttl() <= 5_000);
    drop(inner);
    outer.release().await.unwrap();
}

async fn a_holder_is_one_of_its_client_only(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let holder = Holder::new();
    let guard = Arc::new(a.lock("a").lock().holder(&holder).await.unwrap());
    assert!(b.lock("a").try_lock().holder(&holder).await.unwrap().is_none());
    // A hold of one name is not re-entered under another name.
    let other = a.lock("b").lock().holder(&holder).await.unwrap();
    assert_ne!(other.name(), guard.name());
    drop((guard, other));
}

async fn a_denied_re_entry_is_an_error_at_once(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    // Free, or another's: as without the option.
    let guard = lock.lock().holder(&holder).deny_reentry().await.unwrap();
    assert!(lock.try_lock().holder(&Holder::new()).deny_reentry().await.unwrap().is_none());
    assert!(lock.try_lock().deny_reentry().await.unwrap().is_none());
    client.counts.reset();
    for error in [
        lock.lock().holder(&holder).deny_reentry().await.map(drop).unwrap_err(),
        lock.try_lock().holder(&holder).deny_reentry().await.map(drop).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.name()), (ErrorKind::WouldDeadlock, Some("a")), "{error}");
    }
    assert_eq!((client.counts.total(), guard.guard_count()), (0, 1));
    // The hold can still be re-entered, and is released by the last guard.
    let inner = lock.lock().holder(&holder).await.unwrap();
    guard.release().await.unwrap();
    assert!(inner.is_valid());
    inner.release().await.unwrap();
    // A hold that is lost is in nobody's way.
    let short = Duration::from_millis(150);
    let lost = lock.lock().holder(&holder).deny_reentry().expires_after(short).await.unwrap();
    env.soon("the loss", lost.lost()).await;
    let again = env.soon("a new hold", lock.lock().holder(&holder).deny_reentry()).await.unwrap();
    assert!(again.token() > lost.token());
    again.release().await.unwrap();
}

async fn a_denied_re_entry_waits_for_an_acquisition_of_its_holder(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    let held = other.lock("a").lock().await.unwrap();
    let first = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().holder(&holder).timeout(LONG).await.unwrap() }
    });
    queued(&env, &other.lock("a"), 1).await;
    let mut denied = Box::pin(async { lock.lock().holder(&holder).deny_reentry().timeout(LONG).await.map(drop) });
    assert!(poll_once(&mut denied).await.is_none());
    assert!(lock.try_lock().holder(&holder).deny_reentry().await.unwrap().is_none());
    held.release().await.unwrap();
    let first = env.soon("the first one acquires", first).await;
    assert_eq!(env.soon("the answer", denied).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    first.release().await.unwrap();
}

async fn the_guards_of_a_hold_are_counted(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let alone = lock.lock().await.unwrap();
    assert_eq!(alone.guard_count(), 1);
    alone.release().await.unwrap();
    let outer = lock.lock().holder(&holder).await.unwrap();
    assert_eq!(outer.guard_count(), 1);
    let inner = lock.try_lock().holder(&holder).await.unwrap().expect("re-entered");
    let all = client.lock_all(&["a", "b"]).acquire().holder(&holder).await.unwrap();
    client.counts.reset();
    assert_eq!((outer.guard_count(), inner.guard_count()), (3, 3));
    assert_eq!(client.counts.total(), 0);
    all.release().await.unwrap();
    assert_eq!(outer.guard_count(), 2);
    inner.keep().unwrap();
    assert_eq!(outer.guard_count(), 1);
    drop(lock.lock().holder(&holder).await.unwrap());
    env.eventually("one guard", async || outer.guard_count() == 1).await;
    // Kept in Redis until its lease ends, unless an operator ends it.
    outer.release().await.unwrap();
    lock.force_release().await.unwrap();
}
