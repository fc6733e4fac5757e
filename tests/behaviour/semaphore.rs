//! What is true of the semaphore, with futures and through the blocking facade (`lab`).

pub(crate) mod limit;

// Tests that need futures: dropped half-way.
mod cancel;
mod cohort;

mod all;
mod parts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::lab::cost::an_acquisition_costs_two_commands;
use crate::lab::{Env, Permit, Semaphore, on_every_server};
use crate::support::env::Env as AsyncEnv;
use bowline::{ErrorKind, Holder};
use futures::future::{BoxFuture, join_all};

on_every_server! {
    never_more_than_the_limit,
    many_at_once_are_not_starved_by_few,
    a_try_stays_behind_those_who_wait,
    first_come_first_served_and_a_release_lets_in_as_many_as_fit,
    permits_of_the_dead_come_back_and_late_ones_are_not_credited,
    the_watchdog_keeps_permits,
    it_tells_who_holds_what,
    a_holder_is_nothing_to_a_semaphore,
    timeouts_and_full_queues_leave_nothing,
    an_uncontended_acquisition_and_release_are_two_commands,
    a_contended_acquisition_costs_two_commands,
}

const LONG: Duration = Duration::from_secs(20);

pub(crate) async fn queued(env: &AsyncEnv, semaphore: &(impl Clone + Into<Semaphore>), waiters: u64) {
    let semaphore: Semaphore = semaphore.clone().into();
    env.eventually(&format!("{waiters} wait"), async || semaphore.inspect().await.unwrap().waiters == waiters).await;
}

/// A task that waits for so many permits, once its place in the queue is known.
pub(crate) async fn waiter(
    env: &AsyncEnv,
    semaphore: &(impl Clone + Into<Semaphore>),
    count: u32,
) -> BoxFuture<'static, bowline::Result<Permit>> {
    let semaphore: Semaphore = semaphore.clone().into();
    let waiters = semaphore.inspect().await.unwrap().waiters;
    let permit = env.spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire_many(count).timeout(LONG).await }
    });
    queued(env, &semaphore, waiters + 1).await;
    permit
}

async fn never_more_than_the_limit(env: Env) {
    const LIMIT: u32 = 5;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(env.client().await);
    }
    let inside = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..15_u32)
        .map(|n| {
            let semaphore = clients[n as usize % 3].semaphore("a", LIMIT);
            let (env, inside) = (env.clone(), inside.clone());
            env.clone().spawn(async move {
                for _ in 0..10 {
                    let count = 1 + n % 3;
                    let permit = semaphore.acquire_many(count).await.unwrap();
                    assert_eq!(permit.count(), count);
                    let now = inside.fetch_add(count, Ordering::SeqCst) + count;
                    assert!(now <= LIMIT, "{now} permits at a time");
                    env.yield_now().await;
                    inside.fetch_sub(count, Ordering::SeqCst);
                    permit.release().await.unwrap();
                }
            })
        })
        .collect();
    join_all(tasks).await;
    // The limit is reached: no fewer permits fit.
    let mut permits = Vec::new();
    for n in 0..LIMIT {
        permits.push(clients[n as usize % 3].semaphore("a", LIMIT).acquire().await.unwrap());
    }
    assert!(clients[0].semaphore("a", LIMIT).try_acquire().await.unwrap().is_none());
    for permit in permits {
        permit.release().await.unwrap();
    }
    assert_eq!(clients[0].semaphore("a", LIMIT).available().await.unwrap(), LIMIT);
}

async fn many_at_once_are_not_starved_by_few(env: Env) {
    let stop = Arc::new(AtomicBool::new(false));
    let rounds = Arc::new(AtomicU64::new(0));
    let mut stream = Vec::new();
    for _ in 0..6 {
        let (semaphore, stop, rounds) = (env.client().await.semaphore("a", 5), stop.clone(), rounds.clone());
        stream.push(env.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let permit = semaphore.acquire().await.unwrap();
                rounds.fetch_add(1, Ordering::SeqCst);
                permit.release().await.unwrap();
            }
        }));
    }
    env.eventually("the stream flows", async || rounds.load(Ordering::SeqCst) > 20).await;
    let semaphore = env.client().await.semaphore("a", 5);
    for _ in 0..5 {
        let all = env.soon("all five", semaphore.acquire_many(5)).await.unwrap();
        assert_eq!(semaphore.available().await.unwrap(), 0);
        all.release().await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    join_all(stream).await;
}

async fn a_try_stays_behind_those_who_wait(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 3), env.client().await.semaphore("a", 3));
    let two = a.try_acquire_many(2).await.unwrap().expect("three are free");
    let waiting = waiter(&env, &b, 2).await;
    assert!(a.try_acquire().await.unwrap().is_none(), "one is free, but a waiter asks for two");
    two.release().await.unwrap();
    let two = env.soon("two", waiting).await.unwrap();
    let one = a.try_acquire().await.unwrap().expect("one is free, and there is no waiter");
    assert!(a.try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
    two.release().await.unwrap();
}

