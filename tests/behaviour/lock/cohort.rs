//! The local cohort of non-fair acquisitions: order, tokens, counts, and what becomes of it when a member leaves.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Holder, Result};
use futures::future::{BoxFuture, join_all};

use super::{queued, waiter};
use crate::lab::{Client, Env, Lock, LockGuard, TestClient, on_every_server};
use crate::support::polled::poll_once;

on_every_server! {
    sixty_four_tasks_of_one_client_need_few_commands,
    an_uncontended_acquisition_and_release_are_two_commands,
    turns_go_in_order_with_growing_tokens,
    two_clients_take_turns,
    a_fair_waiter_is_passed_by_one_budget_at_most,
    without_time_every_turn_goes_through_the_server,
    a_dropped_guard_passes_on_too,
    only_the_last_guard_of_a_holder_passes_on,
    members_of_a_cohort_count_as_waiters,
    fixed_leases_and_tries_join_no_cohort,
}

/// The span of the grants that serve a cohort.
const SPAN: u64 = 32;

pub(crate) type Waiting = BoxFuture<'static, Result<LockGuard>>;

/// Nothing here depends on how fast the machine is.
pub(crate) async fn patient(env: &Env) -> TestClient {
    env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await
}

/// An acquisition that stands in the cohort.
pub(crate) async fn stands(env: &Env, client: &Client, lock: &Lock) -> Waiting {
    let lock = lock.clone();
    in_cohort(env, client, async move { lock.lock().non_fair().await }).await
}

/// The acquisition, once it stands in the cohort of a lock.
pub(crate) async fn in_cohort(
    env: &Env,
    client: &Client,
    acquisition: impl Future<Output = Result<LockGuard>> + Send + 'static,
) -> Waiting {
    let before = client.stats().waiting;
    let mut waiting: Waiting = Box::pin(acquisition);
    assert!(poll_once(&mut waiting).await.is_none());
    env.eventually("it stands in the cohort", async || client.stats().waiting > before).await;
    waiting
}

/// A hold of the cohort with a whole span before it, and so many who wait for it.
pub(crate) async fn cohort(env: &Env, client: &Client, waiters: usize) -> (LockGuard, Vec<Waiting>) {
    let lock = client.lock("a");
    let first = lock.lock().non_fair().await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..=waiters {
        waiting.push(stands(env, client, &lock).await);
    }
    first.release().await.unwrap();
    let held = env.soon("the first of the cohort", waiting.remove(0)).await.unwrap();
    (held, waiting)
}

