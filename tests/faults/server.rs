//! A server that pauses, stops, starts again, forgets, or is gone.

use bowline::{ErrorKind, Loss};
use futures::future::join_all;

use crate::scene::{
    SLACK, acquiring, assert_holds, contended, fence, hand_over, is_free, key, ms, pass, stored_token, until_free,
    until_waiting,
};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_script_flush_at_any_time_is_not_noticed,
    a_pause_shorter_than_the_lease_loses_nothing,
    a_stop_shorter_than_the_lease_loses_nothing,
    a_stop_longer_than_the_lease_is_told,
    holds_and_tickets_survive_a_restart_with_aof,
    a_restart_without_data_is_told_and_waiters_are_served,
    flushall_is_told_and_waiters_are_served,
    a_server_that_is_gone_is_a_typed_error_everywhere,
    clients_of_a_server_that_is_gone_leave_no_task,
}

async fn a_script_flush_at_any_time_is_not_noticed(env: Env) {
    let clients = [env.client_with(|config| config.lease(ms(2400))).await, env.client().await];
    let kept = clients[0].lock("kept").lock().await.unwrap();
    let mut tasks = Vec::new();
    for n in 0..6 {
        let lock = clients[n % 2].lock("a");
        tasks.push(env.spawn(async move {
            for _ in 0..15 {
                lock.lock().await.unwrap().release().await.unwrap();
            }
        }));
    }
    let mut work = std::pin::pin!(join_all(tasks));
    let mut flushes = 0;
    loop {
        env.redis::<()>(&["SCRIPT", "FLUSH"]);
        flushes += 1;
        match futures::future::select(work, std::pin::pin!(env.sleep(ms(3)))).await {
            futures::future::Either::Left(_) => break,
            futures::future::Either::Right(((), rest)) => work = rest,
        }
    }
    assert!(flushes >= 3, "too fast to be disturbed: {flushes}");
    let renewals = clients[0].counts.of("lock_renew");
    env.redis::<()>(&["SCRIPT", "FLUSH"]);
    env.eventually("a renewal", async || clients[0].counts.of("lock_renew") > renewals).await;
    assert_holds(&env, &kept);
    kept.release().await.unwrap();
}

async fn a_pause_shorter_than_the_lease_loses_nothing(env: Env) {
    let client = env.client_with(|config| config.lease(ms(2500))).await;
    let other = env.client().await;
    let (guard, waiter) = contended(&env, &client, &other).await;
    env.redis::<()>(&["CLIENT", "PAUSE", "1000", "ALL"]);
    // Answered after the pause.
    let start = env.now();
    assert!(client.lock("b").try_lock().await.unwrap().is_some());
    assert!(env.now() - start >= ms(500), "it was not paused");
    assert_holds(&env, &guard);
    hand_over(&env, guard, waiter).await;
}

