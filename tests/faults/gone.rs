//! Clients that are gone without a word, and runtimes that are shut down.
//!
//! A client is gone when its runtime is: its sockets close, and no task works for it any more. Only tokio's
//! runtimes can be shut down; the others that compete with it run on every runtime.
#![cfg(feature = "tokio")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bowline::{Client, Config, ErrorKind, Loss};
use futures::future::BoxFuture;

use crate::scene::{SLACK, acquiring, assert_holds, ms, pass, until_waiting, waiting};
use crate::support::adapters::bounded;
use crate::support::env::{Env, on_every_runtime};
use crate::support::server::Server;

on_every_runtime! {
    a_dead_waiter_is_passed_over_at_once_and_its_ticket_expires,
    many_dead_waiters_are_passed_over_at_once,
    a_dead_holder_is_succeeded_after_its_lease,
}

/// A client on a runtime of its own.
struct Doomed {
    runtime: Option<tokio::runtime::Runtime>,
    client: Client,
}

impl Doomed {
    fn start(url: &str, lease: Duration) -> Self {
        // On another thread, because a runtime cannot be driven from inside another one.
        let url = url.to_owned();
        let started = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            // The client ends without releasing anything.
            let config = Config::builder().lease(lease).shutdown_timeout(Duration::ZERO).build().unwrap();
            let client = runtime.block_on(bowline::tokio::connect_with(&url, config)).unwrap();
            Self { runtime: Some(runtime), client }
        });
        started.join().unwrap()
    }

    /// A task on the doomed runtime.
    fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
        let task = self.runtime.as_ref().unwrap().spawn(task);
        Box::pin(async move { task.await.unwrap() })
    }

    fn wait(&self, name: &str) {
        let lock = self.client.lock(name);
        drop(self.spawn(async move { drop(lock.lock().await) }));
    }

    fn shut_down(&mut self) {
        let runtime = self.runtime.take();
        thread::spawn(move || drop(runtime)).join().unwrap();
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        self.shut_down();
    }
}

async fn a_dead_waiter_is_passed_over_at_once_and_its_ticket_expires(env: Env) {
    let client = env.client().await;
    let held = client.lock("a").lock().await.unwrap();
    let mut doomed = Doomed::start(&env.url(), ms(4000));
    doomed.wait("a");
    until_waiting(&env, "a", 1).await;
    let mut patient = Doomed::start(&env.url(), ms(30_000));
    patient.wait("a");
    until_waiting(&env, "a", 2).await;
    let waiter = acquiring(&env, &client, "a");
    until_waiting(&env, "a", 3).await;
    doomed.shut_down();
    patient.shut_down();
    held.release().await.unwrap();
    // 30 s before the second ticket expires.
    let guard = env.soon("the living", waiter).await.unwrap();
    assert_holds(&env, &guard);
    assert_eq!(waiting(&env, "a"), 2, "the dead keep their places for a while");
    env.sleep(ms(4000)).await;
    guard.release().await.unwrap();
    pass(&env, &client, "a").await;
    assert_eq!(waiting(&env, "a"), 1, "the first ticket has expired");
    env.leaves_keys();
}

async fn many_dead_waiters_are_passed_over_at_once(env: Env) {
    let client = env.client().await;
    let held = client.lock("a").lock().await.unwrap();
    let mut doomed = Doomed::start(&env.url(), ms(1500));
    (0..100).for_each(|_| doomed.wait("a"));
    until_waiting(&env, "a", 100).await;
    let waiter = acquiring(&env, &client, "a");
    until_waiting(&env, "a", 101).await;
    doomed.shut_down();
    let start = env.now();
    held.release().await.unwrap();
    let guard = env.soon("the living", waiter).await.unwrap();
    assert!(env.now() - start < ms(1000), "{:?}", env.now() - start);
    env.sleep(ms(1500)).await;
    guard.release().await.unwrap();
    pass(&env, &client, "a").await;
    assert_eq!(waiting(&env, "a"), 0, "all have expired");
}

async fn a_dead_holder_is_succeeded_after_its_lease(env: Env) {
    let client = env.client().await;
    let lease = ms(900);
    let mut doomed = Doomed::start(&env.url(), lease);
    let lock = doomed.client.lock("a");
    let lost = env.soon("the lock", doomed.spawn(async move { lock.lock().await })).await.unwrap();
    let waiter = acquiring(&env, &client, "a");
    until_waiting(&env, "a", 1).await;
    doomed.shut_down();
    let start = env.now();
    assert!(!lost.is_valid());
    assert_eq!(env.soon("the loss", lost.lost()).await, Loss::Closed);
    let guard = env.soon("the next", waiter).await.unwrap();
    assert!(env.now() - start < lease + SLACK);
    assert!(guard.token() > lost.token());
    assert_holds(&env, &guard);
    guard.release().await.unwrap();
    drop(lost);
}

