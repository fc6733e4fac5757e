//! Barriers whose requests, answers, messages, connections and data get lost, and parties that are gone.

use std::future::IntoFuture;

use bowline::{Barrier, BarrierPass, Client, ErrorKind};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::{SLACK, drop_when, ms};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_party_arrives_once_whatever_gets_lost,
    an_answer_that_was_lost_is_given_again,
    a_late_copy_of_an_arrival_does_not_arrive,
    a_late_copy_of_a_refused_arrival_does_not_arrive,
    a_party_that_never_hears_of_its_arrival_leaves,
    a_wait_that_is_dropped_before_its_answer_leaves,
    a_lost_message_is_made_up_for,
    parties_are_let_through_while_their_subscriptions_are_killed,
    a_party_that_is_cut_off_breaks_the_generation,
    a_reset_breaks_one_generation_whatever_gets_lost,
    a_reset_without_any_answer_fails,
    a_restart_without_data_is_told,
    a_script_flush_is_not_noticed,
    a_party_comes_again_when_the_server_knows_that_it_has_left,
    a_party_that_never_arrived_has_nothing_to_leave,
    a_party_waits_for_longer_than_its_lease_until_it_has_left,
    a_party_that_waits_until_it_has_left_is_told_that_its_client_closes,
    a_party_waits_for_no_clean_up_of_another_name,
}

const LOST: [Fault; 3] = [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable];

type Waiting = BoxFuture<'static, bowline::Result<BarrierPass>>;

fn waits(env: &Env, barrier: &Barrier) -> Waiting {
    env.spawn(barrier.wait().timeout(ms(20_000)).into_future())
}

async fn until_waiting(env: &Env, barrier: &Barrier, waiters: u64) {
    env.eventually(&format!("{waiters} wait"), async || barrier.inspect().await.unwrap().waiters == waiters).await;
}

/// As many as are missing arrive, and all pass.
async fn all_pass(env: &Env, client: &Client, parties: u32, waiting: Vec<Waiting>) {
    let barrier = client.barrier("a", parties);
    until_waiting(env, &barrier, waiting.len() as u64).await;
    let missing = (waiting.len()..parties as usize).map(|_| waits(env, &barrier));
    let all: Vec<Waiting> = missing.chain(waiting).collect();
    let mut places: Vec<u32> = Vec::new();
    for passed in env.soon("all pass", join_all(all)).await {
        places.push(passed.unwrap().index());
    }
    places.sort_unstable();
    assert!(places.into_iter().eq(0..parties));
    until_waiting(env, &barrier, 0).await;
}

async fn a_party_arrives_once_whatever_gets_lost(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let other = env.client().await;
    for fault in LOST {
        let calls = faults.answered("barrier_arrive");
        faults.next("barrier_arrive", [fault.clone(), fault]);
        let waiting = waits(&env, &client.barrier("a", 3));
        env.eventually("it knows", async || faults.answered("barrier_arrive") == calls + 3).await;
        all_pass(&env, &other, 3, vec![waiting]).await;
    }
}

/// That of the last party, which nobody else tells it.
async fn an_answer_that_was_lost_is_given_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let other = env.client().await.barrier("a", 2);
    for fault in LOST {
        let first = waits(&env, &other);
        until_waiting(&env, &other, 1).await;
        faults.next("barrier_arrive", [fault]);
        let last = env.soon("the last one", client.barrier("a", 2).wait().into_future()).await.unwrap();
        let first = env.soon("the first one", first).await.unwrap();
        assert!(last.is_leader() && last.generation() == first.generation());
    }
}

/// Its party passes by the second copy, and the next generation waits when the first one comes.
async fn a_late_copy_of_an_arrival_does_not_arrive(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (barrier, other) = (client.barrier("a", 2), env.client().await);
    faults.next("barrier_arrive", [Fault::Late]);
    let waiting = waits(&env, &barrier);
    all_pass(&env, &other, 2, vec![waiting]).await;
    let next = waits(&env, &other.barrier("a", 2));
    until_waiting(&env, &barrier, 1).await;
    faults.send_late().await[0].as_ref().unwrap();
    all_pass(&env, &other, 2, vec![next]).await;
}

