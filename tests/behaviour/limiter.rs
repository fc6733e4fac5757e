//! What is true of the rate limiter, with futures and through the blocking facade (`lab`).

// Tests that need futures: a rate that many tasks ask for, and waits that are dropped.
mod rate;
mod waits;

use std::error::Error as _;
use std::time::Duration;

use bowline::{ErrorKind, MAX_REFILL, Quota};
use futures::future::join_all;

use crate::lab::{Env, RateLimiter, on_every_server};

on_every_server! {
    a_burst_is_allowed_and_the_rest_refused,
    programs_share_a_rate_and_names_do_not,
    permits_come_back_one_at_a_time,
    a_call_takes_all_that_it_costs_or_nothing,
    waiters_are_served_in_turn_and_never_early,
    a_wait_that_is_too_long_fails_at_once_and_takes_nothing,
    a_check_takes_nothing_from_a_waiter,
    a_quota_counts_from_the_next_call_on,
    a_reset_gives_the_whole_burst,
    what_makes_no_sense_is_refused_and_nothing_is_sent,
    every_call_is_one_command,
    a_closed_client_ends_its_waits,
    a_key_of_another_type_is_an_error;
    a_user_without_the_right_is_told,
}

const MS: Duration = Duration::from_millis(1);

/// No test sees one of these come back.
const HOUR: Duration = Duration::from_secs(3600);

/// One per hour, and so many at once.
fn hourly(burst: u32) -> Quota {
    Quota::per(1, HOUR).burst(burst)
}

/// What a test has taken would stay in Redis for hours.
async fn forget(limiters: &[&RateLimiter]) {
    for limiter in limiters {
        limiter.reset().await.unwrap();
    }
}

async fn a_burst_is_allowed_and_the_rest_refused(env: Env) {
    let limiter = env.client().await.rate_limiter("a", hourly(3));
    let fresh = limiter.inspect().await.unwrap();
    assert!(fresh.is_allowed() && fresh.retry_after.is_none());
    assert_eq!((fresh.limit, fresh.remaining, fresh.reset_after), (3, 3, Duration::ZERO));
    for remaining in [2, 1, 0] {
        let decision = limiter.check().await.unwrap();
        assert!(!decision.limited && decision.retry_after.is_none());
        assert_eq!((decision.limit, decision.remaining), (3, remaining));
        let taken = HOUR * (3 - remaining);
        assert!(decision.reset_after <= taken && decision.reset_after > taken - HOUR / 2, "{decision:?}");
    }
    for decision in [limiter.check().await.unwrap(), limiter.inspect().await.unwrap()] {
        assert!(decision.limited && !decision.is_allowed());
        assert_eq!(decision.remaining, 0);
        let (retry, reset) = (decision.retry_after.unwrap(), decision.reset_after);
        assert!(retry <= HOUR && retry > HOUR / 2 && reset == retry + 2 * HOUR, "{decision:?}");
    }
    forget(&[&limiter]).await;
}

async fn programs_share_a_rate_and_names_do_not(env: Env) {
    let clients = join_all((0..3).map(|_| env.client())).await;
    let limiters: Vec<_> = clients.iter().map(|client| client.rate_limiter("a", hourly(10))).collect();
    let decisions = join_all((0..30).map(|n| limiters[n % 3].check())).await;
    let allowed = decisions.into_iter().filter(|decision| decision.as_ref().unwrap().is_allowed()).count();
    assert_eq!(allowed, 10);
    let other = clients[0].rate_limiter("b", hourly(10));
    assert_eq!(other.check().await.unwrap().remaining, 9);
    // A lock of that name is another thing.
    clients[0].lock("a").lock().await.unwrap().release().await.unwrap();
    forget(&[&limiters[0], &other]).await;
}

async fn permits_come_back_one_at_a_time(env: Env) {
    let limiter = env.client().await.rate_limiter("a", Quota::per(10, 1000 * MS).burst(2));
    let began = env.now();
    let mut allowed = 0;
    while allowed < 6 {
        let decision = limiter.check().await.unwrap();
        allowed += u32::from(decision.is_allowed());
        if let Some(pause) = decision.retry_after {
            assert!(pause <= 100 * MS, "{decision:?}");
            env.sleep(pause).await;
        }
        // At most the burst, and one for each interval since.
        assert!(100 * MS * allowed.saturating_sub(2) <= env.now() - began);
    }
    forget(&[&limiter]).await;
}

