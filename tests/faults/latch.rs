//! Latches whose requests, answers, messages, connections and data get lost.

use std::time::Duration;

use bowline::{CountDownLatch, ErrorKind};
use futures::future::{BoxFuture, join_all};

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::{SLACK, ms};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_count_down_whose_answer_is_lost_counts_once,
    a_late_copy_of_a_count_down_does_not_count,
    a_wait_whose_answer_is_lost_is_let_through,
    a_wait_that_queued_up_for_the_next_latch_leaves_no_ticket,
    a_lost_message_is_made_up_for,
    waiters_are_let_through_while_their_subscriptions_are_killed,
    a_restart_without_data_is_told,
    a_script_flush_is_not_noticed,
}

const TTL: Duration = Duration::from_secs(3600);

fn waits(env: &Env, latch: &CountDownLatch) -> BoxFuture<'static, bowline::Result<()>> {
    let latch = latch.clone();
    env.spawn(async move { latch.wait().await })
}

async fn until_waiting(env: &Env, latch: &CountDownLatch, waiters: u64) {
    env.eventually(&format!("{waiters} wait"), async || latch.inspect().await.unwrap().waiters == waiters).await;
}

/// Ends it. What remembers the calls goes by itself.
async fn end(env: &Env, latch: &CountDownLatch) {
    until_waiting(env, latch, 0).await;
    latch.delete().await.unwrap();
    assert_eq!(env.redis::<u64>(&["EXISTS", "bowline:latch:{a}:tickets"]), 0);
    env.leaves_keys();
}

async fn a_count_down_whose_answer_is_lost_counts_once(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let latch = client.latch("a");
    for fault in [Fault::LoseReply, Fault::LoseRequest] {
        faults.next("latch_set", [fault]);
        assert!(latch.try_set(3, TTL).await.unwrap());
        faults.next("latch_count_down", [Fault::LoseReply, Fault::LoseRequest, Fault::LoseReply]);
        assert_eq!(latch.count_down().await.unwrap(), 2);
        assert_eq!(latch.count_down().await.unwrap(), 1);
        faults.next("latch_delete", [Fault::LoseReply]);
        assert!(latch.delete().await.unwrap());
    }
    assert_eq!(faults.calls("latch_count_down"), 10);
    env.leaves_keys();
}

async fn a_late_copy_of_a_count_down_does_not_count(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let latch = client.latch("a");
    assert!(latch.try_set(1, ms(100)).await.unwrap());
    faults.next("latch_count_down", [Fault::Late]);
    assert_eq!(latch.count_down().await.unwrap(), 0);
    // Nor when the latch that it was for is over.
    env.eventually("it ends", async || latch.inspect().await.unwrap().remaining.is_none()).await;
    assert!(latch.try_set(2, TTL).await.unwrap());
    faults.send_late().await[0].as_ref().unwrap();
    assert_eq!(latch.count().await.unwrap(), 2);
    end(&env, &latch).await;
}

async fn a_wait_whose_answer_is_lost_is_let_through(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        assert!(other.try_set(1, TTL).await.unwrap());
        let asked = faults.answered("latch_wait");
        faults.next("latch_wait", [fault.clone(), fault]);
        let waiter = waits(&env, &latch);
        env.eventually("it knows", async || faults.answered("latch_wait") == asked + 3).await;
        assert_eq!(other.inspect().await.unwrap().waiters, 1);
        assert_eq!(other.count_down().await.unwrap(), 0);
        env.soon("the waiter", waiter).await.unwrap();
    }
    end(&env, &other).await;
}

/// It had no answer and asked again, which queued it up for the next latch; then the message about the first lets it
/// through.
async fn a_wait_that_queued_up_for_the_next_latch_leaves_no_ticket(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    assert!(other.try_set(1, TTL).await.unwrap());
    faults.next("latch_wait", [Fault::LoseReplyLater]);
    let waiter = waits(&env, &latch);
    until_waiting(&env, &other, 1).await;
    faults.messages(Messages::Hold);
    assert_eq!(other.count_down().await.unwrap(), 0);
    env.eventually("the message", async || faults.held() == 1).await;
    assert!(other.try_set(1, TTL).await.unwrap());
    faults.release();
    until_waiting(&env, &other, 1).await;
    faults.deliver();
    env.soon("the waiter", waiter).await.unwrap();
    assert_eq!(faults.calls("latch_wait"), 2);
    until_waiting(&env, &other, 0).await;
    end(&env, &other).await;
}

async fn a_lost_message_is_made_up_for(env: Env) {
    let lease = ms(1500);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    assert!(other.try_set(1, TTL).await.unwrap());
    let waiter = waits(&env, &latch);
    until_waiting(&env, &other, 1).await;
    faults.messages(Messages::Swallow);
    let start = env.now();
    assert_eq!(other.count_down().await.unwrap(), 0);
    env.soon("the waiter", waiter).await.unwrap();
    assert!(env.now() - start < lease / 3 + SLACK);
    assert_eq!(faults.swallowed(), 1);
    end(&env, &other).await;
}

async fn waiters_are_let_through_while_their_subscriptions_are_killed(env: Env) {
    let (client, other) = (env.client().await, env.client().await.latch("a"));
    for _ in 0..5 {
        assert!(other.try_set(1, TTL).await.unwrap());
        let waiters = [waits(&env, &client.latch("a")), waits(&env, &client.latch("a"))];
        until_waiting(&env, &other, 2).await;
        // Once it listens again.
        env.eventually("a kill", async || env.redis::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]) > 0).await;
        assert_eq!(other.count_down().await.unwrap(), 0);
        // Long before its next touch is due: it asks when it listens again.
        let start = env.now();
        for passed in env.soon("the waiters", join_all(waiters)).await {
            passed.unwrap();
        }
        assert!(env.now() - start < ms(5000), "{:?}", env.now() - start);
    }
    end(&env, &other).await;
}

async fn a_restart_without_data_is_told(env: Env) {
    let client = env.client().await;
    let latch = client.latch("a");
    assert!(latch.try_set(1, TTL).await.unwrap());
    let waiters = [waits(&env, &latch), waits(&env, &latch)];
    until_waiting(&env, &latch, 2).await;
    env.server().restart();
    for told in env.soon("the waiters", join_all(waiters)).await {
        assert_eq!(told.unwrap_err().kind(), ErrorKind::Lost);
    }
    // There is none, and nothing to count.
    assert_eq!(latch.count_down().await.unwrap(), 0);
    env.soon("no latch", latch.wait()).await.unwrap();
    env.leaves_keys();
}

async fn a_script_flush_is_not_noticed(env: Env) {
    let (a, b) = (env.client().await.latch("a"), env.client().await.latch("a"));
    let flush = || env.redis::<()>(&["SCRIPT", "FLUSH"]);
    flush();
    assert!(a.try_set(2, TTL).await.unwrap());
    flush();
    let waiter = waits(&env, &b);
    until_waiting(&env, &a, 1).await;
    flush();
    assert_eq!(a.count_down().await.unwrap(), 1);
    flush();
    assert_eq!(a.count_down().await.unwrap(), 0);
    env.soon("the waiter", waiter).await.unwrap();
    flush();
    end(&env, &a).await;
}
