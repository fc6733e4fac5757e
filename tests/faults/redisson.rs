//! Locks that Java shares, when requests, answers and messages get lost, and rights are missing.

// Permits that are given back.
mod permits;
// Those that expire.
mod timed;

use std::time::Duration;

use bowline::{Client, ErrorKind, RedissonGuard, RedissonLock};
use futures::future::BoxFuture;

use crate::faulty::{Fault, Faults, Messages, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::proxy::Proxy;

on_every_runtime! {
    an_acquisition_survives_lost_requests_and_answers,
    a_release_whose_answer_is_lost_leaves_the_next_hold_alone,
    an_acquisition_that_is_dropped_while_its_answer_is_under_way_is_released,
    a_request_that_comes_too_late_takes_nothing,
    a_lost_message_costs_the_rest_of_the_lease,
    a_new_subscription_makes_up_for_a_lost_message,
    a_cohort_leaves_the_lock_to_others_and_needs_no_message_of_its_own,
    a_cohort_whose_subscription_is_down_leaves_the_lock_to_other_clients,
    a_release_by_force_without_an_answer_is_not_repeated,
    without_the_right_to_the_channel_nothing_is_acquired,
    a_refused_subscription_fails_the_acquisition,
    calls_of_a_latch_survive_lost_requests_and_answers,
    a_lost_message_of_a_latch_costs_a_third_of_the_lease,
    without_the_right_to_its_channel_a_latch_stays,
    permits_survive_lost_requests_and_answers,
    a_late_request_for_permits_takes_none,
    permits_of_a_failed_acquisition_come_back_when_the_server_does,
    a_release_that_fails_goes_on_in_the_background,
    a_lost_message_of_permits_costs_a_third_of_the_lease,
    without_the_right_to_its_channel_no_permit_is_taken,
    the_error_of_a_wrong_type_names_the_key_and_no_mark,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

async fn other(env: &Env) -> TestClient {
    env.client_with_all_rights(|config| config.lease(HOUR)).await
}

/// Whether nobody has the lock `a`.
fn is_free(env: &Env) -> bool {
    !env.keys().contains(&"a".to_owned())
}

async fn an_acquisition_survives_lost_requests_and_answers(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().fenced_lock("a");
    for (n, fault) in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable].into_iter().enumerate() {
        faults.next("redisson_acquire_fenced", [fault.clone(), fault]);
        let guard = lock.lock().await.unwrap();
        assert_eq!(guard.token().get(), n as u64 + 1, "each acquisition counts once");
        assert_eq!(lock.inspect().await.unwrap().holder.unwrap().entries, 1);
        guard.release().await.unwrap();
        assert!(is_free(&env));
    }
    assert_eq!(faults.calls("redisson_acquire_fenced"), 9);
}

async fn a_release_whose_answer_is_lost_leaves_the_next_hold_alone(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let guard = client.redisson().lock("a").lock().await.unwrap();
    let waiting = env.spawn({
        let lock = other.redisson().lock("a");
        async move { lock.lock().await }
    });
    env.eventually("it waits", async || other.stats().waiting == 1).await;
    faults.next("redisson_release", [Fault::LoseReply, Fault::LoseReply]);
    guard.release().await.unwrap();
    assert_eq!(faults.calls("redisson_release"), 3);
    let next = env.soon("the next one", waiting).await.unwrap();
    assert!(other.redisson().lock("a").inspect().await.unwrap().holder.is_some());
    next.release().await.unwrap();
    // Without an earlier request that may have released, "not held" is a loss.
    let guard = client.redisson().lock("a").lock().await.unwrap();
    assert!(other.redisson().lock("a").force_release().await.unwrap());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn an_acquisition_that_is_dropped_while_its_answer_is_under_way_is_released(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().lock("a");
    faults.next("redisson_acquire", [Fault::HangReply]);
    let late = lock.lock().timeout(ms(200)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    env.eventually("it is released", async || is_free(&env)).await;
    assert_eq!(faults.calls("redisson_release"), 1);
    faults.release();
}

/// The server executes it when nobody waits for the answer any more.
async fn a_request_that_comes_too_late_takes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().lock("a");
    faults.always("redisson_acquire", Fault::Late);
    assert_eq!(lock.lock().timeout(ms(300)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    faults.heal();
    env.sleep(ms(400)).await;
    assert!(!faults.send_late().await.is_empty());
    assert!(is_free(&env), "{:?}", env.keys());
}

/// A task that waits for the lock `a`, has asked since it listens, and hears nothing from now on.
async fn deaf_waiter(
    env: &Env,
    client: &Client,
    faults: &Faults,
) -> BoxFuture<'static, bowline::Result<RedissonGuard>> {
    let lock = client.redisson().lock("a");
    let waiting = env.spawn(async move { lock.lock().await });
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{a}") == 1).await;
    env.eventually("it has asked again", async || faults.calls("redisson_acquire") >= 2).await;
    faults.messages(Messages::Swallow);
    waiting
}

async fn a_lost_message_costs_the_rest_of_the_lease(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let held = other.redisson().lock("a").lock().expires_after(ms(1500)).await.unwrap();
    let waiting = deaf_waiter(&env, &client, &faults).await;
    held.release().await.unwrap();
    env.soon("the lease would have ended", waiting).await.unwrap().release().await.unwrap();
    assert!(faults.swallowed() >= 1);
}

/// A cohort with more members than a hand-off budget. Each releases at once.
fn members(env: &Env, lock: &RedissonLock) -> Vec<BoxFuture<'static, bowline::Result<()>>> {
    let member = |_| {
        let lock = lock.clone();
        env.spawn(async move { lock.lock().await?.release().await })
    };
    (0..40).map(member).collect()
}

/// A task with a lease of its own waits beside the cohort, which has more members than a hand-off budget. Messages are
/// lost. The lease is an hour, so the cohort goes on when its own message has not come for a while.
async fn a_cohort_leaves_the_lock_to_others_and_needs_no_message_of_its_own(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR).handoff_time(ms(10_000))).await;
    let lock = client.redisson().lock("a");
    let held = lock.lock().await.unwrap();
    let other = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().lease(HOUR / 2).await?.release().await }
    });
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{a}") == 1).await;
    env.eventually("it has asked since", async || faults.calls("redisson_acquire") >= 3).await;
    let members = members(&env, &lock);
    env.eventually("all wait", async || client.stats().waiting == 41).await;
    faults.messages(Messages::Swallow);
    let begun = env.now();
    held.release().await.unwrap();
    for member in members {
        env.soon("it is served", member).await.unwrap();
    }
    assert!(env.now() - begun >= OWN_MESSAGE, "others were left no time");
    assert!(faults.swallowed() >= 1);
    faults.messages(Messages::Pass);
    lock.lock().await.unwrap().release().await.unwrap();
    env.soon("it hears the next one", other).await.unwrap();
}