async fn a_call_takes_all_that_it_costs_or_nothing(env: Env) {
    let limiter = env.client().await.rate_limiter("a", hourly(5));
    assert_eq!(limiter.check_n(3).await.unwrap().remaining, 2);
    let refused = limiter.check_n(3).await.unwrap();
    assert!(refused.limited && refused.remaining == 2);
    assert!(refused.retry_after.is_some_and(|wait| wait <= HOUR));
    assert_eq!(limiter.check_n(2).await.unwrap().remaining, 0);
    forget(&[&limiter]).await;
}

async fn waiters_are_served_in_turn_and_never_early(env: Env) {
    let (interval, burst) = (100 * MS, 2);
    let clients = join_all((0..2).map(|_| env.client())).await;
    let limiters: Vec<_> =
        clients.iter().map(|client| client.rate_limiter("a", Quota::per(10, 1000 * MS).burst(burst))).collect();
    let began = env.now();
    let waits = (0..8).map(|n| {
        let (ready, env) = (limiters[n % 2].until_ready(), env.clone());
        async move { ready.await.map(|()| env.now()) }
    });
    let mut ends: Vec<_> = join_all(waits).await.into_iter().map(|end| end.unwrap()).collect();
    ends.sort_unstable();
    for (n, end) in (0..).zip(ends) {
        assert!(end >= began + interval * u32::saturating_sub(n + 1, burst), "{n}");
    }
    forget(&[&limiters[0]]).await;
}

async fn a_wait_that_is_too_long_fails_at_once_and_takes_nothing(env: Env) {
    let limiter = env.client().await.rate_limiter("a", hourly(2));
    assert!(limiter.check_n(2).await.unwrap().is_allowed());
    let before = limiter.inspect().await.unwrap().reset_after;
    // It does not wait for the timeout.
    let error = env.soon("at once", limiter.ready_within(2, HOUR)).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::TimedOut, "until_ready", Some("a")));
    let told = error.to_string();
    assert!(told.contains("the permits are free in 71") && error.source().is_none(), "{told}");
    let after = limiter.inspect().await.unwrap().reset_after;
    assert!(after <= before && after > before - HOUR / 2);
    // Without a timeout, the longest wait is 31 days.
    let rare = env.client().await.rate_limiter("b", Quota::per(1, MAX_REFILL));
    assert!(rare.check().await.unwrap().is_allowed());
    assert!(rare.inspect().await.unwrap().limited);
    let other = env.client().await;
    let behind = env.spawn(other.rate_limiter("b", Quota::per(1, MAX_REFILL)).until_ready());
    env.eventually("one waits", async || rare.inspect().await.unwrap().reset_after > MAX_REFILL).await;
    for wait in [rare.until_ready(), rare.ready_within(1, 2 * MAX_REFILL)] {
        assert_eq!(env.soon("at once", wait).await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    other.close().await;
    assert_eq!(env.soon("its end", behind).await.unwrap_err().kind(), ErrorKind::Closed);
    forget(&[&limiter, &rare]).await;
}

async fn a_check_takes_nothing_from_a_waiter(env: Env) {
    let limiter = env.client().await.rate_limiter("a", Quota::per(1, 600 * MS));
    assert!(limiter.check().await.unwrap().is_allowed());
    let waits = env.spawn(limiter.until_ready());
    let reserved = || async { limiter.inspect().await.unwrap().reset_after > 600 * MS };
    let began = env.now();
    env.eventually("it has reserved", async || reserved().await || env.now() - began > 600 * MS).await;
    let decision = limiter.check().await.unwrap();
    // On a machine that stood still, the turn of the waiter is over.
    assert!(decision.limited || env.now() - began > 600 * MS, "{decision:?}");
    env.soon("its turn", waits).await.unwrap();
    forget(&[&limiter]).await;
}

async fn a_quota_counts_from_the_next_call_on(env: Env) {
    let client = env.client().await;
    let (wide, narrow) = (client.rate_limiter("a", hourly(10)), client.rate_limiter("a", hourly(2)));
    assert!(wide.check_n(5).await.unwrap().is_allowed());
    let refused = narrow.check().await.unwrap();
    assert_eq!((refused.limited, refused.limit, refused.remaining), (true, 2, 0));
    assert!(refused.retry_after.unwrap() > 3 * HOUR);
    // Twice the rate: each costs half as much, and the burst refills in less time.
    let fast = client.rate_limiter("a", Quota::per(2, HOUR).burst(20));
    assert_eq!(fast.check().await.unwrap().remaining, 9);
    assert_eq!(wide.check().await.unwrap().remaining, 3);
    forget(&[&wide]).await;
}

async fn a_reset_gives_the_whole_burst(env: Env) {
    let limiter = env.client().await.rate_limiter("a", hourly(2));
    assert!(!limiter.reset().await.unwrap());
    assert!(limiter.check_n(2).await.unwrap().is_allowed());
    assert!(limiter.check().await.unwrap().limited);
    assert!(limiter.reset().await.unwrap());
    assert_eq!(env.keys(), [""; 0]);
    assert_eq!(limiter.check().await.unwrap().remaining, 1);
    forget(&[&limiter]).await;
}

async fn what_makes_no_sense_is_refused_and_nothing_is_sent(env: Env) {
    let client = env.client().await;
    client.counts.reset();
    let limiter = |name, quota| client.rate_limiter(name, quota);
    for bad in [
        limiter("", hourly(1)),
        limiter("a", hourly(0)),
        limiter("a", Quota::per(0, HOUR)),
        limiter("a", Quota::per(1, Duration::ZERO)),
        limiter("a", Quota::per(11, Duration::from_micros(1))),
        limiter("a", Quota::per(1, MAX_REFILL + Duration::from_nanos(1))),
    ] {
        for (error, operation) in [
            (bad.check().await.unwrap_err(), "check"),
            (bad.until_ready().await.unwrap_err(), "until_ready"),
            (bad.inspect().await.unwrap_err(), "inspect"),
        ] {
            assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, operation), "{error}");
        }
    }
    let good = limiter("a", hourly(3));
    let zeros =
        [good.check_n(0).await.map(drop), good.ready_within(0, HOUR).await, good.ready_within(1, Duration::ZERO).await];
    for error in zeros.map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")), "{error}");
    }
    for error in [good.check_n(4).await.map(drop), good.ready_within(4, HOUR).await].map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.name()), (ErrorKind::OverLimit, Some("a")), "{error}");
    }
    assert_eq!(client.counts.total(), 0);
    // A reset needs no quota.
    assert!(!limiter("a", hourly(0)).reset().await.unwrap());
}

