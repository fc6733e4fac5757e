//! Who gets a name and who loses it, as others see it.

use std::time::Duration;

use bowline::{Access, ErrorKind, HoldChange, HoldChanges, HoldState, NameInUse, PrimitiveKind as Kind, Token, Whose};

use crate::lab::{Changes, Env, TestClient, on_every_server};
use crate::lock::LONG;

on_every_server! {
    a_lock_is_seen_to_go_from_hand_to_hand,
    what_ends_with_its_lease_is_lost,
    who_holds_already_is_told_first,
    readers_writers_and_permits_are_seen,
    a_changed_hold_is_seen_as_another_one,
    runs_and_leaders_are_seen,
    what_an_operator_takes_is_released,
    all_streams_of_a_client_see_the_same,
    what_nobody_can_hold_has_no_changes,
    changes_end_with_their_client,
}

/// What a change says: `+` a hold was granted, `-` it was released, `!` it was lost.
fn shown(change: HoldChange) -> (char, HoldState) {
    match change {
        HoldChange::Granted(hold) => ('+', hold),
        HoldChange::Released(hold) => ('-', hold),
        HoldChange::Lost(hold) => ('!', hold),
        other => panic!("{other:?}"),
    }
}

async fn next(env: &Env, changes: &mut Changes<HoldChanges>) -> (char, HoldState) {
    shown(env.soon("a change", changes.next()).await.unwrap().unwrap())
}

/// The next change, and its token.
async fn token(env: &Env, changes: &mut Changes<HoldChanges>) -> (char, Token) {
    let (what, hold) = next(env, changes).await;
    (what, hold.token.unwrap())
}

/// The next change, and what is held.
async fn access(env: &Env, changes: &mut Changes<HoldChanges>) -> (char, Access) {
    let (what, hold) = next(env, changes).await;
    (what, hold.access)
}

async fn labelled(env: &Env, label: &str) -> TestClient {
    env.client_with(|config| config.label(label)).await
}

async fn a_lock_is_seen_to_go_from_hand_to_hand(env: Env) {
    let (a, b, observer) = (labelled(&env, "a").await, labelled(&env, "b").await, env.client().await);
    let mut changes = observer.lock("orders").changes();
    let first = a.lock("orders").lock().await.unwrap();
    let (what, hold) = next(&env, &mut changes).await;
    assert_eq!((what, hold.client, hold.token, hold.access), ('+', Some(a.id()), Some(first.token()), Access::Lock));
    assert!(hold.remaining > LONG / 2, "{hold:?}");
    env.eventually("the label is stored", async || {
        a.lock("orders").inspect().await.unwrap().holder.unwrap().label.is_some()
    })
    .await;
    let waiter = crate::lock::waiter(&env, &b.lock("orders")).await;
    let former = first.token();
    first.release().await.unwrap();
    let second = waiter.await;
    assert_eq!(token(&env, &mut changes).await, ('-', former));
    let (what, hold) = next(&env, &mut changes).await;
    assert_eq!((what, hold.client, hold.token), ('+', Some(b.id()), Some(second.token())));
    second.release().await.unwrap();
    assert_eq!(token(&env, &mut changes).await, ('-', hold.token.unwrap()));
}

async fn what_ends_with_its_lease_is_lost(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.lock("orders").changes();
    let guard = client.lock("orders").lock().expires_after(Duration::from_millis(1500)).await.unwrap();
    let former = guard.token();
    // Nobody releases it, as after a crash.
    guard.keep().unwrap();
    assert_eq!(token(&env, &mut changes).await, ('+', former));
    assert_eq!(token(&env, &mut changes).await, ('!', former));
}

async fn who_holds_already_is_told_first(env: Env) {
    let (client, observer) = (labelled(&env, "web-7").await, env.client().await);
    let permits = client.semaphore("seats", 5).acquire_many(2).await.unwrap();
    let other = client.semaphore("seats", 5).acquire().await.unwrap();
    env.eventually("the label is stored", async || {
        client.semaphore("seats", 5).inspect().await.unwrap().holders.iter().all(|holder| holder.label.is_some())
    })
    .await;
    let mut changes = observer.semaphore("seats", 5).changes();
    let mut seen = [next(&env, &mut changes).await, next(&env, &mut changes).await];
    seen.sort_by_key(|(_, hold)| match hold.access {
        Access::Permits(count) => count,
        other => panic!("{other:?}"),
    });
    for ((what, hold), count) in seen.into_iter().zip(1..) {
        assert_eq!((what, hold.access, hold.token), ('+', Access::Permits(count), None));
        assert_eq!(hold.label.as_deref(), Some("web-7"));
    }
    other.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Permits(1)));
    permits.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Permits(2)));
}

