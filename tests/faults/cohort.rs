//! The request of a local cohort that releases its hold and queues up for the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline::{Client, ErrorKind, Lock, LockGuard, Result, Whose};
use futures::future::BoxFuture;
use futures::{FutureExt, poll};

use crate::faulty::{Fault, faulty_client};
use crate::scene::{acquiring, assert_holds, is_free, ms, until_free, until_waiting, waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_turn_survives_lost_requests_and_replies,
    a_turn_whose_reply_is_lost_keeps_its_place,
    a_turn_dropped_half_way_leaves_nothing,
    a_late_copy_queues_nothing,
    a_cohort_does_not_wait_for_the_server_one_after_the_other,
    a_later_member_has_its_own_retry_timeout,
    closing_ends_the_cohort_before_the_server_answers,
    a_turn_is_told_who_else_of_its_client_was_granted,
    a_member_does_not_fail_for_a_ticket_that_was_dropped_before_it_came,
}

type Waiting = BoxFuture<'static, Result<LockGuard>>;

/// An acquisition that stands in the cohort behind the guard.
fn stands(lock: &Lock) -> Waiting {
    let lock = lock.clone();
    let mut waiting: Waiting = Box::pin(async move { lock.lock().non_fair().await });
    assert!((&mut waiting).now_or_never().is_none());
    waiting
}

/// A hold that cannot be passed on, and the next in its cohort.
async fn cohort(client: &Client) -> (LockGuard, Waiting) {
    let guard = client.lock("a").lock().non_fair().await.unwrap();
    let next = stands(&client.lock("a"));
    (guard, next)
}

async fn a_turn_survives_lost_requests_and_replies(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let (guard, next) = cohort(&client).await;
        let (token, releases) = (guard.token(), faults.calls("lock_release"));
        faults.next("lock_release", [fault.clone(), fault]);
        guard.release().await.unwrap();
        assert_eq!(faults.calls("lock_release"), releases, "it is the next one's to send");
        let next = env.soon("the next", next).await.unwrap();
        assert_eq!(faults.calls("lock_release"), releases + 3);
        assert!(next.token() > token);
        assert_holds(&env, &next);
        assert_eq!(waiting(&env, "a"), 0);
        next.release().await.unwrap();
        assert!(is_free(&env, "a"));
    }
    assert_eq!(faults.calls("lock_cancel"), 0);
}

/// The second copy finds no hold, and the same attempt id asks what became of it.
async fn a_turn_whose_reply_is_lost_keeps_its_place(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (guard, next) = cohort(&client).await;
    let before = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 1).await;
    faults.next("lock_release", [Fault::LoseReply]);
    guard.release().await.unwrap();
    let next = env.spawn(next);
    let before = env.soon("the other client", before).await.unwrap();
    env.eventually("asked again", async || faults.answered("lock_acquire") == 2).await;
    let behind = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 2).await;
    before.release().await.unwrap();
    let next = env.soon("the next", next).await.unwrap();
    assert_holds(&env, &next);
    next.release().await.unwrap();
    env.soon("the later member", behind).await.unwrap().release().await.unwrap();
    assert_eq!(faults.calls("lock_cancel"), 0);
}

async fn a_turn_dropped_half_way_leaves_nothing(env: Env) {
    for fault in [Fault::LoseRequest, Fault::HangReply] {
        let (client, faults) = faulty_client(&env, |config| config).await;
        let (guard, mut next) = cohort(&client).await;
        faults.next("lock_release", [fault]);
        guard.release().await.unwrap();
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(faults.calls("lock_release"), 1);
        drop(next);
        until_free(&env, "a").await;
        until_waiting(&env, "a", 0).await;
    }
}

async fn a_late_copy_queues_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (guard, next) = cohort(&client).await;
    faults.next("lock_release", [Fault::Late]);
    guard.release().await.unwrap();
    let next = env.soon("the next", next).await.unwrap();
    next.release().await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    assert_holds(&env, &guard);
    assert_eq!(waiting(&env, "a"), 0);
    guard.release().await.unwrap();
}

async fn a_cohort_does_not_wait_for_the_server_one_after_the_other(env: Env) {
    const WAITERS: u64 = 20;
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    faults.always("lock_acquire", Fault::LoseRequest);
    let alone = client.lock("a").lock().await.unwrap_err();
    assert_eq!(alone.kind(), ErrorKind::Unavailable);
    let tries = faults.calls("lock_acquire");
    let waiting: Vec<_> = (0..WAITERS).map(|_| env.spawn(stands(&client.lock("a")))).collect();
    for waiting in waiting {
        let error = env.soon("it fails", waiting).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    // The first member, and the next one, which came a moment later.
    let all = faults.calls("lock_acquire") - tries;
    assert!(all <= 5 * tries, "{all} tries of {WAITERS}, {tries} of one alone");
    faults.heal();
    env.soon("it works again", client.lock("a").lock().non_fair()).await.unwrap().release().await.unwrap();
}

/// The one in front fails first, and the members that have waited for less do not get its error.
async fn a_later_member_has_its_own_retry_timeout(env: Env) {
    let retry_timeout = ms(800);
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(retry_timeout)).await;
    faults.always("lock_acquire", Fault::LoseRequest);
    let fails_after = || {
        // Its time begins when it is polled first.
        let (clock, start) = (env.clone(), env.now());
        let waiting = stands(&client.lock("a"));
        env.spawn(async move {
            assert_eq!(waiting.await.unwrap_err().kind(), ErrorKind::Unavailable);
            clock.now() - start
        })
    };
    let (first, beside) = (fails_after(), fails_after());
    env.sleep(retry_timeout / 2).await;
    let later = fails_after();
    for waited in [first, beside, later] {
        let waited = env.soon("it fails", waited).await;
        assert!(waited >= retry_timeout, "{waited:?}");
    }
}

