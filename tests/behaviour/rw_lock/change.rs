//! Downgrade and upgrade.

use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss};

use super::{free_at_once, reader, reads_after, writer};
use crate::lab::{Env, Upgrade, WriteGuard, on_every_server};

on_every_server! {
    a_downgraded_writer_lets_readers_in_and_no_writer,
    the_only_reader_upgrades_before_those_who_wait,
    an_upgrade_beside_others_would_deadlock_and_keeps_the_guard,
    an_upgrade_that_failed_leaves_a_lease_that_is_kept,
    a_change_is_one_command,
    what_is_lost_cannot_be_changed,
    a_change_keeps_the_limit_and_what_was_extended,
    guards_that_share_a_hold_are_changed_by_none_of_them,
    a_reader_inside_a_writer_is_a_writer_already,
}

fn upgraded(upgrade: Upgrade) -> WriteGuard {
    match upgrade {
        Upgrade::Writing(guard) => guard,
        Upgrade::Shared(_) => panic!("not the only reader"),
    }
}

async fn a_downgraded_writer_lets_readers_in_and_no_writer(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let writing = a.write().await.unwrap();
    let token = writing.token();
    let waiting = reader(&env, &b).await;
    let next = writer(&env, &b).await;
    let reading = writing.downgrade().await.unwrap();
    assert_eq!(reading.token(), token);
    let other = env.soon("the reader that waited", waiting).await;
    assert!(reads_after(&other, token));
    let seen = a.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.writer, seen.waiters), (2, None, 1));
    other.release().await.unwrap();
    assert!(reading.is_valid());
    assert_eq!(a.inspect().await.unwrap().waiters, 1, "the writer waits for the one that was downgraded");
    reading.release().await.unwrap();
    let next = env.soon("the writer", next).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
    free_at_once(&env, &a).await;
}

async fn the_only_reader_upgrades_before_those_who_wait(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let first = a.write().await.unwrap();
    let token = first.token();
    let reading = first.downgrade().await.unwrap();
    let waiting = writer(&env, &b).await;
    let writing = upgraded(reading.try_upgrade().await.unwrap());
    assert!(writing.token() > token, "a writer has a token of its own");
    let seen = b.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.writer.map(|writer| writer.token)), (0, Some(writing.token())));
    let token = writing.token();
    writing.release().await.unwrap();
    let next = env.soon("the writer that waited", waiting).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
    free_at_once(&env, &a).await;
}