async fn readers_writers_and_permits_are_seen(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.rw_lock("books").changes();
    let reader = client.rw_lock("books").read().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Read));
    let other = observer.rw_lock("books").read().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Read));
    other.release().await.unwrap();
    let (what, hold) = next(&env, &mut changes).await;
    assert_eq!((what, hold.client), ('-', Some(observer.id())));
    reader.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Read));
    let writer = client.rw_lock("books").write().await.unwrap();
    let (what, hold) = next(&env, &mut changes).await;
    assert_eq!((what, hold.access, hold.token), ('+', Access::Write, Some(writer.token())));
    writer.release().await.unwrap();
    assert_eq!(token(&env, &mut changes).await.0, '-');
}

async fn a_changed_hold_is_seen_as_another_one(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.rw_lock("books").changes();
    let writer = client.rw_lock("books").write().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Write));
    let reader = writer.downgrade().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Write));
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Read));
    reader.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Read));
    // Of permits, some are given back.
    let mut changes = observer.semaphore("seats", 5).changes();
    let mut permits = client.semaphore("seats", 5).acquire_many(5).await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Permits(5)));
    let part = permits.split(2).expect("there are so many");
    part.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Permits(5)));
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Permits(3)));
    permits.release().await.unwrap();
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Permits(3)));
}

async fn runs_and_leaders_are_seen(env: Env) {
    env.leaves_keys();
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.changes(NameInUse::new(Kind::Election, "scheduler"));
    let led = client.election("scheduler").campaign(Some(LONG)).await.unwrap();
    assert_eq!(token(&env, &mut changes).await, ('+', led.token()));
    let term = led.token();
    led.resign().await.unwrap();
    assert_eq!(token(&env, &mut changes).await, ('-', term));
}

async fn what_an_operator_takes_is_released(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.lock("orders").changes();
    let guard = client.lock("orders").lock().await.unwrap();
    assert_eq!(token(&env, &mut changes).await, ('+', guard.token()));
    observer.lock("orders").force_release().await.unwrap().expect("it is held");
    assert_eq!(token(&env, &mut changes).await, ('-', guard.token()));
    let permits = client.semaphore("seats", 3).acquire_many(3).await.unwrap();
    let mut changes = observer.semaphore("seats", 3).changes();
    assert_eq!(access(&env, &mut changes).await, ('+', Access::Permits(3)));
    assert_eq!(observer.semaphore("seats", 3).force_release(Whose::Everybody).await.unwrap().holds, 1);
    assert_eq!(access(&env, &mut changes).await, ('-', Access::Permits(3)));
    assert!(permits.release().await.is_err());
}

async fn all_streams_of_a_client_see_the_same(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut streams = [observer.lock("orders").changes(), observer.lock("orders").changes()];
    let mut other = observer.lock("others").changes();
    for _ in 0..3 {
        let guard = client.lock("orders").lock().await.unwrap();
        for changes in &mut streams {
            assert_eq!(token(&env, changes).await, ('+', guard.token()));
        }
        let token_of = guard.token();
        guard.release().await.unwrap();
        for changes in &mut streams {
            assert_eq!(token(&env, changes).await, ('-', token_of));
        }
    }
    let guard = client.lock("others").lock().await.unwrap();
    assert_eq!(token(&env, &mut other).await, ('+', guard.token()));
    guard.release().await.unwrap();
}

async fn what_nobody_can_hold_has_no_changes(env: Env) {
    let client = env.client().await;
    let refused = [
        (Kind::Latch, "a", ErrorKind::InvalidInput),
        (Kind::Barrier, "a", ErrorKind::InvalidInput),
        (Kind::DoubleBarrier, "a", ErrorKind::InvalidInput),
        (Kind::RateLimiter, "a", ErrorKind::InvalidInput),
        (Kind::RedLock, "a", ErrorKind::Unsupported),
        (Kind::Lock, "", ErrorKind::InvalidInput),
    ];
    for (kind, name, expected) in refused {
        let mut changes = client.changes(NameInUse::new(kind, name));
        let error = env.soon("an error", changes.next()).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.operation()), (expected, "changes"), "{kind} {name:?}: {error}");
        assert!(changes.next().await.is_none(), "it goes on");
    }
    let error = client.semaphore("", 1).changes().next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "changes"));
}

async fn changes_end_with_their_client(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.lock("orders").changes();
    let guard = client.lock("orders").lock().await.unwrap();
    assert_eq!(token(&env, &mut changes).await, ('+', guard.token()));
    let closed = env.spawn(async move { (changes.next().await.unwrap(), changes.next().await.is_none()) });
    observer.close().await;
    let (last, has_ended) = env.soon("it ends", closed).await;
    assert_eq!((last.unwrap_err().kind(), has_ended), (ErrorKind::Closed, true));
    let error = observer.lock("orders").changes().next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Closed, Some("orders")));
    guard.release().await.unwrap();
}
