//! What is true of the count-down latch, with futures and through the blocking facade (`lab`).

// Tests that need futures: dropped half-way, or waiting by the thousands.
mod cancel;
mod many;

use std::time::Duration;

use crate::lab::{CountDownLatch, Env, TestClient, on_every_server};
use crate::support::env::Env as AsyncEnv;
use bowline::{ErrorKind, MAX_LATCH_COUNT, MAX_LATCH_TTL};
use futures::future::{BoxFuture, join_all};

on_every_server! {
    everybody_who_waits_is_let_through_at_zero_by_one_command,
    an_open_or_missing_latch_does_not_block,
    set_once_and_again_when_it_is_open,
    counting_down_below_zero_changes_nothing,
    counting_down_what_does_not_exist_leaves_nothing,
    bad_numbers_are_errors_and_nothing_is_sent,
    a_timeout_is_kept_and_leaves_nothing,
    waiters_of_a_deleted_latch_are_notified_and_fail,
    waiters_of_an_expired_latch_fail,
    many_count_down_at_the_same_time,
    closing_the_client_ends_the_wait,
    an_uncontended_use_is_one_command_each;
    a_thousand_waiters_of_several_clients,
}

const LONG: Duration = Duration::from_secs(20);
pub(crate) const TTL: Duration = Duration::from_secs(3600);

pub(crate) async fn waiting(env: &AsyncEnv, latch: &(impl Clone + Into<CountDownLatch>), waiters: u64) {
    let latch: CountDownLatch = latch.clone().into();
    env.eventually(&format!("{waiters} wait"), async || latch.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits, once that is known.
pub(crate) async fn waiter(
    env: &AsyncEnv,
    latch: &(impl Clone + Into<CountDownLatch>),
) -> BoxFuture<'static, bowline::Result<()>> {
    let latch: CountDownLatch = latch.clone().into();
    let waiters = latch.inspect().await.unwrap().waiters;
    let passed = env.spawn({
        let latch = latch.clone();
        async move { latch.wait().timeout(LONG).await }
    });
    waiting(env, &latch, waiters + 1).await;
    passed
}

/// Ends the latch, which would live on. What remembers the calls goes by itself, when no copies of them can come.
pub(crate) async fn end(env: &AsyncEnv, latch: &(impl Clone + Into<CountDownLatch>)) {
    let latch: CountDownLatch = latch.clone().into();
    latch.delete().await.unwrap();
    env.eventually("no waiter is left", async || env.keys().iter().all(|key| key == "bowline:latch:{a}:calls")).await;
    env.leaves_keys();
}

async fn everybody_who_waits_is_let_through_at_zero_by_one_command(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let (one, other) = (a.latch("a"), b.latch("a"));
    assert!(one.try_set(2, TTL).await.unwrap());
    let waiters = [waiter(&env, &one).await, waiter(&env, &other).await, waiter(&env, &other).await];
    assert_eq!(other.count_down().await.unwrap(), 1);
    let seen = one.inspect().await.unwrap();
    assert_eq!((seen.count, seen.waiters), (1, 3));
    assert!(seen.remaining.is_some_and(|left| left <= TTL && left > TTL - LONG));
    a.counts.reset();
    b.counts.reset();
    assert_eq!(one.count_down().await.unwrap(), 0);
    for passed in env.soon("all of them", join_all(waiters)).await {
        passed.unwrap();
    }
    assert_eq!((a.counts.total(), b.counts.total()), (1, 0), "{:?} {:?}", a.counts.all(), b.counts.all());
    end(&env, &one).await;
}

async fn an_open_or_missing_latch_does_not_block(env: Env) {
    let latch = env.client().await.latch("a");
    env.soon("no latch", latch.wait()).await.unwrap();
    assert_eq!(latch.inspect().await.unwrap().remaining, None);
    assert!(latch.try_set(1, TTL).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), 0);
    env.soon("an open latch", latch.wait()).await.unwrap();
    end(&env, &latch).await;
}

async fn set_once_and_again_when_it_is_open(env: Env) {
    let (a, b) = (env.client().await.latch("a"), env.client().await.latch("a"));
    assert!(a.try_set(1, TTL).await.unwrap());
    assert!(!b.try_set(5, TTL).await.unwrap());
    assert_eq!(b.count().await.unwrap(), 1);
    assert_eq!(a.count_down().await.unwrap(), 0);
    assert!(b.try_set(2, TTL).await.unwrap());
    let passed = waiter(&env, &a).await;
    assert_eq!(a.count_down().await.unwrap(), 1);
    assert_eq!(b.count_down().await.unwrap(), 0);
    env.soon("through", passed).await.unwrap();
    assert!(a.delete().await.unwrap());
    assert!(!a.delete().await.unwrap());
    assert!(a.try_set(1, TTL).await.unwrap());
    end(&env, &a).await;
}

async fn counting_down_below_zero_changes_nothing(env: Env) {
    let latch = env.client().await.latch("a");
    assert_eq!(latch.count_down().await.unwrap(), 0);
    assert!(latch.try_set(1, TTL).await.unwrap());
    for _ in 0..3 {
        assert_eq!(latch.count_down().await.unwrap(), 0);
    }
    assert_eq!(latch.count().await.unwrap(), 0);
    end(&env, &latch).await;
}

