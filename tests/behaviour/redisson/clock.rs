//! Permits are given back when the server's clock has jumped ahead, so that each request seems to come too late.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{ConfigBuilder, Loss};

use super::permit_semaphore;
use super::semaphore::{NAME, delete};
use crate::support::env::{Env, on_the_embedded_server};
use crate::support::polled::{self, polled};

on_the_embedded_server! {
    permits_are_given_back_after_the_clock_has_jumped,
    a_dropped_acquisition_gives_back_after_the_clock_has_jumped,
    a_permit_whose_lease_the_clock_has_ended_is_lost_and_goes_to_others,
    a_permit_with_a_lease_is_given_back_after_the_clock_was_set_back,
}

const SECOND: Duration = Duration::from_secs(1);

/// No copy of a release comes later than 35 s after it began, by the clock that the client knows.
fn short(config: ConfigBuilder) -> ConfigBuilder {
    config.lease(3 * SECOND).retry_timeout(30 * SECOND).command_timeout(2 * SECOND)
}

fn jump(env: &Env, by: Duration) {
    env.embedded().set_clock(env.embedded().now() + by);
}

async fn permits_are_given_back_after_the_clock_has_jumped(env: Env) {
    let client = env.client_with_all_rights(short).await;
    let semaphore = client.redisson().semaphore(NAME);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    let held = semaphore.acquire_many(2).await.unwrap();
    jump(&env, 3600 * SECOND);
    held.release().await.unwrap();
    let held = semaphore.acquire_many(2).await.unwrap();
    jump(&env, 3600 * SECOND);
    drop(held);
    env.eventually("they are given back", async || semaphore.available().await.unwrap() == 2).await;
    delete(&env);
}

/// The mark of the acquisition lives for 65 s, and is still there.
async fn a_dropped_acquisition_gives_back_after_the_clock_has_jumped(env: Env) {
    let (client, other) = (env.client_with_all_rights(short).await, env.client_with_all_rights(short).await);
    let (mine, others) = (client.redisson().semaphore(NAME), other.redisson().semaphore(NAME));
    assert!(others.try_set_permits(2).await.unwrap());
    let attempt = async |polls| {
        let jumps = async || jump(&env, 50 * SECOND);
        polled(mine.acquire_many(2).into_future(), polls, jumps).await.map(Result::unwrap)
    };
    let given_back = async || {
        env.eventually("they are given back", async || others.available().await.unwrap() == 2).await;
    };
    polled::sweep(attempt, given_back).await;
    delete(&env);
}

/// The ends of leases are times of the server's clock.
async fn a_permit_whose_lease_the_clock_has_ended_is_lost_and_goes_to_others(env: Env) {
    let (client, other) = (env.client_with_all_rights(short).await, env.client_with_all_rights(short).await);
    let (mine, others) = (client.redisson().permit_semaphore(NAME), other.redisson().permit_semaphore(NAME));
    assert!(mine.try_set_permits(1).await.unwrap());
    let held = mine.acquire().await.unwrap();
    jump(&env, 3600 * SECOND);
    let next = others.acquire().await.unwrap();
    assert_eq!(env.soon("the loss is told", held.lost()).await, Loss::Gone);
    assert_eq!(others.acquired().await.unwrap(), 1);
    drop(held);
    next.release().await.unwrap();
    assert_eq!(others.available().await.unwrap(), 1);
    permit_semaphore::delete(&env);
}

/// Its lease ends an hour later than it should, unless somebody gives it back.
async fn a_permit_with_a_lease_is_given_back_after_the_clock_was_set_back(env: Env) {
    let (client, other) = (env.client_with_all_rights(short).await, env.client_with_all_rights(short).await);
    let (mine, others) = (client.redisson().permit_semaphore(NAME), other.redisson().permit_semaphore(NAME));
    assert!(mine.try_set_permits(1).await.unwrap());
    let held = mine.acquire().await.unwrap();
    env.embedded().set_clock(env.embedded().now() - 3600 * SECOND);
    env.sleep(5 * SECOND).await;
    assert!(held.is_valid() && others.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    others.acquire().await.unwrap().release().await.unwrap();
    permit_semaphore::delete(&env);
}
