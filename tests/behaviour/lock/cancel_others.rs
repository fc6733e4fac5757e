//! What is no plain acquisition, dropped after any number of polls: nothing of it stays, and the next waiter is
//! served. In virtual time, with every situation and fault: `tests/sim/sweep.rs`.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{Client, Config, Holder, Lock};
use futures::FutureExt;
use uuid::Uuid;

use super::cancel::{Then, sweep};
use super::{LONG, free_at_once, queued};
use crate::support::env::{Env, on_every_server};
use crate::support::polled::poll_once;
use crate::support::polled::polled;

on_every_server! {
    an_inspection_dropped_changes_nothing,
    a_forced_release_dropped_leaves_nothing,
    an_acquisition_with_a_short_timeout_dropped_leaves_nothing,
    a_scope_dropped_with_two_guards_leaves_nothing,
    one_of_two_tasks_of_a_holder_dropped_leaves_the_other,
    when_the_acquiring_one_is_dropped_the_next_one_of_the_holder_acquires,
    five_tasks_of_one_holder_all_get_a_guard,
    protect_dropped_keeps_the_guard,
    lost_dropped_misses_nothing,
    a_close_dropped_is_finished,
    a_connect_dropped_leaves_no_task_and_no_subscription,
}

/// For what shows nowhere when it is executed.
async fn a_moment(env: &Env, then: Then) {
    if then == Then::Wait {
        env.sleep(Duration::from_millis(1)).await;
    }
}

async fn an_inspection_dropped_changes_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let held = other.lock("a").lock().await.unwrap();
        let state = polled(lock.inspect(), polls, async || a_moment(&env, then).await).await.map(Result::unwrap);
        assert!(state.as_ref().is_none_or(|state| state.holder.as_ref().unwrap().token == held.token()));
        held.release().await.unwrap();
        state
    })
    .await;
}

async fn a_forced_release_dropped_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let held = other.lock("a").lock().await.unwrap();
        let next = super::waiter(&env, &other.lock("a")).await;
        let token = polled(lock.force_release(), polls, async || a_moment(&env, then).await).await.map(Result::unwrap);
        // It was granted or not, depending on the time of the drop.
        drop(held);
        env.soon("the next one is served", next).await.release().await.unwrap();
        token
    })
    .await;
}

async fn an_acquisition_with_a_short_timeout_dropped_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let held = other.lock("a").lock().await.unwrap();
        let acquire = lock.lock().timeout(Duration::from_millis(2));
        let timed_out = polled(acquire.into_future(), polls, async || a_moment(&env, then).await).await;
        held.release().await.unwrap();
        timed_out.map(Result::unwrap_err)
    })
    .await;
}

async fn a_scope_dropped_with_two_guards_leaves_nothing(env: Env) {
    async fn nested(lock: &Lock) -> bowline::Result<()> {
        let outer = lock.lock().await?;
        let inner = lock.lock().await?;
        assert_eq!(outer.token(), inner.token());
        inner.release().await?;
        outer.release().await
    }
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    sweep(&env, &other.lock("a"), async |polls, then| {
        let scope = holder.scope(nested(&lock));
        let ended = polled(scope, polls, async || a_moment(&env, then).await).await.map(Result::unwrap);
        // The holder can acquire again after its future was dropped.
        env.soon("the holder acquires", lock.lock().holder(&holder)).await.unwrap().release().await.unwrap();
        ended
    })
    .await;
}

async fn one_of_two_tasks_of_a_holder_dropped_leaves_the_other(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    sweep(&env, &other.lock("a"), async |polls, then| {
        let task = env.spawn({
            let lock = lock.clone();
            async move { lock.lock().holder(&holder).timeout(LONG).await.unwrap().release().await.unwrap() }
        });
        let acquire = lock.lock().holder(&holder).into_future();
        let guard = polled(acquire, polls, async || a_moment(&env, then).await).await.map(Result::unwrap);
        env.soon("the other task is served", task).await;
        guard
    })
    .await;
}

async fn when_the_acquiring_one_is_dropped_the_next_one_of_the_holder_acquires(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    let held = other.lock("a").lock().await.unwrap();
    let mut first = Box::pin(async { lock.lock().holder(&holder).await });
    assert!(poll_once(&mut first).await.is_none());
    let second = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().holder(&holder).timeout(LONG).await.unwrap() }
    });
    // The acquiring client has a ticket in the queue, and the other one has none.
    queued(&env, &other.lock("a"), 1).await;
    drop(first);
    env.eventually("the other one asks", async || client.counts.of("lock_acquire") == 2).await;
    queued(&env, &other.lock("a"), 1).await;
    held.release().await.unwrap();
    env.soon("the other one acquires", second).await.release().await.unwrap();
}

