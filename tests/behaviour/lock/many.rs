//! More waiters than a program has threads, in the order in which their futures are polled.

use std::sync::Mutex;

use futures::stream::{FuturesUnordered, StreamExt};

use super::queued;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    thousands_of_waiters_are_served_in_their_order,
}

async fn thousands_of_waiters_are_served_in_their_order(env: Env) {
    const WAITERS: usize = 2_000;
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    let held = other.lock("a").lock().await.unwrap();
    // They are polled, and therefore sent, in the order in which they were made.
    let served = Mutex::new(Vec::with_capacity(WAITERS));
    let mut waiting: FuturesUnordered<_> = (0..WAITERS)
        .map(|n| {
            let (lock, served) = (&lock, &served);
            async move {
                let guard = lock.lock().await.unwrap();
                served.lock().unwrap().push((n, guard.token()));
                guard.release().await.unwrap();
            }
        })
        .collect();
    let release = async {
        queued(&env, &other.lock("a"), WAITERS as u64).await;
        held.release().await.unwrap();
    };
    futures::join!(release, async { while waiting.next().await.is_some() {} });
    drop(waiting);
    let served = served.into_inner().unwrap();
    assert_eq!(served.len(), WAITERS);
    for pair in served.windows(2) {
        assert!(pair[0].1 < pair[1].1, "a later token was granted first: {pair:?}");
        assert!(pair[0].0 < pair[1].0, "not in the order in which they came: {pair:?}");
    }
}
