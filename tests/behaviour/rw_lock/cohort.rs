//! The local cohort of non-fair writers. What it has in common with that of a lock is tested there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bowline::{Result, RwLock, WriteGuard};
use futures::future::{BoxFuture, join_all};

use super::{SPAN, free_at_once, reader, reads_after};
use crate::support::env::{Env, TestClient, on_every_server};
use crate::support::polled::poll_once;

on_every_server! {
    sixty_four_writers_of_one_client_need_few_commands,
    an_uncontended_write_is_two_commands,
    writers_go_on_with_the_next_budget,
    a_reader_of_another_client_is_passed_by_one_budget_at_most,
    a_writer_of_a_cohort_becomes_a_reader,
    a_writer_dropped_while_it_becomes_a_reader_leaves_the_cohort,
    readers_join_no_cohort,
}

type Waiting = BoxFuture<'static, Result<WriteGuard>>;

async fn patient(env: &Env) -> TestClient {
    env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await
}

/// A write that stands in the cohort.
async fn stands(lock: &RwLock) -> Waiting {
    let lock = lock.clone();
    let mut waiting: Waiting = Box::pin(async move { lock.write().non_fair().await });
    assert!(poll_once(&mut waiting).await.is_none());
    waiting
}

async fn cohort(lock: &RwLock, waiters: u64) -> (WriteGuard, Vec<Waiting>) {
    let held = lock.write().non_fair().await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..waiters {
        waiting.push(stands(lock).await);
    }
    (held, waiting)
}