async fn protect_dropped_keeps_the_guard(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, inner) = (client.lock("a"), client.lock("b"));
    sweep(&env, &other.lock("a"), async |polls, then| {
        let guard = lock.lock().await.unwrap();
        let work = guard.protect(async { inner.lock().await.unwrap().release().await.unwrap() });
        let done = polled(work, polls, async || a_moment(&env, then).await).await.map(Result::unwrap);
        assert!(guard.is_valid());
        guard.release().await.unwrap();
        done
    })
    .await;
}

async fn lost_dropped_misses_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let guard = lock.lock().await.unwrap();
        let observer = other.lock("a");
        let take = async move { observer.force_release().await.unwrap() };
        // Polled once, the future is dropped before the loss.
        let (early, late) = if polls > 1 { (Some(env.spawn(take)), None) } else { (None, Some(take)) };
        let loss = polled(guard.lost(), polls, async || a_moment(&env, then).await).await;
        if let Some(take) = late {
            take.await;
        }
        if let Some(taken) = early {
            taken.await;
        }
        let again = env.soon("the loss is known", guard.lost()).await;
        assert!(loss.is_none_or(|loss| loss == again));
        loss
    })
    .await;
}

/// A fast server may be done in the first poll: that it is dropped half way is the simulation's to prove.
async fn a_close_dropped_is_finished(env: Env) {
    let other = env.client().await;
    let lock = other.lock("a");
    for polls in 0..4 {
        for then in [Then::Drop, Then::Drop, Then::Wait, Then::Wait] {
            let client = env.client().await;
            let guard = client.lock("a").lock().await.unwrap();
            let next = super::waiter(&env, &lock).await;
            polled(client.close(), polls, async || a_moment(&env, then).await).await;
            // A close that was never polled did nothing.
            assert_eq!(guard.is_valid(), polls == 0);
            let kept = (polls > 0).then_some(guard);
            env.soon("the next one is served", next).await.release().await.unwrap();
            free_at_once(&env, &lock).await;
            drop(kept);
        }
    }
}

async fn a_connect_dropped_leaves_no_task_and_no_subscription(env: Env) {
    let (mut half_way, mut done) = (0, false);
    for polls in 0..1000 {
        let idle = env.live();
        let id = Uuid::new_v4();
        let config = Config::builder().client_id(id).build().unwrap();
        let connection = env.connection(&config).await;
        let client = polled(Client::connect(env.executor(), connection, config), polls, async || {}).await;
        done = client.is_some();
        half_way += usize::from(polls > 0 && !done);
        drop(client.map(Result::unwrap));
        env.eventually("its tasks are gone", async || env.live() == idle).await;
        let inbox = format!("bowline:inbox:{id}");
        env.eventually("its inbox is not subscribed", async || env.listeners(&inbox) == 0).await;
        assert!(env.keys().is_empty(), "{:?}", env.keys());
        if done {
            break;
        }
    }
    assert!(done && half_way > 0, "dropped half way {half_way} times");
}

async fn five_tasks_of_one_holder_all_get_a_guard(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    for first_is_dropped in [false, true] {
        let held = other.lock("a").lock().await.unwrap();
        let mut first = Box::pin(lock.lock().holder(&holder).into_future());
        assert!(poll_once(&mut first).await.is_none());
        queued(&env, &other.lock("a"), 1).await;
        let others: Vec<_> = (0..4)
            .map(|_| {
                let lock = lock.clone();
                let mut acquiring = Box::pin(async move { lock.lock().holder(&holder).await });
                assert!(acquiring.as_mut().now_or_never().is_none());
                env.spawn(acquiring)
            })
            .collect();
        let mut guards = Vec::new();
        if first_is_dropped {
            drop(first);
            // Another member asks instead.
            env.eventually("another one asks", async || client.counts.of("lock_cancel") == 1).await;
            queued(&env, &other.lock("a"), 1).await;
            held.release().await.unwrap();
        } else {
            held.release().await.unwrap();
            guards.push(env.soon("the first", first).await.unwrap());
        }
        for acquiring in others {
            guards.push(env.soon("the others", acquiring).await.unwrap());
        }
        assert!(guards.windows(2).all(|pair| pair[0].token() == pair[1].token()));
        let last = guards.pop().unwrap();
        drop(guards);
        assert!(last.is_valid());
        last.release().await.unwrap();
    }
}
