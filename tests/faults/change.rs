//! Downgrades and upgrades that get lost, whose answers get lost, and that arrive late.

use std::sync::Arc;
use std::time::Duration;

use bowline::{ErrorKind, Loss, ReadGuard, Result, RwLock, Upgrade, Whose, WriteGuard};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::faulty::{Fault, Messages, faulty_client, faulty_client_on};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};
use crate::support::polled::poll_once;
use crate::support::stepped::Stepped;

on_every_runtime! {
    a_change_survives_lost_requests_and_replies,
    a_refused_upgrade_survives_lost_requests_and_replies,
    a_late_copy_of_a_refused_upgrade_changes_nothing,
    a_change_that_is_never_answered_leaves_nothing,
    closing_waits_for_a_change_under_way,
    a_hold_that_is_taken_before_its_change_is_answered_is_lost,
    a_change_is_not_sent_again_after_its_client_was_closed,
    an_upgrade_survives_lost_requests_and_replies,
    an_upgrade_that_is_never_answered_leaves_nothing,
    an_upgrade_dropped_before_its_change_arrives_leaves_nothing,
    an_upgrade_whose_message_is_lost_asks_at_its_heartbeat,
    a_late_copy_of_what_an_upgrade_asked_for_goes_by_itself,
    who_watches_a_hold_is_told_at_the_end_of_its_lease_while_a_change_is_under_way,
    the_end_of_the_runtime_is_no_end_of_a_lease,
    a_change_that_fails_as_its_lease_ends_is_a_loss,
    a_change_that_is_answered_after_its_lease_is_a_loss,
    a_change_of_a_hold_that_is_gone_is_a_loss,
}

fn reading(upgrade: Upgrade) -> ReadGuard {
    match upgrade {
        Upgrade::Shared(guard) => guard,
        Upgrade::Writing(_) => panic!("there is another reader"),
    }
}

fn key(name: &str) -> String {
    format!("bowline:rw:{{{name}}}")
}

/// The lock is free, long before any lease is over.
async fn until_free(env: &Env, name: &str) {
    env.eventually("the lock is free", async || env.redis::<u64>(&["EXISTS", &key(name)]) == 0).await;
}

async fn a_change_survives_lost_requests_and_replies(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.rw_lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let (writing, changes) = (lock.write().await.unwrap(), faults.calls("permit_change"));
        faults.next("permit_change", [fault.clone(), fault.clone()]);
        let reading = writing.downgrade().await.unwrap();
        faults.next("permit_change", [fault.clone(), fault]);
        let Upgrade::Writing(writing) = reading.try_upgrade().await.unwrap() else {
            panic!("there is no other reader")
        };
        assert_eq!(faults.calls("permit_change"), changes + 6);
        writing.release().await.unwrap();
        until_free(&env, "a").await;
    }
}

/// The answer to the first copy may be what was lost: the guard is what the last one says.
async fn a_refused_upgrade_survives_lost_requests_and_replies(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.rw_lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let (one, two) = (lock.read().await.unwrap(), other.read().await.unwrap());
        let (token, changes) = (one.token(), faults.calls("permit_change"));
        faults.next("permit_change", [fault.clone(), fault]);
        let one = reading(one.try_upgrade().await.unwrap());
        assert_eq!(faults.calls("permit_change"), changes + 3);
        assert_eq!(one.token(), token);
        two.release().await.unwrap();
        assert!(other.try_write().await.unwrap().is_none(), "one reads");
        one.release().await.unwrap();
        until_free(&env, "a").await;
    }
}

/// It would take the hold from the guard that the answer left it to, for a writer without a guard.
async fn a_late_copy_of_a_refused_upgrade_changes_nothing(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.rw_lock("a");
    let (one, two) = (lock.read().await.unwrap(), other.read().await.unwrap());
    faults.next("permit_change", [Fault::Late]);
    let one = reading(one.try_upgrade().await.unwrap());
    two.release().await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    other.try_read().await.unwrap().expect("one reads").release().await.unwrap();
    one.release().await.unwrap();
    until_free(&env, "a").await;
}

