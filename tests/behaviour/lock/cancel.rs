//! Acquisitions and releases dropped at every point: nothing of them stays, and the next waiter is served.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::{ConfigBuilder, Holder, Lock, LockGuard};
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt};

use super::{LONG, free_at_once, queued, wait_once, waiter};
#[cfg(feature = "tokio")]
use crate::support::env::Runtime;
use crate::support::env::{Env, on_every_server};
use crate::support::polled::{self, poll_once, polled};

on_every_server! {
    an_uncontended_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_contended_acquisition_dropped_at_any_moment_leaves_nothing,
    a_try_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
    an_acquisition_of_a_holder_dropped_after_any_number_of_polls_leaves_nothing,
    a_waiter_dropped_anywhere_in_the_queue_is_skipped,
    a_waiter_dropped_when_it_has_just_been_granted_hands_over,
    an_acquisition_that_was_never_polled_sends_nothing,
    thousands_of_waiters_dropped_at_once_leave_nothing,
}

/// What happens between the last poll and the drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Then {
    Drop,
    /// The server goes on: what it says arrives, and the future never sees it.
    Wait,
}

/// Until what was sent has left a key, if the server goes on.
async fn until_executed(env: &Env, then: Then) {
    if then == Then::Wait {
        env.eventually("executed", async || !env.keys().is_empty()).await;
    }
}

/// The lock `fresh` must be free after each call, at once.
pub(crate) async fn sweep<T>(env: &Env, fresh: &Lock, mut attempt: impl AsyncFnMut(usize, Then) -> Option<T>) {
    for then in [Then::Drop, Then::Wait] {
        println!("{then:?}:");
        polled::sweep(async |polls| attempt(polls, then).await, async || free_at_once(env, fresh).await).await;
    }
}

async fn an_uncontended_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let executed = async || until_executed(&env, then).await;
        polled(lock.lock().into_future(), polls, executed).await.map(Result::unwrap)
    })
    .await;
}

async fn a_contended_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    for max in [None, Some(LONG)] {
        sweep(&env, &other.lock("a"), async |polls, then| {
            let held = other.lock("a").lock().await.unwrap();
            let (stop, released) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let release = env.spawn({
                let (env, lock, stop, released) = (env.clone(), other.lock("a"), stop.clone(), released.clone());
                async move {
                    while !stop.load(Ordering::SeqCst) && lock.inspect().await.unwrap().waiters == 0 {
                        env.yield_now().await;
                    }
                    held.release().await.unwrap();
                    released.store(true, Ordering::SeqCst);
                }
            });
            let granted = async || {
                if then == Then::Wait {
                    env.eventually("granted", async || released.load(Ordering::SeqCst)).await;
                }
            };
            let acquire = match max {
                Some(timeout) => lock.lock().timeout(timeout),
                None => lock.lock(),
            };
            let guard = polled(acquire.into_future(), polls, granted).await.map(Result::unwrap);
            stop.store(true, Ordering::SeqCst);
            release.await;
            guard
        })
        .await;
    }
}

/// The same by the clock: wherever the drop falls between the request, the place in the queue, the release of the lock
/// and the message about the grant.
async fn a_contended_acquisition_dropped_at_any_moment_leaves_nothing(env: Env) {
    const STEP: Duration = Duration::from_micros(20);
    let (client, other) = (env.client().await, env.client().await);
    let (lock, observer) = (client.lock("a"), other.lock("a"));
    let (mut dropped, mut acquired) = (0, 0);
    for step in 0..100 {
        let mut held = Some(observer.lock().await.unwrap());
        let mut release = None;
        let waiter = Waiter::start(&env, &lock);
        let start = env.now();
        while env.now() - start < STEP * step {
            // A third of the futures are dropped before the release.
            if env.now() - start >= STEP * 33 {
                release = release.or_else(|| held.take().map(|held| env.spawn(held.release())));
            }
            env.yield_now().await;
        }
        // The acquisition may be over already.
        let _ = waiter.drop.send(());
        let release = release.unwrap_or_else(|| env.spawn(held.take().unwrap().release()));
        match env.soon("dropped or acquired", waiter.ended).await {
            Some(guard) => {
                acquired += 1;
                drop(guard);
            }
            None => dropped += 1,
        }
        release.await.unwrap();
        free_at_once(&env, &observer).await;
    }
    println!("dropped {dropped} times, acquired {acquired} times");
    assert!(dropped > 0);
}

async fn a_try_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let executed = async || until_executed(&env, then).await;
        polled(lock.try_lock().into_future(), polls, executed).await.map(|tried| tried.unwrap().expect("free"))
    })
    .await;
}

async fn a_release_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let lock = client.lock("a");
    sweep(&env, &other.lock("a"), async |polls, then| {
        let guard = lock.lock().await.unwrap();
        let executed = async || {
            if then == Then::Wait {
                env.eventually("executed", async || env.keys().is_empty()).await;
            }
        };
        polled(guard.release(), polls, executed).await.map(Result::unwrap)
    })
    .await;
}

async fn an_acquisition_of_a_holder_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (lock, holder) = (client.lock("a"), Holder::new());
    sweep(&env, &other.lock("a"), async |polls, then| {
        let executed = async || until_executed(&env, then).await;
        let guard = polled(lock.lock().holder(&holder).into_future(), polls, executed).await.map(Result::unwrap);
        // The holder can acquire again after its future was dropped.
        let again = env.soon("the holder acquires", lock.lock().holder(&holder)).await.unwrap();
        assert!(guard.as_ref().is_none_or(|guard| guard.token() == again.token()));
        guard
    })
    .await;
}

