//! The local cohorts of non-fair acquisitions of permits. What they have in common with that of a lock is tested there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Loss, Permit, Result, Semaphore};
use futures::future::{BoxFuture, join_all};

use super::limit::forget_the_limit;
use super::{queued, waiter};
use crate::support::env::{Env, TestClient, on_every_server};
use crate::support::polled::poll_once;

on_every_server! {
    sixty_four_tasks_of_one_client_need_few_commands,
    those_who_find_room_do_not_wait_for_each_other,
    permits_go_on_with_the_next_budget,
    a_fair_waiter_is_passed_by_one_budget_at_most,
    the_longest_waiter_is_first_and_the_ticket_stays,
    permits_that_others_give_back_are_used,
    permits_beyond_the_limit_of_the_handle_are_used,
    one_permit_is_not_handed_to_a_request_for_two,
    a_member_that_leaves_leaves_its_ticket_to_the_others,
    a_cohort_that_asks_for_too_much_fails_as_one,
    closing_ends_the_cohort;
    no_waiter_is_stuck_behind_a_lost_permit,
}

/// The span of the grants that serve a cohort.
const SPAN: u64 = 32;

type Waiting = BoxFuture<'static, Result<Permit>>;

async fn patient(env: &Env) -> TestClient {
    env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await
}

fn asks(semaphore: &Semaphore, count: u32) -> Waiting {
    let semaphore = semaphore.clone();
    Box::pin(async move { semaphore.acquire_many(count).non_fair().await })
}

/// An acquisition whose ticket is queued, as one of so many.
async fn waits(env: &Env, semaphore: &Semaphore, waiters: u64) -> Waiting {
    let mut waiting = asks(semaphore, 1);
    env.eventually("its ticket is queued", async || {
        assert!(poll_once(&mut waiting).await.is_none());
        semaphore.inspect().await.unwrap().waiters == waiters
    })
    .await;
    // The future has read the answer.
    assert!(poll_once(&mut waiting).await.is_none());
    waiting
}

/// A cohort behind one permit: a leader whose ticket is queued, and so many members behind it.
async fn cohort(env: &Env, semaphore: &Semaphore, behind: usize) -> (Permit, Vec<Waiting>) {
    let held = semaphore.acquire().non_fair().await.unwrap();
    let mut waiting = vec![waits(env, semaphore, 1).await];
    for _ in 0..behind {
        let mut stands = asks(semaphore, 1);
        assert!(poll_once(&mut stands).await.is_none());
        waiting.push(stands);
    }
    (held, waiting)
}

