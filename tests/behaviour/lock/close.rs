//! The end of a client, by a call and by dropping everything.

use std::future::IntoFuture;

use bowline::{ErrorKind, Holder, Loss};

use super::{LONG, queued};
use crate::lab::{Env, on_every_server};

on_every_server! {
    close_ends_waits_and_holds_and_leaves_nothing,
    close_can_be_called_by_all_clones_at_once_and_again,
    after_close_every_call_is_refused,
    what_was_made_before_close_acquires_nothing_after_it,
    close_hands_over_to_other_clients,
    the_last_handle_ends_the_tasks,
}

async fn close_ends_waits_and_holds_and_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = client.lock("held").lock().await.unwrap();
    let elsewhere = other.lock("waited").lock().await.unwrap();
    let waiting = env.spawn({
        let lock = client.lock("waited");
        async move { lock.lock().timeout(LONG).await }
    });
    queued(&env, &other.lock("waited"), 1).await;
    let clone = client.client.clone();
    env.soon("it closes", clone.close()).await;
    // After `close` returns, nothing of the client is left in Redis.
    let keys = env.keys();
    assert_eq!(keys, ["bowline:lock:{waited}"], "the other client's hold");
    assert_eq!(other.lock("waited").inspect().await.unwrap().waiters, 0);
    assert_eq!(env.soon("the wait ends", waiting).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(env.soon("the hold is lost", held.lost()).await, Loss::Closed);
    assert!(!held.is_valid());
    let error = held.release().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost | ErrorKind::Closed), "{error}");
    elsewhere.release().await.unwrap();
}

async fn close_can_be_called_by_all_clones_at_once_and_again(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let (one, two) = (client.client.clone(), client.client.clone());
    let all = futures::future::join3(one.close(), two.close(), client.close());
    env.soon("all are closed", all).await;
    env.soon("again", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    assert_eq!(guard.lost().await, Loss::Closed);
}

async fn after_close_every_call_is_refused(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    client.close().await;
    client.counts.reset();
    let later = client.lock("b");
    let errors = [
        lock.lock().await.unwrap_err(),
        lock.try_lock().await.unwrap_err(),
        lock.inspect().await.unwrap_err(),
        lock.force_release().await.unwrap_err(),
        later.lock().timeout(LONG).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert!(!error.is_retryable());
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    env.eventually("no task is left", async || env.live() == (0, 0)).await;
}

async fn what_was_made_before_close_acquires_nothing_after_it(env: Env) {
    let client = env.client().await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let guard = lock.lock().holder(&holder).await.unwrap();
    let acquisitions = [lock.lock(), lock.lock().non_fair(), lock.lock().holder(&holder)].map(IntoFuture::into_future);
    let tries = [lock.try_lock(), lock.try_lock().holder(&holder)].map(IntoFuture::into_future);
    client.close().await;
    client.counts.reset();
    for acquisition in acquisitions {
        assert_eq!(acquisition.await.unwrap_err().kind(), ErrorKind::Closed);
    }
    for tried in tries {
        assert_eq!(tried.await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    drop(guard);
}

async fn close_hands_over_to_other_clients(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = client.lock("a").lock().await.unwrap();
    let token = held.token();
    let next = super::waiter(&env, &other.lock("a")).await;
    client.close().await;
    let next = env.soon("the next one is served", next).await;
    assert!(next.token() > token);
    // Dropping the closed client's guard late must not release the lock of the next holder.
    drop(held);
    let state = other.lock("a").inspect().await.unwrap();
    assert_eq!(state.holder.map(|holder| holder.token), Some(next.token()));
    next.release().await.unwrap();
}

async fn the_last_handle_ends_the_tasks(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    assert!(env.live().0 >= 2);
    drop(client);
    let guard = lock.lock().await.unwrap();
    drop(lock);
    assert!(guard.is_valid() && env.live().0 >= 2);
    drop(guard);
    env.eventually("no task and no timer is left", async || env.live() == (0, 0)).await;
    assert!(env.keys().is_empty(), "the release was not finished first: {:?}", env.keys());
}
