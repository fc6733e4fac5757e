//! Renewals and heartbeats that get lost, and what the holder and the waiters are told.

use bowline::{ErrorKind, Loss, Notice, Reply};
use futures::future::join_all;

use crate::faulty::{Fault, faulty_client};
use crate::scene::{
    SLACK, acquiring, assert_holds, contended, holders, is_free, ms, until_free, until_waiting, waiting,
};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    renewals_that_get_lost_are_made_up_for,
    a_holder_whose_renewals_all_get_lost_is_told_at_its_deadline,
    a_renewal_of_which_nothing_is_heard_is_sent_again_in_time,
    permits_that_are_joined_are_kept_although_requests_about_them_get_lost,
    a_refused_renewal_is_no_loss,
    a_hold_that_was_taken_for_gone_is_cleaned_up,
    a_late_renewal_does_not_revive_a_hold,
    an_extension_whose_replies_get_lost_is_sent_again,
    an_extension_whose_reply_is_lost_leaves_nothing,
    a_late_extension_shortens_nothing_and_revives_nothing,
    heartbeats_that_get_lost_are_made_up_for,
    a_waiter_whose_ticket_expired_queues_up_again,
    a_waiter_that_cannot_reach_the_server_gives_up,
}

async fn renewals_that_get_lost_are_made_up_for(env: Env) {
    let lease = ms(4000);
    join_all([("a", Fault::LoseRequest), ("b", Fault::LoseReply)].map(async |(name, fault)| {
        let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
        faults.next("lock_renew", [fault.clone(), fault.clone(), fault]);
        let start = env.now();
        let guard = client.lock(name).lock().await.unwrap();
        let first = env.now() + guard.remaining();
        faults.gap();
        env.eventually("a renewal comes through", async || env.now() + guard.remaining() > first + ms(10)).await;
        assert!(env.now() - start < lease, "only after the lease: {:?}", env.now() - start);
        assert_eq!(faults.calls("lock_renew"), 4);
        assert_holds(&env, &guard);
        guard.release().await.unwrap();
    }))
    .await;
}

async fn a_holder_whose_renewals_all_get_lost_is_told_at_its_deadline(env: Env) {
    let lease = ms(600);
    join_all([("a", Fault::LoseRequest), ("b", Fault::LoseReply)].map(async |(name, fault)| {
        let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
        faults.always("lock_renew", fault);
        let start = env.now();
        let guard = client.lock(name).lock().await.unwrap();
        let loss = env.soon("the loss", guard.lost()).await;
        let told = env.now() - start;
        assert_eq!(loss, Loss::Expired);
        assert!(told >= lease - ms(2) && told < lease + SLACK, "{told:?}");
        assert!(!guard.is_valid());
        assert!(faults.calls("lock_renew") >= 2);
        // A renewal whose answer was lost has kept the hold in Redis. The holder has given it up, so it is removed at
        // once.
        env.eventually("it is cleaned up", async || faults.answered("lock_cancel") >= 1).await;
        until_free(&env, name).await;
        let error = guard.release().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        let work = client.lock(&format!("{name} too")).lock().await.unwrap();
        let error = env.soon("work is stopped", work.protect(futures::future::pending::<()>())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        drop(work);
    }))
    .await;
}

/// The first request names one key, and is told that the others are needed. Those that name all keys get lost.
async fn permits_that_are_joined_are_kept_although_requests_about_them_get_lost(env: Env) {
    let lease = ms(3000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    let other = env.client().await;
    let lost = || [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable];
    let permit = client.semaphore("a", 2).acquire().await.unwrap();
    let joined = other.semaphore("a", 2).acquire().await.unwrap();
    faults.next("permit_renew", lost());
    env.eventually("it is renewed", async || faults.answered("permit_renew") >= 2).await;
    env.sleep(lease).await;
    assert!(permit.is_valid());
    assert_eq!(client.stats().lost, 0);

    let fixed = client.semaphore("b", 2).acquire().expires_after(lease).await.unwrap();
    let beside = other.semaphore("b", 2).acquire().await.unwrap();
    let calls = || ["permit_renew_short", "permit_renew"].map(|script| faults.calls(script));
    permit.release().await.unwrap();
    let before = calls();
    faults.next("permit_renew", lost());
    fixed.extend(10 * lease).await.unwrap();
    assert_eq!(calls(), [before[0] + 1, before[1] + 4]);
    assert!(fixed.remaining() > 5 * lease);
    for permit in [fixed, joined, beside] {
        permit.release().await.unwrap();
    }
}

/// The command timeout alone is longer than what the lease leaves.
async fn a_renewal_of_which_nothing_is_heard_is_sent_again_in_time(env: Env) {
    let lease = ms(4000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease).command_timeout(ms(60_000))).await;
    faults.next("lock_renew", [Fault::Silent]);
    faults.next("permit_renew_short", [Fault::Silent]);
    let lock = client.lock("a").lock().await.unwrap();
    let permit = client.semaphore("b", 1).acquire().await.unwrap();
    let first = env.now() + lease;
    env.eventually("both are renewed", async || {
        assert!(lock.is_valid() && permit.is_valid(), "lost");
        env.now() + lock.remaining() > first && env.now() + permit.remaining() > first
    })
    .await;
    assert!(faults.calls("lock_renew") >= 2 && faults.calls("permit_renew_short") >= 2);
    assert_holds(&env, &lock);
    lock.release().await.unwrap();
    permit.release().await.unwrap();
}

async fn a_refused_renewal_is_no_loss(env: Env) {
    let lease = ms(4000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    let refusals = ["READONLY no", "NOREPLICAS no", "MISCONF no", "WRONGTYPE no", "NOPERM no"].map(Fault::Refuse);
    faults.next("lock_renew", refusals);
    let guard = client.lock("a").lock().await.unwrap();
    let first = env.now() + lease;
    faults.gap();
    env.eventually("it is renewed", async || {
        assert!(guard.is_valid(), "lost");
        env.now() + guard.remaining() > first
    })
    .await;
    assert_eq!((faults.calls("lock_renew"), faults.calls("lock_cancel")), (6, 0));
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

/// The one who said so was a server that knows less than the one that comes back, or an operator without the server.
async fn a_hold_that_was_taken_for_gone_is_cleaned_up(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let guard = client.lock("a").lock().await.unwrap();
    faults.next("lock_renew", [Fault::Answer(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]))]);
    faults.next("lock_cancel", [Fault::LoseRequest]);
    faults.gap();
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Gone);
    until_free(&env, "a").await;
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);

    let guard = client.lock("a").lock().await.unwrap();
    let revoked = format!("revoked {}", holders(&env, "a")[0]);
    faults.inject(Notice::Message(revoked.into_bytes()));
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Revoked);
    until_free(&env, "a").await;
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(faults.calls("lock_cancel"), 3);
}

