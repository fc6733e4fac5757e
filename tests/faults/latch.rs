//! Latches whose requests, answers, messages, connections and data get lost.

use std::time::Duration;

use bowline::{CountDownLatch, ErrorKind};
use futures::future::{BoxFuture, join_all};

use crate::faulty::{Fault, Faults, Messages, faulty_client};
use crate::scene::{SLACK, ms};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_count_down_whose_answer_is_lost_counts_once,
    a_late_copy_of_a_count_down_does_not_count,
    an_answer_lost_before_the_server_could_not_be_reached_is_made_up_for,
    late_copies_that_may_come_later_than_the_first_change_nothing,
    a_first_copy_that_did_nothing_leaves_it_to_the_second,
    waiters_that_are_left_are_told_though_the_answer_was_lost,
    a_wait_whose_answer_is_lost_is_let_through,
    a_wait_whose_answer_was_lost_takes_no_end_of_its_latch_for_a_count_down,
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

/// What becomes of a call whose first copy has that fault, and all others the other, for longer than `pause`.
async fn in_trouble<T: Send + 'static>(
    env: &Env,
    faults: &Faults,
    script: &'static str,
    (first, others): (Fault, Fault),
    pause: Duration,
    call: impl Future<Output = T> + Send + 'static,
) -> T {
    faults.next(script, [first]);
    faults.always(script, others);
    let start = env.now();
    let done = env.spawn(call);
    env.eventually("the pause", async || env.now() - start > pause).await;
    let copies = faults.answered(script);
    env.eventually("another copy", async || faults.answered(script) > copies).await;
    faults.heal();
    env.soon("the answer", done).await
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
    // The late copy has no effect either after its latch has ended.
    env.eventually("it ends", async || latch.inspect().await.unwrap().remaining.is_none()).await;
    assert!(latch.try_set(2, TTL).await.unwrap());
    faults.send_late().await[0].as_ref().unwrap();
    assert_eq!(latch.count().await.unwrap(), 2);
    end(&env, &latch).await;
}

/// And not reached for longer than the first copy may be executed.
async fn an_answer_lost_before_the_server_could_not_be_reached_is_made_up_for(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.command_timeout(ms(200))).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    let of = || latch.clone();
    for first in [Fault::LoseReply, Fault::LoseRequest] {
        let trouble = (first, Fault::Unreachable);
        let (set, pause) = (of(), ms(400));
        let set = async move { set.try_set(3, TTL).await };
        assert!(in_trouble(&env, &faults, "latch_set", trouble.clone(), pause, set).await.unwrap());
        let counted = of();
        let counted = async move { counted.count_down().await };
        assert_eq!(in_trouble(&env, &faults, "latch_count_down", trouble.clone(), pause, counted).await.unwrap(), 2);
        assert_eq!(other.count_down().await.unwrap(), 1);
        let deleted = of();
        let deleted = async move { deleted.delete().await };
        assert!(in_trouble(&env, &faults, "latch_delete", trouble, pause, deleted).await.unwrap());
        assert_eq!(other.inspect().await.unwrap().remaining, None);
    }
    env.leaves_keys();
}

/// Copies are under way when the answer comes, which the server may execute still; the first one it may not.
async fn late_copies_that_may_come_later_than_the_first_change_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.command_timeout(ms(500))).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    let (of, pause) = (|| latch.clone(), ms(700));
    let trouble = || (Fault::LoseReply, Fault::Late);

    let set = of();
    let set = async move { set.try_set(3, TTL).await };
    assert!(in_trouble(&env, &faults, "latch_set", trouble(), pause, set).await.unwrap());
    for left in [2, 1, 0] {
        assert_eq!(other.count_down().await.unwrap(), left);
    }
    assert!(faults.send_late().await.len() > 1);
    assert_eq!(latch.count().await.unwrap(), 0, "it was not set again");

    assert!(other.try_set(5, TTL).await.unwrap());
    let counted = of();
    let counted = async move { counted.count_down().await };
    assert_eq!(in_trouble(&env, &faults, "latch_count_down", trouble(), pause, counted).await.unwrap(), 4);
    assert_eq!(other.count_down().await.unwrap(), 3);
    assert!(faults.send_late().await.len() > 1);
    assert_eq!(latch.count().await.unwrap(), 3, "it did not count again");

    let deleted = of();
    let deleted = async move { deleted.delete().await };
    assert!(in_trouble(&env, &faults, "latch_delete", trouble(), pause, deleted).await.unwrap());
    assert!(other.try_set(7, TTL).await.unwrap());
    assert!(faults.send_late().await.len() > 1);
    assert_eq!(latch.count().await.unwrap(), 7, "the next one stays");
    end(&env, &latch).await;
}

