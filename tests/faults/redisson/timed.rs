//! Permits that expire and that Java shares, when requests, answers and messages get lost, and rights are missing.

use bowline::{Client, ErrorKind, Loss, RedissonPermitGuard};
use futures::future::BoxFuture;

use super::{HOUR, PERMITS, other};
use crate::faulty::{Fault, Faults, Messages, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, TestClient, on_every_runtime};

on_every_runtime! {
    permits_that_expire_survive_lost_requests_and_answers,
    a_copy_behind_the_release_of_its_permit_takes_none,
    a_late_request_for_a_permit_takes_none,
    a_late_copy_of_a_try_that_found_no_permit_takes_none,
    an_acquisition_of_a_permit_that_is_dropped_while_its_answer_is_under_way_is_given_back,
    a_release_of_a_permit_whose_answer_is_lost_leaves_the_others_alone,
    a_permit_of_a_client_that_is_cut_off_ends_with_its_lease,
    a_lost_message_costs_a_third_of_the_lease_also_beside_a_lease_without_end,
    a_new_subscription_makes_up_for_a_lost_message_about_permits,
    without_the_right_to_its_channel_no_permit_that_expires_is_taken,
    the_error_of_a_wrong_type_names_both_keys_and_no_mark,
}

const LEASES: &str = "{java:s}:timeout";

/// Deletes the semaphore, which would stay.
fn end(env: &Env) {
    env.redis::<i64>(&["DEL", PERMITS]);
    env.redis::<i64>(&["DEL", LEASES]);
}

/// A semaphore with so many permits, of a client that no fault concerns.
async fn begun(env: &Env, permits: u32) -> (TestClient, bowline::RedissonPermitSemaphore) {
    let other = other(env).await;
    let semaphore = other.redisson().permit_semaphore(PERMITS);
    assert!(semaphore.try_set_permits(permits).await.unwrap());
    (other, semaphore)
}

/// How many are free and how many are taken.
async fn counts(semaphore: &bowline::RedissonPermitSemaphore) -> (u64, u64) {
    let state = semaphore.inspect().await.unwrap();
    (state.available, state.acquired)
}

async fn permits_that_expire_survive_lost_requests_and_answers(env: Env) {
    let (_other, others) = begun(&env, 2).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable] {
        let lost = |script: &str| faults.next(script, [fault.clone(), fault.clone()]);
        lost("timed_acquire");
        let permit = semaphore.acquire().await.unwrap();
        assert_eq!(counts(&others).await, (1, 1), "taken once");
        lost("timed_acquire");
        let second = semaphore.try_acquire().await.unwrap().unwrap();
        lost("timed_acquire");
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        lost("timed_release");
        permit.release().await.unwrap();
        assert_eq!(counts(&others).await, (1, 1), "given once");
        lost("timed_release");
        drop(second);
        env.eventually("given back", async || counts(&others).await == (2, 0)).await;
        for permits in [5, 2] {
            lost("timed_set");
            semaphore.set_permits(permits).await.unwrap();
            assert_eq!(counts(&others).await, (permits.into(), 0));
        }
        for change in [3, -3] {
            lost("shared_release");
            semaphore.add_permits(change).await.unwrap();
        }
        assert_eq!(counts(&others).await, (2, 0));
        let permit = others.acquire().await.unwrap();
        lost("timed_release");
        assert!(semaphore.release_id(&permit.id()).await.unwrap(), "the answer is that of the first copy");
        lost("timed_release");
        assert!(!semaphore.release_id(&permit.id()).await.unwrap());
        assert_eq!(permit.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(counts(&others).await, (2, 0));
    }
    end(&env);
}

/// The first copy is executed when the second one was answered and its permit given back: by a release, or by a drop.
async fn a_copy_behind_the_release_of_its_permit_takes_none(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    for by_drop in [false, true] {
        faults.next("timed_acquire", [Fault::Late]);
        let permit = semaphore.acquire().await.unwrap();
        assert_eq!(faults.calls("timed_acquire"), if by_drop { 4 } else { 2 });
        if by_drop {
            drop(permit);
            env.eventually("it is given back", async || counts(&others).await == (1, 0)).await;
        } else {
            permit.release().await.unwrap();
        }
        assert_eq!(faults.send_late().await.len(), 1);
        assert_eq!(counts(&others).await, (1, 0), "by drop: {by_drop}");
        // Nobody else is kept from it.
        others.acquire().await.unwrap().release().await.unwrap();
    }
    end(&env);
}