async fn a_late_renewal_does_not_revive_a_hold(env: Env) {
    let (short, short_faults) = faulty_client(&env, |config| config.lease(ms(300))).await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    short_faults.always("lock_renew", Fault::Late);
    faults.next("lock_renew", [Fault::Late]);
    let released = client.lock("b").lock().await.unwrap();
    let lost = short.lock("a").lock().await.unwrap();
    assert_eq!(env.soon("the loss", lost.lost()).await, Loss::Expired);
    until_free(&env, "a").await;
    faults.gap();
    env.eventually("a renewal", async || faults.answered("lock_renew") == 1).await;
    released.release().await.unwrap();

    let guard = client.lock("a").lock().await.unwrap();
    let late = [short_faults.send_late().await, faults.send_late().await].concat();
    assert!(late.len() >= 2);
    assert!(late.iter().all(Result::is_ok), "{late:?}");
    assert!(is_free(&env, "b"));
    assert_holds(&env, &guard);
    assert!(!lost.is_valid());
    guard.release().await.unwrap();
}

async fn heartbeats_that_get_lost_are_made_up_for(env: Env) {
    let other = env.client().await;
    join_all([("a", Fault::LoseRequest), ("b", Fault::LoseReply)].map(async |(name, fault)| {
        let (client, faults) = faulty_client(&env, |config| config.lease(ms(9000))).await;
        let held = other.lock(name).lock().await.unwrap();
        let heartbeats = faults.answered("lock_heartbeat");
        faults.next("lock_heartbeat", [fault.clone(), fault.clone(), fault]);
        let waiter = acquiring(&env, &client, name);
        env.eventually("it waits", async || faults.answered("lock_acquire") == 1).await;
        faults.gap();
        env.eventually("the fourth heartbeat", async || faults.answered("lock_heartbeat") >= heartbeats + 4).await;
        assert_eq!(waiting(&env, name), 1);
        held.release().await.unwrap();
        let guard = env.soon("the waiter", waiter).await.unwrap();
        assert_holds(&env, &guard);
        guard.release().await.unwrap();
    }))
    .await;
}