/// It found no latch, and needs not be remembered: the second copy is.
async fn a_first_copy_that_did_nothing_leaves_it_to_the_second(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    // The latch is set before the second copy arrives, which then counts it down.
    faults.next("latch_count_down", [Fault::LoseReply, Fault::Hang]);
    let counted = env.spawn({
        let latch = latch.clone();
        async move { latch.count_down().await }
    });
    env.eventually("the second copy", async || faults.calls("latch_count_down") == 2).await;
    assert!(other.try_set(3, TTL).await.unwrap());
    faults.release();
    assert_eq!(env.soon("the count", counted).await.unwrap(), 2);
    assert_eq!(other.count().await.unwrap(), 2);
    assert!(other.delete().await.unwrap());
    // The second copy finds no latch. The first copy arrives when there is one.
    faults.next("latch_count_down", [Fault::Late]);
    assert_eq!(latch.count_down().await.unwrap(), 0);
    faults.next("latch_delete", [Fault::Late]);
    assert!(!latch.delete().await.unwrap());
    assert!(other.try_set(3, TTL).await.unwrap());
    faults.next("latch_set", [Fault::Late]);
    assert!(!latch.try_set(9, TTL).await.unwrap());
    for (n, late) in faults.send_late().await.into_iter().enumerate() {
        late.unwrap();
        assert_eq!(other.count().await.unwrap(), 3, "late copy {n}");
    }
    end(&env, &latch).await;
}

async fn waiters_that_are_left_are_told_though_the_answer_was_lost(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(TTL)).await;
    let (latch, waiting) = (client.latch("a"), env.client_with(|config| config.lease(TTL)).await);
    assert!(latch.try_set(1, TTL).await.unwrap());
    let waiters: Vec<_> = (0..1_100).map(|_| waits(&env, &waiting.latch("a"))).collect();
    until_waiting(&env, &latch, 1_100).await;
    // The call that notifies the remaining waiters gets no answer the first time.
    faults.next("latch_count_down", [Fault::LoseReply]);
    faults.next("latch_cancel", [Fault::LoseRequest, Fault::LoseReply]);
    assert_eq!(latch.count_down().await.unwrap(), 0);
    for passed in env.soon("the waiters", join_all(waiters)).await {
        passed.unwrap();
    }
    assert_eq!(faults.calls("latch_count_down"), 2);
    env.eventually("all is told", async || faults.answered("latch_cancel") == 3).await;
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

/// The first copy has waited, and the second one finds no latch.
async fn a_wait_whose_answer_was_lost_takes_no_end_of_its_latch_for_a_count_down(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (latch, other) = (client.latch("a"), env.client().await.latch("a"));
    for is_deleted in [false, true] {
        assert!(other.try_set(1, if is_deleted { TTL } else { ms(700) }).await.unwrap());
        faults.next("latch_wait", [Fault::LoseReply]);
        faults.always("latch_wait", Fault::Unreachable);
        faults.messages(Messages::Swallow);
        let waiter = waits(&env, &latch);
        until_waiting(&env, &other, 1).await;
        if is_deleted {
            assert!(other.delete().await.unwrap());
        }
        env.eventually("it is gone", async || other.inspect().await.unwrap().remaining.is_none()).await;
        faults.heal();
        assert_eq!(env.soon("the waiter", waiter).await.unwrap_err().kind(), ErrorKind::Lost);
    }
    // A request that was not executed has waited for nothing.
    faults.next("latch_wait", [Fault::Unreachable]);
    latch.wait().await.unwrap();
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
        // After the subscription was restored.
        env.eventually("a kill", async || env.redis::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]) > 0).await;
        assert_eq!(other.count_down().await.unwrap(), 0);
        // Long before its next heartbeat is due, because the client asks as soon as the subscription is restored.
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
    // There is no latch, so nothing is counted down.
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
