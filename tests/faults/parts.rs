//! Parts of permits that are given back while others go on: requests and answers that get lost or come late.

use bowline::{ErrorKind, Loss, Whose};

use crate::faulty::{Fault, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};
use crate::support::polled::poll_once;

on_every_runtime! {
    lost_requests_and_answers_give_back_once,
    a_late_copy_gives_back_nothing_more,
    a_late_copy_does_not_touch_the_next_hold,
    a_future_dropped_half_way_gives_back,
    what_is_never_answered_is_given_back_in_the_background,
    a_dropped_part_is_given_back_until_the_server_answers,
    a_dropped_part_is_given_back_for_as_long_as_its_hold_lives,
    a_part_of_a_hold_that_is_gone_says_so,
    a_part_beside_a_kept_one_says_that_its_hold_is_gone,
    a_part_that_was_back_before_its_hold_was_taken_is_back,
    a_part_whose_release_began_in_time_is_back_although_the_lease_ends_meanwhile,
    a_gap_repeats_the_last_part,
}

const GIVE_BACK: &str = "permit_give_back";
const LIMIT: u32 = 9;

async fn lost_requests_and_answers_give_back_once(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseRequest, Fault::LoseReply] {
        let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
        let calls = faults.calls(GIVE_BACK);
        faults.next(GIVE_BACK, [fault.clone(), fault]);
        permit.split(4).unwrap().release().await.unwrap();
        assert_eq!(faults.calls(GIVE_BACK), calls + 3);
        assert_eq!((other.available().await.unwrap(), permit.count()), (4, 5));
        permit.release().await.unwrap();
        assert_eq!(other.available().await.unwrap(), LIMIT);
    }
}

/// It says that six are left, and only two are by now.
async fn a_late_copy_gives_back_nothing_more(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    faults.next(GIVE_BACK, [Fault::Late]);
    permit.split(3).unwrap().release().await.unwrap();
    permit.split(4).unwrap().release().await.unwrap();
    let seven = other.acquire_many(7).await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    assert_eq!(other.inspect().await.unwrap().used, 9);
    assert!(permit.is_valid() && permit.count() == 2);
    seven.release().await.unwrap();
    permit.release().await.unwrap();
    assert_eq!(other.available().await.unwrap(), LIMIT);
}

async fn a_late_copy_does_not_touch_the_next_hold(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let semaphore = client.semaphore("a", LIMIT);
    let mut permit = semaphore.acquire_many(9).await.unwrap();
    faults.next(GIVE_BACK, [Fault::Late]);
    permit.split(8).unwrap().release().await.unwrap();
    permit.release().await.unwrap();
    let next = semaphore.acquire_many(9).await.unwrap();
    faults.send_late().await[0].as_ref().unwrap();
    assert_eq!(semaphore.available().await.unwrap(), 0);
    next.release().await.unwrap();
}

async fn a_future_dropped_half_way_gives_back(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseRequest, Fault::Hang, Fault::HangReply] {
        let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
        let part = permit.split(4).unwrap();
        faults.next(GIVE_BACK, [fault]);
        let mut release = Box::pin(part.release());
        assert!(poll_once(&mut release).await.is_none());
        drop(release);
        env.eventually("four are back", async || other.available().await.unwrap() == 4).await;
        faults.release();
        assert!(permit.is_valid());
        permit.release().await.unwrap();
        env.eventually("all are back", async || other.available().await.unwrap() == LIMIT).await;
    }
}

async fn what_is_never_answered_is_given_back_in_the_background(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    faults.always(GIVE_BACK, Fault::LoseRequest);
    let error = permit.split(4).unwrap().release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(other.available().await.unwrap(), 0);
    faults.heal();
    env.eventually("four are back", async || other.available().await.unwrap() == 4).await;
    assert!(permit.is_valid());
    permit.release().await.unwrap();
}

async fn a_dropped_part_is_given_back_until_the_server_answers(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    faults.next(GIVE_BACK, [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable]);
    drop(permit.split(4).unwrap());
    env.eventually("four are back", async || other.available().await.unwrap() == 4).await;
    env.eventually("the server has answered", async || faults.answered(GIVE_BACK) == 4).await;
    permit.release().await.unwrap();
    assert_eq!(other.available().await.unwrap(), LIMIT);
}