async fn a_waiter_whose_ticket_expired_queues_up_again(env: Env) {
    let other = env.client().await;
    let ttl = ms(1000);
    let (client, faults) = faulty_client(&env, |config| config.lease(ttl)).await;
    faults.always("lock_heartbeat", Fault::LoseRequest);
    let (held, waiter) = contended(&env, &other, &client).await;
    env.sleep(ttl + ms(100)).await;
    // This release grants to no waiter, because the ticket has expired. Another client may get the lock first.
    held.release().await.unwrap();
    let passed = other.lock("a").try_lock().await.unwrap().expect("a dead ticket blocks no one");
    faults.heal();
    env.eventually("it queues up again", async || faults.calls("lock_acquire") == 2).await;
    until_waiting(&env, "a", 1).await;
    let token = passed.token();
    passed.release().await.unwrap();
    let guard = env.soon("the waiter", waiter).await.unwrap();
    assert!(guard.token() > token);
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
}

async fn a_waiter_that_cannot_reach_the_server_gives_up(env: Env) {
    let other = env.client().await;
    let (ttl, retry_timeout) = (ms(900), ms(300));
    let faults = [
        ("a", Fault::LoseRequest, ErrorKind::Unavailable),
        ("b", Fault::LoseReply, ErrorKind::Unavailable),
        ("c", Fault::Refuse("LOADING Redis is loading the dataset in memory"), ErrorKind::Refused),
    ];
    join_all(faults.map(async |(name, fault, kind)| {
        let (client, faults) = faulty_client(&env, |config| config.lease(ttl).retry_timeout(retry_timeout)).await;
        let held = other.lock(name).lock().await.unwrap();
        faults.always("lock_heartbeat", fault);
        let start = env.now();
        let error = env.soon("it gives up", client.lock(name).lock().into_future()).await.unwrap_err();
        let took = env.now() - start;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(took >= retry_timeout && took < ttl / 3 + retry_timeout + SLACK, "{took:?}");
        until_waiting(&env, name, 0).await;
        held.release().await.unwrap();
    }))
    .await;
}

async fn an_extension_whose_replies_get_lost_is_sent_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Refuse("LOADING on purpose")] {
        let guard = client.lock("a").lock().expires_after(ms(5000)).await.unwrap();
        faults.next("lock_renew", [fault.clone(), fault]);
        let before = faults.calls("lock_renew");
        guard.extend(ms(60_000)).await.unwrap();
        assert_eq!(faults.calls("lock_renew") - before, 3);
        assert!(guard.remaining() > ms(30_000));
        assert_holds(&env, &guard);
        guard.release().await.unwrap();
    }
    let guard = client.lock("a").lock().expires_after(ms(5000)).await.unwrap();
    faults.next("lock_renew", [Fault::Refuse("NOPERM on purpose")]);
    assert_eq!(guard.extend(ms(60_000)).await.unwrap_err().kind(), ErrorKind::Denied);
    assert!(guard.is_valid() && guard.remaining() <= ms(5000));
    guard.release().await.unwrap();
}

/// The server has extended the hold, and the client does not know: the lock is free when the client's lease is over.
async fn an_extension_whose_reply_is_lost_leaves_nothing(env: Env) {
    for dropped in [false, true] {
        let (client, faults) = faulty_client(&env, |config| config).await;
        let guard = client.lock("a").lock().expires_after(ms(600)).await.unwrap();
        let fault = if dropped { Fault::HangReply } else { Fault::LoseReply };
        faults.always("lock_renew", fault);
        if dropped {
            let mut extending = Box::pin(guard.extend(ms(3_600_000)));
            env.eventually("it is executed", async || {
                assert!(crate::support::polled::poll_once(&mut extending).await.is_none());
                client.lock("a").inspect().await.unwrap().holder.unwrap().remaining > ms(60_000)
            })
            .await;
        } else {
            let error = guard.extend(ms(3_600_000)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Lost);
        }
        assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Expired);
        until_free(&env, "a").await;
        faults.release();
    }
}

async fn a_late_extension_shortens_nothing_and_revives_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let guard = client.lock("a").lock().expires_after(ms(5000)).await.unwrap();
    faults.next("lock_renew", [Fault::Late]);
    guard.extend(ms(60_000)).await.unwrap();
    guard.extend(ms(600_000)).await.unwrap();
    faults.send_late().await;
    assert!(client.lock("a").inspect().await.unwrap().holder.unwrap().remaining > ms(300_000));
    faults.next("lock_renew", [Fault::Late]);
    guard.extend(ms(60_000)).await.unwrap();
    guard.release().await.unwrap();
    faults.send_late().await;
    assert!(client.lock("a").inspect().await.unwrap().holder.is_none());
}