async fn an_upgrade_beside_others_would_deadlock_and_keeps_the_guard(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let (one, other) = (a.read().await.unwrap(), b.read().await.unwrap());
    let Upgrade::Shared(one) = one.try_upgrade().await.unwrap() else { panic!("beside another reader") };
    let Upgrade::Shared(other) = other.try_upgrade().await.unwrap() else { panic!("beside another reader") };
    assert!(one.is_valid() && other.is_valid());
    assert_eq!(a.inspect().await.unwrap().readers.len(), 2);
    other.release().await.unwrap();
    upgraded(one.try_upgrade().await.unwrap()).release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn an_upgrade_that_failed_leaves_a_lease_that_is_kept(env: Env) {
    let lease = Duration::from_secs(2);
    let client = env.client_with(|config| config.lease(lease)).await;
    let lock = client.rw_lock("a");
    let (one, other) = (lock.read().await.unwrap(), lock.read().await.unwrap());
    let Upgrade::Shared(one) = one.try_upgrade().await.unwrap() else { panic!("beside another reader") };
    env.sleep(lease * 3 / 2).await;
    assert!(one.is_valid() && other.is_valid(), "the watchdog keeps both");
    other.release().await.unwrap();
    let writing = upgraded(one.try_upgrade().await.unwrap());
    env.sleep(lease * 3 / 2).await;
    assert!(writing.is_valid(), "the watchdog keeps what it became");
    writing.release().await.unwrap();
}

async fn a_change_is_one_command(env: Env) {
    let client = env.client().await;
    let guard = client.rw_lock("a").write().await.unwrap();
    client.counts.reset();
    let guard = guard.downgrade().await.unwrap();
    let guard = upgraded(guard.try_upgrade().await.unwrap());
    assert_eq!((client.counts.of("permit_change"), client.counts.total()), (2, 2));
    guard.release().await.unwrap();
}

async fn what_is_lost_cannot_be_changed(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let writing = lock.write().expires_after(Duration::from_millis(150)).await.unwrap();
    env.soon("the loss", writing.lost()).await;
    assert_eq!(writing.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
    let reading = lock.read().expires_after(Duration::from_millis(150)).await.unwrap();
    env.soon("the loss", reading.lost()).await;
    assert_eq!(reading.try_upgrade().await.unwrap_err().kind(), ErrorKind::Lost);
    // Guards that would not ask the server fail, too.
    let holder = Holder::new();
    let writing = lock.write().holder(&holder).expires_after(Duration::from_millis(150)).await.unwrap();
    let again = lock.write().holder(&holder).await.unwrap();
    let reading = lock.read().holder(&holder).await.unwrap();
    env.soon("the loss", writing.lost()).await;
    assert_eq!(again.downgrade().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(reading.try_upgrade().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_change_keeps_the_limit_and_what_was_extended(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let limit = Duration::from_millis(1200);
    let writing = lock.write().hold_at_most(limit).await.unwrap();
    let granted = env.now();
    let reading = writing.downgrade().await.unwrap();
    assert!(env.now() + reading.remaining() <= granted + limit);
    let writing = upgraded(reading.try_upgrade().await.unwrap());
    assert!(env.now() + writing.remaining() <= granted + limit);
    assert_eq!(env.soon("it ends", writing.lost()).await, Loss::Expired);
    drop(writing);

    let (lease, longer) = (Duration::from_millis(2000), Duration::from_secs(60));
    let writing = env.soon("the lock is free", lock.write().expires_after(lease)).await.unwrap();
    writing.extend(longer).await.unwrap();
    let before = env.now() + writing.remaining();
    let reading = writing.downgrade().await.unwrap();
    let remaining = reading.remaining();
    assert!(remaining > lease * 2 && remaining <= longer);
    assert!(env.now() + remaining >= before, "it is shortened");
    let writing = upgraded(reading.try_upgrade().await.unwrap());
    assert!(writing.remaining() > lease * 2);
    writing.extend(longer * 2).await.unwrap();
    assert!(writing.remaining() > longer);
    writing.release().await.unwrap();
}

async fn guards_that_share_a_hold_are_changed_by_none_of_them(env: Env) {
    let (client, other) = (env.client().await, env.client().await.rw_lock("a"));
    let (lock, holder) = (client.rw_lock("a"), Holder::new());
    let outer = lock.read().holder(&holder).await.unwrap();
    let inner = lock.read().holder(&holder).await.unwrap();
    let Upgrade::Shared(inner) = inner.try_upgrade().await.unwrap() else { panic!("the outer one reads") };
    inner.release().await.unwrap();
    outer.release().await.unwrap();

    let outer = lock.write().holder(&holder).await.unwrap();
    let inner = lock.write().holder(&holder).await.unwrap().downgrade().await.unwrap();
    assert!(other.try_read().await.unwrap().is_none(), "the outer guard writes");
    assert!(outer.is_valid() && inner.is_valid());
    let writing = outer.token();
    outer.release().await.unwrap();
    assert_eq!(inner.token(), writing);
    inner.release().await.unwrap();
    free_at_once(&env, &other).await;
}

async fn a_reader_inside_a_writer_is_a_writer_already(env: Env) {
    let (lock, holder) = (env.client().await.rw_lock("a"), Holder::new());
    let outer = lock.write().holder(&holder).await.unwrap();
    let inner = lock.read().holder(&holder).await.unwrap();
    let inner = upgraded(inner.try_upgrade().await.unwrap());
    assert_eq!(inner.token(), outer.token());
    inner.release().await.unwrap();
    // A changed hold is re-entered in its new mode.
    let reading = outer.downgrade().await.unwrap();
    let again = lock.read().holder(&holder).await.unwrap();
    assert_eq!(again.token(), reading.token());
    assert_eq!(lock.write().holder(&holder).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    again.release().await.unwrap();
    reading.release().await.unwrap();
    free_at_once(&env, &lock).await;
}
