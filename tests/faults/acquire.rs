//! Requests for the lock that get lost, whose answers get lost, and that arrive after they were given up.

use bowline::ErrorKind;

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::{
    acquiring, assert_holds, contended, drop_when, fence, holders, is_free, ms, pass, until_free, until_waiting,
    waiting,
};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_lost_request_is_sent_again,
    a_lost_reply_leaves_one_hold,
    a_lost_reply_to_a_waiter_leaves_one_ticket,
    a_try_survives_lost_requests_and_replies,
    a_heartbeat_answered_while_the_request_is_sent_again_leaves_no_ticket,
    an_attempt_dropped_before_its_answer_leaves_nothing,
    a_request_told_stale_is_sent_again,
    grants_that_come_too_late_are_given_back,
    a_cancel_is_sent_until_it_is_answered,
}

async fn a_lost_request_is_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("lock_acquire", [Fault::LoseRequest, Fault::LoseRequest]);
    let guard = client.lock("a").lock().await.unwrap();
    assert_eq!(faults.calls("lock_acquire"), 3);
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
    assert_eq!(faults.total(), 4);
}

async fn a_lost_reply_leaves_one_hold(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("lock_acquire", [Fault::LoseReply, Fault::LoseReply]);
    let guard = client.lock("a").lock().await.unwrap();
    assert_eq!(faults.calls("lock_acquire"), 3);
    assert_holds(&env, &guard);
    assert_eq!(fence(&env, "a"), Some(guard.token().get()), "every copy reserved a token");
    guard.release().await.unwrap();
    assert!(is_free(&env, "a"));
}

async fn a_lost_reply_to_a_waiter_leaves_one_ticket(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let held = other.lock("a").lock().await.unwrap();
    faults.next("lock_acquire", [Fault::LoseReply, Fault::LoseReply]);
    let waiter = acquiring(&env, &client, "a");
    env.eventually("the third copy is answered", async || faults.answered("lock_acquire") == 3).await;
    assert_eq!(waiting(&env, "a"), 1);
    let token = held.token();
    held.release().await.unwrap();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(guard.token() > token);
    assert_holds(&env, &guard);
    assert_eq!(waiting(&env, "a"), 0);
    guard.release().await.unwrap();
}

async fn a_try_survives_lost_requests_and_replies(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    faults.next("lock_acquire", [Fault::LoseRequest, Fault::LoseReply]);
    let guard = lock.try_lock().await.unwrap().expect("free");
    assert_eq!(faults.calls("lock_acquire"), 3);
    assert_holds(&env, &guard);
    guard.release().await.unwrap();

    let held = other.lock("a").lock().await.unwrap();
    faults.next("lock_acquire", [Fault::LoseReply, Fault::LoseRequest]);
    assert!(lock.try_lock().await.unwrap().is_none());
    assert_eq!(faults.calls("lock_acquire"), 6);
    assert_eq!(waiting(&env, "a"), 0);
    held.release().await.unwrap();
}