/// The second copy was told that others are of another number. The first one comes when nobody waits.
async fn a_late_copy_of_a_refused_arrival_does_not_arrive(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let other = env.client().await;
    let waiting = waits(&env, &other.barrier("a", 2));
    until_waiting(&env, &other.barrier("a", 2), 1).await;
    faults.next("barrier_arrive", [Fault::Late]);
    let error = client.barrier("a", 3).wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherParties, "{error:#}");
    env.eventually("it has left", async || faults.answered("barrier_cancel") == 1).await;
    all_pass(&env, &other, 2, vec![waiting]).await;
    faults.send_late().await[0].as_ref().unwrap();
    until_waiting(&env, &other.barrier("a", 2), 0).await;
}

async fn a_party_that_never_hears_of_its_arrival_leaves(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let other = env.client().await.barrier("a", 3);
    let waiting = waits(&env, &other);
    until_waiting(&env, &other, 1).await;
    faults.always("barrier_arrive", Fault::LoseReply);
    let error = client.barrier("a", 3).wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
    let error = env.soon("the other is told", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broken, "{error:#}");
    until_waiting(&env, &other, 0).await;
}

async fn a_wait_that_is_dropped_before_its_answer_leaves(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (barrier, other) = (client.barrier("a", 3), env.client().await);
    let waiting = waits(&env, &other.barrier("a", 3));
    until_waiting(&env, &barrier, 1).await;
    faults.next("barrier_arrive", [Fault::HangReply]);
    let has_arrived = async || other.barrier("a", 3).inspect().await.unwrap().waiters == 2;
    drop_when(&env, "it has arrived", barrier.wait().into_future(), has_arrived).await;
    let error = env.soon("the other is told", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broken, "{error:#}");
    // A copy that comes after it has left finds that.
    faults.next("barrier_arrive", [Fault::Late]);
    faults.next("barrier_arrive", [Fault::Hang]);
    let asked = async || faults.calls("barrier_arrive") == 3;
    drop_when(&env, "it has asked", barrier.wait().into_future(), asked).await;
    env.eventually("it has left", async || faults.answered("barrier_cancel") == 2).await;
    faults.send_late().await[0].as_ref().unwrap();
    faults.release();
    all_pass(&env, &other, 3, Vec::new()).await;
}

async fn a_lost_message_is_made_up_for(env: Env) {
    // A third of it, and the slack, are less than the lease.
    let lease = ms(9000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    let (barrier, other) = (client.barrier("a", 2), env.client().await);
    faults.messages(Messages::Swallow);
    for passes in [true, false] {
        let waiting = waits(&env, &barrier);
        until_waiting(&env, &barrier, 1).await;
        let start = env.now();
        if passes {
            env.soon("the last one", waits(&env, &other.barrier("a", 2))).await.unwrap();
        } else {
            assert!(other.barrier("a", 2).reset().await.unwrap());
        }
        let told = env.soon("it asks", waiting).await;
        assert_eq!(told.map_err(|error| error.kind()).err(), (!passes).then_some(ErrorKind::Broken));
        assert!(env.now() - start < lease / 3 + SLACK);
    }
    assert_eq!(faults.swallowed(), 2);
}

async fn parties_are_let_through_while_their_subscriptions_are_killed(env: Env) {
    let (client, other) = (env.client().await, env.client().await.barrier("a", 3));
    for _ in 0..5 {
        let waiting = [waits(&env, &client.barrier("a", 3)), waits(&env, &client.barrier("a", 3))];
        until_waiting(&env, &other, 2).await;
        // After the subscription was restored.
        env.eventually("a kill", async || env.redis::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]) > 0).await;
        other.wait().await.unwrap();
        // Long before its next heartbeat is due, because the client asks as soon as the subscription is restored.
        let start = env.now();
        for passed in env.soon("the others", join_all(waiting)).await {
            passed.unwrap();
        }
        assert!(env.now() - start < ms(5000), "{:?}", env.now() - start);
    }
}

