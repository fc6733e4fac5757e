//! What becomes of the cohort when a future that stands in it is dropped, or not polled.

use std::time::Duration;

use bowline::ErrorKind;

use super::cohort::{cohort, in_cohort, patient, stands};
use super::{free_at_once, queued, waiter};
use crate::lab::Env;
use crate::support::env::on_every_server;

on_every_server! {
    a_member_that_leaves_the_cohort_is_passed_over,
    an_unpolled_turn_goes_to_the_next,
    a_leader_that_gives_up_leaves_its_ticket_to_the_next,
    a_leader_that_gives_up_alone_leaves_nothing,
    closing_ends_an_unpolled_turn,
    a_full_queue_is_full_for_those_who_asked,
}

async fn a_member_that_leaves_the_cohort_is_passed_over(env: Env) {
    let client = patient(&env).await;
    let lock = client.lock("a");
    let (held, mut waiting) = cohort(&env, &client, 5).await;
    let token = held.token();
    client.counts.reset();
    // The first, a middle and the last member.
    for gone in [0, 1, 2] {
        drop(waiting.remove(gone));
    }
    held.release().await.unwrap();
    let mut guards = Vec::new();
    for waiting in waiting {
        let guard = env.soon("those who stay", waiting).await.unwrap();
        guards.push(guard.token().get());
        guard.release().await.unwrap();
    }
    assert_eq!(guards, [token.get() + 1, token.get() + 2]);
    assert_eq!(client.counts.total(), 1, "{:?}", client.counts.all());
    free_at_once(&env, &lock).await;
}

async fn an_unpolled_turn_goes_to_the_next(env: Env) {
    // The hold is handed off in the first case, and released by the next member in the second.
    for time in [Duration::from_secs(10), Duration::ZERO] {
        let client = env.client_with(|config| config.handoff_time(time)).await;
        let lock = client.lock("a");
        let (held, mut waiting) = cohort(&env, &client, 2).await;
        held.release().await.unwrap();
        drop(waiting.remove(0));
        let next = env.soon("the next", waiting.remove(0)).await.unwrap();
        // No member waits behind the last one.
        let last = stands(&env, &client, &lock).await;
        next.release().await.unwrap();
        drop(last);
        env.eventually("nothing is left", async || env.keys().is_empty()).await;
        free_at_once(&env, &lock).await;
    }
}

async fn a_leader_that_gives_up_leaves_its_ticket_to_the_next(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for times_out in [true, false] {
        let lock = client.lock(if times_out { "times out" } else { "dropped" });
        let others = other.lock(if times_out { "times out" } else { "dropped" });
        let held = others.lock().await.unwrap();
        let (leader, timeout) = (lock.clone(), Duration::from_secs(if times_out { 1 } else { 60 }));
        let leader = in_cohort(&env, &client, async move { leader.lock().non_fair().timeout(timeout).await }).await;
        let next = stands(&env, &client, &lock).await;
        queued(&env, &lock, 1).await;
        let behind = waiter(&env, &others).await;
        if times_out {
            let error = env.soon("it gives up", leader).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        } else {
            drop(leader);
        }
        let next = env.spawn(next);
        held.release().await.unwrap();
        let next = env.soon("the next in the cohort", next).await.unwrap();
        queued(&env, &lock, 1).await;
        next.release().await.unwrap();
        env.soon("the next client", behind).await.release().await.unwrap();
        assert_eq!(client.counts.of("lock_cancel"), 0);
    }
}

async fn a_leader_that_gives_up_alone_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("a").lock().await.unwrap();
    let leader = stands(&env, &client, &client.lock("a")).await;
    let behind = stands(&env, &client, &client.lock("a")).await;
    queued(&env, &client.lock("a"), 1).await;
    drop(behind);
    drop(leader);
    queued(&env, &client.lock("a"), 0).await;
    held.release().await.unwrap();
    free_at_once(&env, &client.lock("a")).await;
}

async fn closing_ends_an_unpolled_turn(env: Env) {
    let client = patient(&env).await;
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    held.release().await.unwrap();
    env.soon("it closes", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    assert_eq!(waiting.remove(0).await.unwrap_err().kind(), ErrorKind::Closed);
}

/// The first member of the cohort asks for itself, with its own limit.
async fn a_full_queue_is_full_for_those_who_asked(env: Env) {
    let retry_timeout = Duration::from_millis(100);
    let (client, other) = (env.client_with(|config| config.retry_timeout(retry_timeout)).await, env.client().await);
    let lock = client.lock("a");
    let held = lock.lock().non_fair().await.unwrap();
    let mine = lock.clone();
    let first = in_cohort(&env, &client, async move { mine.lock().non_fair().max_waiters(1).await }).await;
    let second = stands(&env, &client, &lock).await;
    // Longer than the retry timeout, which does not apply because the server answers.
    env.sleep(2 * retry_timeout).await;
    let others = [waiter(&env, &other.lock("a")).await, waiter(&env, &other.lock("a")).await];
    other.lock("a").force_release().await.unwrap();
    let second = env.spawn(second);
    let full = env.soon("its limit is reached", first).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::QueueFull);
    for other in others {
        env.soon("the other client", other).await.release().await.unwrap();
    }
    env.soon("the second has no limit", second).await.unwrap().release().await.unwrap();
    drop(held);
}
