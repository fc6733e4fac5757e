//! Readers share the lock with readers, and a writer with no other holder.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Token;

use super::{LONG, reader, reads_after, writer};
use crate::lab::{Env, on_every_server};

on_every_server! {
    readers_share_and_a_writer_is_alone,
    what_writers_write_in_two_steps_no_reader_sees_half_of,
    a_try_stays_behind_those_who_wait,
    a_writer_whose_lease_ends_is_told_and_makes_room,
    readers_that_vanish_make_room_when_their_leases_end,
    a_read_write_lock_and_a_lock_of_the_same_name_are_different;
    a_flush_is_told_and_tokens_grow_on,
}

async fn readers_share_and_a_writer_is_alone(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let (one, other, third) = (a.read().await.unwrap(), b.read().await.unwrap(), a.try_read().await.unwrap());
    assert!(b.try_write().await.unwrap().is_none());
    let seen = b.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.writer, seen.waiters), (3, None, 0));
    for guard in [one, other, third.expect("there is no writer")] {
        guard.release().await.unwrap();
    }
    let guard = b.try_write().await.unwrap().expect("there is no reader");
    assert!(a.try_read().await.unwrap().is_none());
    assert!(a.try_write().await.unwrap().is_none());
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.writer.map(|writer| writer.token)), (0, Some(guard.token())));
    guard.release().await.unwrap();
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

/// What the lock protects, in two halves that differ only while a writer is at it.
#[derive(Default)]
struct Halves {
    left: AtomicU64,
    right: AtomicU64,
    /// How many read, or -1.
    inside: AtomicI64,
    together: AtomicI64,
    tokens: Mutex<Vec<Token>>,
}

async fn what_writers_write_in_two_steps_no_reader_sees_half_of(env: Env) {
    const ROUNDS: u64 = 10;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(env.client().await);
    }
    let halves = Arc::new(Halves::default());
    let tasks: Vec<_> = (0..18)
        .map(|n| {
            let (env, halves, lock) = (env.clone(), halves.clone(), clients[n % 3].rw_lock("halves"));
            env.clone().spawn(async move {
                for _ in 0..ROUNDS {
                    if n % 6 == 0 {
                        let guard = lock.write().fair().await.unwrap();
                        assert_eq!(halves.inside.swap(-1, Ordering::SeqCst), 0, "a writer is not alone");
                        halves.tokens.lock().unwrap().push(guard.token());
                        halves.left.fetch_add(1, Ordering::SeqCst);
                        env.yield_now().await;
                        halves.right.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(halves.inside.swap(0, Ordering::SeqCst), -1);
                        guard.release().await.unwrap();
                    } else {
                        let guard = lock.read().await.unwrap();
                        let inside = halves.inside.fetch_add(1, Ordering::SeqCst);
                        assert!(inside >= 0, "a writer is inside");
                        halves.together.fetch_max(inside + 1, Ordering::SeqCst);
                        let left = halves.left.load(Ordering::SeqCst);
                        // Long enough for another holder to enter, if that were possible.
                        env.sleep(Duration::from_millis(1)).await;
                        assert_eq!(left, halves.right.load(Ordering::SeqCst));
                        // The token is one of those of the last writer, if there was one.
                        let last = halves.tokens.lock().unwrap().last().copied();
                        assert!(last.is_none_or(|last| reads_after(&guard, last)), "{guard:?} after {last:?}");
                        halves.inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release().await.unwrap();
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
    assert_eq!(halves.left.load(Ordering::SeqCst), 3 * ROUNDS);
    let tokens = halves.tokens.lock().unwrap().clone();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
    assert!(halves.together.load(Ordering::SeqCst) > 1, "readers never met");
}

async fn a_try_stays_behind_those_who_wait(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let reading = a.read().await.unwrap();
    let waiting = writer(&env, &b).await;
    assert!(a.try_read().await.unwrap().is_none(), "it passed a writer that waits");
    let behind = reader(&env, &a).await;
    reading.release().await.unwrap();
    let writing = env.soon("the writer", waiting).await;
    assert!(a.try_read().await.unwrap().is_none());
    writing.release().await.unwrap();
    env.soon("the reader behind it", behind).await.release().await.unwrap();
}

async fn a_writer_whose_lease_ends_is_told_and_makes_room(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let writing = a.write().expires_after(Duration::from_millis(300)).await.unwrap();
    let next = reader(&env, &b).await;
    env.soon("the loss", writing.lost()).await;
    assert!(!writing.is_valid());
    let reading = env.soon("the reader", next).await;
    assert!(reads_after(&reading, writing.token()), "no other writer came between");
    assert!(writing.release().await.is_err());
    assert!(reading.is_valid(), "a late release takes nothing from others");
    assert_eq!(b.inspect().await.unwrap().readers.len(), 1);
    reading.release().await.unwrap();
}

async fn readers_that_vanish_make_room_when_their_leases_end(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let vanished = [
        a.read().expires_after(Duration::from_millis(300)).await.unwrap(),
        a.read().expires_after(Duration::from_millis(600)).await.unwrap(),
    ];
    let renewed = b.read().await.unwrap();
    let waiting = writer(&env, &b).await;
    for guard in &vanished {
        env.soon("the loss", guard.lost()).await;
    }
    env.eventually("their leases end", async || b.inspect().await.unwrap().readers.len() == 1).await;
    renewed.release().await.unwrap();
    env.soon("the writer", waiting).await.release().await.unwrap();
    drop(vanished);
}

async fn a_read_write_lock_and_a_lock_of_the_same_name_are_different(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let reading = client.rw_lock("a").read().await.unwrap();
    let permit = client.semaphore("a", 1).acquire().await.unwrap();
    guard.release().await.unwrap();
    reading.release().await.unwrap();
    permit.release().await.unwrap();
}

async fn a_flush_is_told_and_tokens_grow_on(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_secs(1))).await;
    let lock = client.rw_lock("a");
    let before = lock.write().timeout(LONG).await.unwrap();
    let () = env.redis(&["FLUSHALL"]);
    env.soon("the loss", before.lost()).await;
    let after = lock.write().timeout(LONG).await.unwrap();
    assert!(before.token() < after.token());
    after.release().await.unwrap();
}