/// An acquisition in a task of its own that can be dropped.
struct Waiter {
    drop: oneshot::Sender<()>,
    ended: BoxFuture<'static, Option<LockGuard>>,
}

impl Waiter {
    async fn queue(env: &Env, lock: &Lock) -> Self {
        let waiters = lock.inspect().await.unwrap().waiters;
        let waiter = Self::start(env, lock);
        queued(env, lock, waiters + 1).await;
        waiter
    }

    fn start(env: &Env, lock: &Lock) -> Self {
        let (drop, dropped) = oneshot::channel();
        let acquired = lock.clone();
        let ended = env.spawn(async move {
            let acquiring = acquired.lock().timeout(LONG).into_future();
            match select(acquiring, dropped).await {
                Either::Left((guard, _)) => Some(guard.unwrap()),
                Either::Right(_) => None,
            }
        });
        Self { drop, ended }
    }
}

async fn a_waiter_dropped_anywhere_in_the_queue_is_skipped(env: Env) {
    let clients = [env.client().await, env.client().await];
    let observer = clients[0].lock("a");
    for client in &clients {
        wait_once(&env, &observer, &client.lock("a")).await;
    }
    // A cancel looks for its ticket from one end or the other, by how long it has waited.
    for pause in [Duration::ZERO, Duration::from_millis(150)] {
        for dropped in [0, 2, 4] {
            let held = observer.lock().await.unwrap();
            let mut waiters = Vec::new();
            for n in 0..5 {
                waiters.push(Waiter::queue(&env, &clients[n % 2].lock("a")).await);
            }
            env.sleep(pause).await;
            let gone = waiters.remove(dropped);
            gone.drop.send(()).unwrap();
            assert!(env.soon("it is dropped", gone.ended).await.is_none());
            queued(&env, &observer, 4).await;
            let mut token = held.token();
            held.release().await.unwrap();
            for Waiter { ended, drop: _drop } in waiters {
                let guard = env.soon("the others are served in their order", ended).await.unwrap();
                assert!(guard.token() > token);
                token = guard.token();
                guard.release().await.unwrap();
            }
            free_at_once(&env, &observer).await;
        }
    }
}

async fn a_waiter_dropped_when_it_has_just_been_granted_hands_over(env: Env) {
    let (a, b, c) = (env.client().await, env.client().await, env.client().await);
    let (lock, observer) = (b.lock("a"), a.lock("a"));
    wait_once(&env, &observer, &lock).await;
    for _ in 0..5 {
        let held = observer.lock().await.unwrap();
        let acquiring = match select(lock.lock().into_future(), Box::pin(queued(&env, &observer, 1))).await {
            Either::Left((guard, _)) => panic!("it waits: {guard:?}"),
            Either::Right(((), acquiring)) => acquiring,
        };
        let next = waiter(&env, &c.lock("a")).await;
        held.release().await.unwrap();
        let holder = observer.inspect().await.unwrap().holder.unwrap();
        assert_eq!(holder.client, Some(b.id()));
        drop(acquiring);
        let next = env.soon("the next one is served", next).await;
        assert!(next.token() > holder.token);
        next.release().await.unwrap();
    }
}

async fn an_acquisition_that_was_never_polled_sends_nothing(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    drop(lock.lock());
    drop(lock.lock().into_future());
    drop(lock.try_lock().into_future());
    assert!(poll_once(&mut Box::pin(env.sleep(Duration::from_millis(50)))).await.is_none());
    env.sleep(Duration::from_millis(50)).await;
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
}

async fn thousands_of_waiters_dropped_at_once_leave_nothing(env: Env) {
    // Only one run uses the full number: several at the same time would wait for the machine. The embedded server's
    // lists are slower in the middle.
    let waiters: usize = match env.runtime() {
        _ if env.is_embedded() => 1_000,
        #[cfg(feature = "tokio")]
        Runtime::TokioMulti => 10_000,
        _ => 2_000,
    };
    let patient = |config: ConfigBuilder| config.command_timeout(LONG).retry_timeout(LONG);
    let (client, other) = (env.client_with(patient).await, env.client_with(patient).await);
    let (lock, observer) = (client.lock("a"), other.lock("a"));
    let held = observer.lock().await.unwrap();
    let mut waiting: FuturesUnordered<_> = (0..waiters).map(|_| lock.lock().into_future()).collect();
    let all = Box::pin(
        env.eventually_within(LONG, "all wait", async || observer.inspect().await.unwrap().waiters == waiters as u64),
    );
    match select(all, waiting.next()).await {
        Either::Left(_) => {}
        Either::Right((ended, _)) => panic!("they all wait: {ended:?}"),
    }
    let next = env.spawn({
        let observer = observer.clone();
        async move { observer.lock().await.unwrap() }
    });
    queued(&env, &observer, waiters as u64 + 1).await;
    drop(waiting);
    env.eventually_within(LONG, "one waiter is left", async || observer.inspect().await.unwrap().waiters == 1).await;
    held.release().await.unwrap();
    env.soon("the last one is served", next).await.release().await.unwrap();
    free_at_once(&env, &lock).await;
}
