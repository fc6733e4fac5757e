//! The local cohort when its hold, its client or its server is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Loss};

use super::cohort::{cohort, patient, stands};
use super::free_at_once;
use crate::lab::{Env, on_every_server};
use crate::support::polled::poll_once;

on_every_server! {
    closing_ends_the_cohort,
    a_hold_that_is_taken_away_is_not_passed_on,
    a_guard_kept_after_a_loss_blocks_no_waiter,
    a_hold_passed_on_is_renewed;
    a_cohort_outlives_the_data_of_the_server,
}

async fn closing_ends_the_cohort(env: Env) {
    let client = patient(&env).await;
    let (held, idle) = cohort(&env, &client, 1).await;
    // These members are asleep by then and have to be woken.
    let asleep = Arc::new(AtomicU64::new(0));
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let (asleep, mut stands) = (asleep.clone(), stands(&env, &client, &client.lock("a")).await);
        waiting.push(env.spawn(async move {
            assert!(poll_once(&mut stands).await.is_none());
            asleep.fetch_add(1, Ordering::SeqCst);
            stands.await
        }));
    }
    env.eventually("they stand there", async || asleep.load(Ordering::SeqCst) == 3).await;
    env.soon("it closes", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    for waiting in waiting.into_iter().chain(idle) {
        let error = env.soon("the wait ends", waiting).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert_eq!(held.lost().await, Loss::Closed);
}

async fn a_hold_that_is_taken_away_is_not_passed_on(env: Env) {
    let (client, operator) = (patient(&env).await, env.client().await);
    let (held, mut waiting) = cohort(&env, &client, 2).await;
    held.release().await.unwrap();
    let second = waiting.remove(0).await.unwrap();
    let between = operator.lock("a").force_release().await.unwrap().expect("it was held");
    assert_eq!(env.soon("the holder is told", second.lost()).await, Loss::Revoked);
    assert!(between > second.token());
    assert_eq!(second.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let third = env.soon("the next one leads anew", waiting.remove(0)).await.unwrap();
    assert!(third.token() > between && third.is_valid());
    third.release().await.unwrap();
}

async fn a_guard_kept_after_a_loss_blocks_no_waiter(env: Env) {
    let (client, operator) = (patient(&env).await, env.client().await);
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    operator.lock("a").force_release().await.unwrap();
    let next = env.soon("the next one", waiting.remove(0)).await.unwrap();
    assert!(!held.is_valid() && next.token() > held.token());
    next.release().await.unwrap();
    env.soon("a later acquisition", client.lock("a").lock().non_fair()).await.unwrap().release().await.unwrap();
    drop(held);
    free_at_once(&env, &client.lock("a")).await;
}

async fn a_cohort_outlives_the_data_of_the_server(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(900))).await;
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    let token = held.token();
    let () = env.redis(&["FLUSHALL"]);
    assert_eq!(env.soon("the holder is told", held.lost()).await, Loss::Gone);
    drop(held);
    let next = env.soon("the next one leads anew", waiting.remove(0)).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

async fn a_hold_passed_on_is_renewed(env: Env) {
    let lease = Duration::from_millis(900);
    let client = env.client_with(|config| config.lease(lease)).await;
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    held.release().await.unwrap();
    let next = waiting.remove(0).await.unwrap();
    client.counts.reset();
    env.eventually("renewals", async || client.counts.of("lock_renew") >= 4).await;
    assert!(next.is_valid());
    next.release().await.unwrap();
}
