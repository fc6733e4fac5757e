//! Futures dropped at every point: nothing of them stays, and the next waiter is served.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{Holder, RwLock};

use super::{free_at_once, reader, writer};
use crate::support::env::{Env, on_every_server};
use crate::support::polled::{self, polled};

on_every_server! {
    a_read_dropped_after_any_number_of_polls_leaves_nothing,
    a_write_behind_a_reader_dropped_after_any_number_of_polls_leaves_nothing,
    a_downgrade_dropped_after_any_number_of_polls_leaves_nothing,
    an_upgrade_dropped_after_any_number_of_polls_leaves_nothing,
    an_upgrade_behind_a_reader_dropped_after_any_number_of_polls_leaves_nothing,
    a_kept_hold_whose_upgrade_is_dropped_half_way_is_not_left,
    a_writer_dropped_in_the_queue_lets_the_readers_behind_it_in,
}

/// The lock `fresh` must be free after each call, at once.
async fn sweep<T>(env: &Env, fresh: &RwLock, attempt: impl AsyncFnMut(usize) -> Option<T>) {
    polled::sweep(attempt, async || free_at_once(env, fresh).await).await;
}

async fn a_read_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (lock, other) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    sweep(&env, &other, async |polls| polled(lock.read().into_future(), polls, async || {}).await.map(Result::unwrap))
        .await;
}

async fn a_write_behind_a_reader_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (lock, other) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    sweep(&env, &other, async |polls| {
        let held = other.read().await.unwrap();
        let (written, released) = futures::join!(polled(lock.write().into_future(), polls, async || {}), async {
            env.yield_now().await;
            held.release().await
        });
        released.unwrap();
        written.map(Result::unwrap)
    })
    .await;
}

async fn a_downgrade_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (lock, other) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    sweep(&env, &other, async |polls| {
        let writing = lock.write().await.unwrap();
        let waiting = reader(&env, &other).await;
        let reading = polled(writing.downgrade(), polls, async || {}).await.map(Result::unwrap);
        env.soon("the reader that waited", waiting).await.release().await.unwrap();
        reading
    })
    .await;
}

async fn an_upgrade_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (lock, other) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    sweep(&env, &other, async |polls| {
        let reading = lock.read().await.unwrap();
        polled(reading.try_upgrade(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}

async fn an_upgrade_behind_a_reader_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (lock, other) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let mut waited = 0;
    sweep(&env, &other, async |polls| {
        let (reading, held) = (lock.upgradable_read().await.unwrap(), other.read().await.unwrap());
        let (written, released) = futures::join!(polled(reading.upgrade(), polls, async || {}), async {
            // Until it waits, if it comes so far.
            for _ in 0..20 {
                if other.inspect().await.unwrap().waiters > 0 {
                    waited += 1;
                    break;
                }
                env.sleep(Duration::from_millis(1)).await;
            }
            held.release().await
        });
        released.unwrap();
        written.map(Result::unwrap)
    })
    .await;
    assert!(waited > 0, "none of them has waited");
}

async fn a_writer_dropped_in_the_queue_lets_the_readers_behind_it_in(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let reading = a.read().await.unwrap();
    let mut waiting = Box::pin(a.write().into_future());
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    env.eventually("it waits", async || b.inspect().await.unwrap().waiters == 1).await;
    let behind = reader(&env, &b).await;
    let last = writer(&env, &b).await;
    drop(waiting);
    env.soon("the reader behind it", behind).await.release().await.unwrap();
    reading.release().await.unwrap();
    env.soon("the writer behind that", last).await.release().await.unwrap();
}

/// The server may have either hold, and the client ends both.
async fn a_kept_hold_whose_upgrade_is_dropped_half_way_is_not_left(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let mut half_way = 0;
    for polls in 1.. {
        assert!(polls < 100, "it never ends");
        let name = format!("a{polls}");
        let (lock, fresh, holder) = (client.rw_lock(&name), other.rw_lock(&name), Holder::new());
        let kept = lock.read().expires_after(Duration::from_secs(60)).holder(&holder).await.unwrap();
        let reading = lock.read().expires_after(Duration::from_secs(60)).holder(&holder).await.unwrap();
        kept.keep().unwrap();
        match polled(reading.try_upgrade(), polls, async || {}).await {
            Some(upgraded) => {
                drop(upgraded.unwrap());
                assert!(fresh.try_read().await.unwrap().is_none(), "what was kept is left, as a writer's");
                break;
            }
            None => {
                half_way += 1;
                free_at_once(&env, &fresh).await;
            }
        }
    }
    assert!(half_way > 0, "nothing was dropped half way");
    env.leaves_keys();
}