async fn first_come_first_served_and_a_release_lets_in_as_many_as_fit(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (a, b) = (client.semaphore("a", 4), other.semaphore("a", 4));
    let all = a.acquire_many(4).await.unwrap();
    let first = [waiter(&env, &b, 1).await, waiter(&env, &a, 2).await, waiter(&env, &b, 1).await];
    let last = waiter(&env, &a, 1).await;
    client.counts.reset();
    other.counts.reset();
    all.release().await.unwrap();
    let first = env.soon("those who fit", join_all(first)).await;
    assert_eq!((client.counts.of("permit_release"), client.counts.total(), other.counts.total()), (1, 1, 0));
    assert_eq!(a.inspect().await.unwrap().waiters, 1);
    for permit in first {
        permit.unwrap().release().await.unwrap();
    }
    env.soon("the last one", last).await.unwrap().release().await.unwrap();
}

async fn permits_of_the_dead_come_back_and_late_ones_are_not_credited(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 3), env.client().await.semaphore("a", 3));
    let dead = a.acquire_many(2).expires_after(Duration::from_millis(300)).await.unwrap();
    let living = b.acquire().await.unwrap();
    let waiting = waiter(&env, &b, 2).await;
    env.soon("the loss", dead.lost()).await;
    let two = env.soon("what the dead had", waiting).await.unwrap();
    assert_eq!(dead.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(b.available().await.unwrap(), 0, "a late release was credited");
    assert!(two.is_valid() && living.is_valid());
    two.release().await.unwrap();
    living.release().await.unwrap();
    assert_eq!(b.available().await.unwrap(), 3);
}

async fn the_watchdog_keeps_permits(env: Env) {
    let lease = Duration::from_secs(2);
    let semaphore = env.client_with(|config| config.lease(lease)).await.semaphore("a", 3);
    let permit = semaphore.acquire_many(2).await.unwrap();
    env.sleep(lease * 3 / 2).await;
    assert!(permit.is_valid());
    assert_eq!(semaphore.available().await.unwrap(), 1);
    permit.release().await.unwrap();
}

async fn it_tells_who_holds_what(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (a, b) = (client.semaphore("a", 6), other.semaphore("a", 6));
    assert_eq!(a.inspect().await.unwrap().holders, []);
    let (three, two) = (a.acquire_many(3).expires_after(LONG).await.unwrap(), b.acquire_many(2).await.unwrap());
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.limit, seen.used, seen.waiters), (6, 5, 0));
    let mut holders: Vec<_> = seen.holders.iter().map(|holder| (holder.client, holder.count)).collect();
    holders.sort_by_key(|(_, count)| *count);
    assert_eq!(holders, [(Some(other.id()), 2), (Some(client.id()), 3)]);
    assert!(
        seen.holders.iter().all(|holder| !holder.remaining.is_zero() && holder.remaining <= Duration::from_secs(30))
    );
    three.release().await.unwrap();
    two.release().await.unwrap();
}

async fn a_holder_is_nothing_to_a_semaphore(env: Env) {
    let semaphore = env.client().await.semaphore("a", 2);
    Holder::new()
        .scope(async {
            let one = semaphore.acquire().await.unwrap();
            let other = semaphore.acquire().await.unwrap();
            assert_eq!(semaphore.available().await.unwrap(), 0);
            one.release().await.unwrap();
            assert_eq!(semaphore.available().await.unwrap(), 1);
            other.release().await.unwrap();
        })
        .await;
}

async fn timeouts_and_full_queues_leave_nothing(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 2), env.client().await.semaphore("a", 2));
    let both = a.acquire_many(2).await.unwrap();
    assert_eq!(b.acquire().timeout(Duration::from_millis(50)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    queued(&env, &a, 0).await;
    let waiting = waiter(&env, &b, 1).await;
    assert_eq!(a.acquire().max_waiters(1).await.unwrap_err().kind(), ErrorKind::QueueFull);
    both.release().await.unwrap();
    env.soon("the waiter", waiting).await.unwrap().release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn an_uncontended_acquisition_and_release_are_two_commands(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", 3);
    for count in 1..=3 {
        for acquisition in [semaphore.acquire_many(count).fair(), semaphore.acquire_many(count).non_fair()] {
            client.counts.reset();
            acquisition.await.unwrap().release().await.unwrap();
            assert_eq!(client.counts.total(), 2, "{:?}", client.counts.all());
        }
    }
}

async fn a_contended_acquisition_costs_two_commands(env: Env) {
    an_acquisition_costs_two_commands(&env, 32, 400, |client| {
        let semaphore = client.semaphore("a", 3);
        Box::new(move || {
            let semaphore = semaphore.clone();
            Box::pin(async move { semaphore.acquire().fair().await.unwrap().release().await.unwrap() })
        })
    })
    .await;
}