/// The holder is told on another thread, and so is a waiter.
fn a_shutdown_is_told(runtime: tokio::runtime::Runtime) {
    bounded(move || {
        let server = Server::start();
        let config = Config::builder().lease(ms(2000)).build().unwrap();
        let client = runtime.block_on(bowline::tokio::connect_with(&server.url(), config)).unwrap();
        let lock = client.lock("a");
        let guard = Arc::new(runtime.block_on(async { lock.lock().await }).unwrap());
        let told = thread::spawn({
            let guard = guard.clone();
            move || futures::executor::block_on(guard.lost())
        });
        let waiting = thread::spawn({
            let lock = lock.clone();
            move || futures::executor::block_on(async { lock.lock().await })
        });
        // No other event wakes the members of the cohort behind it. One has a ticket, and the others wait only for the
        // engine.
        let line: Vec<_> = (0..4)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || futures::executor::block_on(async { lock.lock().non_fair().await }))
            })
            .collect();
        let (lock_key, queue) = ("bowline:lock:{a}", "bowline:lock:{a}:queue");
        // Drives the current-thread runtime until the waiter is queued.
        runtime.block_on(async {
            let start = Instant::now();
            while !server.keys().iter().any(|key| key == queue) || client.stats().waiting < 5 {
                assert!(start.elapsed() < Duration::from_secs(10), "it does not wait");
                tokio::time::sleep(ms(5)).await;
            }
            // Its answer is still on the way.
            tokio::time::sleep(ms(50)).await;
        });
        assert!(guard.is_valid());
        drop(runtime);
        assert!(!guard.is_valid());
        assert_eq!(told.join().unwrap(), Loss::Closed);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        for waiting in line {
            assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        }
        for error in [
            futures::executor::block_on(async { lock.lock().await }).unwrap_err(),
            futures::executor::block_on(async { lock.try_lock().await }).unwrap_err(),
            futures::executor::block_on(lock.inspect()).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        futures::executor::block_on(client.close());
        let guard = Arc::into_inner(guard).unwrap();
        assert_eq!(futures::executor::block_on(guard.release()).unwrap_err().kind(), ErrorKind::Lost);
        assert!(server.ttl_ms(lock_key) <= 2000);
    });
}

#[test]
fn a_shutdown_of_a_multi_thread_runtime_is_told() {
    a_shutdown_is_told(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
}

#[test]
fn a_shutdown_of_a_current_thread_runtime_is_told() {
    a_shutdown_is_told(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
}

/// As at the end of every `main`: the tasks of the client notice that it is gone while the runtime is being shut down,
/// and sleeps end at once from then on.
#[test]
fn a_runtime_may_be_dropped_right_after_its_client() {
    bounded(|| {
        let server = Server::start();
        // A few microseconds decide which of the two is noticed first.
        for n in 0..60 {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let client = runtime.block_on(bowline::tokio::connect(&server.url())).unwrap();
            let guard = runtime.block_on(client.lock("a").lock().into_future()).unwrap();
            if n % 2 == 0 {
                runtime.block_on(guard.release()).unwrap();
            } else {
                runtime.block_on(client.close());
                drop(guard);
            }
            drop(client);
            let (dropped, ended) = std::sync::mpsc::channel();
            thread::spawn(move || {
                drop(runtime);
                dropped.send(()).unwrap();
            });
            ended.recv_timeout(Duration::from_secs(10)).expect("the shutdown does not end");
        }
    });
}

/// A task that gives permits back is dropped with its runtime, before its first poll or later, and begins no other one.
#[test]
fn permits_of_a_runtime_that_is_shut_down_stay_taken() {
    bounded(|| {
        let server = Server::start();
        server.allow_forever("java:s");
        let mut doomed = Doomed::start(&server.url(), ms(3000));
        let semaphore = doomed.client.redisson().semaphore("java:s");
        let take = async move {
            assert!(semaphore.try_set_permits(2).await.unwrap());
            (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap())
        };
        let (released, dropped) = doomed.runtime.as_ref().unwrap().block_on(take);
        doomed.shut_down();
        drop(dropped);
        drop(released.release());
        drop(doomed);
        assert_eq!(redis::cmd("GET").arg("java:s").query::<u32>(&mut server.client()).unwrap(), 0);
        redis::cmd("DEL").arg("java:s").exec(&mut server.client()).unwrap();
        server.finish();
    });
}