/// The grant was learned so late that the client asks again. Before that request arrives, the grant expires, and a
/// heartbeat is told "gone"; then it queues up anew.
async fn a_heartbeat_answered_while_the_request_is_sent_again_leaves_no_ticket(env: Env) {
    let other = env.client().await;
    let lease = ms(1500);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    faults.messages(Messages::Hold);
    faults.always("lock_heartbeat", Fault::LoseRequest);
    let (held, waiter) = contended(&env, &other, &client).await;
    held.release().await.unwrap();
    env.eventually("the message", async || faults.held() == 1).await;
    until_free(&env, "a").await;
    let held = other.lock("a").lock().await.unwrap();

    faults.next("lock_acquire", [Fault::Hang]);
    faults.messages(Messages::Pass);
    faults.deliver();
    env.eventually("it asks again", async || faults.calls("lock_acquire") == 2).await;
    // Not sooner: a heartbeat that is answered before the attempt asks again ends it.
    faults.heal();
    let heartbeats = faults.answered("lock_heartbeat");
    faults.gap();
    env.eventually("a heartbeat", async || faults.answered("lock_heartbeat") > heartbeats).await;
    faults.release();
    env.eventually("it starts anew", async || faults.answered("lock_acquire") == 3).await;
    until_waiting(&env, "a", 1).await;
    assert_eq!(faults.calls("lock_cancel"), 1);

    held.release().await.unwrap();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

/// Whether the request was executed or not, and whether it was granted or queued.
async fn an_attempt_dropped_before_its_answer_leaves_nothing(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    for held in [false, true] {
        for fault in [Fault::Hang, Fault::HangReply] {
            let executed = matches!(fault, Fault::HangReply);
            let holder = if held { Some(other.lock("a").lock().await.unwrap()) } else { None };
            let (acquires, cancels) = (faults.calls("lock_acquire"), faults.answered("lock_cancel"));
            faults.next("lock_acquire", [fault]);
            drop_when(&env, "the request", lock.lock(), async || {
                let there = if held { waiting(&env, "a") == 1 } else { !is_free(&env, "a") };
                faults.calls("lock_acquire") == acquires + 1 && (!executed || there)
            })
            .await;
            env.eventually("the cancel is answered", async || faults.answered("lock_cancel") == cancels + 1).await;
            faults.release();
            assert_eq!(waiting(&env, "a"), 0);
            match holder {
                Some(guard) => guard.release().await.unwrap(),
                None => assert!(is_free(&env, "a")),
            }
        }
    }
}

async fn a_request_told_stale_is_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.command_timeout(ms(100))).await;
    faults.next("lock_acquire", [Fault::Hang]);
    let acquired = acquiring(&env, &client, "a");
    env.eventually("the request", async || faults.calls("lock_acquire") == 1).await;
    env.sleep(ms(300)).await;
    assert!(is_free(&env, "a"));
    faults.release();
    let guard = env.soon("the lock", acquired).await.unwrap();
    assert_eq!(faults.calls("lock_acquire"), 2, "told stale once");
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

async fn grants_that_come_too_late_are_given_back(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    let lease = ms(150);
    faults.always("lock_acquire", Fault::Slow(lease));
    let error = loop {
        match lock.lock().expires_after(lease).await {
            // This acquisition overtook the clean-up of the one before, queued up, and was granted by a message.
            // Messages are not slowed down here. A release in the background would be overtaken in the same way by the
            // next one, and so on. On a busy machine the short lease may be over.
            Ok(guard) => drop(guard.release().await),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(faults.calls("lock_acquire") >= 3);
    let given_back = async |least| {
        let answered = faults.answered("lock_cancel");
        answered >= least && answered == faults.calls("lock_cancel")
    };
    env.eventually("all were given back", async || given_back(3).await).await;
    until_free(&env, "a").await;
    let (calls, cancels) = (faults.calls("lock_acquire"), faults.calls("lock_cancel"));
    assert!(lock.try_lock().expires_after(lease).await.unwrap().is_none());
    assert_eq!(faults.calls("lock_acquire"), calls + 1);
    env.eventually("it was given back", async || given_back(cancels + 1).await).await;
    assert!(is_free(&env, "a"));
    faults.heal();
    pass(&env, &client, "a").await;
}

async fn a_cancel_is_sent_until_it_is_answered(env: Env) {
    let (other, third) = (env.client().await, env.client().await);
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Refuse("BUSY Redis is busy running a script")] {
        let held = other.lock("a").lock().await.unwrap();
        let cancels = faults.answered("lock_cancel");
        faults.next("lock_cancel", [fault.clone(), fault]);
        // The server sees the queued ticket before the client knows of it.
        let waits = async || waiting(&env, "a") == 1;
        drop_when(&env, "a ticket", lock.lock(), waits).await;
        let next = acquiring(&env, &third, "a");
        env.eventually("three cancels", async || faults.answered("lock_cancel") == cancels + 3).await;
        until_waiting(&env, "a", 1).await;
        held.release().await.unwrap();
        let guard = env.soon("the next", next).await.unwrap();
        assert_eq!(holders(&env, "a").len(), 1);
        guard.release().await.unwrap();
    }
    // A dropped guard is released in the same way.
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let cancels = faults.answered("lock_cancel");
        faults.next("lock_cancel", [fault.clone(), fault]);
        drop(lock.lock().await.unwrap());
        env.eventually("three cancels", async || faults.answered("lock_cancel") == cancels + 3).await;
        assert!(is_free(&env, "a"));
    }
}
