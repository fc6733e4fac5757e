//! What is true of the barrier, with futures and through the blocking facade (`lab`).

// Tests that need futures: dropped half way.
mod cancel;

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::{Access, BarrierPass, ErrorKind, MAX_BARRIER_PARTIES};
use futures::future::{BoxFuture, join_all};

use crate::lab::{Barrier, Env, TestClient, on_every_server};
use crate::support::env::Env as AsyncEnv;

on_every_server! {
    all_pass_when_the_last_one_arrives,
    a_party_is_one_command,
    a_barrier_serves_generation_after_generation,
    one_party_never_waits,
    a_timeout_breaks_the_generation,
    a_client_that_closes_breaks_the_generation,
    an_operator_breaks_the_generation,
    parties_of_another_number_are_refused,
    bad_arguments_are_errors_and_nothing_is_sent,
    who_waits_is_seen;
    a_lease_that_ends_breaks_the_generation,
    hundreds_of_parties_of_several_clients,
}

const LONG: Duration = Duration::from_secs(20);

async fn waiting(env: &AsyncEnv, barrier: &Barrier, waiters: u64) {
    env.eventually(&format!("{waiters} wait"), async || barrier.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits, once that is known.
async fn party(env: &AsyncEnv, barrier: &Barrier) -> BoxFuture<'static, bowline::Result<BarrierPass>> {
    let waiters = barrier.inspect().await.unwrap().waiters;
    let passed = env.spawn({
        let barrier = barrier.clone();
        async move { barrier.wait().timeout(LONG).await }
    });
    waiting(env, barrier, waiters + 1).await;
    passed
}

/// A client that soon forgets how a generation has ended.
async fn forgetful(env: &Env) -> TestClient {
    let soon = Duration::from_millis(500);
    env.client_with(|config| config.lease(Duration::from_secs(1)).command_timeout(soon).retry_timeout(soon)).await
}

/// Expects that the generation is broken for these, and returns the last error.
async fn broken(env: &Env, parties: Vec<BoxFuture<'static, bowline::Result<BarrierPass>>>) -> bowline::Error {
    let mut errors = Vec::new();
    for told in env.soon("told", join_all(parties)).await {
        let error = told.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
        errors.push(error);
    }
    errors.pop().expect("somebody waited")
}

async fn all_pass_when_the_last_one_arrives(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 3), env.client().await.barrier("a", 3));
    let waiters = [party(&env, &a).await, party(&env, &b).await];
    let last = env.soon("the last one", b.wait()).await.unwrap();
    assert!(last.is_leader());
    let mut passed = vec![last];
    for pass in env.soon("the others", join_all(waiters)).await {
        let pass = pass.unwrap();
        assert!(!pass.is_leader());
        passed.push(pass);
    }
    let indices: BTreeSet<u32> = passed.iter().map(BarrierPass::index).collect();
    assert_eq!(indices, BTreeSet::from([0, 1, 2]));
    assert!(passed.iter().all(|pass| pass.generation() == last.generation()));
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.generation, seen.parties, seen.waiters), (last.generation(), 3, 0));
}

async fn a_party_is_one_command(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let first = env.spawn({
        let barrier = a.barrier("a", 2);
        async move { barrier.wait().timeout(LONG).await }
    });
    waiting(&env, &env.client().await.barrier("a", 2), 1).await;
    env.soon("the last one", b.barrier("a", 2).wait()).await.unwrap();
    env.soon("the first one", first).await.unwrap();
    assert_eq!((a.counts.total(), b.counts.total()), (1, 1), "{:?} {:?}", a.counts.all(), b.counts.all());
}

async fn a_barrier_serves_generation_after_generation(env: Env) {
    const GENERATIONS: u64 = 20;
    let clients = [env.client().await, env.client().await, env.client().await];
    let parties = clients.iter().map(|client| {
        let barrier = client.barrier("a", 3);
        env.spawn(async move {
            let mut generations = Vec::new();
            for _ in 0..GENERATIONS {
                generations.push(barrier.wait().timeout(LONG).await.unwrap().generation());
            }
            generations
        })
    });
    let seen = env.soon("all generations", join_all(parties)).await;
    assert!(seen.iter().all(|generations| *generations == seen[0]), "{seen:?}");
    assert!(seen[0].is_sorted_by(|one, next| one < next), "{seen:?}");
}

async fn one_party_never_waits(env: Env) {
    let barrier = env.client().await.barrier("a", 1);
    let [first, second] = [barrier.wait().await.unwrap(), barrier.wait().await.unwrap()];
    assert!(first.is_leader() && second.is_leader());
    assert_eq!((first.index(), second.index()), (0, 0));
    assert!(first.generation() < second.generation());
}

async fn a_timeout_breaks_the_generation(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 3), env.client().await);
    let other = party(&env, &a).await;
    let error = b.barrier("a", 3).wait().timeout(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let error = broken(&env, vec![other]).await;
    waiting(&env, &a, 0).await;
    assert_eq!(b.counts.total(), 2, "it has arrived, and has left: {:?}", b.counts.all());
    assert!(error.is_retryable() && error.to_string().contains("a party has stopped waiting"), "{error}");
    assert!(error.to_string().contains('a'), "{error}");
}