async fn sixty_four_tasks_of_one_client_need_few_commands(env: Env) {
    const TASKS: u64 = 64;
    const ACQUISITIONS: u64 = 2_000;
    let client = patient(&env).await;
    let (left, held, last) = (Arc::new(AtomicU64::new(ACQUISITIONS)), Arc::new(AtomicBool::new(false)), Arc::default());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (lock, left, held) = (client.lock("a"), left.clone(), held.clone());
            let (last, env): (Arc<Mutex<u64>>, _) = (Arc::clone(&last), env.clone());
            let inner = env.clone();
            env.spawn(async move {
                while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                    let guard = lock.lock().non_fair().await.unwrap();
                    assert!(!held.swap(true, Ordering::SeqCst), "two hold it");
                    let before = std::mem::replace(&mut *last.lock().unwrap(), guard.token().get());
                    assert!(before < guard.token().get(), "token {} after {before}", guard.token());
                    inner.yield_now().await;
                    assert!(guard.is_valid());
                    held.store(false, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    join_all(tasks).await;
    let average = client.counts.total() as f64 / ACQUISITIONS as f64;
    println!("{average} commands per acquisition in a cohort: {:?}", client.counts.all());
    assert!(average <= 0.1, "{average} commands per acquisition: {:?}", client.counts.all());
}

async fn an_uncontended_acquisition_and_release_are_two_commands(env: Env) {
    let client = env.client().await;
    for _ in 0..3 {
        client.counts.reset();
        client.lock("a").lock().non_fair().await.unwrap().release().await.unwrap();
        assert_eq!((client.counts.of("lock_acquire"), client.counts.of("lock_release")), (1, 1));
        assert_eq!(client.counts.total(), 2);
    }
}

async fn turns_go_in_order_with_growing_tokens(env: Env) {
    let client = patient(&env).await;
    let (held, waiting) = cohort(&env, &client, 3 * SPAN as usize).await;
    let mut tokens = vec![held.token()];
    client.counts.reset();
    env.soon("release", held.release()).await.unwrap();
    for waiting in waiting {
        let guard = env.soon("the next of the cohort", waiting).await.unwrap();
        tokens.push(guard.token());
        assert!(guard.is_valid());
        guard.release().await.unwrap();
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    // The commands are the last release, at most one request per budget of `SPAN` tokens, and perhaps a cancel of the
    // last request.
    let (released, asked) = (client.counts.of("lock_release"), client.counts.of("lock_ask_ahead"));
    let few = released == 1 && (1..=6).contains(&asked) && client.counts.total() <= asked + 2;
    assert!(few, "{:?}", client.counts.all());
}

async fn two_clients_take_turns(env: Env) {
    const EACH: u64 = 300;
    let (clients, third) = ([patient(&env).await, patient(&env).await], env.client().await);
    // Until both clients wait.
    let held = third.lock("a").lock().await.unwrap();
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut tasks = Vec::new();
    for (n, client) in clients.iter().enumerate() {
        let left = Arc::new(AtomicU64::new(EACH));
        for _ in 0..8 {
            let (lock, left, order) = (client.lock("a"), left.clone(), order.clone());
            tasks.push(env.spawn(async move {
                while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                    let guard = lock.lock().non_fair().await.unwrap();
                    order.lock().unwrap().push(n);
                    guard.release().await.unwrap();
                }
            }));
        }
    }
    queued(&env, &third.lock("a"), 2).await;
    held.release().await.unwrap();
    env.soon("all are served", join_all(tasks)).await;
    let order = order.lock().unwrap().clone();
    // Only while both clients compete: up to the last turn but one.
    let end = order.len() - order.iter().rev().position(|n| *n != order[order.len() - 1]).unwrap();
    let runs: Vec<usize> = order[..end].chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
    assert!(runs.len() > 10 && runs.iter().all(|run| *run <= SPAN as usize), "{runs:?}");
}

async fn a_fair_waiter_is_passed_by_one_budget_at_most(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let (mut held, waiting) = cohort(&env, &client, 2 * SPAN as usize).await;
    let mut fair = waiter(&env, &other.lock("a")).await;
    let mut waiting = waiting.into_iter();
    for passed in 1..SPAN {
        held.release().await.unwrap();
        held = waiting.next().unwrap().await.unwrap();
        assert!(poll_once(&mut fair).await.is_none(), "after {passed}");
    }
    let token = held.token();
    held.release().await.unwrap();
    let mut next = waiting.next().unwrap();
    assert!(poll_once(&mut next).await.is_none(), "it is passed on more often than its span");
    let next = env.spawn(next);
    let fair = env.soon("the fair waiter", fair).await;
    assert!(fair.token() > token);
    fair.release().await.unwrap();
    let mut next = env.soon("the cohort again", next).await.unwrap();
    for waiting in waiting {
        next.release().await.unwrap();
        next = env.soon("the rest of the cohort", waiting).await.unwrap();
    }
    next.release().await.unwrap();
}

async fn without_time_every_turn_goes_through_the_server(env: Env) {
    const WAITERS: usize = 5;
    let client = env.client_with(|config| config.handoff_time(Duration::ZERO)).await;
    let (held, waiting) = cohort(&env, &client, WAITERS).await;
    client.counts.reset();
    held.release().await.unwrap();
    for waiting in waiting {
        env.soon("the next of the cohort", waiting).await.unwrap().release().await.unwrap();
    }
    let releases = client.counts.of("lock_release");
    assert_eq!((releases, client.counts.total()), (WAITERS as u64 + 1, releases), "{:?}", client.counts.all());
}

async fn a_dropped_guard_passes_on_too(env: Env) {
    let client = patient(&env).await;
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    let token = held.token();
    client.counts.reset();
    drop(held);
    let next = waiting.remove(0).await.unwrap();
    assert_eq!((next.token().get(), client.counts.total()), (token.get() + 1, 0));
    next.release().await.unwrap();
}

async fn only_the_last_guard_of_a_holder_passes_on(env: Env) {
    let client = patient(&env).await;
    let (lock, holder) = (client.lock("a"), Holder::new());
    let (held, mut waiting) = cohort(&env, &client, 0).await;
    let mine = lock.clone();
    let mine = in_cohort(&env, &client, async move { mine.lock().non_fair().holder(&holder).await }).await;
    waiting.push(stands(&env, &client, &lock).await);
    held.release().await.unwrap();
    let outer = mine.await.unwrap();
    let inner = lock.lock().non_fair().holder(&holder).await.unwrap();
    assert_eq!(inner.token(), outer.token());
    outer.release().await.unwrap();
    let mut next = waiting.remove(0);
    assert!(poll_once(&mut next).await.is_none(), "the holder has it still");
    assert!(inner.is_valid());
    inner.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
}

async fn members_of_a_cohort_count_as_waiters(env: Env) {
    let client = patient(&env).await;
    let lock = client.lock("a");
    let (held, waiting) = cohort(&env, &client, 2).await;
    client.counts.reset();
    let full = env.soon("at once", lock.lock().non_fair().max_waiters(2)).await;
    assert_eq!(full.unwrap_err().kind(), ErrorKind::QueueFull);
    assert_eq!(client.counts.total(), 0);
    let fits = in_cohort(&env, &client, async move { lock.lock().non_fair().max_waiters(3).await }).await;
    held.release().await.unwrap();
    for waiting in waiting.into_iter().chain([fits]) {
        env.soon("the cohort", waiting).await.unwrap().release().await.unwrap();
    }
}

async fn fixed_leases_and_tries_join_no_cohort(env: Env) {
    let client = patient(&env).await;
    let lock = client.lock("a");
    let (held, mut waiting) = cohort(&env, &client, 1).await;
    assert!(lock.try_lock().await.unwrap().is_none());
    let fixed = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().non_fair().expires_after(Duration::from_secs(20)).await }
    });
    queued(&env, &lock, 1).await;
    held.release().await.unwrap();
    waiting.remove(0).await.unwrap().release().await.unwrap();
    env.soon("the fixed one", fixed).await.unwrap().release().await.unwrap();
}