async fn a_change_that_is_never_answered_leaves_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    let lock = client.rw_lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let writing = lock.write().await.unwrap();
        faults.always("permit_change", fault);
        assert_eq!(writing.downgrade().await.unwrap_err().kind(), ErrorKind::Unavailable);
        until_free(&env, "a").await;
        faults.heal();
    }
}

/// Closing has cleaned up what it might have become: sent after that, it would make a hold without a guard.
async fn a_change_is_not_sent_again_after_its_client_was_closed(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (lock, waiting) = (client.rw_lock("a"), client.lock("b"));
    let writing = lock.write().await.unwrap();
    // A slow clean-up keeps the connection open.
    let held = waiting.lock().await.unwrap();
    faults.always("lock_cancel", Fault::Slow(ms(1000)));
    faults.always("permit_change", Fault::LoseRequest);
    let change = env.spawn(writing.downgrade());
    env.eventually("the change is sent", async || faults.calls("permit_change") > 0).await;
    let closing = env.spawn({
        let client = client.clone();
        async move { client.close().await }
    });
    env.eventually("what it became is cleaned up", async || faults.answered("permit_cancel") > 0).await;
    faults.heal();
    let error = change.await.unwrap_err();
    closing.await;
    until_free(&env, "a").await;
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    drop(held);
}

async fn closing_waits_for_a_change_under_way(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let writing = client.rw_lock("a").write().await.unwrap();
    faults.next("permit_change", [Fault::HangReply]);
    let change = env.spawn(writing.downgrade());
    env.eventually("the change is sent", async || faults.calls("permit_change") > 0).await;
    let mut closing = env.spawn({
        let client = client.clone();
        async move { client.close().await }
    });
    env.eventually("what it becomes is cleaned up", async || faults.answered("permit_cancel") > 0).await;
    env.sleep(ms(200)).await;
    assert!(poll_once(&mut closing).await.is_none(), "it did not wait");
    faults.release();
    assert_eq!(change.await.unwrap_err().kind(), ErrorKind::Closed);
    closing.await;
    assert_eq!(env.keys(), [] as [&str; 0]);
}

/// The message overtakes the answer.
async fn a_hold_that_is_taken_before_its_change_is_answered_is_lost(env: Env) {
    let operator = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (writing, next) = (client.rw_lock("a").write().await.unwrap(), client.lock("next").lock().await.unwrap());
    faults.next("permit_change", [Fault::HangReply]);
    let change = env.spawn(writing.downgrade());
    let changed = operator.rw_lock("a");
    env.eventually("it is changed", async || changed.inspect().await.unwrap().readers.len() == 1).await;
    changed.force_release(Whose::Everybody).await.unwrap();
    // The messages come in order.
    operator.lock("next").force_release().await.unwrap();
    env.soon("the messages", next.lost()).await;
    faults.release();
    let error = change.await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    until_free(&env, "a").await;
}

/// An upgradable reader beside a plain one. The upgrade waits, and is spawned.
async fn upgrading(env: &Env, lock: &RwLock, other: &RwLock) -> (BoxFuture<'static, Result<WriteGuard>>, ReadGuard) {
    let (reads, plain) = (lock.upgradable_read().await.unwrap(), other.read().await.unwrap());
    let upgrade = env.spawn(reads.upgrade());
    env.eventually("it waits", async || other.inspect().await.unwrap().waiters == 1).await;
    (upgrade, plain)
}

