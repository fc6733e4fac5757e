//! What is true of the double barrier, with futures and through the blocking facade (`lab`).

// Tests that need futures: dropped half way.
mod cancel;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::{Access, ErrorKind, MAX_BARRIER_PARTIES, PrimitiveKind};
use futures::future::{BoxFuture, join_all};

use crate::lab::{DoubleBarrier, Env, Inside, on_every_server};
use crate::support::env::Env as AsyncEnv;

on_every_server! {
    all_enter_together_and_leave_together,
    a_double_barrier_serves_generation_after_generation,
    a_party_is_three_commands,
    one_party_never_waits,
    a_party_dropped_inside_breaks_it_for_all,
    a_timeout_of_who_enters_breaks_the_generation,
    a_timeout_of_who_leaves_breaks_the_generation,
    a_client_that_closes_breaks_the_generation,
    an_operator_breaks_the_generation,
    parties_that_do_not_belong_are_refused,
    bad_arguments_are_errors_and_nothing_is_sent,
    who_is_there_is_seen;
    a_lease_that_ends_inside_breaks_the_generation,
    a_party_whose_word_is_lost_says_it_again,
}

pub(crate) const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

type Entering = BoxFuture<'static, bowline::Result<Inside>>;

async fn present(env: &AsyncEnv, barrier: &DoubleBarrier, parties: u64) {
    let there = async || barrier.inspect().await.unwrap().present == parties;
    env.eventually(&format!("{parties} are there"), there).await;
}

/// A task that enters, once it waits for the others.
async fn entering(env: &AsyncEnv, barrier: &DoubleBarrier) -> Entering {
    let before = barrier.inspect().await.unwrap().entering;
    let entered = env.spawn(barrier.enter(LONG));
    env.eventually("it waits", async || barrier.inspect().await.unwrap().entering == before + 1).await;
    entered
}

/// Both enter.
async fn two_inside(env: &Env, [one, other]: [&DoubleBarrier; 2]) -> [Inside; 2] {
    let first = entering(env, one).await;
    let second = env.soon("the second one", other.enter(LONG)).await.unwrap();
    [env.soon("the first one", first).await.unwrap(), second]
}

async fn all_enter_together_and_leave_together(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 3), env.client().await.double_barrier("a", 3));
    let waiters = [entering(&env, &a).await, entering(&env, &b).await];
    let last = env.soon("the last one", b.enter(LONG)).await.unwrap();
    let mut inside = vec![last];
    for entered in env.soon("the others", join_all(waiters)).await {
        inside.push(entered.unwrap());
    }
    let indices: BTreeSet<u32> = inside.iter().map(Inside::index).collect();
    assert_eq!(indices, BTreeSet::from([0, 1, 2]));
    assert!(inside.iter().all(|party| party.generation() == inside[0].generation()));
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.parties, seen.present, seen.entering), (3, 3, 0));
    let last = inside.pop().unwrap();
    let mut leaving: Vec<_> = inside.into_iter().map(|party| env.spawn(party.leave(LONG))).collect();
    env.sleep(Duration::from_millis(30)).await;
    assert!(leaving.iter_mut().all(|left| futures::FutureExt::now_or_never(left).is_none()), "one is inside");
    assert_eq!(a.inspect().await.unwrap().present, 3);
    env.soon("the last one leaves", last.leave(LONG)).await.unwrap();
    for left in env.soon("the others leave", join_all(leaving)).await {
        left.unwrap();
    }
    present(&env, &a, 0).await;
}

