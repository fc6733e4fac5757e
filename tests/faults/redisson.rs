//! Locks that Java shares, when requests, answers and messages get lost, and rights are missing.

use std::time::Duration;

use bowline::ErrorKind;

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, TestClient, on_every_runtime};

on_every_runtime! {
    an_acquisition_survives_lost_requests_and_answers,
    a_release_whose_answer_is_lost_leaves_the_next_hold_alone,
    an_acquisition_that_is_dropped_while_its_answer_is_under_way_is_released,
    a_request_that_comes_too_late_takes_nothing,
    a_lost_message_costs_the_rest_of_the_lease,
    without_the_right_to_the_channel_who_has_to_wait_is_told,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

async fn other(env: &Env) -> TestClient {
    env.client_with_all_rights(|config| config.lease(HOUR)).await
}

/// Whether nobody has the lock `a`.
fn is_free(env: &Env) -> bool {
    !env.keys().contains(&"a".to_owned())
}

async fn an_acquisition_survives_lost_requests_and_answers(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().fenced_lock("a");
    for (n, fault) in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable].into_iter().enumerate() {
        faults.next("redisson_acquire_fenced", [fault.clone(), fault]);
        let guard = lock.lock().await.unwrap();
        assert_eq!(guard.token().get(), n as u64 + 1, "each acquisition counts once");
        assert_eq!(lock.inspect().await.unwrap().holder.unwrap().entries, 1);
        guard.release().await.unwrap();
        assert!(is_free(&env));
    }
    assert_eq!(faults.calls("redisson_acquire_fenced"), 9);
}

async fn a_release_whose_answer_is_lost_leaves_the_next_hold_alone(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let guard = client.redisson().lock("a").lock().await.unwrap();
    let waiting = env.spawn({
        let lock = other.redisson().lock("a");
        async move { lock.lock().await }
    });
    env.eventually("it waits", async || other.stats().waiting == 1).await;
    faults.next("redisson_release", [Fault::LoseReply, Fault::LoseReply]);
    guard.release().await.unwrap();
    assert_eq!(faults.calls("redisson_release"), 3);
    let next = env.soon("the next one", waiting).await.unwrap();
    assert!(other.redisson().lock("a").inspect().await.unwrap().holder.is_some());
    next.release().await.unwrap();
    // Without an earlier request that may have released, "not held" is a loss.
    let guard = client.redisson().lock("a").lock().await.unwrap();
    assert!(other.redisson().lock("a").force_release().await.unwrap());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn an_acquisition_that_is_dropped_while_its_answer_is_under_way_is_released(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().lock("a");
    faults.next("redisson_acquire", [Fault::HangReply]);
    let late = lock.lock().timeout(ms(200)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    env.eventually("it is released", async || is_free(&env)).await;
    assert_eq!(faults.calls("redisson_release"), 1);
    faults.release();
}

/// The server executes it when nobody waits for the answer any more.
async fn a_request_that_comes_too_late_takes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().lock("a");
    faults.always("redisson_acquire", Fault::Late);
    assert_eq!(lock.lock().timeout(ms(300)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    faults.heal();
    env.sleep(ms(400)).await;
    assert!(!faults.send_late().await.is_empty());
    assert!(is_free(&env), "{:?}", env.keys());
}

async fn a_lost_message_costs_the_rest_of_the_lease(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let held = other.redisson().lock("a").lock().expires_after(ms(1500)).await.unwrap();
    let waiting = env.spawn({
        let lock = client.redisson().lock("a");
        async move { lock.lock().await }
    });
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{a}") == 1).await;
    env.eventually("it has asked again", async || faults.calls("redisson_acquire") >= 2).await;
    faults.messages(Messages::Swallow);
    held.release().await.unwrap();
    env.soon("the lease would have ended", waiting).await.unwrap().release().await.unwrap();
    assert!(faults.swallowed() >= 1);
}

/// The documented user has no rights to Redisson's channels.
async fn without_the_right_to_the_channel_who_has_to_wait_is_told(env: Env) {
    let (client, other) = (env.client().await, other(&env).await);
    // Its key begins like those of the user.
    let name = "bowline:a";
    let held = other.redisson().lock(name).lock().await.unwrap();
    assert!(client.redisson().lock(name).try_lock().await.unwrap().is_none());
    let denied = client.redisson().lock(name).lock().await.unwrap_err();
    assert_eq!((denied.kind(), denied.name()), (ErrorKind::Denied, Some(name)));
    held.release().await.unwrap();
    // It holds and releases, although it may not say so.
    client.redisson().lock(name).lock().await.unwrap().release().await.unwrap();
    let denied = client.redisson().fenced_lock(name).lock().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    assert!(env.keys().is_empty());
}
