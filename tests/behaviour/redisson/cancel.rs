//! Acquisitions and releases dropped at every point: nothing of them stays, and those who wait are woken.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{Holder, RedissonLock, RedissonPermitSemaphore, RedissonSemaphore};

use super::{HOUR, latch, permit_semaphore, semaphore};
use crate::lock::cancel::Then;
use crate::support::env::{Env, TestClient, on_every_server};
use crate::support::polled::{self, polled};

on_every_server! {
    an_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_try_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
    a_member_dropped_when_its_turn_has_come_wakes_the_next,
    a_wait_for_a_latch_dropped_at_any_moment_leaves_nothing,
    an_acquisition_of_permits_dropped_after_any_number_of_polls_leaves_all_permits,
    a_contended_acquisition_of_permits_dropped_after_any_number_of_polls_leaves_all_permits,
    a_release_of_permits_dropped_after_any_number_of_polls_is_finished,
    an_acquisition_of_a_permit_dropped_after_any_number_of_polls_leaves_all_permits,
    a_contended_acquisition_of_a_permit_dropped_after_any_number_of_polls_leaves_all_permits,
    a_release_of_a_permit_dropped_after_any_number_of_polls_is_finished,
}

async fn client(env: &Env) -> TestClient {
    env.client_with_all_rights(|config| config.lease(HOUR)).await
}

/// The lock `fresh` must be free after each call, long before a lease ends.
async fn sweep<T>(env: &Env, fresh: &RedissonLock, mut attempt: impl AsyncFnMut(usize, Then) -> Option<T>) {
    for then in [Then::Drop, Then::Wait] {
        println!("{then:?}:");
        let is_free = async || {
            let guard = env.soon("the lock is free", fresh.lock()).await.unwrap();
            guard.release().await.unwrap();
            env.eventually("nothing is left", async || env.keys().is_empty()).await;
        };
        polled::sweep(async |polls| attempt(polls, then).await, is_free).await;
    }
}

async fn until_executed(env: &Env, then: Then) {
    if then == Then::Wait {
        env.eventually("executed", async || !env.keys().is_empty()).await;
    }
}

async fn an_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let lock = a.redisson().lock("a");
    sweep(&env, &b.redisson().lock("a"), async |polls, then| {
        let executed = async || until_executed(&env, then).await;
        polled(lock.lock().into_future(), polls, executed).await.map(Result::unwrap)
    })
    .await;
}

/// The holder releases while the other one is on its way.
async fn a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (lock, others) = (a.redisson().lock("a"), b.redisson().lock("a"));
    sweep(&env, &others, async |polls, _| {
        let held = others.lock().await.unwrap();
        let released = env.spawn({
            let env = env.clone();
            async move {
                for _ in 0..polls {
                    env.yield_now().await;
                }
                held.release().await.unwrap();
            }
        });
        let got = polled(lock.lock().into_future(), polls, async || {}).await.map(Result::unwrap);
        released.await;
        got
    })
    .await;
}

async fn a_try_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let lock = a.redisson().fenced_lock("a");
    sweep(&env, &b.redisson().lock("a"), async |polls, then| {
        let executed = async || until_executed(&env, then).await;
        polled(lock.try_lock().into_future(), polls, executed).await.map(|got| got.unwrap().unwrap())
    })
    .await;
}

