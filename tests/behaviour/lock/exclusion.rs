//! One at a time, in the order of the tokens.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bowline::Token;

use crate::lab::{Env, Lock, on_every_server};

on_every_server! {
    a_read_modify_write_by_many_tasks_of_many_clients_loses_nothing,
    fair_and_non_fair_exclude_each_other,
    try_lock_takes_a_free_lock_and_leaves_a_held_one,
    try_lock_stays_behind_those_who_wait,
    locks_of_different_names_and_prefixes_are_different,
}

/// What the lock protects, without any protection of its own.
#[derive(Default)]
struct Unguarded {
    value: AtomicU64,
    inside: AtomicBool,
    /// Accepts a write only with a token at least as large as all before.
    fenced: Mutex<(Option<Token>, u64)>,
}

impl Unguarded {
    async fn increment(&self, env: &Env, token: Token) {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two holders at once");
        let value = self.value.load(Ordering::SeqCst);
        env.yield_now().await;
        {
            let mut fenced = self.fenced.lock().unwrap();
            assert!(fenced.0 < Some(token), "the token {token} came after {:?}", fenced.0);
            *fenced = (Some(token), fenced.1 + 1);
        }
        env.yield_now().await;
        self.value.store(value + 1, Ordering::SeqCst);
        assert!(self.inside.swap(false, Ordering::SeqCst));
    }
}

async fn increments(env: &Env, tasks: usize, rounds: u64, fair: impl Fn(usize) -> bool) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(env.client().await);
    }
    let unguarded = Arc::new(Unguarded::default());
    let tasks: Vec<_> = (0..tasks)
        .map(|n| {
            let (env, unguarded, fair) = (env.clone(), unguarded.clone(), fair(n));
            let lock: Lock = clients[n % clients.len()].lock("counter");
            env.clone().spawn(async move {
                for _ in 0..rounds {
                    let acquire = if fair { lock.lock().fair() } else { lock.lock().non_fair() };
                    let guard = acquire.await.unwrap();
                    assert!(guard.is_valid());
                    unguarded.increment(&env, guard.token()).await;
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    let all = tasks.len() as u64 * rounds;
    for task in tasks {
        task.await;
    }
    assert_eq!(unguarded.value.load(Ordering::SeqCst), all);
    assert_eq!(unguarded.fenced.lock().unwrap().1, all);
}

async fn a_read_modify_write_by_many_tasks_of_many_clients_loses_nothing(env: Env) {
    increments(&env, 20, 15, |_| true).await;
}

async fn fair_and_non_fair_exclude_each_other(env: Env) {
    increments(&env, 16, 12, |n| n % 3 == 0).await;
}

async fn try_lock_takes_a_free_lock_and_leaves_a_held_one(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").try_lock().await.unwrap().expect("free");
    assert!(b.lock("a").try_lock().await.unwrap().is_none());
    assert!(a.lock("a").try_lock().await.unwrap().is_none(), "without a holder it is not re-entrant");
    let first = guard.token();
    guard.release().await.unwrap();
    let guard = b.lock("a").try_lock().await.unwrap().expect("free again");
    assert!(guard.token() > first);
    guard.release().await.unwrap();
    assert!(env.keys().is_empty(), "a try leaves no ticket: {:?}", env.keys());
}

async fn try_lock_stays_behind_those_who_wait(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let lock = a.lock("a");
    let held = lock.lock().await.unwrap();
    let waiting = super::waiter(&env, &b.lock("a")).await;
    assert!(lock.try_lock().await.unwrap().is_none());
    // The release grants the lock to the waiter, so a `try_lock` right after it must fail.
    let (released, tried) = futures::join!(held.release(), async { lock.try_lock().await });
    released.unwrap();
    assert!(tried.unwrap().is_none());
    let guard = waiting.await;
    assert!(lock.try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(lock.try_lock().await.unwrap().is_some());
}

async fn locks_of_different_names_and_prefixes_are_different(env: Env) {
    let one = env.client().await;
    let other = env.client_with_all_rights(|config| config.prefix("other")).await;
    let a = one.lock("a").try_lock().await.unwrap().unwrap();
    let b = one.lock("b").try_lock().await.unwrap().unwrap();
    let c = other.lock("a").try_lock().await.unwrap().unwrap();
    assert!(env.keys().contains(&"other:lock:{a}".to_owned()), "{:?}", env.keys());
    for guard in [a, b, c] {
        guard.release().await.unwrap();
    }
}