async fn sixty_four_writers_of_one_client_need_few_commands(env: Env) {
    const ACQUISITIONS: u64 = 2_000;
    let client = patient(&env).await;
    let (left, writing) = (Arc::new(AtomicU64::new(ACQUISITIONS)), Arc::new(AtomicBool::new(false)));
    let last = Arc::new(AtomicU64::new(0));
    let tasks = (0..64).map(|_| {
        let (lock, left, writing, last) = (client.rw_lock("a"), left.clone(), writing.clone(), last.clone());
        let inner = env.clone();
        env.spawn(async move {
            while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                let guard = lock.write().non_fair().await.unwrap();
                assert!(!writing.swap(true, Ordering::SeqCst), "two write");
                let before = last.swap(guard.token().get(), Ordering::SeqCst);
                assert!(before < guard.token().get(), "token {} after {before}", guard.token());
                inner.yield_now().await;
                assert!(guard.is_valid());
                writing.store(false, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await;
    let average = client.counts.total() as f64 / ACQUISITIONS as f64;
    println!("{average} commands per write in a cohort: {:?}", client.counts.all());
    assert!(average <= 0.1, "{average} commands per write: {:?}", client.counts.all());
}

async fn an_uncontended_write_is_two_commands(env: Env) {
    let client = env.client().await;
    for _ in 0..3 {
        client.counts.reset();
        client.rw_lock("a").write().non_fair().await.unwrap().release().await.unwrap();
        assert_eq!((client.counts.of("permit_acquire"), client.counts.of("permit_release")), (1, 1));
        assert_eq!(client.counts.total(), 2);
    }
}

/// Three budgets and more, one after the other, and the hold is never released in between.
async fn writers_go_on_with_the_next_budget(env: Env) {
    let client = patient(&env).await;
    let (held, waiting) = cohort(&client.rw_lock("a"), 3 * SPAN).await;
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
    let (released, asked) = (client.counts.of("permit_release"), client.counts.of("permit_ask_ahead"));
    // The last request may have to be cancelled.
    let few = released == 1 && (1..=6).contains(&asked) && client.counts.total() <= asked + 2;
    assert!(few, "{:?}", client.counts.all());
    free_at_once(&env, &client.rw_lock("a")).await;
}

async fn a_reader_of_another_client_is_passed_by_one_budget_at_most(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let (mut held, waiting) = cohort(&client.rw_lock("a"), SPAN + 1).await;
    let mut fair = reader(&env, &other.rw_lock("a")).await;
    let mut waiting = waiting.into_iter();
    client.counts.reset();
    for passed in 1..SPAN {
        held.release().await.unwrap();
        held = waiting.next().unwrap().await.unwrap();
        assert!(poll_once(&mut fair).await.is_none(), "after {passed}");
        if passed == SPAN - 2 {
            // The answer is that its ticket stands behind the reader.
            let lock = other.rw_lock("a");
            env.eventually("it has asked ahead", async || lock.inspect().await.unwrap().waiters == 2).await;
        }
    }
    let asked = client.counts.of("permit_ask_ahead");
    assert_eq!((asked, client.counts.total()), (1, 1), "{:?}", client.counts.all());
    let token = held.token();
    held.release().await.unwrap();
    let mut next = waiting.next().unwrap();
    assert!(poll_once(&mut next).await.is_none(), "it is passed on more often than its span");
    let next = env.spawn(next);
    let fair = env.soon("the reader", fair).await;
    assert_eq!(fair.token(), token, "the last one that was reserved");
    fair.release().await.unwrap();
    let next = env.soon("the cohort again", next).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
    env.soon("the last of the cohort", waiting.next().unwrap()).await.unwrap().release().await.unwrap();
    free_at_once(&env, &other.rw_lock("a")).await;
}

async fn a_writer_of_a_cohort_becomes_a_reader(env: Env) {
    let (client, other) = (patient(&env).await, env.client().await);
    let lock = client.rw_lock("a");
    let (held, mut waiting) = cohort(&lock, 3).await;
    let waits = reader(&env, &other.rw_lock("a")).await;
    held.release().await.unwrap();
    let writing = waiting.remove(0).await.unwrap();
    let token = writing.token();
    let reading = writing.downgrade().await.unwrap();
    assert_eq!(reading.token(), token);
    let beside = env.soon("the reader that waited", waits).await;
    assert!(beside.token() >= token && reads_after(&beside, token));
    // The server knew the token of the first guard.
    let tokens: Vec<_> = lock.inspect().await.unwrap().readers.iter().map(|reader| reader.token).collect();
    assert!(tokens.contains(&token), "{tokens:?}");
    let reading = lock.resume_read(&reading.into_handle().unwrap()).await.unwrap();
    assert_eq!(reading.token(), token);
    // The cohort continues without the dropped member.
    let next = env.spawn(waiting.remove(0));
    env.eventually("the next one waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    beside.release().await.unwrap();
    reading.release().await.unwrap();
    let next = env.soon("the next of the cohort", next).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
    env.soon("the last of the cohort", waiting.remove(0)).await.unwrap().release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn a_writer_dropped_while_it_becomes_a_reader_leaves_the_cohort(env: Env) {
    let client = patient(&env).await;
    let lock = client.rw_lock("a");
    for _ in 0..20 {
        let (held, mut waiting) = cohort(&lock, 2).await;
        held.release().await.unwrap();
        let mut changing = Box::pin(waiting.remove(0).await.unwrap().downgrade());
        let changed = poll_once(&mut changing).await;
        drop((changing, changed));
        env.soon("the next of the cohort", waiting.remove(0)).await.unwrap().release().await.unwrap();
        free_at_once(&env, &lock).await;
    }
}

async fn readers_join_no_cohort(env: Env) {
    let client = patient(&env).await;
    let lock = client.rw_lock("a");
    let (held, mut waiting) = cohort(&lock, 1).await;
    let reading = env.spawn({
        let lock = lock.clone();
        async move { lock.read().non_fair().await }
    });
    env.eventually("it waits in Redis", async || lock.inspect().await.unwrap().waiters == 1).await;
    held.release().await.unwrap();
    let next = waiting.remove(0).await.unwrap();
    let token = next.token();
    next.release().await.unwrap();
    let reading = env.soon("the reader", reading).await.unwrap();
    assert!(reading.token() >= token);
    reading.release().await.unwrap();
}