/// As in a slot of a cluster that moves for longer than a lease: renewals go on, and other requests wait.
async fn a_dropped_part_is_given_back_for_as_long_as_its_hold_lives(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let lease = ms(1000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease)).await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    faults.always(GIVE_BACK, Fault::LoseRequest);
    drop(permit.split(4).unwrap());
    env.sleep(2 * lease).await;
    assert_eq!((permit.is_valid(), other.available().await.unwrap()), (true, 0));
    faults.heal();
    env.eventually("four are back", async || other.available().await.unwrap() == 4).await;
    assert!(permit.is_valid());
    permit.release().await.unwrap();
}

async fn a_part_of_a_hold_that_is_gone_says_so(env: Env) {
    let client = env.client().await;
    let mut permit = client.client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    let part = permit.split(4).unwrap();
    env.redis::<u64>(&["DEL", "bowline:sem:{a}"]);
    assert_eq!(part.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(env.soon("the other part", permit.lost()).await, Loss::Gone);
    assert_eq!(permit.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_part_beside_a_kept_one_says_that_its_hold_is_gone(env: Env) {
    let client = env.client().await;
    for is_gone in [true, false] {
        let mut permit = client.client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
        permit.split(4).unwrap().keep().unwrap();
        if is_gone {
            env.redis::<u64>(&["DEL", "bowline:sem:{a}"]);
        }
        let released = permit.release().await;
        assert_eq!(released.err().map(|error| error.kind()), is_gone.then_some(ErrorKind::Lost));
        env.redis::<u64>(&["DEL", "bowline:sem:{a}", "bowline:sem:{a}:leases"]);
    }
}

/// A part beside a kept one, of which only the kept one is left.
async fn a_part_whose_release_began_in_time_is_back_although_the_lease_ends_meanwhile(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1000))).await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
    permit.split(4).unwrap().keep().unwrap();
    faults.always(GIVE_BACK, Fault::Unreachable);
    let released = env.spawn(permit.release());
    env.eventually("the lease ends", async || other.available().await.unwrap() == LIMIT).await;
    faults.heal();
    env.soon("the release", released).await.unwrap();
}

/// The answer is lost, and the next copy of the request finds no hold.
async fn a_part_that_was_back_before_its_hold_was_taken_is_back(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    for fault in [Fault::LoseReply, Fault::Unreachable] {
        let is_back = matches!(fault, Fault::LoseReply);
        let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
        let calls = faults.calls(GIVE_BACK);
        faults.next(GIVE_BACK, [fault, Fault::Hang]);
        let released = env.spawn(permit.split(4).unwrap().release());
        env.eventually("the second request", async || faults.calls(GIVE_BACK) == calls + 2).await;
        assert_eq!(other.force_release(Whose::Everybody).await.unwrap().holds, 1);
        assert_eq!(env.soon("the loss", permit.lost()).await, Loss::Revoked);
        faults.release();
        let released = env.soon("the release", released).await;
        let lost = released.err().map(|error| {
            assert_eq!(error.kind(), ErrorKind::Lost);
            std::error::Error::source(&error).and_then(|why| why.downcast_ref::<Loss>()).copied()
        });
        assert_eq!(lost, (!is_back).then_some(Some(Loss::Revoked)));
        drop(permit);
    }
}

/// As after a failover to a replica that has not received it.
async fn a_gap_repeats_the_last_part(env: Env) {
    let other = env.client().await.semaphore("a", LIMIT);
    let (client, faults) = faulty_client(&env, |config| config).await;
    for drops in [false, true] {
        let mut permit = client.semaphore("a", LIMIT).acquire_many(9).await.unwrap();
        let part = permit.split(4).unwrap();
        // The server forgets what it has answered.
        let before = env.redis::<Vec<String>>(&["HGETALL", "bowline:sem:{a}"]);
        let answered = faults.answered(GIVE_BACK);
        if drops {
            drop(part);
            env.eventually("the server has answered", async || faults.answered(GIVE_BACK) > answered).await;
        } else {
            part.release().await.unwrap();
        }
        let (id, hold) = (&before[0], &before[1]);
        env.redis::<u64>(&["HSET", "bowline:sem:{a}", id, hold, "used", "9"]);
        assert_eq!(other.available().await.unwrap(), 0);
        faults.gap();
        env.eventually("four are back", async || other.available().await.unwrap() == 4).await;
        assert!(permit.is_valid());
        permit.release().await.unwrap();
    }
}
