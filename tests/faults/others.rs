//! What is done about the waiters and the holders of others, when requests, answers and messages get lost.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{Client, ErrorKind, Lock, Loss, Whose};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::faulty::{Fault, Faults, Messages, faulty_client};
use crate::scene::{drop_when, ms};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    waiters_are_dropped_once_whatever_gets_lost,
    a_drop_of_waiters_without_any_answer_fails,
    a_drop_of_waiters_that_is_dropped_may_have_happened,
    who_misses_the_message_queues_up_again,
    a_holder_is_asked_whatever_gets_lost,
    a_request_whose_message_is_lost_may_be_made_again,
    a_lock_is_taken_by_force_whatever_gets_lost,
    one_that_presses_and_is_dropped_takes_nothing,
    one_that_presses_fails_with_what_keeps_it_from_it,
    a_free_lock_is_looked_at_again_until_somebody_holds,
    a_hold_that_is_taken_is_not_that_of_the_one_that_takes_it,
    one_that_takes_its_own_hold_waits_no_longer_than_its_timeout,
}

const LOST: [Fault; 3] = [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable];

type Waiting = BoxFuture<'static, bowline::Result<bowline::LockGuard>>;

/// So many acquisitions of a client that wait, each with a ticket of its own.
async fn waiting(env: &Env, client: &Client, count: u64) -> Vec<Waiting> {
    let lock = client.lock("a");
    let all: Vec<Waiting> =
        (0..count).map(|_| env.spawn(lock.lock().timeout(ms(20_000)).into_future()).boxed()).collect();
    queued(env, client, count).await;
    all
}

async fn queued(env: &Env, client: &Client, count: u64) {
    env.eventually("they wait", async || client.lock("a").inspect().await.unwrap().waiters == count).await;
}

async fn all_are_dropped(env: &Env, waiting: Vec<Waiting>) {
    for dropped in env.soon("they are told", join_all(waiting)).await {
        assert_eq!(dropped.map(drop).unwrap_err().kind(), ErrorKind::Dropped);
    }
}

async fn waiters_are_dropped_once_whatever_gets_lost(env: Env) {
    let (operator, faults) = faulty_client(&env, |config| config).await;
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    for fault in LOST {
        let waiting = waiting(&env, &b, 2).await;
        let calls = faults.calls("lock_drop_waiters");
        faults.next("lock_drop_waiters", [fault.clone()]);
        let dropped = operator.lock("a").drop_waiters(Whose::Client(b.id())).await.unwrap();
        assert_eq!(faults.calls("lock_drop_waiters"), calls + 2);
        // Those that the first copy has dropped are not counted.
        assert_eq!(dropped, if matches!(fault, Fault::LoseReply) { 0 } else { 2 }, "{fault:?}");
        all_are_dropped(&env, waiting).await;
    }
    guard.release().await.unwrap();
}