async fn a_client_that_closes_breaks_the_generation(env: Env) {
    let (client, other) = (env.client().await, env.client().await.barrier("a", 3));
    let told = party(&env, &client.barrier("a", 3)).await;
    let waits = party(&env, &other).await;
    client.close().await;
    assert_eq!(env.soon("told", told).await.unwrap_err().kind(), ErrorKind::Closed);
    broken(&env, vec![waits]).await;
    assert_eq!(client.barrier("a", 3).wait().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(client.barrier("a", 3).reset().await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn an_operator_breaks_the_generation(env: Env) {
    let (a, b) = (env.client().await.barrier("a", 3), env.client().await.barrier("a", 7));
    assert!(!b.reset().await.unwrap());
    assert_eq!(env.keys(), [""; 0]);
    let waiters = vec![party(&env, &a).await, party(&env, &a).await];
    // Of whatever number of parties.
    assert!(b.reset().await.unwrap());
    let error = broken(&env, waiters).await;
    assert!(error.to_string().contains("the barrier was reset"), "{error}");
    assert!(!b.reset().await.unwrap());
}

/// The party's program is gone: its client neither asks again nor leaves.
async fn a_lease_that_ends_breaks_the_generation(env: Env) {
    let barrier = forgetful(&env).await.barrier("a", 3);
    let waits = party(&env, &barrier).await;
    let ghost = format!("{}:1", uuid::Uuid::from_u128(7));
    env.redis::<i64>(&["ZADD", "bowline:barrier:{a}:tickets", "1", &ghost]);
    let error = broken(&env, vec![waits]).await;
    assert!(error.to_string().contains("the lease of a party has ended"), "{error}");
    waiting(&env, &barrier, 0).await;
}

async fn parties_of_another_number_are_refused(env: Env) {
    let client = env.client().await;
    let barrier = client.barrier("a", 2);
    let (waits, other) = (party(&env, &barrier).await, env.client().await);
    let error = other.barrier("a", 3).wait().await.unwrap_err();
    // A client that closes has done what it had to do in the background.
    other.close().await;
    assert_eq!(other.counts.of("barrier_cancel"), 0, "it has not arrived, and needs not leave");
    assert_eq!(error.kind(), ErrorKind::OtherParties, "{error}");
    assert!(!error.is_retryable() && error.to_string().contains("a barrier of 2 parties"), "{error}");
    barrier.wait().await.unwrap();
    env.soon("through", waits).await.unwrap();
}

async fn bad_arguments_are_errors_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    let invalid = ErrorKind::InvalidInput;
    for parties in [0, MAX_BARRIER_PARTIES + 1] {
        let barrier = client.barrier("a", parties);
        let error = barrier.wait().await.unwrap_err();
        assert_eq!(error.kind(), invalid, "{error}");
        assert!(
            error.to_string().contains(&format!("a barrier of {parties} parties; it must have 1 to 1000")),
            "{error}"
        );
        assert_eq!(barrier.inspect().await.unwrap_err().kind(), invalid);
        assert_eq!(barrier.reset().await.unwrap_err().kind(), invalid);
    }
    assert_eq!(client.barrier("", 2).wait().await.unwrap_err().kind(), invalid);
    assert_eq!(client.barrier("a", 2).wait().timeout(Duration::ZERO).await.unwrap_err().kind(), invalid);
    assert_eq!(client.counts.total(), 0);
}

async fn who_waits_is_seen(env: Env) {
    let client = env.client_with(|config| config.label("web-7")).await;
    let barrier = client.barrier("a", 2);
    let waits = party(&env, &barrier).await;
    let seen = barrier.inspect().await.unwrap();
    assert_eq!((seen.generation, seen.parties, seen.queue.len()), (0, 2, 1));
    assert_eq!((seen.queue[0].label.as_deref(), seen.queue[0].waits_for), (Some("web-7"), Access::Barrier));
    barrier.wait().await.unwrap();
    env.soon("through", waits).await.unwrap();
}

async fn hundreds_of_parties_of_several_clients(env: Env) {
    const PARTIES: u32 = 400;
    let clients = [env.client().await, env.client().await, env.client().await, env.client().await];
    let barrier = clients[0].barrier("a", PARTIES);
    let mut parties = Vec::new();
    for n in 1..PARTIES as usize {
        let barrier = clients[n % 4].barrier("a", PARTIES);
        parties.push(env.spawn(async move { barrier.wait().timeout(LONG).await.unwrap() }));
    }
    waiting(&env, &barrier, u64::from(PARTIES) - 1).await;
    for client in &clients {
        client.counts.reset();
    }
    let mut passed = vec![barrier.wait().await.unwrap()];
    passed.extend(env.soon("all of them", join_all(parties)).await);
    assert_eq!(clients.iter().map(|client| client.counts.total()).sum::<u64>(), 1, "woken by one command");
    let mut indices: Vec<u32> = passed.iter().map(BarrierPass::index).collect();
    indices.sort_unstable();
    assert!(indices.into_iter().eq(0..PARTIES));
}