async fn an_upgrade_survives_lost_requests_and_replies(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.rw_lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        for script in ["permit_acquire", "permit_change"] {
            let (reads, plain) = (lock.upgradable_read().await.unwrap(), other.read().await.unwrap());
            let token = reads.token();
            if script == "permit_acquire" {
                faults.next(script, [fault.clone(), fault.clone()]);
            }
            let upgrade = env.spawn(reads.upgrade());
            env.eventually("it waits", async || other.inspect().await.unwrap().waiters == 1).await;
            if script == "permit_change" {
                faults.next(script, [fault.clone(), fault.clone()]);
            }
            plain.release().await.unwrap();
            let writes = env.soon("the upgrade", upgrade).await.unwrap();
            assert!(writes.token() > token);
            assert!(other.try_read().await.unwrap().is_none());
            writes.release().await.unwrap();
            until_free(&env, "a").await;
        }
    }
}

async fn an_upgrade_that_is_never_answered_leaves_nothing(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let (upgrade, plain) = upgrading(&env, &client.rw_lock("a"), &other).await;
        faults.always("permit_change", fault);
        plain.release().await.unwrap();
        assert_eq!(env.soon("the upgrade", upgrade).await.unwrap_err().kind(), ErrorKind::Unavailable);
        until_free(&env, "a").await;
        faults.heal();
    }
}

/// The change of both holds arrives after all three were cancelled.
async fn an_upgrade_dropped_before_its_change_arrives_leaves_nothing(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (reads, plain) = (client.rw_lock("a").upgradable_read().await.unwrap(), other.read().await.unwrap());
    let mut upgrade = Box::pin(reads.upgrade());
    env.eventually("it waits", async || {
        let _ = poll_once(&mut upgrade).await;
        other.inspect().await.unwrap().waiters == 1
    })
    .await;
    faults.always("permit_change", Fault::Late);
    let changes = faults.calls("permit_change");
    plain.release().await.unwrap();
    env.eventually("it changes both", async || {
        let _ = poll_once(&mut upgrade).await;
        faults.calls("permit_change") > changes
    })
    .await;
    drop(upgrade);
    until_free(&env, "a").await;
    faults.heal();
    for sent in faults.send_late().await {
        sent.unwrap();
    }
    other.try_write().await.unwrap().expect("the late request made no hold").release().await.unwrap();
    until_free(&env, "a").await;
}

async fn an_upgrade_whose_message_is_lost_asks_at_its_heartbeat(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let (upgrade, plain) = upgrading(&env, &client.rw_lock("a"), &other).await;
    faults.messages(Messages::Swallow);
    plain.release().await.unwrap();
    let writes = env.soon("the upgrade", upgrade).await.unwrap();
    assert!(faults.swallowed() > 0);
    faults.messages(Messages::Pass);
    writes.release().await.unwrap();
    until_free(&env, "a").await;
}

/// Its ticket would be the first in the queue, and nobody waits for it.
async fn a_late_copy_of_what_an_upgrade_asked_for_goes_by_itself(env: Env) {
    let other = env.client().await.rw_lock("a");
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (reads, plain) = (client.rw_lock("a").upgradable_read().await.unwrap(), other.read().await.unwrap());
    faults.next("permit_acquire", [Fault::Late]);
    let upgrade = env.spawn(reads.upgrade());
    env.eventually("it waits", async || other.inspect().await.unwrap().waiters == 1).await;
    plain.release().await.unwrap();
    let writes = env.soon("the upgrade", upgrade).await.unwrap();
    let waiting = env.spawn({
        let other = other.clone();
        async move { other.write().await.unwrap() }
    });
    env.eventually("another writer waits", async || other.inspect().await.unwrap().waiters == 1).await;
    faults.send_late().await[0].as_ref().unwrap();
    writes.release().await.unwrap();
    env.soon("the other writer", waiting).await.release().await.unwrap();
    until_free(&env, "a").await;
}