async fn sixty_four_tasks_of_one_client_need_few_commands(env: Env) {
    const LIMIT: u32 = 4;
    const ACQUISITIONS: u64 = 2_000;
    let client = patient(&env).await;
    let left = Arc::new(AtomicU64::new(ACQUISITIONS));
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks = (0..64).map(|_| {
        let (semaphore, left) = (client.semaphore("a", LIMIT), left.clone());
        let (inside, most, inner) = (inside.clone(), most.clone(), env.clone());
        env.spawn(async move {
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                let permit = semaphore.acquire().non_fair().await.unwrap();
                assert!(!format!("{permit:?}").contains("token"), "{permit:?}");
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now <= LIMIT, "{now} at a time");
                most.fetch_max(now, Ordering::SeqCst);
                // The first ones wait for each other for five seconds at most.
                for _ in 0..5_000 {
                    if most.load(Ordering::SeqCst) == LIMIT {
                        break;
                    }
                    inner.sleep(Duration::from_millis(1)).await;
                }
                inner.yield_now().await;
                assert!(permit.is_valid());
                inside.fetch_sub(1, Ordering::SeqCst);
                permit.release().await.unwrap();
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    assert_eq!(most.load(Ordering::SeqCst), LIMIT, "some are never used");
    let average = client.counts.total() as f64 / ACQUISITIONS as f64;
    println!("{average} commands per acquisition in a cohort: {:?}", client.counts.all());
    assert!(average <= 0.1, "{average} commands per acquisition: {:?}", client.counts.all());
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn those_who_find_room_do_not_wait_for_each_other(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", 10);
    let asking: Vec<_> = (0..10).map(|_| asks(&semaphore, 1)).collect();
    let (mut permits, mut rest) = (Vec::new(), Vec::new());
    for mut asking in asking {
        match poll_once(&mut asking).await {
            // The embedded server answers at once.
            Some(permit) => permits.push(permit),
            None => rest.push(asking),
        }
    }
    assert_eq!(client.counts.of("permit_acquire"), 10, "each has sent its own request");
    permits.extend(env.soon("all", join_all(rest)).await);
    assert_eq!(semaphore.available().await.unwrap(), 0);
    for permit in permits {
        permit.unwrap().release().await.unwrap();
    }
}

/// Three budgets and more, one after the other, and the permit is never given back in between.
async fn permits_go_on_with_the_next_budget(env: Env) {
    let client = patient(&env).await;
    let semaphore = client.semaphore("a", 1);
    let (held, waiting) = cohort(&env, &semaphore, 3 * SPAN as usize).await;
    client.counts.reset();
    env.soon("release", held.release()).await.unwrap();
    for waiting in waiting {
        let permit = env.soon("the next of the cohort", waiting).await.unwrap();
        assert!(permit.is_valid());
        permit.release().await.unwrap();
    }
    let (released, asked) = (client.counts.of("permit_release"), client.counts.of("permit_go_on"));
    // The last member has a ticket of its own, so the permit is given back for it, and then by it.
    let few = released == 2 && (1..=6).contains(&asked) && client.counts.total() <= asked + 2;
    assert!(few, "{:?}", client.counts.all());
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn a_fair_waiter_is_passed_by_one_budget_at_most(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let mine = client.semaphore("a", 1);
    let held = mine.acquire().non_fair().await.unwrap();
    let mut fair = waiter(&env, &other.semaphore("a", 1), 1).await;
    // The first ticket of the cohort waits behind that of the fair waiter.
    let mut waiting = vec![waits(&env, &mine, 2).await];
    waiting.extend((0..2 * SPAN).map(|_| asks(&mine, 1)));
    for waiting in &mut waiting[1..] {
        assert!(poll_once(waiting).await.is_none());
    }
    client.counts.reset();
    let (mut held, mut waiting) = (held, waiting.into_iter());
    for passed in 1..SPAN {
        held.release().await.unwrap();
        held = env.soon("the next of the cohort", waiting.next().unwrap()).await.unwrap();
        assert!(poll_once(&mut fair).await.is_none(), "after {passed}");
    }
    let asked = client.counts.of("permit_go_on");
    assert!(asked <= 1 && client.counts.total() == asked, "{:?}", client.counts.all());
    held.release().await.unwrap();
    let cohort = join_all(waiting.map(|waiting| env.spawn(async move { waiting.await?.release().await })));
    let fair = env.soon("the fair waiter", fair).await.unwrap();
    fair.release().await.unwrap();
    for released in env.soon("the rest of the cohort", cohort).await {
        released.unwrap();
    }
}

async fn the_longest_waiter_is_first_and_the_ticket_stays(env: Env) {
    let client = patient(&env).await;
    let semaphore = client.semaphore("a", 1);
    let (held, mut waiting) = cohort(&env, &semaphore, 1).await;
    client.counts.reset();
    held.release().await.unwrap();
    let mut second = waiting.pop().unwrap();
    assert!(poll_once(&mut second).await.is_none(), "it has come later");
    let first = env.soon("the first", waiting.pop().unwrap()).await.unwrap();
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    assert_eq!(semaphore.inspect().await.unwrap().waiters, 1);
    first.release().await.unwrap();
    env.soon("the second", second).await.unwrap().release().await.unwrap();
    assert_eq!(client.counts.of("permit_acquire"), 0);
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn permits_that_others_give_back_are_used(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let (mine, theirs) = (client.semaphore("a", 3), other.semaphore("a", 3));
    let all = theirs.acquire_many(3).await.unwrap();
    let waiting: Vec<_> = (0..3).map(|_| env.spawn(asks(&mine, 1))).collect();
    env.eventually("they wait", async || client.stats().waiting == 3).await;
    all.release().await.unwrap();
    let permits = env.soon("all three hold at a time", join_all(waiting)).await;
    assert_eq!(theirs.available().await.unwrap(), 0);
    drop(permits);
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn permits_beyond_the_limit_of_the_handle_are_used(env: Env) {
    let client = patient(&env).await;
    let semaphore = client.semaphore("a", 1);
    semaphore.set_limit(4).await.unwrap();
    let asking: Vec<_> = (0..4).map(|_| env.spawn(asks(&semaphore, 1))).collect();
    for permit in env.soon("all four hold at a time", join_all(asking)).await {
        permit.unwrap().release().await.unwrap();
    }
    forget_the_limit(&env);
}

async fn one_permit_is_not_handed_to_a_request_for_two(env: Env) {
    let client = patient(&env).await;
    let semaphore = client.semaphore("a", 2);
    let (one, other) = (semaphore.acquire().non_fair().await.unwrap(), semaphore.acquire().non_fair().await.unwrap());
    let mut two = env.spawn(asks(&semaphore, 2));
    queued(&env, &semaphore, 1).await;
    one.release().await.unwrap();
    assert_eq!(semaphore.inspect().await.unwrap().used, 1);
    assert!(poll_once(&mut two).await.is_none());
    other.release().await.unwrap();
    let two = env.soon("two", two).await.unwrap();
    assert_eq!(two.count(), 2);
    two.release().await.unwrap();
}

async fn a_member_that_leaves_leaves_its_ticket_to_the_others(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let (mine, theirs) = (client.semaphore("a", 1), other.semaphore("a", 1));
    let held = theirs.acquire().await.unwrap();
    let first = waits(&env, &mine, 1).await;
    let mut second = asks(&mine, 1);
    assert!(poll_once(&mut second).await.is_none());
    let behind = waiter(&env, &theirs, 1).await;
    client.counts.reset();
    drop(first);
    let second = env.spawn(second);
    held.release().await.unwrap();
    env.soon("the second, by the first one's ticket", second).await.unwrap().release().await.unwrap();
    assert_eq!((client.counts.of("permit_cancel"), client.counts.of("permit_acquire")), (0, 0));
    env.soon("the other client", behind).await.unwrap().release().await.unwrap();

    // If no member waits, no ticket of the cohort remains.
    let held = theirs.acquire().await.unwrap();
    let alone = waits(&env, &mine, 1).await;
    drop(alone);
    queued(&env, &mine, 0).await;
    held.release().await.unwrap();
    env.eventually("nothing is left", async || env.keys().is_empty()).await;
}

async fn no_waiter_is_stuck_behind_a_lost_permit(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(900))).await;
    let semaphore = client.semaphore("a", 1);
    let (held, waiting) = cohort(&env, &semaphore, 2).await;
    let () = env.redis(&["DEL", "bowline:sem:{a}", "bowline:sem:{a}:leases"]);
    for waiting in waiting {
        env.soon("the next of the cohort", waiting).await.unwrap().release().await.unwrap();
    }
    assert_eq!(env.soon("the holder is told", held.lost()).await, Loss::Gone);
}

async fn a_cohort_that_asks_for_too_much_fails_as_one(env: Env) {
    const WAITERS: usize = 20;
    let client = patient(&env).await;
    let semaphore = client.semaphore("a", 4);
    let held = semaphore.acquire().await.unwrap();
    let waiting: Vec<_> = (0..WAITERS).map(|_| env.spawn(asks(&semaphore, 4))).collect();
    env.eventually("they wait", async || client.stats().waiting == WAITERS as u64).await;
    queued(&env, &semaphore, 1).await;
    client.counts.reset();
    semaphore.set_limit(3).await.unwrap();
    for waiting in env.soon("they are told", join_all(waiting)).await {
        assert_eq!(waiting.unwrap_err().kind(), ErrorKind::OverLimit);
    }
    assert!(client.counts.of("permit_acquire") <= 2, "{:?}", client.counts.all());
    held.release().await.unwrap();
    forget_the_limit(&env);
}

async fn closing_ends_the_cohort(env: Env) {
    let client = patient(&env).await;
    let (held, waiting) = cohort(&env, &client.semaphore("a", 1), 2).await;
    env.soon("it closes", client.close()).await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    for waiting in waiting {
        assert_eq!(env.soon("the wait ends", waiting).await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert!(!held.is_valid());
}
