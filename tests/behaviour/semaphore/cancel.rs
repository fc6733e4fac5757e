//! Acquisitions dropped half way.

use std::future::IntoFuture;
use std::time::Duration;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    acquisitions_dropped_at_any_moment_leave_nothing,
}

async fn acquisitions_dropped_at_any_moment_leave_nothing(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 4), env.client().await.semaphore("a", 4));
    for round in 0..30_u32 {
        let held = b.acquire_many(1 + round % 4).await.unwrap();
        let behind = async {
            // The first waiter gives up, and the one behind it is granted.
            let moment = Duration::from_micros(u64::from(round) * 100);
            let given_up = futures::future::select(a.acquire_many(4).into_future(), Box::pin(env.sleep(moment))).await;
            drop(given_up);
        };
        let ((), released) = futures::join!(behind, async {
            env.yield_now().await;
            held.release().await
        });
        released.unwrap();
        env.soon("all are free", b.acquire_many(4)).await.unwrap().release().await.unwrap();
        env.eventually("nothing is left", async || env.keys().is_empty()).await;
    }
}
