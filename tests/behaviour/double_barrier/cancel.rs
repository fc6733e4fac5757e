//! Entering and leaving dropped half way.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::ErrorKind;
use futures::future::try_join;

use super::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    what_is_dropped_at_any_time_breaks_only_its_generation,
    a_party_that_has_given_up_does_not_count_when_it_comes_again,
}

async fn what_is_dropped_at_any_time_breaks_only_its_generation(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    for n in 0..20_u32 {
        let moment = Duration::from_micros(u64::from(n) * 100);
        let both = async {
            let (one, other) = futures::join!(a.enter().into_future(), b.enter().into_future());
            if let (Ok(one), Ok(other)) = (one, other) {
                let _ = futures::join!(one.leave().into_future(), other.leave().into_future());
            }
        };
        drop(futures::future::select(Box::pin(both), Box::pin(env.sleep(moment))).await);
    }
    // What was dropped is cleaned up, and may break a generation until then.
    env.eventually("two enter and leave", async || {
        // One that fails at once does not let the other one wait.
        let both = try_join(a.enter().timeout(LONG).into_future(), b.enter().timeout(LONG).into_future());
        let Ok((one, other)) = both.await else { return false };
        try_join(one.leave().into_future(), other.leave().into_future()).await.is_ok()
    })
    .await;
    env.eventually("nobody is there", async || a.inspect().await.unwrap().present == 0).await;
}

async fn a_party_that_has_given_up_does_not_count_when_it_comes_again(env: Env) {
    let barrier = env.client().await.double_barrier("a", 2);
    for _ in 0..3 {
        let entered = barrier.enter().timeout(Duration::from_millis(50)).await;
        assert_eq!(entered.unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