async fn a_double_barrier_serves_generation_after_generation(env: Env) {
    const GENERATIONS: u32 = 10;
    let clients = [env.client().await, env.client().await, env.client().await];
    let (begun, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let parties = clients.iter().map(|client| {
        let (barrier, begun, done) = (client.double_barrier("a", 3), begun.clone(), done.clone());
        env.spawn(async move {
            for generation in 1..=GENERATIONS {
                begun.fetch_add(1, Ordering::SeqCst);
                let inside = barrier.enter(LONG).await.unwrap();
                assert_eq!(begun.load(Ordering::SeqCst), 3 * generation, "all have come, and nobody has left");
                done.fetch_add(1, Ordering::SeqCst);
                inside.leave(LONG).await.unwrap();
                assert!(done.load(Ordering::SeqCst) >= 3 * generation, "all were ready");
            }
        })
    });
    env.soon("all generations", join_all(parties)).await;
}

async fn a_party_is_three_commands(env: Env) {
    let clients = [env.client().await, env.client().await];
    let [one, other] = clients.each_ref().map(|client| client.double_barrier("a", 2));
    let [first, second] = {
        let first = env.spawn(one.enter(LONG));
        let seen = env.client().await.double_barrier("a", 2);
        env.eventually("it waits", async || seen.inspect().await.unwrap().entering == 1).await;
        let second = env.soon("the second one", other.enter(LONG)).await.unwrap();
        [env.soon("the first one", first).await.unwrap(), second]
    };
    let left = env.spawn(first.leave(LONG));
    env.eventually("it is ready", async || clients[0].counts.of("barrier_leave") == 1).await;
    env.soon("the last one leaves", second.leave(LONG)).await.unwrap();
    env.soon("the first one leaves", left).await.unwrap();
    for client in &clients {
        assert_eq!((client.counts.of("barrier_arrive"), client.counts.of("barrier_leave")), (2, 1));
        assert_eq!(client.counts.total(), 3, "{:?}", client.counts.all());
    }
}

async fn one_party_never_waits(env: Env) {
    let barrier = env.client().await.double_barrier("a", 1);
    for _ in 0..2 {
        let inside = barrier.enter(LONG).await.unwrap();
        assert_eq!(inside.index(), 0);
        inside.leave(LONG).await.unwrap();
    }
}

async fn a_party_dropped_inside_breaks_it_for_all(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    for is_ready in [false, true] {
        let [one, other] = two_inside(&env, [&a, &b]).await;
        let error = if is_ready {
            let left = env.spawn(one.leave(LONG));
            env.sleep(SHORT).await;
            drop(other);
            env.soon("told", left).await.unwrap_err()
        } else {
            drop(other);
            let error = env.soon("told", one.broken()).await;
            assert_eq!(one.leave(LONG).await.unwrap_err().kind(), ErrorKind::Broken);
            error
        };
        assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
        assert!(error.to_string().contains("a party has stopped waiting"), "{error}");
        present(&env, &a, 0).await;
    }
    let [one, other] = two_inside(&env, [&a, &b]).await;
    let left = env.spawn(one.leave(LONG));
    env.soon("the last one", other.leave(LONG)).await.unwrap();
    env.soon("the first one", left).await.unwrap();
}

async fn a_timeout_of_who_enters_breaks_the_generation(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 3), env.client().await.double_barrier("a", 3));
    let other = entering(&env, &a).await;
    let error = b.enter(SHORT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert_eq!(env.soon("told", other).await.unwrap_err().kind(), ErrorKind::Broken);
    present(&env, &a, 0).await;
}

async fn a_timeout_of_who_leaves_breaks_the_generation(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let [one, other] = two_inside(&env, [&a, &b]).await;
    let error = one.leave(SHORT).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::TimedOut, Some("a")), "{error}");
    assert_eq!(env.soon("told", other.broken()).await.kind(), ErrorKind::Broken);
    present(&env, &a, 0).await;
}