/// The server executes it when nobody waits for the answer any more, before or after it has heard of that.
async fn a_late_request_for_a_permit_takes_none(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    for pause in [0, 400] {
        faults.always("timed_acquire", Fault::Late);
        let late = semaphore.acquire().timeout(ms(300)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        faults.heal();
        env.eventually("it is cancelled", async || faults.answered("timed_release") > 0).await;
        env.sleep(ms(pause)).await;
        assert!(!faults.send_late().await.is_empty());
        assert_eq!(counts(&others).await, (1, 0));
    }
    end(&env);
}

/// The second copy was told that no permit is free.
async fn a_late_copy_of_a_try_that_found_no_permit_takes_none(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let held = others.acquire().await.unwrap();
    faults.next("timed_acquire", [Fault::Late]);
    assert!(client.redisson().permit_semaphore(PERMITS).try_acquire().await.unwrap().is_none());
    assert_eq!(faults.calls("timed_acquire"), 2);
    env.eventually("it is cancelled", async || faults.answered("timed_release") > 0).await;
    held.release().await.unwrap();
    assert!(!faults.send_late().await.is_empty());
    assert_eq!(counts(&others).await, (1, 0));
    end(&env);
}

async fn an_acquisition_of_a_permit_that_is_dropped_while_its_answer_is_under_way_is_given_back(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    faults.next("timed_acquire", [Fault::HangReply]);
    assert_eq!(semaphore.acquire().timeout(ms(200)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    env.eventually("it is given back", async || counts(&others).await == (1, 0)).await;
    assert_eq!(faults.calls("timed_release"), 1);
    faults.release();
    end(&env);
}

async fn a_release_of_a_permit_whose_answer_is_lost_leaves_the_others_alone(env: Env) {
    let (other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let permit = client.redisson().permit_semaphore(PERMITS).acquire().await.unwrap();
    let waiting = env.spawn({
        let others = others.clone();
        async move { others.acquire().await }
    });
    env.eventually("it waits", async || other.stats().waiting == 1).await;
    faults.next("timed_release", [Fault::LoseReply, Fault::LoseReply]);
    permit.release().await.unwrap();
    assert_eq!(faults.calls("timed_release"), 3);
    let next = env.soon("the next one", waiting).await.unwrap();
    assert_eq!(counts(&others).await, (0, 1));
    next.release().await.unwrap();
    end(&env);
}

/// Nothing of it arrives any more, neither renewals nor the release.
async fn a_permit_of_a_client_that_is_cut_off_ends_with_its_lease(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let permit = client.redisson().permit_semaphore(PERMITS).acquire().await.unwrap();
    for script in ["timed_renew", "timed_release"] {
        faults.always(script, Fault::LoseRequest);
    }
    // The lease of the waiter is an hour, and it hears no message.
    let next = env.soon("the lease ends", async { others.acquire().await }).await.unwrap();
    assert!(!permit.is_valid(), "two have one permit");
    assert_eq!(env.soon("the loss is told", permit.lost()).await, Loss::Expired);
    assert_eq!(counts(&others).await, (0, 1));
    faults.heal();
    drop(permit);
    next.release().await.unwrap();
    env.eventually("one is there", async || counts(&others).await == (1, 0)).await;
    end(&env);
}

/// A task that waits for a permit, has asked since it listens, and hears nothing from now on.
async fn deaf_waiter(
    env: &Env,
    client: &Client,
    faults: &Faults,
) -> BoxFuture<'static, bowline::Result<RedissonPermitGuard>> {
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    let waiting = env.spawn(async move { semaphore.acquire().await });
    env.eventually("it has asked since it listens", async || faults.calls("timed_acquire") >= 2).await;
    faults.messages(Messages::Swallow);
    waiting
}

async fn a_lost_message_costs_a_third_of_the_lease_also_beside_a_lease_without_end(env: Env) {
    let (_other, others) = begun(&env, 2).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(4500))).await;
    let permits = [others.acquire().await.unwrap(), others.acquire().await.unwrap()];
    // As Java writes it: one that never ends, and nothing else is told of.
    env.redis::<i64>(&["ZADD", LEASES, "922337203685477", "0123456789abcdef"]);
    let waiting = deaf_waiter(&env, &client, &faults).await;
    let [first, _second] = permits;
    first.release().await.unwrap();
    env.soon("it asks", waiting).await.unwrap().release().await.unwrap();
    assert!(faults.swallowed() >= 1);
    end(&env);
}

/// The message is lost with the socket that would have carried it, and nothing else would wake the waiter.
async fn a_new_subscription_makes_up_for_a_lost_message_about_permits(env: Env) {
    let (_other, others) = begun(&env, 1).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let held = others.acquire().await.unwrap();
    let waiting = deaf_waiter(&env, &client, &faults).await;
    held.release().await.unwrap();
    env.eventually("the message is lost", async || faults.swallowed() >= 1).await;
    env.redis::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    env.soon("the gap wakes it", waiting).await.unwrap().release().await.unwrap();
    end(&env);
}

/// The documented user has no rights to Redisson's channels, and is told before it has a permit.
async fn without_the_right_to_its_channel_no_permit_that_expires_is_taken(env: Env) {
    let (client, other, name) = (env.client().await, other(&env).await, "bowline:s");
    for key in [name, "{bowline:s}:timeout"] {
        env.allow_forever(key);
    }
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "+incrby", "~{bowline:s}:timeout"]);
    let (semaphore, others) = (client.redisson().permit_semaphore(name), other.redisson().permit_semaphore(name));
    assert!(others.try_set_permits(2).await.unwrap());
    let denied = [
        semaphore.acquire().await.map(drop).unwrap_err(),
        semaphore.try_acquire().await.map(drop).unwrap_err(),
        semaphore.set_permits(3).await.unwrap_err(),
        semaphore.add_permits(1).await.unwrap_err(),
    ];
    for error in denied {
        assert_eq!((error.kind(), error.name()), (ErrorKind::Denied, Some(name)));
    }
    assert_eq!(counts(&others).await, (2, 0));
    // Who may publish there, may take one, and gives it back also if that right is gone.
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "&redisson_sc:*"]);
    let permit = semaphore.acquire().await.unwrap();
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "resetchannels", "&bowline:inbox:*"]);
    permit.release().await.unwrap();
    assert_eq!(counts(&others).await, (2, 0));
    // Without the right to the other key, nothing is taken.
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "resetkeys", "~bowline:*", "&redisson_sc:*"]);
    assert_eq!(semaphore.acquire().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(counts(&others).await, (2, 0));
    env.redis::<i64>(&["DEL", name]);
}

/// The key of a mark has the id of a permit in it.
async fn the_error_of_a_wrong_type_names_both_keys_and_no_mark(env: Env) {
    let client = other(&env).await;
    let semaphore = client.redisson().permit_semaphore(PERMITS);
    env.redis::<()>(&["HSET", PERMITS, "a", "1"]);
    for (told, mends) in [
        ("the key java:s holds a hash, where bowline writes a string", ["DEL", PERMITS]),
        ("the key {java:s}:timeout holds a list, where bowline writes a sorted set", ["DEL", LEASES]),
    ] {
        let errors = [
            semaphore.try_acquire().await.map(drop).unwrap_err(),
            semaphore.inspect().await.map(drop).unwrap_err(),
            semaphore.set_permits(1).await.unwrap_err(),
        ];
        for error in errors {
            let shown = format!("{error:#}");
            assert!(error.kind() == ErrorKind::WrongType && shown.contains(told), "{shown}");
            assert!(!shown.contains(":call:"), "{shown}");
        }
        env.redis::<i64>(&mends);
        env.redis::<i64>(&["RPUSH", LEASES, "x"]);
    }
    end(&env);
}