async fn who_watches_a_hold_is_told_at_the_end_of_its_lease_while_a_change_is_under_way(env: Env) {
    let patient = ms(30_000);
    let configure = |config: bowline::ConfigBuilder| config.command_timeout(patient).retry_timeout(patient);
    let (client, faults) = faulty_client(&env, |config| configure(config).lease(ms(1000))).await;
    let guard = client.rw_lock("a").write().await.unwrap();
    let signal = guard.lost_signal();
    faults.always("permit_change", Fault::Hang);
    let changing = env.spawn(guard.downgrade());
    assert_eq!(env.soon("it is told", signal.wait()).await, Some(Loss::Expired));
    assert_eq!(client.stats().lost, 1);
    // The server counts a little longer than the client.
    until_free(&env, "a").await;
    faults.heal();
    faults.release();
    assert_eq!(env.soon("the change", changing).await.map(drop).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(client.stats().lost, 1, "it is counted once");
    until_free(&env, "a").await;
}

/// The timer for the end of the lease ends early then.
async fn the_end_of_the_runtime_is_no_end_of_a_lease(env: Env) {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let clock = Arc::new(Stepped::new(env.executor()));
    let (client, faults) = faulty_client_on(&env, clock.clone(), |config| config.lease(12 * HOUR)).await;
    let guard = client.rw_lock("a").write().await.unwrap();
    let signal = guard.lost_signal();
    faults.next("permit_change", [Fault::Hang]);
    let mut changing = guard.downgrade().boxed();
    clock.end_longer_ones(Some(11 * HOUR));
    assert!(poll_once(&mut changing).await.is_none());
    clock.end_longer_ones(None);
    assert_eq!(signal.reason(), None);
    faults.release();
    env.soon("the change", changing).await.unwrap().release().await.unwrap();
}

/// The program was suspended until then, so that two timers are over: that of the lease, and that before the next
/// request.
async fn a_change_that_fails_as_its_lease_ends_is_a_loss(env: Env) {
    let clock = Arc::new(Stepped::new(env.executor()));
    let (client, faults) = faulty_client_on(&env, clock.clone(), |config| config).await;
    let guard = client.rw_lock("a").write().await.unwrap();
    let signal = guard.lost_signal();
    faults.always("permit_change", Fault::LoseRequest);
    let mut changing = guard.downgrade().boxed();
    env.eventually("it waits before the next request", async || {
        assert!(poll_once(&mut changing).await.is_none());
        faults.calls("permit_change") == 1 && clock.timers()[0] < ms(1000)
    })
    .await;
    clock.pass(ms(30_000));
    assert_eq!(env.soon("the change", changing).await.map(drop).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((signal.reason(), client.stats().lost), (Some(Loss::Expired), 1));
}

/// The answer is there when the program wakes, but comes too late.
async fn a_change_that_is_answered_after_its_lease_is_a_loss(env: Env) {
    let clock = Arc::new(Stepped::new(env.executor()));
    let (client, faults) = faulty_client_on(&env, clock.clone(), |config| config).await;
    let guard = client.rw_lock("a").write().await.unwrap();
    let signal = guard.lost_signal();
    faults.next("permit_change", [Fault::HangReply]);
    let mut changing = guard.downgrade().boxed();
    env.eventually("it is executed", async || {
        assert!(poll_once(&mut changing).await.is_none());
        faults.calls("permit_change") == 1
    })
    .await;
    faults.release();
    // The future is not polled meanwhile.
    env.sleep(ms(50)).await;
    clock.pass(ms(30_000));
    assert_eq!(env.soon("the change", changing).await.map(drop).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((signal.reason(), client.stats().lost), (Some(Loss::Expired), 1));
    until_free(&env, "a").await;
}

async fn a_change_of_a_hold_that_is_gone_is_a_loss(env: Env) {
    let client = env.client().await;
    let guard = client.rw_lock("a").write().await.unwrap();
    let signal = guard.lost_signal();
    env.redis::<()>(&["DEL", &key("a"), &format!("{}:leases", key("a"))]);
    assert_eq!(guard.downgrade().await.map(drop).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((signal.reason(), client.stats().lost), (Some(Loss::Gone), 1));
}