/// The server counts one listener of the message. It is not the cohort, whose subscription has no socket.
async fn a_cohort_whose_subscription_is_down_leaves_the_lock_to_other_clients(env: Env) {
    let other = other(&env).await;
    let proxy = Proxy::start(env.server().port());
    let client = env.client_at(&proxy.url(), |config| config.lease(HOUR).handoff_time(ms(10_000))).await.unwrap();
    let lock = client.redisson().lock("a");
    let held = other.redisson().lock("a").lock().await.unwrap();
    let first = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().await }
    });
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{a}") == 1).await;
    let members = members(&env, &lock);
    env.eventually("all wait", async || client.stats().waiting == 41).await;
    held.release().await.unwrap();
    let held = env.soon("the first member", first).await.unwrap();
    let waiting = env.spawn({
        let lock = other.redisson().lock("a");
        async move { lock.lock().await?.release().await }
    });
    env.eventually("both listen", async || env.listeners("redisson_lock__channel:{a}") == 2).await;
    proxy.refuse(true);
    let dialed = proxy.accepted();
    env.redis::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    env.eventually("the client dials in vain", async || proxy.accepted() > dialed).await;
    env.eventually("the other one listens", async || env.listeners("redisson_lock__channel:{a}") == 1).await;
    let begun = env.now();
    held.release().await.unwrap();
    for member in members {
        env.soon("it is served", member).await.unwrap();
    }
    assert!(env.now() - begun >= OWN_MESSAGE, "others were left no time");
    env.soon("the other client", waiting).await.unwrap();
}

/// As long as a cohort waits for its own message.
const OWN_MESSAGE: Duration = ms(50);

