//! Waiting: no waiter is passed, and readers that wait together enter together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::ErrorKind;
use futures::future::join_all;

use super::{LONG, free_at_once, queued, reader, writer};
use crate::lab::{Env, on_every_server};

on_every_server! {
    readers_that_wait_one_behind_the_other_enter_together,
    first_come_first_served_readers_and_writers_alike,
    a_writer_gets_in_before_readers_that_come_after_it,
    a_reader_gets_in_before_writers_that_come_after_it,
    a_hundred_readers_enter_by_one_release,
    a_thousand_readers_enter,
    timeouts_and_full_queues_leave_nothing,
}

async fn readers_that_wait_one_behind_the_other_enter_together(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let writing = a.write().await.unwrap();
    let mut readers = Vec::new();
    for lock in [&a, &b, &b, &a] {
        readers.push(reader(&env, lock).await);
    }
    let last = writer(&env, &a).await;
    let behind = reader(&env, &b).await;
    writing.release().await.unwrap();
    let readers = env.soon("the readers before the writer", join_all(readers)).await;
    assert!(readers.iter().all(|guard| guard.is_valid()));
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.waiters), (4, 2));
    for guard in readers {
        guard.release().await.unwrap();
    }
    env.soon("the writer", last).await.release().await.unwrap();
    env.soon("the reader behind it", behind).await.release().await.unwrap();
}

async fn first_come_first_served_readers_and_writers_alike(env: Env) {
    let clients = [env.client().await, env.client().await];
    let held = clients[0].rw_lock("a").write().await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for n in 0..8_u64 {
        let (lock, order, env_) = (clients[n as usize % 2].rw_lock("a"), order.clone(), env.clone());
        tasks.push(env.spawn(async move {
            if n % 2 == 0 {
                let guard = lock.write().timeout(LONG).await.unwrap();
                order.lock().unwrap().push(n);
                env_.yield_now().await;
                guard.release().await.unwrap();
            } else {
                let guard = lock.read().timeout(LONG).await.unwrap();
                order.lock().unwrap().push(n);
                guard.release().await.unwrap();
            }
        }));
        queued(&env, &clients[0].rw_lock("a"), n + 1).await;
    }
    held.release().await.unwrap();
    for task in tasks {
        task.await;
    }
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
}

/// Tasks that each hold the lock again and again, so that it is never free, until told to stop.
struct Stream {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    tasks: Vec<futures::future::BoxFuture<'static, ()>>,
}

impl Stream {
    async fn start(env: &Env, writes: bool) -> Self {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (lock, stop, rounds) = (env.client().await.rw_lock("a"), stop.clone(), rounds.clone());
            tasks.push(env.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    if writes {
                        let guard = lock.write().await.unwrap();
                        rounds.fetch_add(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    } else {
                        let guard = lock.read().await.unwrap();
                        rounds.fetch_add(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    }
                }
            }));
        }
        let stream = Self { stop, rounds, tasks };
        env.eventually("the stream flows", async || stream.rounds.load(Ordering::SeqCst) > 20).await;
        stream
    }

    async fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        join_all(self.tasks).await;
    }
}

/// Once in the queue, it is behind those who hold it and those before it: one turn of each task of the stream.
async fn a_writer_gets_in_before_readers_that_come_after_it(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let held = lock.read().await.unwrap();
    let stream = Stream::start(&env, false).await;
    let waiting = env.spawn({
        let lock = lock.clone();
        async move { lock.write().timeout(LONG).await.unwrap() }
    });
    // Present readers continue. Each new reader waits behind the writer, and in the end all readers do.
    queued(&env, &lock, 5).await;
    let before = stream.rounds.load(Ordering::SeqCst);
    held.release().await.unwrap();
    let writing = env.soon("the writer", waiting).await;
    let passed = stream.rounds.load(Ordering::SeqCst) - before;
    assert_eq!(passed, 0, "{passed} readers passed a writer that waited");
    writing.release().await.unwrap();
    stream.end().await;
}

async fn a_reader_gets_in_before_writers_that_come_after_it(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let stream = Stream::start(&env, true).await;
    for _ in 0..5 {
        env.soon("a reader", lock.read()).await.unwrap().release().await.unwrap();
    }
    stream.end().await;
}

async fn a_hundred_readers_enter_by_one_release(env: Env) {
    let (writer, readers) = (env.client().await, env.client().await);
    let held = writer.rw_lock("a").write().await.unwrap();
    let lock = readers.rw_lock("a");
    let mut tasks = Vec::new();
    for _ in 0..100 {
        let lock = lock.clone();
        tasks.push(env.spawn(async move { lock.read().timeout(LONG).await.unwrap() }));
    }
    queued(&env, &lock, 100).await;
    writer.counts.reset();
    readers.counts.reset();
    held.release().await.unwrap();
    let guards = env.soon("all readers", join_all(tasks)).await;
    assert_eq!((writer.counts.of("permit_release"), writer.counts.total()), (1, 1));
    assert_eq!(readers.counts.total(), 0, "{:?}", readers.counts.all());
    assert_eq!(lock.inspect().await.unwrap().readers.len(), 100);
    drop(guards);
    free_at_once(&env, &lock).await;
}

async fn a_thousand_readers_enter(env: Env) {
    const READERS: u64 = 1_000;
    let (writer, readers) = (env.client().await, env.client().await);
    let lock = readers.rw_lock("a");
    let held = writer.rw_lock("a").write().await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..READERS {
        let lock = lock.clone();
        waiting.push(env.spawn(async move { lock.read().timeout(LONG).await.unwrap() }));
    }
    queued(&env, &lock, READERS).await;
    held.release().await.unwrap();
    let guards = env.soon("all readers", join_all(waiting)).await;
    assert!(guards.iter().all(|guard| guard.is_valid()));
    drop(guards);
    free_at_once(&env, &lock).await;
}

async fn timeouts_and_full_queues_leave_nothing(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let writing = a.write().await.unwrap();
    let short = Duration::from_millis(50);
    assert_eq!(b.read().timeout(short).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(b.write().timeout(short).await.unwrap_err().kind(), ErrorKind::TimedOut);
    queued(&env, &a, 0).await;
    let waiting = reader(&env, &b).await;
    assert_eq!(a.write().max_waiters(1).await.unwrap_err().kind(), ErrorKind::QueueFull);
    writing.release().await.unwrap();
    env.soon("the reader", waiting).await.release().await.unwrap();
    free_at_once(&env, &a).await;
}
