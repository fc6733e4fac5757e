//! A holder that everything in a future acquires for.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::{Holder, Lock};

use super::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    a_scope_makes_the_holder_ambient,
    an_acquisition_belongs_to_the_scope_in_which_it_is_polled,
    branches_of_a_scope_share_what_they_hold_unless_each_has_a_holder,
    tasks_that_a_scope_spawns_exclude_each_other,
}

async fn a_scope_makes_the_holder_ambient(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let holder = Holder::new();
    let other = client.lock("other");
    holder
        .scope(async {
            let outer = lock.lock().await.unwrap();
            env.yield_now().await;
            let inner = lock.lock().timeout(LONG).await.unwrap();
            assert_eq!(inner.token(), outer.token());
            let tried = lock.try_lock().await.unwrap().expect("re-entered");
            assert_eq!(tried.token(), outer.token());
            assert!(other.lock().await.unwrap().token().get() > 0);
            // An explicit holder takes precedence over that of the scope.
            let stranger = Holder::new();
            assert!(lock.try_lock().holder(&stranger).await.unwrap().is_none());
            // A spawned task is outside of the scope.
            let spawned = env.spawn({
                let lock = lock.clone();
                async move { lock.try_lock().await.unwrap().is_none() }
            });
            assert!(spawned.await);
        })
        .await;
    env.soon("all guards are gone", lock.lock()).await.unwrap().release().await.unwrap();
}

async fn an_acquisition_belongs_to_the_scope_in_which_it_is_polled(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let guard = lock.lock().holder(&holder).await.unwrap();
    let made_outside = lock.try_lock().into_future();
    assert!(holder.scope(made_outside).await.unwrap().is_some());
    let spawned = holder.scope(async { env.spawn(lock.try_lock().into_future()).await }).await;
    assert!(spawned.unwrap().is_none());
    guard.release().await.unwrap();
}

/// How many of two are inside at most.
async fn most_inside(env: &Env, lock: &Lock, inside: &AtomicUsize, most: &AtomicUsize) {
    let guard = lock.lock().timeout(LONG).await.unwrap();
    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    // Long enough for the other branch to enter, if that were possible.
    for _ in 0..10 {
        env.yield_now().await;
    }
    inside.fetch_sub(1, Ordering::SeqCst);
    guard.release().await.unwrap();
}

/// As documented for `scope`, with the way out that is named there.
async fn branches_of_a_scope_share_what_they_hold_unless_each_has_a_holder(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let branch = || most_inside(&env, &lock, &inside, &most);
    Holder::new().scope(async { futures::join!(branch(), branch()) }).await;
    assert_eq!(most.swap(0, Ordering::SeqCst), 2, "one holder");
    let (a, b) = (Holder::new(), Holder::new());
    Holder::new().scope(async { futures::join!(a.scope(branch()), b.scope(branch())) }).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "two holders");
}

async fn tasks_that_a_scope_spawns_exclude_each_other(env: Env) {
    let client = env.client().await;
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    Holder::new()
        .scope(async {
            let task = || {
                let (inner, lock, counts) = (env.clone(), client.lock("a"), counts.clone());
                env.spawn(async move { most_inside(&inner, &lock, &counts.0, &counts.1).await })
            };
            futures::join!(task(), task());
        })
        .await;
    assert_eq!(counts.1.load(Ordering::SeqCst), 1);
}
