//! Handles with requests and answers that get lost, come late, or are dropped.

use bowline::{ErrorKind, HoldHandle};

use crate::faulty::{Fault, Faults, faulty_client};
use crate::scene::{drop_when, is_free, ms};
use crate::support::env::{Env, TestClient, on_every_runtime};

on_every_runtime! {
    a_resume_whose_answer_is_lost_is_known_by_the_next_one,
    a_resume_without_any_answer_leaves_no_hold_behind,
    a_resume_that_is_dropped_leaves_no_hold_behind,
    a_resume_that_comes_late_takes_nothing,
    a_late_renewal_of_the_first_client_changes_nothing,
    a_resume_may_be_tried_again_after_a_refusal,
    permits_without_an_answer_are_given_back,
}

async fn left(env: &Env) -> (TestClient, HoldHandle) {
    let client = env.client().await;
    let handle = client.lock("a").lock().await.unwrap().into_handle().unwrap();
    (client, handle)
}

async fn a_resume_whose_answer_is_lost_is_known_by_the_next_one(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable] {
        let (_one, handle) = left(&env).await;
        let calls = faults.calls("lock_resume");
        faults.next("lock_resume", [fault.clone()]);
        let guard = client.lock("a").resume(&handle).await.unwrap();
        assert_eq!(faults.calls("lock_resume"), calls + 2, "{fault:?}");
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
}

async fn a_resume_without_any_answer_leaves_no_hold_behind(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let (_one, handle) = left(&env).await;
    faults.always("lock_resume", Fault::LoseReply);
    let error = client.lock("a").resume(&handle).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
    faults.heal();
    // It was resumed, and is released.
    env.eventually("it is free", async || is_free(&env, "a")).await;
    assert_eq!(client.lock("a").resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_resume_that_is_dropped_leaves_no_hold_behind(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (_one, handle) = left(&env).await;
    faults.next("lock_resume", [Fault::Hang]);
    drop_when(&env, "it asks", client.lock("a").resume(&handle), async || faults.calls("lock_resume") == 1).await;
    faults.release();
    cancelled(&env, &faults).await;
    // The request was not executed, or its hold is released.
    match client.lock("a").resume(&handle).await {
        Ok(guard) => guard.release().await.unwrap(),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Lost),
    }
    env.eventually("it is free", async || is_free(&env, "a")).await;
}

async fn cancelled(env: &Env, faults: &Faults) {
    env.eventually("it is cancelled", async || faults.answered("lock_cancel") > 0).await;
}

async fn a_resume_that_comes_late_takes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.command_timeout(ms(400)).retry_timeout(ms(400))).await;
    let (one, handle) = left(&env).await;
    faults.always("lock_resume", Fault::Late);
    assert_eq!(client.lock("a").resume(&handle).await.unwrap_err().kind(), ErrorKind::Unavailable);
    cancelled(&env, &faults).await;
    faults.heal();
    // The server executes it when its client has given up and has cancelled it.
    env.sleep(ms(1000)).await;
    faults.send_late().await;
    // The hold is as it was.
    let guard = one.lock("a").resume(&handle).await.unwrap();
    guard.release().await.unwrap();
}

async fn a_late_renewal_of_the_first_client_changes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(3000))).await;
    let other = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    faults.always("lock_renew", Fault::Late);
    env.eventually("a renewal", async || faults.calls("lock_renew") > 0).await;
    let handle = guard.into_handle().unwrap();
    let resumed = other.lock("a").lock().timeout(ms(50)).await.map(drop).unwrap_err();
    assert_eq!(resumed.kind(), ErrorKind::TimedOut);
    let resumed = other.lock("a").resume(&handle).await.unwrap();
    let before = other.lock("a").inspect().await.unwrap();
    faults.heal();
    faults.send_late().await;
    let after = other.lock("a").inspect().await.unwrap();
    let holder = |state: bowline::LockState| state.holder.map(|holder| (holder.client, holder.token));
    assert_eq!(holder(before), holder(after));
    assert!(resumed.is_valid());
    resumed.release().await.unwrap();
}

async fn a_resume_may_be_tried_again_after_a_refusal(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(100))).await;
    let (_one, handle) = left(&env).await;
    for (refusal, kind) in [("NOPERM no", ErrorKind::Denied), ("OOM no", ErrorKind::Refused)] {
        faults.always("lock_resume", Fault::Refuse(refusal));
        assert_eq!(client.lock("a").resume(&handle).await.unwrap_err().kind(), kind, "{refusal}");
        faults.heal();
    }
    client.lock("a").resume(&handle).await.unwrap().release().await.unwrap();
}

async fn permits_without_an_answer_are_given_back(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let one = env.client().await;
    let handle = one.semaphore("a", 3).acquire_many(2).await.unwrap().into_handle().unwrap();
    let semaphore = client.semaphore("a", 3);
    faults.always("permit_change", Fault::LoseReply);
    assert_eq!(semaphore.resume(&handle).await.unwrap_err().kind(), ErrorKind::Unavailable);
    faults.heal();
    env.eventually("they are given back", async || semaphore.available().await.unwrap() == 3).await;
    assert_eq!(semaphore.resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    let handle = one.semaphore("a", 3).acquire_many(2).await.unwrap().into_handle().unwrap();
    faults.next("permit_change", [Fault::LoseReply, Fault::LoseRequest]);
    let permit = semaphore.resume(&handle).await.unwrap();
    assert_eq!((permit.count(), semaphore.available().await.unwrap()), (2, 1));
    permit.release().await.unwrap();
}