/// The message is lost with the socket that would have carried it, and nothing else would wake the waiter.
async fn a_new_subscription_makes_up_for_a_lost_message(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let held = other.redisson().lock("a").lock().await.unwrap();
    let waiting = deaf_waiter(&env, &client, &faults).await;
    held.release().await.unwrap();
    env.eventually("the message is lost", async || faults.swallowed() >= 1).await;
    env.redis::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    env.soon("the gap wakes it", waiting).await.unwrap().release().await.unwrap();
}

/// A Java thread has one owner id for all of its holds, so the request must not be sent twice.
async fn a_release_by_force_without_an_answer_is_not_repeated(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let lock = client.redisson().lock("a");
    for (fault, kind, sent) in [
        (Fault::LoseReply, Some(ErrorKind::Unavailable), 1),
        (Fault::LoseRequest, Some(ErrorKind::Unavailable), 1),
        (Fault::Unreachable, None, 2),
    ] {
        let guard = lock.lock().await.unwrap();
        let before = faults.calls("redisson_release");
        faults.next("redisson_release", [fault]);
        assert_eq!(lock.force_release().await.err().map(|error| error.kind()), kind);
        assert_eq!(faults.calls("redisson_release"), before + sent);
        drop(guard);
        env.eventually("it is released", async || is_free(&env)).await;
    }
}

/// The documented user has no rights to Redisson's channels, and is told before it holds what it could not announce.
async fn without_the_right_to_the_channel_nothing_is_acquired(env: Env) {
    // Its key begins like those of the user.
    let (client, name) = (env.client().await, "bowline:a");
    for _ in 0..2 {
        let denied = client.redisson().lock(name).lock().await.unwrap_err();
        assert_eq!((denied.kind(), denied.name()), (ErrorKind::Denied, Some(name)));
        assert_eq!(client.redisson().lock(name).try_lock().await.unwrap_err().kind(), ErrorKind::Denied);
    }
    assert_eq!(client.redisson().fenced_lock(name).lock().await.unwrap_err().kind(), ErrorKind::Denied);
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

/// The rights are taken from a client that has tried them.
async fn a_refused_subscription_fails_the_acquisition(env: Env) {
    let (client, other) = (env.client().await, other(&env).await);
    let name = "bowline:a";
    let rule = |rights: &[&str]| env.redis::<()>(&[&["ACL", "SETUSER", "bowline"], rights].concat());
    rule(&["&redisson_lock__channel:*"]);
    client.redisson().lock(name).lock().await.unwrap().release().await.unwrap();
    assert_eq!(client.counts.of("redisson_acquire"), 1);
    let held = other.redisson().lock(name).lock().await.unwrap();
    let waiting = |client: &TestClient| {
        let lock = client.redisson().lock(name);
        env.spawn(async move { lock.lock().await })
    };
    // One that listens already. Its socket ends with the right.
    let listens = waiting(&client);
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{bowline:a}") == 1).await;
    // The third request follows the confirmation of the subscription.
    env.eventually("it is subscribed", async || client.counts.of("redisson_acquire") >= 3).await;
    rule(&["resetchannels", "&bowline:inbox:*"]);
    env.redis::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(env.soon("it is told", listens).await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(env.soon("it is told", waiting(&client)).await.unwrap_err().kind(), ErrorKind::Denied);
    // With the right, it waits again.
    rule(&["&redisson_lock__channel:*"]);
    let listens = env.spawn({
        let (lock, env) = (client.redisson().lock(name), env.clone());
        async move {
            loop {
                match lock.lock().await {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Denied),
                    Ok(guard) => return guard,
                }
                env.sleep(ms(20)).await;
            }
        }
    });
    env.eventually("it listens", async || env.listeners("redisson_lock__channel:{bowline:a}") == 1).await;
    held.release().await.unwrap();
    env.soon("it is served", listens).await.release().await.unwrap();
}

const LATCH: &str = "java:l";

async fn calls_of_a_latch_survive_lost_requests_and_answers(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let latch = client.redisson().count_down_latch(LATCH);
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable] {
        faults.next("shared_set", [fault.clone(), fault.clone()]);
        assert!(latch.try_set_count(3).await.unwrap());
        for left in [2, 1, 0] {
            faults.next("shared_count_down", [fault.clone(), fault.clone()]);
            assert_eq!(latch.count_down().await.unwrap(), left, "each call counts once");
        }
        assert!(env.keys().is_empty());
    }
    assert_eq!(faults.calls("shared_set"), 9);
    assert_eq!(faults.calls("shared_count_down"), 27);
}