/// Its lease ends, which the others find out by themselves. Then it can reach the server again, and is told the same.
async fn a_party_that_is_cut_off_breaks_the_generation(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let other = env.client_with(|config| config.lease(ms(1500))).await;
    let waiting = waits(&env, &other.barrier("a", 3));
    let cut_off = waits(&env, &client.barrier("a", 3));
    until_waiting(&env, &other.barrier("a", 3), 2).await;
    faults.always("barrier_heartbeat", Fault::Unreachable);
    let error = env.soon("it finds out", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broken, "{error:#}");
    assert!(error.to_string().contains("the lease of a party has ended"), "{error:#}");
    faults.heal();
    assert_eq!(env.soon("it is told", cut_off).await.unwrap_err().kind(), ErrorKind::Broken);
    all_pass(&env, &other, 3, Vec::new()).await;
}

async fn a_reset_breaks_one_generation_whatever_gets_lost(env: Env) {
    let (operator, faults) = faulty_client(&env, |config| config).await;
    let (operator, other) = (operator.barrier("a", 2), env.client().await);
    for fault in LOST {
        let waiting = waits(&env, &other.barrier("a", 2));
        until_waiting(&env, &operator, 1).await;
        let calls = faults.calls("barrier_reset");
        faults.next("barrier_reset", [fault]);
        assert!(operator.reset().await.unwrap());
        assert_eq!(faults.calls("barrier_reset"), calls + 2);
        assert_eq!(env.soon("it is told", waiting).await.unwrap_err().kind(), ErrorKind::Broken);
    }
    // Copies that come when the next generation waits.
    let waiting = waits(&env, &other.barrier("a", 2));
    until_waiting(&env, &operator, 1).await;
    faults.next("barrier_reset", [Fault::Late]);
    assert!(operator.reset().await.unwrap());
    assert_eq!(env.soon("it is told", waiting).await.unwrap_err().kind(), ErrorKind::Broken);
    faults.next("barrier_reset", [Fault::Late]);
    assert!(!operator.reset().await.unwrap());
    let waiting = waits(&env, &other.barrier("a", 2));
    until_waiting(&env, &operator, 1).await;
    for late in faults.send_late().await {
        late.unwrap();
    }
    all_pass(&env, &other, 2, vec![waiting]).await;
}

async fn a_reset_without_any_answer_fails(env: Env) {
    let (operator, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    faults.always("barrier_reset", Fault::LoseReply);
    let error = operator.barrier("a", 2).reset().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, "reset"), "{error:#}");
}

async fn a_restart_without_data_is_told(env: Env) {
    let client = env.client().await;
    let barrier = client.barrier("a", 3);
    let waiting = [waits(&env, &barrier), waits(&env, &barrier)];
    until_waiting(&env, &barrier, 2).await;
    env.server().restart();
    for told in env.soon("they are told", join_all(waiting)).await {
        assert_eq!(told.unwrap_err().kind(), ErrorKind::Lost);
    }
    all_pass(&env, &client, 3, Vec::new()).await;
}

async fn a_script_flush_is_not_noticed(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 2), env.client().await.barrier("a", 2));
    let flush = || env.redis::<()>(&["SCRIPT", "FLUSH"]);
    flush();
    let waiting = waits(&env, &a);
    until_waiting(&env, &b, 1).await;
    flush();
    b.wait().await.unwrap();
    env.soon("the other", waiting).await.unwrap();
    flush();
    assert!(!a.reset().await.unwrap());
}