async fn counting_down_what_does_not_exist_leaves_nothing(env: Env) {
    let latch = env.client().await.latch("a");
    for _ in 0..20 {
        assert_eq!(latch.count_down().await.unwrap(), 0);
    }
    assert!(!latch.delete().await.unwrap());
    assert_eq!(env.keys(), [""; 0]);
}

async fn bad_numbers_are_errors_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    let latch = client.latch("a");
    let invalid = ErrorKind::InvalidInput;
    for count in [0, MAX_LATCH_COUNT + 1] {
        assert_eq!(latch.try_set(count, TTL).await.unwrap_err().kind(), invalid);
    }
    for ttl in [Duration::ZERO, Duration::from_millis(99), MAX_LATCH_TTL + Duration::from_millis(1), Duration::MAX] {
        assert_eq!(latch.try_set(1, ttl).await.unwrap_err().kind(), invalid);
    }
    assert_eq!(latch.wait().timeout(Duration::ZERO).await.unwrap_err().kind(), invalid);
    assert_eq!(client.latch("").count_down().await.unwrap_err().kind(), invalid);
    assert_eq!(client.counts.total(), 0);
}

async fn a_timeout_is_kept_and_leaves_nothing(env: Env) {
    let latch = env.client().await.latch("a");
    latch.try_set(1, TTL).await.unwrap();
    let error = latch.wait().timeout(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    waiting(&env, &latch, 0).await;
    end(&env, &latch).await;
}

async fn waiters_of_a_deleted_latch_are_notified_and_fail(env: Env) {
    let (a, b) = (env.client().await.latch("a"), env.client().await.latch("a"));
    a.try_set(1, TTL).await.unwrap();
    let waiters = [waiter(&env, &a).await, waiter(&env, &b).await];
    end(&env, &a).await;
    for told in env.soon("told", join_all(waiters)).await {
        let error = told.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    }
}

/// A client of which no copy of a request comes more than a second after the first.
async fn impatient(env: &Env) -> TestClient {
    let soon = Duration::from_millis(500);
    env.client_with(|config| config.command_timeout(soon).retry_timeout(soon)).await
}

async fn waiters_of_an_expired_latch_fail(env: Env) {
    let latch = impatient(&env).await.latch("a");
    latch.try_set(1, Duration::from_millis(300)).await.unwrap();
    let error = env.soon("told", latch.wait()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    env.soon("gone, and open", latch.wait()).await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn many_count_down_at_the_same_time(env: Env) {
    const COUNT: u32 = 60;
    let clients = [env.client().await, env.client().await, env.client().await];
    let latch = clients[0].latch("a");
    latch.try_set(COUNT, TTL).await.unwrap();
    let passed = waiter(&env, &latch).await;
    let counts = join_all((0..COUNT as usize).map(|n| {
        let latch = clients[n % 3].latch("a");
        async move { latch.count_down().await.unwrap() }
    }));
    let mut counts = counts.await;
    counts.sort_unstable();
    assert_eq!(counts, (0..u64::from(COUNT)).collect::<Vec<_>>(), "each counts once");
    env.soon("through", passed).await.unwrap();
    end(&env, &latch).await;
}

async fn closing_the_client_ends_the_wait(env: Env) {
    let (client, other) = (env.client().await, env.client().await.latch("a"));
    other.try_set(1, TTL).await.unwrap();
    let told = waiter(&env, &client.latch("a")).await;
    client.close().await;
    assert_eq!(env.soon("told", told).await.unwrap_err().kind(), ErrorKind::Closed);
    waiting(&env, &other, 0).await;
    assert_eq!(client.latch("a").count_down().await.unwrap_err().kind(), ErrorKind::Closed);
    end(&env, &other).await;
}

async fn an_uncontended_use_is_one_command_each(env: Env) {
    let client = impatient(&env).await;
    let latch = client.latch("a");
    latch.try_set(1, TTL).await.unwrap();
    latch.count_down().await.unwrap();
    latch.wait().await.unwrap();
    latch.delete().await.unwrap();
    assert_eq!(client.counts.total(), 4, "{:?}", client.counts.all());
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn a_thousand_waiters_of_several_clients(env: Env) {
    let clients = [env.client().await, env.client().await, env.client().await, env.client().await];
    let latch = clients[0].latch("a");
    latch.try_set(1, TTL).await.unwrap();
    let mut waiters = Vec::new();
    for n in 0..1_000 {
        let latch = clients[n % 4].latch("a");
        waiters.push(env.spawn(async move { latch.wait().timeout(LONG).await.unwrap() }));
    }
    waiting(&env, &latch, 1_000).await;
    for client in &clients {
        client.counts.reset();
    }
    latch.count_down().await.unwrap();
    env.soon("all of them", join_all(waiters)).await;
    assert_eq!(clients.iter().map(|client| client.counts.total()).sum::<u64>(), 1, "woken by one command");
    end(&env, &latch).await;
}