async fn a_release_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let lock = a.redisson().lock("a");
    sweep(&env, &b.redisson().lock("a"), async |polls, _| {
        let guard = lock.lock().await.unwrap();
        polled(guard.release(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}

/// One of two members of a cohort waits at the server for both.
async fn a_member_dropped_when_its_turn_has_come_wakes_the_next(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    for polls in 1..12 {
        let held = b.redisson().lock("a").lock().await.unwrap();
        let (first, second) = (a.redisson().lock("a"), a.redisson().lock("a"));
        let first = first.lock().holder(&Holder::new()).into_future();
        let first = env.spawn(async move { polled(first, polls, async || {}).await.map(drop) });
        let second = env.spawn(async move { second.lock().await.unwrap().release().await });
        env.eventually("both wait, or the first has gone", async || a.stats().waiting >= 1).await;
        held.release().await.unwrap();
        env.soon("the first ends", first).await;
        env.soon("the second is served", second).await.unwrap();
    }
}

async fn a_wait_for_a_latch_dropped_at_any_moment_leaves_nothing(env: Env) {
    let client = client(&env).await;
    let wanted = client.redisson().count_down_latch(latch::NAME);
    assert!(wanted.try_set_count(1).await.unwrap());
    for n in 0..30_u32 {
        let moment = Duration::from_micros(u64::from(n) * 100);
        drop(futures::future::select(wanted.wait().into_future(), Box::pin(env.sleep(moment))).await);
    }
    env.eventually("nobody listens", async || env.listeners(latch::CHANNEL) == 0).await;
    assert_eq!(wanted.count_down().await.unwrap(), 0);
}

/// All three permits must be there after each call.
async fn sweep_permits<T>(
    env: &Env,
    fresh: &RedissonSemaphore,
    mut attempt: impl AsyncFnMut(usize, Then) -> Option<T>,
) {
    assert!(fresh.try_set_permits(3).await.unwrap());
    for then in [Then::Drop, Then::Wait] {
        println!("{then:?}:");
        let all_are_there = async || {
            env.eventually("all are back", async || fresh.available().await.unwrap() == 3).await;
            // A copy that is late would take some now.
            drop(fresh.acquire_many(3).await.unwrap().release().await);
            assert_eq!(fresh.available().await.unwrap(), 3);
        };
        polled::sweep(async |polls| attempt(polls, then).await, all_are_there).await;
    }
    semaphore::delete(env);
}

async fn an_acquisition_of_permits_dropped_after_any_number_of_polls_leaves_all_permits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (mine, others) = (a.redisson().semaphore(semaphore::NAME), b.redisson().semaphore(semaphore::NAME));
    sweep_permits(&env, &others, async |polls, then| {
        let executed = async || {
            if then == Then::Wait {
                env.sleep(Duration::from_millis(20)).await;
            }
        };
        polled(mine.acquire_many(2).into_future(), polls, executed).await.map(Result::unwrap)
    })
    .await;
}

/// The holder releases while the other one is on its way.
async fn a_contended_acquisition_of_permits_dropped_after_any_number_of_polls_leaves_all_permits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (mine, others) = (a.redisson().semaphore(semaphore::NAME), b.redisson().semaphore(semaphore::NAME));
    sweep_permits(&env, &others, async |polls, _| {
        let held = others.acquire_many(2).await.unwrap();
        let released = env.spawn(async move { held.release().await.unwrap() });
        let taken = polled(mine.acquire_many(2).into_future(), polls, async || {}).await.map(Result::unwrap);
        released.await;
        taken
    })
    .await;
}

async fn a_release_of_permits_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let (mine, others) = (a.redisson().semaphore(semaphore::NAME), b.redisson().semaphore(semaphore::NAME));
    sweep_permits(&env, &others, async |polls, _| {
        let held = mine.acquire_many(3).await.unwrap();
        polled(held.release(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}

/// The only permit, whose lease is an hour, must be there after each call.
async fn sweep_permit<T>(
    env: &Env,
    fresh: &RedissonPermitSemaphore,
    mut attempt: impl AsyncFnMut(usize, Then) -> Option<T>,
) {
    assert!(fresh.try_set_permits(1).await.unwrap());
    for then in [Then::Drop, Then::Wait] {
        println!("{then:?}:");
        let it_is_there = async || {
            env.soon("it is back", fresh.acquire().into_future()).await.unwrap().release().await.unwrap();
            let state = fresh.inspect().await.unwrap();
            assert_eq!((state.available, state.acquired), (1, 0));
        };
        polled::sweep(async |polls| attempt(polls, then).await, it_is_there).await;
    }
    permit_semaphore::delete(env);
}

async fn an_acquisition_of_a_permit_dropped_after_any_number_of_polls_leaves_all_permits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let [mine, others] = [&a, &b].map(|client| client.redisson().permit_semaphore(semaphore::NAME));
    sweep_permit(&env, &others, async |polls, then| {
        let executed = async || {
            if then == Then::Wait {
                env.sleep(Duration::from_millis(20)).await;
            }
        };
        polled(mine.acquire().into_future(), polls, executed).await.map(Result::unwrap)
    })
    .await;
}

/// The holder releases while the other one is on its way.
async fn a_contended_acquisition_of_a_permit_dropped_after_any_number_of_polls_leaves_all_permits(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let [mine, others] = [&a, &b].map(|client| client.redisson().permit_semaphore(semaphore::NAME));
    sweep_permit(&env, &others, async |polls, _| {
        let held = others.acquire().await.unwrap();
        let released = env.spawn(async move { held.release().await.unwrap() });
        let taken = polled(mine.acquire().into_future(), polls, async || {}).await.map(Result::unwrap);
        released.await;
        taken
    })
    .await;
}

async fn a_release_of_a_permit_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let [mine, others] = [&a, &b].map(|client| client.redisson().permit_semaphore(semaphore::NAME));
    sweep_permit(&env, &others, async |polls, _| {
        let held = mine.acquire().await.unwrap();
        polled(held.release(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}
