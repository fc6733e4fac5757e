//! Releases that get lost, whose answers get lost, that are refused, and that arrive late.

use bowline::ErrorKind;

use crate::faulty::{Fault, faulty_client};
use crate::scene::{SLACK, acquiring, assert_holds, is_free, key, ms, until_free, until_waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    behind_hundreds_of_expired_tickets_the_living_is_served,
    refused_requests_are_repeated_with_pauses,
    a_release_without_a_hold_is_a_loss_unless_an_earlier_one_may_have_released,
    a_release_survives_lost_requests_and_replies,
    a_release_hands_over_once_however_often_it_is_sent,
    a_release_that_is_refused_for_ever_ends_with_the_lease,
    a_release_that_is_refused_is_finished_in_the_background,
    a_late_release_does_not_touch_the_next_hold,
    a_release_that_began_in_time_is_no_loss_although_the_lease_ends_meanwhile,
}

async fn a_release_survives_lost_requests_and_replies(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let (guard, releases) = (lock.lock().await.unwrap(), faults.calls("lock_release"));
        faults.next("lock_release", [fault.clone(), fault]);
        guard.release().await.unwrap();
        assert_eq!(faults.calls("lock_release"), releases + 3);
        assert!(is_free(&env, "a"));
    }
    assert_eq!(faults.calls("lock_cancel"), 0);
}

/// The second copy finds the next holder, and leaves it alone.
async fn a_release_hands_over_once_however_often_it_is_sent(env: Env) {
    let other = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let guard = client.lock("a").lock().await.unwrap();
    let waiters = [acquiring(&env, &other, "a"), acquiring(&env, &other, "a")];
    until_waiting(&env, "a", 2).await;
    faults.next("lock_release", [Fault::LoseReply, Fault::LoseReply]);
    guard.release().await.unwrap();
    assert_eq!(faults.calls("lock_release"), 3);
    let (first, _, mut rest) = env.soon("the first waiter", futures::future::select_all(waiters)).await;
    let first = first.unwrap();
    assert_holds(&env, &first);
    until_waiting(&env, "a", 1).await;
    let token = first.token();
    first.release().await.unwrap();
    let second = env.soon("the second waiter", rest.remove(0)).await.unwrap();
    assert!(second.token() > token);
    second.release().await.unwrap();
}

async fn a_release_that_is_refused_for_ever_ends_with_the_lease(env: Env) {
    let (lease, retry_timeout) = (ms(1500), ms(300));
    let (client, faults) = faulty_client(&env, |config| config.lease(lease).retry_timeout(retry_timeout)).await;
    let guard = client.lock("a").lock().await.unwrap();
    for script in ["lock_release", "lock_cancel"] {
        faults.always(script, Fault::Refuse("BUSY Redis is busy running a script"));
    }
    let start = env.now();
    let error = guard.release().await.unwrap_err();
    let took = env.now() - start;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(took >= retry_timeout && took < retry_timeout + SLACK, "{took:?}");
    until_free(&env, "a").await;
    assert!(env.now() - start < lease + SLACK);
    assert_eq!(faults.calls("lock_renew"), 0);
}

async fn a_release_that_is_refused_is_finished_in_the_background(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    let guard = client.lock("a").lock().await.unwrap();
    faults.always("lock_release", Fault::Refuse("LOADING Redis is loading the dataset in memory"));
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Refused);
    // Long before the lease of 30 s ends.
    until_free(&env, "a").await;
    assert_eq!(faults.calls("lock_cancel"), 1);
}

