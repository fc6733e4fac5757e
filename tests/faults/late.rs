//! Copies of a request that arrive after it was given up.

use bowline::{ConnectionError, ErrorKind, Reply};

use crate::faulty::{Fault, faulty_client};
use crate::scene::{SLACK, acquiring, assert_holds, drop_when, is_free, key, ms, pass, until_free, until_waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_late_copy_after_the_release_is_a_ghost_of_one_lease,
    a_late_copy_that_queues_is_ended_when_it_is_granted,
    a_try_that_finds_the_lock_held_cancels_a_copy_without_an_answer,
    a_full_queue_cancels_a_copy_without_an_answer,
    a_limit_that_is_too_small_cancels_a_copy_without_an_answer,
    a_late_copy_after_its_time_does_nothing,
    a_late_copy_before_the_cancel_is_cancelled,
    a_late_copy_after_the_cancel_is_a_ghost_of_one_lease,
}

/// The first word of the only reply.
fn word(replies: &[Result<Reply, ConnectionError>]) -> String {
    match replies {
        [Ok(reply)] => match bowline::wire::in_full(reply.clone()) {
            Reply::Array(fields) => match &fields[0] {
                Reply::Bytes(word) => String::from_utf8(word.clone()).unwrap(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

async fn a_late_copy_after_the_release_is_a_ghost_of_one_lease(env: Env) {
    let other = env.client().await;
    let lease = ms(600);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    faults.next("lock_acquire", [Fault::Late]);
    let guard = client.lock("a").lock().await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();

    assert_eq!(word(&faults.send_late().await), "GRANTED");
    let ttl = env.server().ttl_ms(&key("a"));
    assert!(ttl <= 600, "{ttl}");
    let start = env.now();
    let next = env.soon("after the ghost", other.lock("a").lock().into_future()).await.unwrap();
    assert!(env.now() - start < lease + SLACK);
    assert!(next.token() > token);
    assert_holds(&env, &next);
    next.release().await.unwrap();
    assert_eq!(faults.calls("lock_renew"), 0, "a ghost is not renewed");
}

/// Its ticket stands in the queue for an attempt that is decided. The ticket is granted, and no guard takes the grant.
async fn a_late_copy_that_queues_is_ended_when_it_is_granted(env: Env) {
    let other = env.client().await;
    let third = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(60_000))).await;
    faults.next("lock_acquire", [Fault::Late]);
    client.lock("a").lock().await.unwrap().release().await.unwrap();

    let held = other.lock("a").lock().await.unwrap();
    assert_eq!(word(&faults.send_late().await), "QUEUED");
    let waiter = acquiring(&env, &third, "a");
    until_waiting(&env, "a", 2).await;
    // The client of the late ticket is alive. It ended that attempt, and ends the grant.
    let before = faults.total();
    held.release().await.unwrap();
    let guard = env.soon("behind the ghost", waiter).await.unwrap();
    assert_holds(&env, &guard);
    // The answer to the cancel may come after the grant, and the client looks at the lock after the answer.
    let ended = async || (faults.calls("lock_cancel"), faults.calls("lock_inspect")) == (1, 1);
    env.eventually("the grant is ended, and looked for", ended).await;
    assert_eq!(faults.total(), before + 2);
    guard.release().await.unwrap();
}

/// The second copy of a try found the lock held. The first one may still be executed.
async fn a_try_that_finds_the_lock_held_cancels_a_copy_without_an_answer(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(60_000))).await;
    let held = other.lock("a").lock().await.unwrap();
    assert!(client.lock("a").try_lock().await.unwrap().is_none());
    assert_eq!((faults.calls("lock_acquire"), faults.total()), (1, 1), "a try with an answer leaves nothing to cancel");
    for fault in [Fault::Late, Fault::LoseReply] {
        let cancelled = faults.answered("lock_cancel");
        faults.next("lock_acquire", [fault]);
        assert!(client.lock("a").try_lock().await.unwrap().is_none());
        env.eventually("it is cancelled", async || faults.answered("lock_cancel") == cancelled + 1).await;
    }
    held.release().await.unwrap();
}

/// Somebody may leave the queue before the first copy arrives.
async fn a_full_queue_cancels_a_copy_without_an_answer(env: Env) {
    let [other, third] = [env.client().await, env.client().await];
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(60_000))).await;
    let held = other.lock("a").lock().await.unwrap();
    let waiter = acquiring(&env, &third, "a");
    until_waiting(&env, "a", 1).await;
    let full = async || client.lock("a").lock().max_waiters(1).await.unwrap_err().kind() == ErrorKind::QueueFull;
    assert!(full().await);
    assert_eq!((faults.calls("lock_acquire"), faults.total()), (1, 1), "an answer leaves nothing to cancel");
    for fault in [Fault::Late, Fault::LoseReply] {
        let cancelled = faults.answered("lock_cancel");
        faults.next("lock_acquire", [fault]);
        assert!(full().await);
        env.eventually("it is cancelled", async || faults.answered("lock_cancel") == cancelled + 1).await;
    }
    held.release().await.unwrap();
    env.soon("its turn", waiter).await.unwrap().release().await.unwrap();
}

/// Somebody may store a larger limit before the first copy arrives.
async fn a_limit_that_is_too_small_cancels_a_copy_without_an_answer(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let semaphore = client.semaphore("s", 3);
    semaphore.set_limit(1).await.unwrap();
    let over = async || semaphore.acquire_many(3).await.unwrap_err().kind() == ErrorKind::OverLimit;
    let before = faults.total();
    assert!(over().await);
    assert_eq!(faults.total(), before + 1, "an answer leaves nothing to cancel");
    for fault in [Fault::Late, Fault::LoseReply] {
        let cancelled = faults.answered("permit_cancel");
        faults.next("permit_acquire", [fault]);
        assert!(over().await);
        env.eventually("it is cancelled", async || faults.answered("permit_cancel") == cancelled + 1).await;
    }
    // The stored limit.
    env.redis::<()>(&["DEL", "bowline:sem:{s}"]);
}

async fn a_late_copy_after_its_time_does_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.command_timeout(ms(100))).await;
    faults.next("lock_acquire", [Fault::Late]);
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    // The command timeout, plus the error of the client's estimate of the server's clock.
    env.sleep(ms(300)).await;
    assert_eq!(word(&faults.send_late().await), "STALE");
    assert!(is_free(&env, "a"));
}

async fn a_late_copy_before_the_cancel_is_cancelled(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("lock_acquire", [Fault::Late, Fault::Hang]);
    faults.next("lock_cancel", [Fault::Hang]);
    let lock = client.lock("a");
    drop_when(&env, "the second copy", lock.lock(), async || faults.calls("lock_acquire") == 2).await;
    assert_eq!(word(&faults.send_late().await), "GRANTED");
    env.eventually("the cancel", async || faults.calls("lock_cancel") == 1).await;
    faults.release();
    until_free(&env, "a").await;
    assert_eq!(faults.calls("lock_cancel"), 1);
}

async fn a_late_copy_after_the_cancel_is_a_ghost_of_one_lease(env: Env) {
    let other = env.client().await;
    let lease = ms(600);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    faults.next("lock_acquire", [Fault::Late, Fault::Hang]);
    let lock = client.lock("a");
    drop_when(&env, "the second copy", lock.lock(), async || faults.calls("lock_acquire") == 2).await;
    env.eventually("the cancel is answered", async || faults.answered("lock_cancel") == 1).await;
    assert_eq!(word(&faults.send_late().await), "GRANTED");
    let start = env.now();
    pass(&env, &other, "a").await;
    assert!(env.now() - start < lease + SLACK);
}