async fn a_drop_of_waiters_without_any_answer_fails(env: Env) {
    let (operator, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let waiting = waiting(&env, &b, 1).await;
    faults.always("lock_drop_waiters", Fault::LoseReply);
    let error = operator.lock("a").drop_waiters(Whose::Everybody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
    all_are_dropped(&env, waiting).await;
    guard.release().await.unwrap();
}

async fn a_drop_of_waiters_that_is_dropped_may_have_happened(env: Env) {
    let (operator, faults) = faulty_client(&env, |config| config).await;
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let waiting = waiting(&env, &b, 1).await;
    faults.next("lock_drop_waiters", [Fault::HangReply]);
    let lock = operator.lock("a");
    let is_done = async || a.lock("a").inspect().await.unwrap().waiters == 0;
    drop_when(&env, "the server has done it", lock.drop_waiters(Whose::Everybody), is_done).await;
    all_are_dropped(&env, waiting).await;
    faults.release();
    guard.release().await.unwrap();
}

async fn who_misses_the_message_queues_up_again(env: Env) {
    // The first heartbeat comes after a third of the lease.
    let (b, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let a = env.client().await;
    let guard = a.lock("a").lock().await.unwrap();
    let waiting = waiting(&env, &b, 1).await;
    faults.messages(Messages::Swallow);
    assert_eq!(a.lock("a").drop_waiters(Whose::Everybody).await.unwrap(), 1);
    env.eventually("it got lost", async || faults.swallowed() == 1).await;
    faults.messages(Messages::Pass);
    queued(&env, &a, 1).await;
    guard.release().await.unwrap();
    for granted in env.soon("it is granted", join_all(waiting)).await {
        granted.unwrap().release().await.unwrap();
    }
}

async fn a_holder_is_asked_whatever_gets_lost(env: Env) {
    let (asker, faults) = faulty_client(&env, |config| config).await;
    let a = env.client().await;
    for script in ["lock_inspect", "client_ask"] {
        for fault in LOST {
            let guard = a.lock("a").lock().await.unwrap();
            faults.next(script, [fault.clone()]);
            assert!(asker.lock("a").ask_to_release().await.unwrap());
            env.soon("it is told", guard.asked_to_release()).await;
            guard.release().await.unwrap();
        }
    }
    // The request of a caller that has gone may have been made.
    let guard = a.lock("a").lock().await.unwrap();
    faults.next("client_ask", [Fault::HangReply]);
    let is_told = async || guard.is_asked_to_release();
    drop_when(&env, "it is told", asker.lock("a").ask_to_release(), is_told).await;
    faults.release();
    guard.release().await.unwrap();
}

async fn a_request_whose_message_is_lost_may_be_made_again(env: Env) {
    let (a, faults) = faulty_client(&env, |config| config).await;
    let asker = env.client().await;
    let guard = a.lock("a").lock().await.unwrap();
    faults.messages(Messages::Swallow);
    assert!(asker.lock("a").ask_to_release().await.unwrap());
    env.eventually("it got lost", async || faults.swallowed() == 1).await;
    assert!(!guard.is_asked_to_release());
    faults.messages(Messages::Pass);
    assert!(asker.lock("a").ask_to_release().await.unwrap());
    env.soon("it is told", guard.asked_to_release()).await;
    guard.release().await.unwrap();
}

async fn a_lock_is_taken_by_force_whatever_gets_lost(env: Env) {
    let (b, faults) = faulty_client(&env, |config| config).await;
    let a = env.client().await;
    for script in ["lock_inspect", "client_ask", "lock_force_release"] {
        for fault in LOST {
            let guard = a.lock("a").lock().await.unwrap();
            faults.next(script, [fault.clone()]);
            let forced = b.lock("a").lock().force_after(ms(50)).into_future();
            let next = env.soon("it is taken", forced).await.unwrap();
            assert!(next.token() > guard.token(), "{script} {fault:?}");
            assert_eq!(env.soon("its holder is told", guard.lost()).await, Loss::Revoked);
            next.release().await.unwrap();
        }
    }
}

async fn one_that_presses_and_is_dropped_takes_nothing(env: Env) {
    let (b, faults) = faulty_client(&env, |config| config).await;
    let a = env.client().await;
    let guard = a.lock("a").lock().await.unwrap();
    let lock = b.lock("a");
    let asked = async || faults.answered("client_ask") == 1;
    drop_when(&env, "it has asked", lock.lock().force_after(ms(10_000)).into_future(), asked).await;
    queued(&env, &a, 0).await;
    assert!(guard.is_valid() && faults.calls("lock_force_release") == 0);
    guard.release().await.unwrap();
}

async fn one_that_presses_fails_with_what_keeps_it_from_it(env: Env) {
    let (b, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let a = env.client().await;
    let guard = a.lock("a").lock().await.unwrap();
    faults.always("lock_force_release", Fault::Refuse("NOPERM by the test"));
    let error = b.lock("a").lock().force_after(ms(50)).await.map(drop).unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Denied, "force_after"), "{error:#}");
    // It waits no more.
    queued(&env, &a, 0).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

/// The first look comes before another client has taken the lock.
async fn a_free_lock_is_looked_at_again_until_somebody_holds(env: Env) {
    let (b, faults) = faulty_client(&env, |config| config).await;
    let a = env.client().await;
    faults.next("lock_acquire", [Fault::Hang]);
    let forced = env.spawn(b.lock("a").lock().force_after(ms(50)).into_future());
    env.eventually("it has looked", async || faults.answered("lock_inspect") == 1).await;
    let guard = a.lock("a").lock().await.unwrap();
    faults.release();
    assert_eq!(env.soon("it is taken", guard.lost()).await, Loss::Revoked);
    env.soon("the next", forced).await.unwrap().release().await.unwrap();
}

/// The cohort of the client hands the hold on after the server has taken it, and before the client has heard of that.
/// `timeout` is that of the one that takes it. Returns it, and one that waits behind it.
async fn handed_on(
    env: &Env,
    (faults, fault): (&Faults, Fault),
    lock: &Lock,
    timeout: Option<Duration>,
) -> [Waiting; 2] {
    let before = lock.lock().non_fair().await.unwrap();
    let [mut first, mut second] = [(); 2].map(|()| lock.lock().non_fair().into_future());
    assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
    before.release().await.unwrap();
    // Its grant may be handed off, because another one waits.
    let guard = env.soon("it is free", first).await.unwrap();
    drop(second);
    let acquire = lock.lock().non_fair();
    let acquire = timeout.into_iter().fold(acquire, |acquire, timeout| acquire.timeout(timeout));
    faults.next("lock_force_release", [fault]);
    faults.messages(Messages::Swallow);
    let forced = env.spawn(acquire.force_after(ms(50)).into_future());
    env.eventually("it is taken", async || lock.inspect().await.unwrap().holder.is_none()).await;
    let releases = faults.calls("lock_release");
    let mut behind = lock.lock().non_fair().into_future();
    assert!(futures::poll!(&mut behind).is_pending());
    guard.release().await.unwrap();
    assert_eq!(faults.calls("lock_release"), releases, "it is handed off");
    faults.messages(Messages::Pass);
    [forced, behind]
}

async fn a_hold_that_is_taken_is_not_that_of_the_one_that_takes_it(env: Env) {
    let (a, faults) = faulty_client(&env, |config| config.handoff_time(ms(10_000))).await;
    let lock = a.lock("a");
    // If the reply is lost, the second copy of the call finds that the hold has ended.
    for (fault, timeout) in [Fault::HangReply, Fault::LoseReplyLater].into_iter().zip([None, Some(ms(20_000))]) {
        let [forced, behind] = handed_on(&env, (&faults, fault.clone()), &lock, timeout).await;
        faults.release();
        // The one that takes it acquires again.
        for next in [behind, forced] {
            let next = env.soon("it is granted anew", next).await.unwrap();
            assert!(next.is_valid() && lock.inspect().await.unwrap().holder.is_some(), "{fault:?}");
            next.release().await.unwrap();
        }
    }
}

async fn one_that_takes_its_own_hold_waits_no_longer_than_its_timeout(env: Env) {
    let (a, faults) = faulty_client(&env, |config| config.handoff_time(ms(10_000))).await;
    let lock = a.lock("a");
    let [forced, behind] = handed_on(&env, (&faults, Fault::HangReply), &lock, Some(ms(1_000))).await;
    let error = env.soon("its time is over", forced).await.map(drop).unwrap_err();
    assert_eq!((error.kind(), faults.calls("lock_force_release")), (ErrorKind::TimedOut, 1), "{error:#}");
    let next = env.soon("it is granted anew", behind).await.unwrap();
    assert!(next.is_valid() && lock.inspect().await.unwrap().holder.is_some());
    next.release().await.unwrap();
    faults.release();
}
