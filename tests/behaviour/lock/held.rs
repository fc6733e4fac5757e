//! What generic code can do with any guard, and what a signal tells when the guard is gone.

use std::time::Duration;

use bowline::{Client, ErrorKind, Held, Loss, LossSignal};
use futures::FutureExt;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    generic_code_takes_every_guard,
    a_signal_tells_a_loss_when_the_guard_is_gone,
    a_signal_resolves_when_the_hold_is_released,
    a_signal_ends_with_a_change_of_the_hold,
    a_signal_ends_when_the_hold_is_handed_on,
    a_signal_keeps_no_client,
}

const LONG: Duration = Duration::from_secs(60);

/// As a library would, whose futures go to any thread.
async fn uses<G: Held>(env: Env, guard: G) -> LossSignal {
    let name = guard.name().to_owned();
    env.spawn(async move {
        let signal = guard.lost_signal();
        assert!(guard.is_valid() && !guard.remaining().is_zero());
        assert!(!signal.remaining().is_zero() && signal.remaining() <= Duration::from_secs(30));
        assert_eq!((guard.name(), signal.name()), (&*name, &*name));
        assert!(guard.lost().now_or_never().is_none());
        assert_eq!(guard.protect(async { 7 }).await.unwrap(), 7);
        guard.extend(LONG).await.unwrap();
        guard.release().await.unwrap();
        signal
    })
    .await
}

async fn generic_code_takes_every_guard(env: Env) {
    let client: Client = env.client().await.client.clone();
    let (lock, rw_lock, semaphore) = (client.lock("a"), client.rw_lock("b"), client.semaphore("c", 2));
    let lease = Duration::from_secs(30);
    let signals = [
        uses(env.clone(), lock.lock().expires_after(lease).await.unwrap()).await,
        uses(env.clone(), rw_lock.read().expires_after(lease).await.unwrap()).await,
        uses(env.clone(), rw_lock.write().expires_after(lease).await.unwrap()).await,
        uses(env.clone(), semaphore.acquire().expires_after(lease).await.unwrap()).await,
    ];
    for signal in signals {
        assert_eq!((signal.wait().await, signal.reason(), signal.is_lost()), (None, None, false));
        assert!(signal.remaining().is_zero(), "released");
        let shown = format!("{signal:?}");
        assert!(shown.contains(signal.name()) && !shown.contains(&client.id().to_string()), "{shown}");
    }
}

async fn a_signal_tells_a_loss_when_the_guard_is_gone(env: Env) {
    let (client, operator) = (env.client().await, env.client().await);
    let guard = client.lock("a").lock().await.unwrap();
    let (signal, watcher) = (guard.lost_signal(), guard.lost_signal());
    let watching = env.spawn(async move { watcher.wait().await });
    assert!(signal.wait().now_or_never().is_none() && !signal.is_lost());
    operator.lock("a").force_release().await.unwrap().unwrap();
    assert_eq!(env.soon("the watcher is told", watching).await, Some(Loss::Revoked));
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!((signal.clone().wait().await, signal.reason()), (Some(Loss::Revoked), Some(Loss::Revoked)));
    assert!(signal.is_lost());
}

async fn a_signal_resolves_when_the_hold_is_released(env: Env) {
    let client = env.client().await;
    for dropped in [false, true] {
        let guard = client.lock("a").lock().await.unwrap();
        let signal = guard.lost_signal();
        let waiting = env.spawn(async move { signal.wait().await });
        if dropped {
            drop(guard)
        } else {
            guard.release().await.unwrap()
        }
        assert_eq!(env.soon("the release is told", waiting).await, None);
    }
}

async fn a_signal_ends_with_a_change_of_the_hold(env: Env) {
    let (client, operator) = (env.client().await, env.client().await);
    let writing = client.rw_lock("a").write().await.unwrap();
    let signal = writing.lost_signal();
    let waiting = env.spawn({
        let signal = signal.clone();
        async move { signal.wait().await }
    });
    let reading = writing.downgrade().await.unwrap();
    assert_eq!(env.soon("the change is told", waiting).await, None);
    assert!(!signal.is_lost() && !reading.lost_signal().is_lost());
    drop(operator);
    client.close().await;
    assert_eq!((signal.wait().await, reading.lost_signal().wait().await), (None, Some(Loss::Closed)));
}

async fn a_signal_ends_when_the_hold_is_handed_on(env: Env) {
    let client = env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await;
    let lock = client.lock("a");
    let first = lock.lock().non_fair().await.unwrap();
    let second = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().non_fair().await.unwrap() }
    });
    env.eventually("it waits", async || client.stats().waiting == 1).await;
    let signal = first.lost_signal();
    let waiting = env.spawn({
        let signal = signal.clone();
        async move { signal.wait().await }
    });
    first.release().await.unwrap();
    let second = env.soon("the second holds", second).await;
    assert_eq!(env.soon("the end is told", waiting).await, None);
    assert!(!signal.is_lost() && second.is_valid());
    second.release().await.unwrap();
}

async fn a_signal_keeps_no_client(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let signal = guard.lost_signal();
    drop((guard, client));
    env.eventually("no task is left", async || env.live() == (0, 0)).await;
    assert_eq!(signal.wait().await, None);
}
