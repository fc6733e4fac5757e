//! Double barriers whose requests, answers and messages get lost, and parties that are gone.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bowline::{DoubleBarrier, ErrorKind, Inside};
use futures::future::{BoxFuture, join};

use crate::faulty::{Fault, Messages, faulty_client, faulty_client_on};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};
use crate::support::stepped::Stepped;

on_every_runtime! {
    a_party_enters_and_leaves_once_whatever_gets_lost,
    a_late_copy_of_a_leave_changes_nothing,
    lost_messages_are_made_up_for,
    a_party_that_is_cut_off_inside_breaks_it,
    a_leave_that_is_never_answered_fails,
    an_outage_that_is_shorter_than_the_lease_breaks_nothing,
    a_party_with_a_long_lease_says_within_the_hour_that_it_is_ready_once_more,
}

type Entering = BoxFuture<'static, bowline::Result<Inside>>;

fn enters(env: &Env, barrier: &DoubleBarrier) -> Entering {
    env.spawn(barrier.enter().timeout(ms(20_000)).into_future())
}

async fn both_inside(env: &Env, one: &DoubleBarrier, other: &DoubleBarrier) -> (Inside, Inside) {
    let (one, other) = env.soon("both enter", join(enters(env, one), enters(env, other))).await;
    (one.unwrap(), other.unwrap())
}

async fn both_leave(env: &Env, one: Inside, other: Inside) {
    let both = join(one.leave().into_future(), other.leave().into_future());
    let (one, other) = env.soon("both leave", both).await;
    one.unwrap();
    other.unwrap();
}

async fn a_party_enters_and_leaves_once_whatever_gets_lost(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable] {
        // Inside, and at the entry.
        let all = std::iter::repeat_n(fault.clone(), 2).chain([Fault::Pass]).chain([fault.clone()]);
        faults.next("barrier_arrive", all);
        faults.next("barrier_leave", [fault.clone(), fault]);
        let (one, two) = both_inside(&env, &barrier, &other).await;
        assert_eq!(other.inspect().await.unwrap().present, 2);
        both_leave(&env, one, two).await;
        env.eventually("nobody is there", async || other.inspect().await.unwrap().present == 0).await;
    }
}

async fn a_late_copy_of_a_leave_changes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let (one, two) = both_inside(&env, &barrier, &other).await;
    faults.next("barrier_leave", [Fault::Late]);
    both_leave(&env, one, two).await;
    let (one, two) = both_inside(&env, &barrier, &other).await;
    let left = env.spawn(two.leave().into_future());
    faults.send_late().await[0].as_ref().unwrap();
    env.sleep(ms(50)).await;
    assert_eq!(other.inspect().await.unwrap().present, 2, "one is not ready");
    one.leave().await.unwrap();
    env.soon("the other one", left).await.unwrap();
}

async fn lost_messages_are_made_up_for(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let first = enters(&env, &barrier);
    env.eventually("it waits", async || other.inspect().await.unwrap().entering == 1).await;
    faults.messages(Messages::Swallow);
    let second = env.soon("the second one", other.enter().into_future()).await.unwrap();
    let first = env.soon("the first one", first).await.unwrap();
    let left = env.spawn(first.leave().into_future());
    env.eventually("it is ready", async || faults.answered("barrier_leave") == 1).await;
    second.leave().await.unwrap();
    env.soon("the first one leaves", left).await.unwrap();
    assert!(faults.swallowed() > 0);
}

async fn a_party_that_is_cut_off_inside_breaks_it(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.lease(ms(1500))).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let (one, two) = both_inside(&env, &barrier, &other).await;
    for script in ["barrier_heartbeat", "barrier_cancel", "barrier_leave"] {
        faults.always(script, Fault::LoseRequest);
    }
    let error = env.soon("told", two.broken()).await;
    assert_eq!(error.kind(), ErrorKind::Broken, "{error}");
    assert!(error.to_string().contains("the lease of a party has ended"), "{error}");
    faults.heal();
    let error = env.soon("told", one.broken()).await;
    assert!([ErrorKind::Broken, ErrorKind::Unavailable].contains(&error.kind()), "{error}");
    assert!(one.leave().await.is_err());
}

async fn a_leave_that_is_never_answered_fails(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let (one, two) = both_inside(&env, &barrier, &other).await;
    faults.always("barrier_leave", Fault::LoseRequest);
    assert_eq!(one.leave().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(env.soon("told", two.leave().into_future()).await.unwrap_err().kind(), ErrorKind::Broken);
    env.eventually("nobody is there", async || other.inspect().await.unwrap().present == 0).await;
}

/// It is longer than the retry timeout.
async fn an_outage_that_is_shorter_than_the_lease_breaks_nothing(env: Env) {
    let lease = ms(10_000);
    let (client, faults) = faulty_client(&env, |config| config.lease(lease).retry_timeout(ms(1000))).await;
    let other = env.client_with(|config| config.lease(lease)).await;
    let (barrier, other) = (client.double_barrier("a", 2), other.double_barrier("a", 2));
    for fault in [Fault::Unreachable, Fault::Refuse("LOADING Redis is loading the dataset in memory")] {
        let (one, two) = both_inside(&env, &barrier, &other).await;
        let calls = faults.calls("barrier_heartbeat");
        faults.always("barrier_heartbeat", fault);
        faults.gap();
        env.sleep(ms(2500)).await;
        assert!(faults.calls("barrier_heartbeat") > calls);
        faults.heal();
        both_leave(&env, one, two).await;
        env.eventually("nobody is there", async || other.inspect().await.unwrap().present == 0).await;
    }
}

/// A failover may lose what it said. The client's clock moves from one timer to the next, for an hour at most.
async fn a_party_with_a_long_lease_says_within_the_hour_that_it_is_ready_once_more(env: Env) {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let clock = Arc::new(Stepped::new(env.executor()));
    let (client, faults) = faulty_client_on(&env, clock.clone(), |config| config.lease(24 * HOUR)).await;
    let (barrier, other) = (client.double_barrier("a", 2), env.client().await.double_barrier("a", 2));
    let (one, two) = both_inside(&env, &barrier, &other).await;
    let left = env.spawn(one.leave().into_future());
    env.eventually("it is ready", async || faults.answered("barrier_leave") == 1).await;
    let (mut passed, mut before) = (Duration::ZERO, Vec::new());
    env.eventually("it says so again", async || {
        let timers = clock.timers();
        // Calls under way have timers, which go with their answers.
        let next = timers.first().filter(|_| timers == before);
        if let Some(left) = next.filter(|left| passed + **left <= HOUR) {
            clock.pass(*left);
            passed += *left;
        }
        before = timers;
        faults.calls("barrier_leave") > 1
    })
    .await;
    two.leave().await.unwrap();
    env.soon("the first one leaves", left).await.unwrap();
}