async fn closing_ends_the_cohort_before_the_server_answers(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(60_000))).await;
    let (guard, mut next) = cohort(&client).await;
    let asleep = Arc::new(AtomicBool::new(false));
    let next = env.spawn({
        let asleep = asleep.clone();
        async move {
            assert!(poll!(&mut next).is_pending());
            asleep.store(true, Ordering::SeqCst);
            next.await
        }
    });
    env.eventually("it waits", async || asleep.load(Ordering::SeqCst)).await;
    faults.always("lock_cancel", Fault::Hang);
    let closing = env.spawn({
        let client = client.clone();
        async move { client.close().await }
    });
    assert_eq!(env.soon("the wait ends", next).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(faults.answered("lock_cancel"), 0);
    faults.heal();
    faults.release();
    env.soon("it closes", closing).await;
    drop(guard);
}

/// Permits are granted beside those of the turn: here those of a hold whose end has not been noticed.
async fn a_turn_is_told_who_else_of_its_client_was_granted(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.handoff_time(ms(0))).await;
    let (semaphore, other) = (client.semaphore("a", 5), env.client().await.semaphore("a", 5));
    let held = semaphore.acquire_many(2).non_fair().await.unwrap();
    let lapses = other.acquire_many(3).expires_after(ms(20_000)).await.unwrap();
    let acquiring = |count, fair| {
        let semaphore = semaphore.clone();
        env.spawn(async move {
            let acquire = semaphore.acquire_many(count);
            if fair { acquire.fair().await } else { acquire.non_fair().await }
        })
    };
    let until_queued = |n| {
        let (env, semaphore) = (&env, &semaphore);
        async move { env.eventually("queued", async || semaphore.inspect().await.unwrap().waiters == n).await }
    };
    let first = acquiring(2, false);
    until_queued(1).await;
    let beside = acquiring(1, true);
    until_queued(2).await;
    let second = acquiring(2, false);
    env.eventually("it stands in the cohort", async || client.stats().waiting == 3).await;
    // Only the reply to the request can carry the message.
    faults.always("permit_heartbeat", Fault::Hang);
    let leases = "bowline:sem:{a}:leases";
    let [shortest] = env.redis::<[String; 1]>(&["ZRANGE", leases, "0", "0"]);
    env.redis::<()>(&["ZADD", leases, "XX", "1", &shortest]);
    held.release().await.unwrap();
    let mut guards = Vec::new();
    for granted in [first, beside, second] {
        guards.push(env.soon("all are granted", granted).await.unwrap());
    }
    assert_eq!((faults.calls("permit_acquire"), faults.calls("permit_release")), (3, 1));
    faults.heal();
    faults.release();
    drop(lapses);
}

/// The ticket for the next turn was queued ahead. The member has waited for longer than the retry timeout, and still
/// has all of it: the server has answered.
async fn a_member_does_not_fail_for_a_ticket_that_was_dropped_before_it_came(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config.handoff_time(ms(4000)).retry_timeout(ms(1000))).await;
    let (lock, next) = (client.lock("a"), client.lock("next").lock().await.unwrap());
    // A retained hold has tokens for the members that come later.
    let first = lock.lock().retained(ms(5000)).await.unwrap();
    let (second, behind) = (stands(&lock), acquiring(&env, &other, "a"));
    until_waiting(&env, "a", 1).await;
    // Half of the time is over.
    env.sleep(ms(2100)).await;
    first.release().await.unwrap();
    let second = env.soon("the second", second).await.unwrap();
    until_waiting(&env, "a", 2).await;
    assert_eq!(lock.drop_waiters(Whose::Everybody).await.unwrap(), 2);
    assert_eq!(env.soon("it is told", behind).await.unwrap_err().kind(), ErrorKind::Dropped);
    // The messages come in order.
    other.lock("next").force_release().await.unwrap();
    env.soon("the messages", next.lost()).await;
    let third = env.spawn(stands(&lock));
    env.sleep(ms(2500)).await;
    faults.next("lock_acquire", [Fault::LoseRequest]);
    second.release().await.unwrap();
    env.soon("the third", third).await.unwrap().release().await.unwrap();
}
