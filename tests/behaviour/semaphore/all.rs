//! All permits that are free, at once.

use std::time::Duration;

use bowline::{ErrorKind, MAX_PERMITS};
use futures::future::join_all;

use super::limit::forget_the_limit;
use super::waiter;
use crate::lab::{Env, on_every_server};

on_every_server! {
    all_that_are_free_are_one_permit,
    whoever_waits_comes_before_all,
    what_is_drained_at_the_same_time_is_no_more_than_the_limit,
    all_are_leased_as_any_other_permit,
    all_of_a_limit_that_was_changed,
    bad_options_are_errors_and_nothing_is_sent,
}

async fn all_that_are_free_are_one_permit(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", 5));
    let semaphore = client.semaphore("a", 5);
    for held in [0, 1, 4] {
        let beside = if held > 0 { Some(other.acquire_many(held).await.unwrap()) } else { None };
        client.counts.reset();
        let all = semaphore.try_acquire_all().await.unwrap().expect("some are free");
        assert_eq!((all.count(), client.counts.total()), (5 - held, 1));
        assert_eq!(other.available().await.unwrap(), 0);
        assert!(semaphore.try_acquire_all().await.unwrap().is_none(), "none is free");
        assert!(all.is_valid());
        all.release().await.unwrap();
        assert_eq!(other.available().await.unwrap(), 5 - held);
        if let Some(beside) = beside {
            beside.release().await.unwrap();
        }
    }
    // A drop gives all of them back.
    drop(semaphore.try_acquire_all().await.unwrap().expect("all are free"));
    env.eventually("all are back", async || other.available().await.unwrap() == 5).await;
}

async fn whoever_waits_comes_before_all(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", 5), env.client().await.semaphore("a", 5));
    let three = a.acquire_many(3).await.unwrap();
    let waiting = waiter(&env, &b, 4).await;
    assert!(a.try_acquire_all().await.unwrap().is_none(), "somebody waits, though two are free");
    three.release().await.unwrap();
    let four = env.soon("the waiter", waiting).await.unwrap();
    let rest = a.try_acquire_all().await.unwrap().expect("one is free");
    assert_eq!(rest.count(), 1);
    rest.release().await.unwrap();
    four.release().await.unwrap();
}

async fn what_is_drained_at_the_same_time_is_no_more_than_the_limit(env: Env) {
    let clients = [env.client().await, env.client().await];
    let tries = (0..6).map(|n| {
        let semaphore = clients[n % 2].semaphore("a", 7);
        env.spawn(async move {
            if n % 3 == 0 { semaphore.try_acquire().await } else { semaphore.try_acquire_all().await }.unwrap()
        })
    });
    let got: Vec<_> = join_all(tries.collect::<Vec<_>>()).await.into_iter().flatten().collect();
    assert_eq!(got.iter().map(|permit| permit.count()).sum::<u32>(), 7);
    for permit in got {
        permit.release().await.unwrap();
    }
}

async fn all_are_leased_as_any_other_permit(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", 3);
    let fixed = semaphore.try_acquire_all().expires_after(Duration::from_millis(200)).await.unwrap().expect("free");
    assert!(fixed.remaining() <= Duration::from_millis(200));
    fixed.extend(Duration::from_secs(60)).await.unwrap();
    assert!(fixed.remaining() > Duration::from_secs(30));
    fixed.release().await.unwrap();
    // Renewed, past its first lease.
    let renewed = semaphore.try_acquire_all().lease(Duration::from_millis(300)).await.unwrap().expect("free");
    env.sleep(Duration::from_millis(700)).await;
    assert!(renewed.is_valid());
    assert_eq!(semaphore.inspect().await.unwrap().used, 3);
    renewed.release().await.unwrap();
    let short = semaphore.try_acquire_all().expires_after(Duration::from_millis(150)).await.unwrap().expect("free");
    env.soon("the loss", short.lost()).await;
    let again = env.soon("all are free", async {
        loop {
            if let Some(all) = semaphore.try_acquire_all().await.unwrap() {
                return all;
            }
        }
    });
    assert_eq!(again.await.count(), 3);
}

async fn all_of_a_limit_that_was_changed(env: Env) {
    let semaphore = env.client().await.semaphore("a", 3);
    semaphore.set_limit(5).await.unwrap();
    let five = semaphore.try_acquire_all().await.unwrap().expect("free");
    assert_eq!(five.count(), 5);
    semaphore.set_limit(2).await.unwrap();
    assert!(semaphore.try_acquire_all().await.unwrap().is_none(), "more are held than the limit");
    five.release().await.unwrap();
    let two = semaphore.try_acquire_all().await.unwrap().expect("free");
    assert_eq!(two.count(), 2);
    two.release().await.unwrap();
    semaphore.set_limit(MAX_PERMITS).await.unwrap();
    let most = semaphore.try_acquire_all().await.unwrap().expect("free");
    assert_eq!(most.count(), MAX_PERMITS);
    most.release().await.unwrap();
    forget_the_limit(&env);
}

async fn bad_options_are_errors_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    client.counts.reset();
    let long = Duration::from_secs(5);
    for error in [
        client.semaphore("", 3).try_acquire_all().await.map(drop).unwrap_err(),
        client.semaphore("a", 0).try_acquire_all().await.map(drop).unwrap_err(),
        client.semaphore("a", 3).try_acquire_all().timeout(Duration::ZERO).await.map(drop).unwrap_err(),
        client.semaphore("a", 3).try_acquire_all().retained(long).await.map(drop).unwrap_err(),
        client.semaphore("a", 3).try_acquire_all().lease(long).expires_after(long).await.map(drop).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "try_acquire_all"), "{error}");
    }
    assert_eq!(client.counts.total(), 0);
}