async fn a_lost_message_of_a_latch_costs_a_third_of_the_lease(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(4500))).await;
    let (latch, others) = (client.redisson().count_down_latch(LATCH), other.redisson().count_down_latch(LATCH));
    assert!(others.try_set_count(1).await.unwrap());
    let waiting = env.spawn(async move { latch.wait().await });
    env.eventually("it has looked since it listens", async || faults.calls("shared_count") >= 2).await;
    faults.messages(Messages::Swallow);
    assert_eq!(others.count_down().await.unwrap(), 0);
    env.soon("it looks", waiting).await.unwrap();
    assert!(faults.swallowed() >= 1);
}

/// The documented user has no rights to Redisson's channels.
async fn without_the_right_to_its_channel_a_latch_stays(env: Env) {
    let (client, other, name) = (env.client().await, other(&env).await, "bowline:l");
    env.allow_forever(name);
    let (latch, others) = (client.redisson().count_down_latch(name), other.redisson().count_down_latch(name));
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "+incrby"]);
    let denied = latch.try_set_count(2).await.unwrap_err();
    assert_eq!((denied.kind(), denied.name()), (ErrorKind::Denied, Some(name)));
    assert!(env.keys().is_empty());
    assert!(others.try_set_count(2).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), 1);
    assert_eq!(latch.count_down().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(latch.wait().await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(latch.count().await.unwrap(), 1, "nothing was counted");
    assert_eq!(others.count_down().await.unwrap(), 0);
}

const PERMITS: &str = "java:s";

/// Deletes the semaphore, which would stay.
fn end_permits(env: &Env) {
    env.redis::<i64>(&["DEL", PERMITS]);
}

async fn permits_survive_lost_requests_and_answers(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    for (n, fault) in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable].into_iter().enumerate() {
        let lost = |script: &str| faults.next(script, [fault.clone(), fault.clone()]);
        lost("shared_set");
        assert_eq!(semaphore.try_set_permits(5).await.unwrap(), n == 0);
        lost("shared_take");
        let two = semaphore.acquire_many(2).await.unwrap();
        assert_eq!(semaphore.available().await.unwrap(), 3, "taken once");
        lost("shared_take");
        let rest = semaphore.drain().await.unwrap().unwrap();
        assert_eq!((rest.permits(), semaphore.available().await.unwrap()), (3, 0));
        lost("shared_take");
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        lost("shared_release");
        two.release().await.unwrap();
        assert_eq!(semaphore.available().await.unwrap(), 2, "given once");
        lost("shared_release");
        drop(rest);
        env.eventually("given back", async || semaphore.available().await.unwrap() == 5).await;
        for change in [3, -3] {
            lost("shared_release");
            semaphore.add_permits(change).await.unwrap();
        }
        assert_eq!(semaphore.available().await.unwrap(), 5);
    }
    end_permits(&env);
}