async fn a_late_release_does_not_touch_the_next_hold(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let lock = client.lock("a");
    faults.next("lock_release", [Fault::Late]);
    lock.lock().await.unwrap().release().await.unwrap();
    let guard = lock.lock().await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

/// Two faults in a row, and then the server does not have the hold.
async fn a_release_without_a_hold_is_a_loss_unless_an_earlier_one_may_have_released(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let refused = || Fault::Refuse("LOADING Redis is loading the dataset in memory");
    // None of the requests was executed, because another client acquired the lock.
    for before in [vec![], vec![Fault::Unreachable], vec![refused()], vec![refused(), Fault::Unreachable]] {
        let shown = format!("{before:?}");
        let guard = client.lock("a").lock().await.unwrap();
        env.redis::<()>(&["DEL", &key("a")]);
        faults.next("lock_release", before);
        let error = guard.release().await.expect_err(&shown);
        assert_eq!(error.kind(), ErrorKind::Lost, "{shown}: {error}");
    }
    assert_eq!(client.stats().lost, 4, "each is counted");
    // One of the requests was executed and released the lock.
    for before in [
        vec![Fault::LoseReply],
        vec![Fault::LoseReply, Fault::Unreachable],
        vec![Fault::Unreachable, Fault::LoseReply],
        vec![Fault::LoseReply, refused(), Fault::Unreachable],
        vec![Fault::LoseReply, Fault::LoseRequest],
    ] {
        let (shown, tries) = (format!("{before:?}"), before.len() as u64 + 1);
        let (guard, sent) = (client.lock("a").lock().await.unwrap(), faults.calls("lock_release"));
        faults.next("lock_release", before);
        guard.release().await.expect(&shown);
        assert_eq!(faults.calls("lock_release") - sent, tries, "{shown}");
        assert!(is_free(&env, "a"));
    }
}

/// One call drops 64 of them.
async fn behind_hundreds_of_expired_tickets_the_living_is_served(env: Env) {
    let hour = |config: bowline::ConfigBuilder| config.lease(ms(3_600_000));
    // No waiter asks by itself during the test.
    let (client, other) = (env.client_with(hour).await, env.client_with(hour).await);
    let held = client.lock("a").lock().await.unwrap();
    let dead = "for n = 1, 300 do
        local ticket = 'c0ffee00-0000-4000-8000-000000000000:' .. n .. '/30000/1'
        redis.call('RPUSH', KEYS[1], ticket)
        redis.call('ZADD', KEYS[2], 1, ticket)
    end
    redis.call('PEXPIRE', KEYS[1], 3600000)
    redis.call('PEXPIRE', KEYS[2], 3600000)";
    let (queue, tickets) = (format!("{}:queue", key("a")), format!("{}:tickets", key("a")));
    env.redis::<()>(&["EVAL", dead, "2", &queue, &tickets]);
    let waiter = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 301).await;
    held.release().await.unwrap();
    env.soon("the living", waiter).await.unwrap().release().await.unwrap();
}

/// A server that refuses at once is not asked again at once.
async fn refused_requests_are_repeated_with_pauses(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    let refuse = || Fault::Refuse("LOADING Redis is loading the dataset in memory");
    let guard = client.lock("a").lock().await.unwrap();
    for script in ["lock_acquire", "lock_release"] {
        faults.always(script, refuse());
    }
    let (acquires, releases) = (faults.calls("lock_acquire"), faults.calls("lock_release"));
    assert_eq!(client.lock("b").lock().await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Refused);
    for calls in [faults.calls("lock_acquire") - acquires, faults.calls("lock_release") - releases] {
        assert!((3..=10).contains(&calls), "{calls} in a second");
    }
    until_free(&env, "a").await;
}

async fn a_release_that_began_in_time_is_no_loss_although_the_lease_ends_meanwhile(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1000))).await;
    let guard = client.lock("a").lock().await.unwrap();
    faults.always("lock_release", Fault::Unreachable);
    let released = env.spawn(guard.release());
    until_free(&env, "a").await;
    faults.heal();
    env.soon("the release", released).await.unwrap();
    assert_eq!(client.stats().lost, 0);
    // The hold may have been gone when this request was sent.
    let guard = client.lock("a").lock().await.unwrap();
    faults.next("lock_release", [Fault::Hang]);
    let released = env.spawn(guard.release());
    until_free(&env, "a").await;
    faults.release();
    assert_eq!(env.soon("the release", released).await.unwrap_err().kind(), ErrorKind::Lost);
}