async fn every_call_is_one_command(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", Quota::per(20, 1000 * MS).burst(1));
    client.counts.reset();
    for ready in join_all((0..5).map(|_| limiter.until_ready())).await {
        ready.unwrap();
    }
    assert_eq!((client.counts.total(), client.counts.of("rate_take")), (5, 5), "{:?}", client.counts.all());
    let mut checks = 0;
    for _ in 0..5 {
        let _ = limiter.check().await.unwrap();
        checks += 1;
    }
    let _ = limiter.inspect().await.unwrap();
    limiter.reset().await.unwrap();
    assert_eq!(client.counts.total(), 5 + checks + 2, "{:?}", client.counts.all());
}

async fn a_closed_client_ends_its_waits(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let limiter = client.rate_limiter("a", hourly(1));
    assert!(limiter.check().await.unwrap().is_allowed());
    let waits = env.spawn(limiter.until_ready());
    let seen = other.rate_limiter("a", hourly(1));
    env.eventually("it waits", async || seen.inspect().await.unwrap().reset_after > HOUR).await;
    client.close().await;
    let error = env.soon("its end", waits).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Closed, "until_ready"));
    for closed in [limiter.check().await.map(drop), limiter.until_ready().await, limiter.reset().await.map(drop)] {
        assert_eq!(closed.unwrap_err().kind(), ErrorKind::Closed);
    }
    // What it has reserved is spent.
    assert!(seen.inspect().await.unwrap().reset_after > HOUR);
    forget(&[&seen]).await;
}

async fn a_key_of_another_type_is_an_error(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", hourly(1));
    let key = "bowline:rate:{a}:tat";
    if env.is_embedded() {
        let push = "redis.call('RPUSH', KEYS[1], 'x') return redis.call('PEXPIRE', KEYS[1], 60000)";
        env.embedded().eval(push, &[key.as_bytes()], &[]).unwrap();
    } else {
        env.allow_forever(key);
        env.redis::<u64>(&["RPUSH", key, "x"]);
    }
    for error in [limiter.check().await.map(drop), limiter.until_ready().await, limiter.inspect().await.map(drop)] {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongType);
        let told = format!("{error:#}");
        assert!(told.contains("the key bowline:rate:{a}:tat holds a list, where bowline writes a string"), "{told}");
    }
    forget(&[&limiter]).await;
    assert!(limiter.check().await.unwrap().is_allowed());
    forget(&[&limiter]).await;
}

async fn a_user_without_the_right_is_told(env: Env) {
    let client = env.client().await;
    let limiter = client.rate_limiter("a", hourly(1));
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "-set"]);
    for refused in [limiter.check().await.map(drop), limiter.until_ready().await] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied);
    }
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "+set"]);
    assert!(limiter.check().await.unwrap().is_allowed());
    forget(&[&limiter]).await;
}