async fn a_party_comes_again_when_the_server_knows_that_it_has_left(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let barrier = client.barrier("a", 2);
    let waited = async |time| barrier.wait().timeout(ms(time)).await.unwrap_err();
    faults.always("barrier_cancel", Fault::Unreachable);
    assert_eq!(waited(50).await.kind(), ErrorKind::TimedOut);
    let arrived = faults.calls("barrier_arrive");
    let error = waited(20_000).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("has left"), "{error}");
    assert_eq!(waited(50).await.kind(), ErrorKind::TimedOut);
    assert_eq!(faults.calls("barrier_arrive"), arrived, "it has not arrived");
    // Another name has nothing to do with it, and the party waits for no other clean-up.
    assert_eq!(client.barrier("b", 2).wait().timeout(ms(50)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(faults.calls("barrier_arrive") > arrived);
    faults.heal();
    until_waiting(&env, &barrier, 0).await;
    let waiting = waits(&env, &barrier);
    until_waiting(&env, &barrier, 1).await;
    env.client().await.barrier("a", 2).wait().await.unwrap();
    env.soon("the other", waiting).await.unwrap();
}

async fn a_party_that_never_arrived_has_nothing_to_leave(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let barrier = client.barrier("a", 2);
    for (fault, cancels) in [(Fault::Unreachable, 0), (Fault::LoseRequest, 1)] {
        let before = faults.calls("barrier_cancel");
        faults.always("barrier_arrive", fault.clone());
        assert_eq!(barrier.wait().await.unwrap_err().kind(), ErrorKind::Unavailable);
        faults.heal();
        // The next wait arrives after all clean-ups of the name.
        let mut next = barrier.wait().into_future();
        env.eventually("the next one waits", async || {
            assert!((&mut next).now_or_never().is_none());
            barrier.inspect().await.unwrap().waiters == 1
        })
        .await;
        assert_eq!(faults.calls("barrier_cancel") - before, cancels, "{fault:?}");
        drop(next);
        until_waiting(&env, &barrier, 0).await;
    }
}

/// Its ticket has ended by then, if the server executes no heartbeat late.
async fn a_party_waits_for_longer_than_its_lease_until_it_has_left(env: Env) {
    let configure = |config: bowline::ConfigBuilder| config.lease(ms(300)).retry_timeout(ms(1500));
    let (client, faults) = faulty_client(&env, configure).await;
    let barrier = client.barrier("a", 2);
    faults.always("barrier_cancel", Fault::Unreachable);
    assert_eq!(barrier.wait().timeout(ms(50)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    let arrived = faults.calls("barrier_arrive");
    assert_eq!(barrier.wait().timeout(ms(20_000)).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(faults.calls("barrier_arrive"), arrived, "it has not arrived");
    // A client that is closed does not wait for the answer.
    env.soon("close", client.close()).await;
    env.redis::<()>(&["DEL", "bowline:barrier:{a}:tickets"]);
}

async fn a_party_that_waits_until_it_has_left_is_told_that_its_client_closes(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let barrier = client.barrier("a", 2);
    faults.always("barrier_cancel", Fault::Unreachable);
    assert_eq!(barrier.wait().timeout(ms(50)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    let waiting = waits(&env, &barrier);
    env.sleep(ms(50)).await;
    let closing = env.spawn({
        let client = client.clone();
        async move { client.close().await }
    });
    let kind = env.soon("it is told", waiting).await.unwrap_err().kind();
    assert_eq!((kind, faults.calls("barrier_arrive")), (ErrorKind::Closed, 1));
    assert_eq!(barrier.wait().await.unwrap_err().kind(), ErrorKind::Closed);
    faults.heal();
    env.soon("the close", closing).await;
}

/// The release of a lock hangs in the background.
async fn a_party_waits_for_no_clean_up_of_another_name(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (barrier, guard) = (client.barrier("a", 2), client.lock("b").lock().await.unwrap());
    faults.next("lock_release", [Fault::Hang]);
    faults.next("lock_cancel", [Fault::Hang]);
    drop(guard);
    env.eventually("it hangs", async || faults.calls("lock_release") + faults.calls("lock_cancel") == 1).await;
    for arrived in 1..=3 {
        assert_eq!(barrier.wait().timeout(ms(300)).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(faults.calls("barrier_arrive"), arrived);
    }
    faults.release();
}
