//! What becomes of a local line when somebody leaves it, a hold is lost, or the client is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Loss};

use crate::line::{Waiting, line, patient, stands};
use crate::support::env::{Env, on_every_server};
use crate::support::polled::poll_once;
use crate::{free_at_once, queued, waiter};

on_every_server! {
    whoever_leaves_the_line_is_passed_over,
    a_turn_that_nobody_looks_at_goes_to_the_next,
    a_leader_that_gives_up_leaves_its_ticket_to_the_next,
    a_leader_that_gives_up_alone_leaves_nothing,
    closing_ends_the_line,
    a_hold_that_is_taken_away_is_not_passed_on,
    a_guard_that_is_kept_when_its_hold_is_lost_keeps_nobody_waiting,
    a_full_queue_is_full_for_those_who_asked;
    a_line_outlives_the_data_of_the_server,
}

async fn whoever_leaves_the_line_is_passed_over(env: Env) {
    let client = patient(&env).await;
    let lock = client.lock("a");
    let (held, mut waiting) = line(&env, &lock, 5).await;
    let token = held.token();
    client.counts.reset();
    // The head, one in the middle, and the tail.
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

async fn a_turn_that_nobody_looks_at_goes_to_the_next(env: Env) {
    // Passed on, and to be released by the next.
    for time in [Duration::from_secs(10), Duration::ZERO] {
        let client = env.client_with(|config| config.line_time(time)).await;
        let lock = client.lock("a");
        let (held, mut waiting) = line(&env, &lock, 2).await;
        held.release().await.unwrap();
        drop(waiting.remove(0));
        let next = env.soon("the next", waiting.remove(0)).await.unwrap();
        // And nobody stands behind the last.
        let last = stands(&lock).await;
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
        let mut leader: Waiting = Box::pin({
            let (lock, timeout) = (lock.clone(), Duration::from_millis(if times_out { 300 } else { 60_000 }));
            async move { lock.lock().non_fair().timeout(timeout).await }
        });
        assert!(poll_once(&mut leader).await.is_none());
        let next = stands(&lock).await;
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
        let next = env.soon("the next in the line", next).await.unwrap();
        queued(&env, &lock, 1).await;
        next.release().await.unwrap();
        env.soon("the next client", behind).await.release().await.unwrap();
        assert_eq!(client.counts.of("lock_cancel"), 0);
    }
}

async fn a_leader_that_gives_up_alone_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let held = other.lock("a").lock().await.unwrap();
    let leader = stands(&client.lock("a")).await;
    let behind = stands(&client.lock("a")).await;
    queued(&env, &client.lock("a"), 1).await;
    drop(behind);
    drop(leader);
    queued(&env, &client.lock("a"), 0).await;
    held.release().await.unwrap();
    free_at_once(&env, &client.lock("a")).await;
}

async fn closing_ends_the_line(env: Env) {
    let client = patient(&env).await;
    let (held, idle) = line(&env, &client.lock("a"), 1).await;
    // These sleep by then, and have to be woken.
    let asleep = Arc::new(AtomicU64::new(0));
    let waiting = (0..3).map(|_| {
        let (lock, asleep) = (client.lock("a"), asleep.clone());
        env.spawn(async move {
            let waiting = stands(&lock).await;
            asleep.fetch_add(1, Ordering::SeqCst);
            waiting.await
        })
    });
    let waiting: Vec<_> = waiting.collect();
    env.eventually("they stand there", async || asleep.load(Ordering::SeqCst) == 3).await;
    env.soon("it closes", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    for waiting in waiting.into_iter().chain(idle) {
        let error = env.soon("the wait ends", waiting).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert_eq!(held.lost().await, Loss::Closed);
    // What was given to somebody and not looked at.
    let client = patient(&env).await;
    let (held, mut waiting) = line(&env, &client.lock("a"), 1).await;
    held.release().await.unwrap();
    env.soon("it closes", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    assert_eq!(waiting.remove(0).await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn a_hold_that_is_taken_away_is_not_passed_on(env: Env) {
    let (client, operator) = (patient(&env).await, env.client().await);
    let (held, mut waiting) = line(&env, &client.lock("a"), 2).await;
    held.release().await.unwrap();
    let second = waiting.remove(0).await.unwrap();
    let between = operator.lock("a").force_release().await.unwrap().expect("it was held");
    assert_eq!(env.soon("the holder is told", second.lost()).await, Loss::Revoked);
    assert!(between > second.token());
    assert_eq!(second.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let third = env.soon("the next one leads anew", waiting.remove(0)).await.unwrap();
    assert!(third.token() > between && third.is_valid());
    third.release().await.unwrap();
}

async fn a_guard_that_is_kept_when_its_hold_is_lost_keeps_nobody_waiting(env: Env) {
    let (client, operator) = (patient(&env).await, env.client().await);
    let (held, mut waiting) = line(&env, &client.lock("a"), 1).await;
    operator.lock("a").force_release().await.unwrap();
    let next = env.soon("the next one", waiting.remove(0)).await.unwrap();
    assert!(!held.is_valid() && next.token() > held.token());
    next.release().await.unwrap();
    env.soon("whoever comes later", client.lock("a").lock().non_fair()).await.unwrap().release().await.unwrap();
    drop(held);
    free_at_once(&env, &client.lock("a")).await;
}

/// Whoever comes first in the line asks for itself, with its own limit.
async fn a_full_queue_is_full_for_those_who_asked(env: Env) {
    let patience = Duration::from_millis(100);
    let (client, other) = (env.client_with(|config| config.patience(patience)).await, env.client().await);
    let lock = client.lock("a");
    let held = lock.lock().non_fair().await.unwrap();
    let mut first: Waiting = Box::pin({
        let lock = lock.clone();
        async move { lock.lock().non_fair().max_waiters(1).await }
    });
    assert!(poll_once(&mut first).await.is_none());
    let second = stands(&lock).await;
    // Longer than the client is patient with a server that does not answer: this one does.
    env.sleep(2 * patience).await;
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

async fn a_line_outlives_the_data_of_the_server(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(900))).await;
    let (held, mut waiting) = line(&env, &client.lock("a"), 1).await;
    let token = held.token();
    let () = env.redis(&["FLUSHALL"]);
    assert_eq!(env.soon("the holder is told", held.lost()).await, Loss::Gone);
    drop(held);
    let next = env.soon("the next one leads anew", waiting.remove(0)).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}
