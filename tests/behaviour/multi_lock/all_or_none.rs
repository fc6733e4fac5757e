//! All of them, or none: what a failure in the middle gives back.

use std::time::Duration;

use bowline::ErrorKind;
use futures::future::join_all;

use super::{LONG, nothing_is_left};
use crate::lab::{Env, on_every_server};
use crate::lock::{queued, waiter};

on_every_server! {
    a_try_gives_back_what_it_got_before_it_is_over,
    of_tries_at_the_same_time_exactly_one_succeeds,
    a_timeout_in_the_middle_gives_back_the_rest,
    one_timeout_covers_all_the_waits,
    a_full_queue_in_the_middle_gives_back_the_rest,
    too_many_permits_give_back_the_rest,
    a_loss_in_the_middle_ends_the_wait,
    closing_the_client_ends_the_wait,
}

async fn a_try_gives_back_what_it_got_before_it_is_over(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("c").lock().await.unwrap();
    let all = client.lock_all(&["d", "c", "b", "a"]);
    for timeout in [None, Some(LONG)] {
        client.counts.reset();
        let attempt = all.try_acquire();
        let attempt = if let Some(timeout) = timeout { attempt.timeout(timeout) } else { attempt };
        assert!(attempt.await.unwrap().is_none());
        assert_eq!(env.keys(), ["bowline:lock:{c}"], "at once");
        assert_eq!((client.counts.of("lock_acquire"), client.counts.of("lock_release")), (3, 2));
    }
    held.release().await.unwrap();
    all.try_acquire().await.unwrap().expect("free").release().await.unwrap();
}

async fn of_tries_at_the_same_time_exactly_one_succeeds(env: Env) {
    let clients = [env.client().await, env.client().await];
    let mut names = ["a", "b", "c"];
    for _ in 0..10 {
        let tries = (0..6).map(|n| {
            names.rotate_left(1);
            let all = clients[n % 2].lock_all(&names);
            env.spawn(async move { all.try_acquire().await.unwrap() })
        });
        let mut got: Vec<_> = join_all(tries.collect::<Vec<_>>()).await.into_iter().flatten().collect();
        assert_eq!(got.len(), 1);
        got.remove(0).release().await.unwrap();
    }
}

async fn a_timeout_in_the_middle_gives_back_the_rest(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("b").lock().await.unwrap();
    let all = client.lock_all(&["c", "b", "a"]);
    let error = all.acquire().timeout(Duration::from_millis(200)).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::TimedOut, "acquire", Some("b")));
    env.soon("the first one is free", other.lock("a").lock()).await.unwrap().release().await.unwrap();
    env.eventually("the rest is gone", async || env.keys() == ["bowline:lock:{b}"]).await;
    assert_eq!(client.counts.of("lock_acquire"), 2, "nothing was sent about what comes behind");
    held.release().await.unwrap();
}

/// If each wait had the whole timeout, the second one would be served in time.
async fn one_timeout_covers_all_the_waits(env: Env) {
    const TIMEOUT: Duration = Duration::from_millis(900);
    let (client, other) = (env.client().await, env.client().await);
    let (first, second) = (other.lock("a").lock().await.unwrap(), other.lock("b").lock().await.unwrap());
    let releases = env.spawn({
        let env = env.clone();
        async move {
            env.sleep(TIMEOUT * 2 / 3).await;
            first.release().await.unwrap();
            env.sleep(TIMEOUT * 2 / 3).await;
            second.release().await.unwrap();
        }
    });
    let error = client.lock_all(&["a", "b"]).acquire().timeout(TIMEOUT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    releases.await;
    nothing_is_left(&env).await;
}

async fn a_full_queue_in_the_middle_gives_back_the_rest(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("b").lock().await.unwrap();
    let next = waiter(&env, &other.lock("b")).await;
    let error = client.lock_all(&["a", "b"]).acquire().max_waiters(1).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::QueueFull, Some("b")));
    env.soon("the first one is free", other.lock("a").lock()).await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
    next.await.release().await.unwrap();
    nothing_is_left(&env).await;
}

async fn too_many_permits_give_back_the_rest(env: Env) {
    let client = env.client().await;
    let (lock, semaphore) = (client.lock("a"), client.semaphore("s", 4));
    // Each of the two requests alone would fit.
    let all = client.multi_lock().permits(&semaphore, 2).lock(&lock).permits(&semaphore, 3);
    let error = all.acquire().await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::OverLimit, Some("s")));
    nothing_is_left(&env).await;
    assert_eq!(all.try_acquire().await.unwrap_err().kind(), ErrorKind::OverLimit);
    nothing_is_left(&env).await;
}

async fn a_loss_in_the_middle_ends_the_wait(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("c").lock().await.unwrap();
    let all = env.spawn({
        let all = client.lock_all(&["a", "b", "c"]);
        async move { all.acquire().timeout(LONG).await }
    });
    queued(&env, &other.lock("c"), 1).await;
    other.lock("b").force_release().await.unwrap().expect("it is held");
    let error = env.soon("the wait ends", all).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "acquire", Some("b")));
    env.eventually("the rest is gone", async || env.keys() == ["bowline:lock:{c}"]).await;
    held.release().await.unwrap();
}

async fn closing_the_client_ends_the_wait(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("b").lock().await.unwrap();
    let all = env.spawn({
        let all = client.lock_all(&["a", "b"]);
        async move { all.acquire().timeout(LONG).await }
    });
    queued(&env, &other.lock("b"), 1).await;
    env.soon("it closes", client.close()).await;
    assert_eq!(env.soon("the wait ends", all).await.unwrap_err().kind(), ErrorKind::Closed);
    env.eventually("the rest is gone", async || env.keys() == ["bowline:lock:{b}"]).await;
    held.release().await.unwrap();
}