async fn a_client_that_closes_breaks_the_generation(env: Env) {
    let (client, b) = (env.client().await, env.client().await.double_barrier("a", 2));
    let [one, other] = two_inside(&env, [&client.double_barrier("a", 2), &b]).await;
    client.close().await;
    assert_eq!(env.soon("told", one.broken()).await.kind(), ErrorKind::Closed);
    assert_eq!(one.leave(LONG).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(env.soon("told", other.broken()).await.kind(), ErrorKind::Broken);
    assert_eq!(client.double_barrier("a", 2).enter(LONG).await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn an_operator_breaks_the_generation(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    assert!(!b.reset().await.unwrap());
    assert_eq!(env.keys(), [""; 0]);
    let waits = entering(&env, &a).await;
    assert!(b.reset().await.unwrap());
    let error = env.soon("told", waits).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
    present(&env, &a, 0).await;
    env.eventually("it has left the entry", async || a.inspect().await.unwrap().entering == 0).await;
    let [one, other] = two_inside(&env, [&a, &b]).await;
    assert!(b.reset().await.unwrap());
    let error = env.soon("told", one.leave(LONG)).await.unwrap_err();
    assert!(error.to_string().contains("the barrier was reset"), "{error}");
    assert_eq!(env.soon("told", other.broken()).await.kind(), ErrorKind::Broken);
}

async fn parties_that_do_not_belong_are_refused(env: Env) {
    let (a, b) = (env.client().await.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let other = env.client().await;
    let waits = entering(&env, &a).await;
    let error = other.double_barrier("a", 3).enter(LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherParties, "{error}");
    assert!(error.to_string().contains("a barrier of 2 parties"), "{error}");
    let second = env.soon("the second one", b.enter(LONG)).await.unwrap();
    let first = env.soon("the first one", waits).await.unwrap();
    let error = other.double_barrier("a", 2).enter(LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherParties, "{error}");
    assert!(error.to_string().contains("2 parties are inside"), "{error}");
    let left = env.spawn(first.leave(LONG));
    env.soon("the second one", second.leave(LONG)).await.unwrap();
    env.soon("the first one", left).await.unwrap();
}

async fn bad_arguments_are_errors_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    let invalid = ErrorKind::InvalidInput;
    for parties in [0, MAX_BARRIER_PARTIES + 1] {
        let barrier = client.double_barrier("a", parties);
        assert_eq!(barrier.enter(LONG).await.unwrap_err().kind(), invalid);
        assert_eq!(barrier.inspect().await.unwrap_err().kind(), invalid);
        assert_eq!(barrier.reset().await.unwrap_err().kind(), invalid);
    }
    assert_eq!(client.double_barrier("", 2).enter(LONG).await.unwrap_err().kind(), invalid);
    assert_eq!(client.double_barrier("a", 2).enter(Duration::ZERO).await.unwrap_err().kind(), invalid);
    assert_eq!(client.counts.total(), 0);
    let inside = client.double_barrier("a", 1).enter(LONG).await.unwrap();
    assert_eq!(inside.leave(Duration::ZERO).await.unwrap_err().kind(), invalid);
}

async fn who_is_there_is_seen(env: Env) {
    let client = env.client_with(|config| config.label("web-7")).await;
    let barrier = client.double_barrier("a", 2);
    let waits = entering(&env, &barrier).await;
    let seen = barrier.inspect().await.unwrap();
    assert_eq!((seen.generation, seen.parties, seen.queue.len()), (0, 2, 1));
    assert_eq!((seen.queue[0].label.as_deref(), seen.queue[0].waits_for), (Some("web-7"), Access::Barrier));
    let names = client.names(Some(PrimitiveKind::DoubleBarrier), "").await.unwrap();
    assert_eq!(names.iter().map(|name| &*name.name).collect::<Vec<_>>(), ["a"]);
    let second = barrier.enter(LONG).await.unwrap();
    let first = env.soon("the first one", waits).await.unwrap();
    let left = env.spawn(first.leave(LONG));
    second.leave(LONG).await.unwrap();
    env.soon("the first one", left).await.unwrap();
}

/// The party's program is gone: its client neither asks again nor leaves.
async fn a_lease_that_ends_inside_breaks_the_generation(env: Env) {
    let soon = Duration::from_millis(500);
    let config =
        |config: bowline::ConfigBuilder| config.lease(Duration::from_secs(1)).command_timeout(soon).retry_timeout(soon);
    let (client, other) = (env.client_with(config).await, env.client_with(config).await);
    let [one, two] = two_inside(&env, [&client.double_barrier("a", 2), &other.double_barrier("a", 2)]).await;
    assert!(!one.is_broken() && !two.is_broken());
    let tickets = "bowline:double:{a}:tickets";
    let members = env.redis::<Vec<String>>(&["ZRANGE", tickets, "0", "-1"]);
    let of_other = members.iter().find(|id| id.starts_with(&other.id().to_string())).unwrap();
    env.eventually("it is told", async || {
        // Its client, which lives, may have prolonged the lease meanwhile.
        env.redis::<i64>(&["ZADD", tickets, "XX", "1", of_other]);
        one.is_broken()
    })
    .await;
    let error = one.broken().await;
    assert!(error.to_string().contains("the lease of a party has ended"), "{error}");
    let error = env.soon("told", two.leave(LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
}

/// As after a failover to a replica that has not heard of it.
async fn a_party_whose_word_is_lost_says_it_again(env: Env) {
    let (client, b) = (env.client_with(|config| config.lease(Duration::from_secs(1))).await, env.client().await);
    let [one, other] = two_inside(&env, [&client.double_barrier("a", 2), &b.double_barrier("a", 2)]).await;
    let left = env.spawn(one.leave(LONG));
    let (main, tickets) = ("bowline:double:{a}", "bowline:double:{a}:tickets");
    let members = env.redis::<Vec<String>>(&["ZRANGE", tickets, "0", "-1"]);
    let own = members.iter().find(|id| id.starts_with(&client.id().to_string())).unwrap();
    env.eventually("it is ready", async || env.redis::<u64>(&["HEXISTS", main, own]) == 1).await;
    assert_eq!(env.redis::<u64>(&["HDEL", main, own]), 1);
    env.soon("the other one leaves", other.leave(LONG)).await.unwrap();
    env.soon("the first one leaves", left).await.unwrap();
}
