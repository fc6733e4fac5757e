//! One order for all: no deadlock, and nothing is given up and tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;

use super::{LONG, nothing_is_left};
use crate::lab::{Env, TestClient, on_every_server};
use crate::lock::queued;
use crate::support::env::{Env as AsyncEnv, Runtime};

on_every_server! {
    ten_locks_in_opposite_orders_cost_one_request_each,
    the_first_is_held_while_the_next_is_waited_for,
    what_is_held_is_renewed_while_the_next_is_waited_for,
    readers_hold_together,
}

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Of both tasks together. All of them on the embedded server and on one real one; on all of them, beside the other
/// tests, they would take minutes.
fn rounds(env: &AsyncEnv) -> usize {
    if env.is_embedded() || env.runtime() == Runtime::TokioMulti { 1_000 } else { 100 }
}

async fn ten_locks_in_opposite_orders_cost_one_request_each(env: Env) {
    let rounds = rounds(&env);
    let mut reversed = NAMES;
    reversed.reverse();
    let clients = [env.client().await, env.client().await];
    clients.iter().for_each(|client| client.counts.reset());
    let tasks = clients.iter().zip([NAMES, reversed]).map(|(client, names)| {
        let all = client.lock_all(&names);
        env.spawn(async move {
            for _ in 0..rounds / 2 {
                // A deadlock would show as a timeout.
                all.acquire().timeout(3 * LONG).await.unwrap().release().await.unwrap();
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    let all: Vec<BTreeMap<_, _>> = clients.iter().map(|client| client.counts.all()).collect();
    let sum = |script| clients.iter().map(|client| client.counts.of(script)).sum::<u64>();
    let locks = (rounds * NAMES.len()) as u64;
    assert_eq!((sum("lock_release"), sum("lock_cancel")), (locks, 0), "nothing is given back half way: {all:?}");
    // Each lock takes one request, whatever other holders do. On a busy machine a message may be late, and its request
    // is repeated then.
    assert!((locks..=locks + locks / 100).contains(&sum("lock_acquire")), "{all:?}");
    nothing_is_left(&env).await;
}

async fn the_first_is_held_while_the_next_is_waited_for(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("b").lock().await.unwrap();
    let all = env.spawn({
        let all = client.lock_all(&["c", "b", "a"]);
        async move { all.acquire().timeout(LONG).await.unwrap() }
    });
    queued(&env, &other.lock("b"), 1).await;
    let holder = async |name: &str| other.lock(name).inspect().await.unwrap().holder.and_then(|holder| holder.client);
    assert_eq!((holder("a").await, holder("c").await), (Some(client.id()), None));
    held.release().await.unwrap();
    let all = env.soon("the rest is acquired", all).await;
    assert_eq!(all.names(), ["a", "b", "c"]);
    assert_eq!((holder("b").await, holder("c").await), (Some(client.id()), Some(client.id())));
    all.release().await.unwrap();
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn what_is_held_is_renewed_while_the_next_is_waited_for(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(900))).await;
    let other = env.client().await;
    let held = other.lock("b").lock().await.unwrap();
    let all = env.spawn({
        let all = client.lock_all(&["a", "b"]);
        async move { all.acquire().timeout(LONG).await.unwrap() }
    });
    queued(&env, &other.lock("b"), 1).await;
    let first = other.lock("a").inspect().await.unwrap().holder.unwrap().token;
    // Longer than the lease.
    env.eventually("renewals", async || client.counts.of("lock_renew") >= 4).await;
    held.release().await.unwrap();
    let all = env.soon("the rest is acquired", all).await;
    assert_eq!(all.token("a"), Some(first), "it was held all the time");
    all.release().await.unwrap();
}

async fn readers_hold_together(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let reads = |client: &TestClient| client.multi_lock().read(&client.rw_lock("b")).read(&client.rw_lock("a"));
    let (one, two) = (reads(&client).acquire().await.unwrap(), reads(&other).acquire().timeout(LONG).await.unwrap());
    assert!(one.is_valid() && two.is_valid());
    let writes = other.multi_lock().write(&other.rw_lock("b"));
    assert!(writes.try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
    two.release().await.unwrap();
    writes.try_acquire().await.unwrap().expect("free").release().await.unwrap();
}
