//! Waits dropped half way.

use std::future::IntoFuture;
use std::time::Duration;

use super::{TTL, end, waiter, waiting};
use crate::support::env::{Env, on_every_server};

on_every_server! {
    waiters_dropped_leave_nothing,
}

async fn waiters_dropped_leave_nothing(env: Env) {
    let (a, b) = (env.client().await.latch("a"), env.client().await.latch("a"));
    a.try_set(1, TTL).await.unwrap();
    let stays = waiter(&env, &b).await;
    for n in 0..20_u32 {
        let moment = Duration::from_micros(u64::from(n) * 100);
        drop(futures::future::select(a.wait().into_future(), Box::pin(env.sleep(moment))).await);
    }
    waiting(&env, &b, 1).await;
    a.count_down().await.unwrap();
    env.soon("the one who stayed", stays).await.unwrap();
    end(&env, &a).await;
}
