//! All permits that are free: requests and answers that get lost or come late.

use bowline::ErrorKind;

use crate::faulty::{Fault, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};
use crate::support::polled::poll_once;

on_every_runtime! {
    a_lost_request_or_answer_takes_no_more_than_it_says,
    a_late_copy_takes_nothing_more,
    a_future_dropped_half_way_leaves_nothing,
    one_that_is_never_answered_leaves_nothing,
    a_refusal_that_can_pass_is_retried,
}

const DRAIN: &str = "permit_drain";

async fn a_lost_request_or_answer_takes_no_more_than_it_says(env: Env) {
    let other = env.client().await.semaphore("a", 5);
    let (client, faults) = faulty_client(&env, |config| config).await;
    let semaphore = client.semaphore("a", 5);
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let beside = other.acquire_many(2).await.unwrap();
        let calls = faults.calls(DRAIN);
        faults.next(DRAIN, [fault.clone(), fault]);
        let all = semaphore.try_acquire_all().await.unwrap().expect("three are free");
        assert_eq!((all.count(), faults.calls(DRAIN)), (3, calls + 3));
        beside.release().await.unwrap();
        assert_eq!(other.inspect().await.unwrap().used, 3);
        all.release().await.unwrap();
        assert_eq!(other.available().await.unwrap(), 5);
    }
}

/// It arrives while the permits are held, although others have come back.
async fn a_late_copy_takes_nothing_more(env: Env) {
    let other = env.client().await.semaphore("a", 5);
    let (client, faults) = faulty_client(&env, |config| config).await;
    let beside = other.acquire_many(2).await.unwrap();
    faults.next(DRAIN, [Fault::Late]);
    let all = client.semaphore("a", 5).try_acquire_all().await.unwrap().expect("three are free");
    beside.release().await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    assert_eq!((all.count(), other.inspect().await.unwrap().used), (3, 3));
    all.release().await.unwrap();
    assert_eq!(other.available().await.unwrap(), 5);
}

async fn a_future_dropped_half_way_leaves_nothing(env: Env) {
    let other = env.client().await.semaphore("a", 5);
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next(DRAIN, [Fault::HangReply]);
    let semaphore = client.semaphore("a", 5);
    let mut dropped = Box::pin(async { semaphore.try_acquire_all().await });
    assert!(poll_once(&mut dropped).await.is_none());
    env.eventually("the server has executed it", async || other.available().await.unwrap() == 0).await;
    drop(dropped);
    env.eventually("all are back", async || other.available().await.unwrap() == 5).await;
    faults.release();
}

async fn one_that_is_never_answered_leaves_nothing(env: Env) {
    let other = env.client().await.semaphore("a", 5);
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        faults.always(DRAIN, fault);
        let error = client.semaphore("a", 5).try_acquire_all().await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        env.eventually("all are back", async || other.available().await.unwrap() == 5).await;
        faults.heal();
    }
}

async fn a_refusal_that_can_pass_is_retried(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next(DRAIN, [Fault::Refuse("LOADING Redis is loading"), Fault::Unreachable]);
    let all = client.semaphore("a", 5).try_acquire_all().await.unwrap().expect("all are free");
    assert_eq!((all.count(), faults.calls(DRAIN)), (5, 3));
    all.release().await.unwrap();
}
