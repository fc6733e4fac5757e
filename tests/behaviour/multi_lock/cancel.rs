//! Acquisitions of several names dropped at every point: nothing of them stays.

use std::future::IntoFuture;

use bowline::{Client, MultiLock};

use super::nothing_is_left;
use crate::support::env::{Env, on_every_server};
use crate::support::polled::polled;

on_every_server! {
    an_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_try_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Of every kind.
fn mixed(client: &Client) -> MultiLock {
    client.lock_all(NAMES).write(&client.rw_lock("r")).permits(&client.semaphore("s", 3), 2)
}

/// Calls `attempt` with 0, 1, 2, ... polls, twice each, until it is done whenever it is called with as many.
async fn sweep<T>(env: &Env, other: &Client, mut attempt: impl AsyncFnMut(usize) -> Option<T>) {
    let mut half_way = 0;
    for polls in 0.. {
        assert!(polls < 100, "it never ends");
        let mut done = 0;
        for _ in 0..2 {
            // If the future returns a guard, the guard is dropped too.
            done += usize::from(attempt(polls).await.is_some());
            env.soon("all are free", mixed(other).acquire()).await.unwrap().release().await.unwrap();
            nothing_is_left(env).await;
        }
        if done == 2 {
            break;
        }
        half_way += if polls > 0 { 2 - done } else { 0 };
    }
    assert!(half_way > 0, "nothing was dropped half way");
}

async fn an_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    sweep(&env, &other, async |polls| {
        polled(mixed(&client).acquire().into_future(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}

async fn a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for held in [other.lock_all(["a"]), other.lock_all(["c"]), MultiLock::new().write(&other.rw_lock("r"))] {
        sweep(&env, &other, async |polls| {
            let held = held.acquire().await.unwrap();
            let acquired = polled(mixed(&client).acquire().into_future(), polls, async || {});
            let (acquired, released) = futures::join!(acquired, async {
                env.yield_now().await;
                held.release().await
            });
            released.unwrap();
            acquired.map(Result::unwrap)
        })
        .await;
    }
}

async fn a_try_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for held in [None, Some("b")] {
        sweep(&env, &other, async |polls| {
            let held = match held {
                Some(name) => Some(other.lock(name).lock().await.unwrap()),
                None => None,
            };
            let tried = polled(mixed(&client).try_acquire().into_future(), polls, async || {}).await;
            let free = held.is_none();
            if let Some(held) = held {
                held.release().await.unwrap();
            }
            tried.map(|tried| assert_eq!(tried.unwrap().is_some(), free))
        })
        .await;
    }
}

async fn a_release_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    sweep(&env, &other, async |polls| {
        let guard = mixed(&client).acquire().await.unwrap();
        polled(guard.release(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}