async fn a_stop_shorter_than_the_lease_loses_nothing(env: Env) {
    let client = env.client_with(|config| config.lease(ms(5000)).command_timeout(ms(500))).await;
    let guard = client.lock("a").lock().await.unwrap();
    env.server().pause();
    // Long enough for calls to reach their deadline.
    let lock = client.lock("b");
    let acquired = env.spawn(async move { lock.lock().await });
    env.sleep(ms(1100)).await;
    assert!(guard.is_valid());
    env.server().resume();
    env.soon("the other lock", acquired).await.unwrap().release().await.unwrap();
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

async fn a_stop_longer_than_the_lease_is_told(env: Env) {
    let settings = |config: bowline::ConfigBuilder| config.lease(ms(1000)).command_timeout(ms(500));
    let (client, other) = (env.client_with(settings).await, env.client_with(settings).await);
    let (guard, waiter) = contended(&env, &client, &other).await;
    env.server().pause();
    let start = env.now();
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Expired);
    assert!(env.now() - start < ms(1000) + SLACK);
    assert!(!guard.is_valid());
    env.server().resume();
    let next = env.soon("the waiter", waiter).await.unwrap();
    assert!(next.token() > guard.token());
    // The bytes that were left in the server's buffers do not disturb it.
    let renewals = other.counts.of("lock_renew");
    env.eventually("renewals", async || other.counts.of("lock_renew") > renewals).await;
    assert_holds(&env, &next);
    next.release().await.unwrap();
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn holds_and_tickets_survive_a_restart_with_aof(env: Env) {
    let env = env.with_server_args(&["--appendonly", "yes", "--appendfsync", "always"]);
    let client = env.client_with(|config| config.lease(ms(4000))).await;
    let other = env.client().await;
    let (guard, waiter) = contended(&env, &client, &other).await;
    env.server().restart();
    assert!(guard.is_valid());
    let before = env.now() + guard.remaining();
    env.eventually("renewals go on", async || env.now() + guard.remaining() > before + ms(10)).await;
    assert_holds(&env, &guard);
    hand_over(&env, guard, waiter).await;
}

async fn a_restart_without_data_is_told_and_waiters_are_served(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let guard = client.lock("a").lock().await.unwrap();
    let waiters = [acquiring(&env, &other, "a"), acquiring(&env, &other, "a")];
    until_waiting(&env, "a", 2).await;
    env.server().restart();
    let start = env.now();
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Gone);
    // Asked as soon as the connection was restored, and not when the next renewal was due.
    assert!(env.now() - start < ms(5000), "{:?}", env.now() - start);
    assert!(!guard.is_valid());
    let (first, _, mut rest) = env.soon("the first waiter", futures::future::select_all(waiters)).await;
    let first = first.unwrap();
    assert!(first.token() > guard.token());
    first.release().await.unwrap();
    let second = env.soon("the second waiter", rest.remove(0)).await.unwrap();
    assert!(fence(&env, "a") >= Some(second.token().get()));
    second.release().await.unwrap();
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn flushall_is_told_and_waiters_are_served(env: Env) {
    let lease = ms(2400);
    let client = env.client_with(|config| config.lease(lease)).await;
    let other = env.client_with(|config| config.lease(lease)).await;
    let guard = client.lock("a").lock().await.unwrap();
    let waiters = [acquiring(&env, &other, "a"), acquiring(&env, &other, "a")];
    until_waiting(&env, "a", 2).await;
    env.redis::<()>(&["FLUSHALL"]);
    let start = env.now();
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Gone);
    let took = env.now() - start;
    assert!(took < lease / 3 + SLACK, "{took:?}");
    let mut last = guard.token();
    let (first, _, mut rest) = env.soon("the first waiter", futures::future::select_all(waiters)).await;
    let first = first.unwrap();
    assert!(first.token() > last);
    last = first.token();
    first.release().await.unwrap();
    let second = env.soon("the second waiter", rest.remove(0)).await.unwrap();
    assert!(second.token() > last);
    assert_eq!(stored_token(&env, "a"), Some(second.token().get()));
    second.release().await.unwrap();
    assert!(pass(&env, &client, "a").await > last);
    drop(guard);
    until_free(&env, "a").await;
}

async fn a_server_that_is_gone_is_a_typed_error_everywhere(env: Env) {
    env.leaves_keys();
    let (lease, retry_timeout, timeout) = (ms(1500), ms(400), ms(500));
    let settings =
        |config: bowline::ConfigBuilder| config.lease(lease).retry_timeout(retry_timeout).command_timeout(timeout);
    let client = env.client_with(settings).await;
    let other = env.client_with(settings).await;
    let (held, released) = (client.lock("held").lock().await.unwrap(), client.lock("released").lock().await.unwrap());
    let (in_the_way, waiter) = contended(&env, &client, &other).await;
    env.server().kill();
    let start = env.now();
    let free = client.lock("free");
    let (waited, locked, tried, limited, inspected, given_back, loss) = futures::join!(
        waiter,
        free.lock().into_future(),
        free.try_lock().into_future(),
        free.lock().timeout(ms(100)).into_future(),
        free.inspect(),
        released.release(),
        env.soon("the loss", held.lost()),
    );
    let took = env.now() - start;
    // The waiter's next heartbeat is due after a third of its lease.
    assert!(took < lease + retry_timeout + timeout + SLACK, "{took:?}");
    for error in [waited.err(), locked.err(), tried.err(), inspected.err(), given_back.err()] {
        assert_eq!(error.expect("no answer").kind(), ErrorKind::Unavailable);
    }
    assert_eq!(limited.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(loss, Loss::Expired);
    assert_eq!(env.soon("the other loss", in_the_way.lost()).await, Loss::Expired);

    let start = env.now();
    client.close().await;
    assert!(env.now() - start < retry_timeout + SLACK);
    assert_eq!(free.lock().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(client.lock("new").try_lock().await.unwrap_err().kind(), ErrorKind::Closed);
}

/// Neither closed nor released: everything is just dropped, a waiting future too.
async fn clients_of_a_server_that_is_gone_leave_no_task(env: Env) {
    env.leaves_keys();
    let client = env.client_with(|config| config.lease(ms(1000)).command_timeout(ms(500))).await;
    let lock = client.lock("a");
    let guard = lock.lock().await.unwrap();
    crate::scene::drop_when(&env, "it waits", lock.lock(), async || {
        if env.server().pid().is_some() && !is_free(&env, "a") {
            let queue: u64 = env.redis(&["LLEN", &format!("{}:queue", key("a"))]);
            if queue == 1 {
                env.server().kill();
            }
        }
        env.server().pid().is_none()
    })
    .await;
    drop(guard);
}
