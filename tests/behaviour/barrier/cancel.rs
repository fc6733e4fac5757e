//! Waits dropped half way.

use std::future::IntoFuture;
use std::time::Duration;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    waits_dropped_at_any_time_break_only_their_generation,
}

async fn waits_dropped_at_any_time_break_only_their_generation(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 2), env.client().await.barrier("a", 2));
    for n in 0..20_u32 {
        let moment = Duration::from_micros(u64::from(n) * 100);
        drop(futures::future::select(a.wait().into_future(), Box::pin(env.sleep(moment))).await);
    }
    // Its arrivals were executed before this, and those that it gave up leave.
    env.eventually("nobody waits", async || a.inspect().await.unwrap().waiters == 0).await;
    let both = futures::future::join(a.wait().into_future(), b.wait().into_future());
    let (one, other) = env.soon("both", both).await;
    assert_eq!(one.unwrap().generation(), other.unwrap().generation());
}
