//! Waits dropped half way.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::ErrorKind;
use futures::future::Either;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    waits_dropped_at_any_time_break_only_their_generation,
    a_party_that_has_given_up_does_not_count_when_it_comes_again,
}

async fn waits_dropped_at_any_time_break_only_their_generation(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 2), env.client().await.barrier("a", 2));
    for n in 0..20_u32 {
        let moment = Duration::from_micros(u64::from(n) * 100);
        let waited = futures::future::select(a.wait().into_future(), Box::pin(env.sleep(moment))).await;
        assert!(matches!(waited, Either::Right(_)), "it has passed with its own former wait");
    }
    // Its arrivals were executed before this, and those that it gave up leave.
    env.eventually("nobody waits", async || a.inspect().await.unwrap().waiters == 0).await;
    let both = futures::future::join(a.wait().into_future(), b.wait().into_future());
    let (one, other) = env.soon("both", both).await;
    assert_eq!(one.unwrap().generation(), other.unwrap().generation());
}

async fn a_party_that_has_given_up_does_not_count_when_it_comes_again(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 3), env.client().await.barrier("a", 3));
    for _ in 0..3 {
        let waited = a.wait().timeout(Duration::from_millis(50)).await;
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    env.eventually("it has left", async || b.inspect().await.unwrap().waiters == 0).await;
    let waiting = env.spawn(b.wait().into_future());
    env.eventually("one waits", async || b.inspect().await.unwrap().waiters == 1).await;
    let both_wait = env.eventually("both wait", async || b.inspect().await.unwrap().waiters == 2);
    let waited = futures::future::select(a.wait().into_future(), Box::pin(both_wait)).await;
    assert!(matches!(waited, Either::Right(_)), "it has passed with its own former waits");
    drop(waited);
    let told = env.soon("the other is told", waiting).await;
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Broken);
}