/// The server executes it when nobody waits for the answer any more, before or after it has heard of that.
async fn a_late_request_for_permits_takes_none(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(HOUR)).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    assert!(semaphore.try_set_permits(1).await.unwrap());
    for pause in [0, 400] {
        faults.always("shared_take", Fault::Late);
        let late = semaphore.acquire().timeout(ms(300)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        faults.heal();
        env.sleep(ms(pause)).await;
        assert!(!faults.send_late().await.is_empty());
        env.eventually("it is there", async || semaphore.available().await.unwrap() == 1).await;
    }
    // An answer that is under way when the future is dropped.
    faults.next("shared_take", [Fault::HangReply]);
    assert_eq!(semaphore.acquire().timeout(ms(200)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    env.eventually("it is given back", async || semaphore.available().await.unwrap() == 1).await;
    faults.release();
    end_permits(&env);
}

/// The acquisition took them, failed without an answer, and the server is away for longer than the retry timeout.
async fn permits_of_a_failed_acquisition_come_back_when_the_server_does(env: Env) {
    let other = other(&env).await;
    let (client, faults) =
        faulty_client(&env, |config| config.lease(HOUR).retry_timeout(ms(300)).command_timeout(ms(500))).await;
    let (semaphore, others) = (client.redisson().semaphore(PERMITS), other.redisson().semaphore(PERMITS));
    assert!(semaphore.try_set_permits(2).await.unwrap());
    faults.always("shared_take", Fault::LoseReply);
    faults.always("shared_release", Fault::Unreachable);
    let failed = semaphore.try_acquire_many(2).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable);
    assert_eq!(others.available().await.unwrap(), 0);
    env.sleep(ms(1500)).await;
    assert_eq!(others.available().await.unwrap(), 0);
    faults.heal();
    env.eventually("they are given back", async || others.available().await.unwrap() == 2).await;
    end_permits(&env);
}

async fn a_release_that_fails_goes_on_in_the_background(env: Env) {
    let (client, faults) =
        faulty_client(&env, |config| config.lease(HOUR).retry_timeout(ms(300)).command_timeout(ms(500))).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    for fault in [Fault::LoseReply, Fault::Unreachable] {
        let both = semaphore.acquire_many(2).await.unwrap();
        faults.always("shared_release", fault);
        assert_eq!(both.release().await.unwrap_err().kind(), ErrorKind::Unavailable);
        faults.heal();
        let before = faults.calls("shared_release");
        env.eventually("it is sent again", async || faults.calls("shared_release") > before).await;
        env.eventually("they are given back", async || semaphore.available().await.unwrap() == 2).await;
    }
    end_permits(&env);
}

async fn a_lost_message_of_permits_costs_a_third_of_the_lease(env: Env) {
    let other = other(&env).await;
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(4500))).await;
    let (semaphore, others) = (client.redisson().semaphore(PERMITS), other.redisson().semaphore(PERMITS));
    assert!(others.try_set_permits(1).await.unwrap());
    let held = others.acquire().await.unwrap();
    let waiting = env.spawn(async move { semaphore.acquire().await });
    env.eventually("it has asked since it listens", async || faults.calls("shared_take") >= 2).await;
    faults.messages(Messages::Swallow);
    held.release().await.unwrap();
    env.soon("it asks", waiting).await.unwrap().release().await.unwrap();
    assert!(faults.swallowed() >= 1);
    end_permits(&env);
}

async fn without_the_right_to_its_channel_no_permit_is_taken(env: Env) {
    let (client, other, name) = (env.client().await, other(&env).await, "bowline:s");
    env.allow_forever(name);
    env.redis::<()>(&["ACL", "SETUSER", "bowline", "+incrby"]);
    let (semaphore, others) = (client.redisson().semaphore(name), other.redisson().semaphore(name));
    assert!(others.try_set_permits(2).await.unwrap());
    let denied = [
        semaphore.acquire().await.map(drop).unwrap_err(),
        semaphore.try_acquire().await.map(drop).unwrap_err(),
        semaphore.drain().await.map(drop).unwrap_err(),
        semaphore.release(1).await.unwrap_err(),
        semaphore.add_permits(1).await.unwrap_err(),
    ];
    for error in denied {
        assert_eq!((error.kind(), error.name()), (ErrorKind::Denied, Some(name)));
    }
    // What sends no message needs no right.
    assert!(!semaphore.try_set_permits(1).await.unwrap());
    semaphore.add_permits(-1).await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 1);
    env.redis::<i64>(&["DEL", name]);
    let denied = semaphore.try_set_permits(1).await.unwrap_err();
    assert_eq!((denied.kind(), semaphore.available().await.unwrap()), (ErrorKind::Denied, 0));
}

/// The key of a mark has an attempt id in it.
async fn the_error_of_a_wrong_type_names_the_key_and_no_mark(env: Env) {
    let client = other(&env).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    env.redis::<()>(&["HSET", PERMITS, "a", "1"]);
    for told in ["the key java:s holds a hash, where bowline writes a string", "the key java:s holds a value of a type"]
    {
        let errors = [
            semaphore.try_acquire().await.map(drop).unwrap_err(),
            semaphore.release(1).await.unwrap_err(),
            semaphore.available().await.map(drop).unwrap_err(),
        ];
        for error in errors {
            let shown = format!("{error:#}");
            assert!(error.kind() == ErrorKind::WrongType && shown.contains(told), "{shown}");
            assert!(!shown.contains(":call:"), "{shown}");
        }
        env.redis::<()>(&["SET", PERMITS, "no number"]);
    }
    end_permits(&env);
}
