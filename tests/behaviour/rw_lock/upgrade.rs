//! The upgradable reader, and how it becomes the writer.

use std::time::Duration;

use bowline::{Access, ErrorKind, Holder, Loss, Whose};

use super::{LONG, free_at_once, queued, reader, reads_after, writer};
use crate::lab::{Env, UpgradableGuard, Upgrade, WriteGuard, on_every_server};

on_every_server! {
    one_reader_is_upgradable_and_keeps_no_plain_reader_out,
    an_upgrade_waits_for_readers_and_goes_before_all_who_wait,
    an_upgrade_of_the_only_reader_is_one_command,
    an_upgrade_that_waits_is_three_commands,
    an_upgrade_out_of_time_reads_on,
    a_timeout_of_zero_is_refused,
    a_lease_that_ends_during_the_wait_is_a_loss,
    an_upgrade_keeps_the_limit_of_the_hold,
    a_guard_that_shares_its_hold_does_not_wait_for_itself,
    a_holder_re_enters_what_it_reads_upgradably,
    another_task_of_the_holder_waits_for_the_upgrade,
    a_hold_taken_by_an_operator_upgrades_no_more,
    a_downgrade_lets_the_next_upgradable_reader_in,
    a_dropped_waiter_upgrades_no_more,
    an_upgrade_ends_with_its_client,
    an_upgradable_reader_is_resumed_as_one,
}

fn upgraded(upgrade: Upgrade<UpgradableGuard>) -> WriteGuard {
    match upgrade {
        Upgrade::Writing(guard) => guard,
        Upgrade::Shared(_) => panic!("not the only reader"),
    }
}

fn shared(upgrade: Upgrade<UpgradableGuard>) -> UpgradableGuard {
    match upgrade {
        Upgrade::Writing(_) => panic!("not the only reader"),
        Upgrade::Shared(guard) => guard,
    }
}

async fn one_reader_is_upgradable_and_keeps_no_plain_reader_out(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let plain = b.read().await.unwrap();
    let first = a.upgradable_read().await.unwrap();
    let other = b.try_read().await.unwrap().expect("a plain reader fits");
    assert!(b.try_upgradable_read().await.unwrap().is_none());
    assert!(b.try_write().await.unwrap().is_none());
    let seen = b.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.upgradable.unwrap().token, seen.writer), (2, first.token(), None));
    let next = env.spawn({
        let b = b.clone();
        async move { b.upgradable_read().timeout(LONG).await.unwrap() }
    });
    queued(&env, &b, 1).await;
    assert_eq!(a.inspect().await.unwrap().queue[0].waits_for, Access::UpgradableRead);
    first.release().await.unwrap();
    let next = env.soon("the next upgradable reader", next).await;
    plain.release().await.unwrap();
    other.release().await.unwrap();
    next.release().await.unwrap();
    let writing = a.write().await.unwrap();
    assert!(b.try_upgradable_read().await.unwrap().is_none());
    writing.release().await.unwrap();
    free_at_once(&env, &a).await;
}

async fn an_upgrade_waits_for_readers_and_goes_before_all_who_wait(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let written = a.write().await.unwrap();
    let token = written.token();
    written.release().await.unwrap();
    let (reading, plain) = (a.upgradable_read().await.unwrap(), b.read().await.unwrap());
    assert!(reads_after(&plain, token));
    let waiting = writer(&env, &b).await;
    let late = reader(&env, &b).await;
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 3).await;
    let seen = b.inspect().await.unwrap();
    let waits: Vec<_> = seen.queue.iter().map(|waiter| waiter.waits_for).collect();
    assert_eq!(waits, [Access::Upgrade, Access::Write, Access::Read]);
    assert!(seen.upgradable.is_some(), "it reads while it waits");
    plain.release().await.unwrap();
    let writing = env.soon("the upgrade", upgrade).await.unwrap();
    assert!(writing.token().get() > token.get());
    let seen = b.inspect().await.unwrap();
    assert_eq!((seen.readers.len(), seen.upgradable, seen.waiters), (0, None, 2));
    assert_eq!(seen.writer.unwrap().token, writing.token());
    let token = writing.token();
    writing.release().await.unwrap();
    let next = env.soon("the writer that waited", waiting).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
    env.soon("the reader behind it", late).await.release().await.unwrap();
    free_at_once(&env, &a).await;
}

async fn an_upgrade_of_the_only_reader_is_one_command(env: Env) {
    let client = env.client().await;
    let lock = client.rw_lock("a");
    let reading = lock.upgradable_read().await.unwrap();
    client.counts.reset();
    let writing = reading.upgrade().await.unwrap();
    let reading = writing.downgrade_to_upgradable().await.unwrap();
    let writing = upgraded(reading.upgrade_within(LONG).await.unwrap());
    let reading = writing.downgrade_to_upgradable().await.unwrap();
    let writing = upgraded(reading.try_upgrade().await.unwrap());
    assert_eq!((client.counts.of("permit_change"), client.counts.total()), (5, 5));
    writing.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn an_upgrade_that_waits_is_three_commands(env: Env) {
    let (client, other) = (env.client_with(|config| config.lease(LONG * 3)).await, env.client().await.rw_lock("a"));
    let (reading, plain) = (client.rw_lock("a").upgradable_read().await.unwrap(), other.read().await.unwrap());
    client.counts.reset();
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &other, 1).await;
    plain.release().await.unwrap();
    let writing = env.soon("the upgrade", upgrade).await.unwrap();
    assert_eq!((client.counts.of("permit_change"), client.counts.of("permit_acquire")), (2, 1));
    assert_eq!(client.counts.total(), 3);
    writing.release().await.unwrap();
    assert_eq!(client.counts.total(), 4, "nothing else was left to release");
    free_at_once(&env, &other).await;
}

async fn an_upgrade_out_of_time_reads_on(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let (reading, plain) = (a.upgradable_read().await.unwrap(), b.read().await.unwrap());
    let token = reading.token();
    let reading = shared(reading.try_upgrade().await.unwrap());
    let reading = shared(reading.upgrade_within(Duration::from_millis(50)).await.unwrap());
    assert!(reading.is_valid());
    assert_eq!(reading.token(), token);
    queued(&env, &b, 0).await;
    b.try_read().await.unwrap().expect("readers come in again").release().await.unwrap();
    assert!(b.try_upgradable_read().await.unwrap().is_none());
    plain.release().await.unwrap();
    let writing = upgraded(reading.upgrade_within(LONG).await.unwrap());
    assert!(writing.token() > token);
    writing.release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn a_timeout_of_zero_is_refused(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let reading = lock.upgradable_read().await.unwrap();
    let error = reading.upgrade_within(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")));
    free_at_once(&env, &lock).await;
}

async fn a_lease_that_ends_during_the_wait_is_a_loss(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let plain = b.read().await.unwrap();
    let reading = a.upgradable_read().expires_after(Duration::from_millis(400)).await.unwrap();
    let error = env.soon("the end of the lease", reading.upgrade()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    plain.release().await.unwrap();
    free_at_once(&env, &b).await;
    // An upgrade of what is lost is not asked for.
    let lost = a.upgradable_read().expires_after(Duration::from_millis(150)).await.unwrap();
    env.soon("the loss", lost.lost()).await;
    assert_eq!(lost.upgrade_within(LONG).await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn an_upgrade_keeps_the_limit_of_the_hold(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let limit = Duration::from_millis(1200);
    let (reading, plain) = (a.upgradable_read().hold_at_most(limit).await.unwrap(), b.read().await.unwrap());
    let granted = env.now();
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 1).await;
    plain.release().await.unwrap();
    let writing = env.soon("the upgrade", upgrade).await.unwrap();
    assert!(env.now() + writing.remaining() <= granted + limit);
    assert_eq!(env.soon("it ends", writing.lost()).await, Loss::Expired);
}

async fn a_guard_that_shares_its_hold_does_not_wait_for_itself(env: Env) {
    let (lock, holder) = (env.client().await.rw_lock("a"), Holder::new());
    let outer = lock.upgradable_read().holder(&holder).await.unwrap();
    let inner = lock.read().holder(&holder).await.unwrap();
    let outer = shared(outer.upgrade_within(LONG).await.unwrap());
    let outer = shared(outer.try_upgrade().await.unwrap());
    let token = inner.token();
    assert_eq!(outer.upgrade().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert!(inner.is_valid(), "the other guard keeps the hold");
    // It is the hold of an upgradable reader to its end.
    let again = lock.upgradable_read().holder(&holder).await.unwrap();
    inner.release().await.unwrap();
    let writing = again.upgrade().await.unwrap();
    assert!(writing.token() > token);
    writing.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn a_holder_re_enters_what_it_reads_upgradably(env: Env) {
    let (client, holder) = (env.client().await, Holder::new());
    let lock = client.rw_lock("a");
    let outer = lock.upgradable_read().holder(&holder).await.unwrap();
    client.counts.reset();
    let again = lock.upgradable_read().holder(&holder).await.unwrap();
    let plain = lock.read().holder(&holder).await.unwrap();
    assert_eq!((again.token(), plain.token()), (outer.token(), outer.token()));
    assert_eq!(lock.write().holder(&holder).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(client.counts.total(), 0);
    for guard in [outer, again] {
        guard.release().await.unwrap();
    }
    plain.release().await.unwrap();
    // A plain reader does not become an upgradable one, and a writer is one already.
    let plain = lock.read().holder(&holder).await.unwrap();
    assert_eq!(lock.upgradable_read().holder(&holder).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    plain.release().await.unwrap();
    let writing = lock.write().holder(&holder).await.unwrap();
    let inner = lock.upgradable_read().holder(&holder).await.unwrap();
    writing.release().await.unwrap();
    inner.upgrade().await.unwrap().release().await.unwrap();
    free_at_once(&env, &lock).await;
}

/// It would share the hold otherwise, which keeps it from being upgraded.
async fn another_task_of_the_holder_waits_for_the_upgrade(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let holder = Holder::new();
    let (reading, plain) = (a.upgradable_read().holder(&holder).await.unwrap(), b.read().await.unwrap());
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 1).await;
    assert!(a.try_read().holder(&holder).await.unwrap().is_none());
    let inner = env.spawn({
        let acquire = a.read().holder(&holder);
        async move { acquire.await.unwrap() }
    });
    plain.release().await.unwrap();
    let writing = env.soon("the upgrade", upgrade).await.unwrap();
    let inner = env.soon("the other task of the holder", inner).await;
    assert_eq!(inner.token(), writing.token());
    writing.release().await.unwrap();
    assert!(b.try_read().await.unwrap().is_none(), "the inner one has the hold of a writer");
    inner.release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn a_hold_taken_by_an_operator_upgrades_no_more(env: Env) {
    let (client, b) = (env.client().await, env.client().await.rw_lock("a"));
    let (reading, plain) = (client.rw_lock("a").upgradable_read().await.unwrap(), b.read().await.unwrap());
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 1).await;
    assert_eq!(b.force_release(Whose::Client(client.id())).await.unwrap().holds, 1);
    let error = env.soon("the upgrade", upgrade).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert!(plain.is_valid());
    plain.release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn a_downgrade_lets_the_next_upgradable_reader_in(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let writing = a.write().await.unwrap();
    let waiting = reader(&env, &b).await;
    let token = writing.token();
    let reading = writing.downgrade_to_upgradable().await.unwrap();
    assert_eq!(reading.token(), token);
    env.soon("the reader that waited", waiting).await.release().await.unwrap();
    assert!(b.try_upgradable_read().await.unwrap().is_none());
    let plain = reading.downgrade().await.unwrap();
    assert_eq!(plain.token(), token);
    let other = b.try_upgradable_read().await.unwrap().expect("no other is upgradable");
    assert!(b.try_write().await.unwrap().is_none());
    plain.release().await.unwrap();
    other.release().await.unwrap();
    free_at_once(&env, &a).await;
}

async fn a_dropped_waiter_upgrades_no_more(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let (reading, plain) = (a.upgradable_read().await.unwrap(), b.read().await.unwrap());
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 1).await;
    assert_eq!(b.drop_waiters(Whose::Everybody).await.unwrap(), 1);
    let error = env.soon("the upgrade", upgrade).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dropped, "{error}");
    env.eventually("its hold is released", async || b.inspect().await.unwrap().upgradable.is_none()).await;
    plain.release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn an_upgrade_ends_with_its_client(env: Env) {
    let (client, b) = (env.client().await, env.client().await.rw_lock("a"));
    let (reading, plain) = (client.rw_lock("a").upgradable_read().await.unwrap(), b.read().await.unwrap());
    let upgrade = env.spawn(reading.upgrade());
    queued(&env, &b, 1).await;
    client.close().await;
    let error = env.soon("the upgrade", upgrade).await.unwrap_err();
    assert!([ErrorKind::Closed, ErrorKind::Lost].contains(&error.kind()), "{error}");
    plain.release().await.unwrap();
    free_at_once(&env, &b).await;
}

async fn an_upgradable_reader_is_resumed_as_one(env: Env) {
    let (a, b) = (env.client().await.rw_lock("a"), env.client().await.rw_lock("a"));
    let reading = a.upgradable_read().await.unwrap();
    let token = reading.token();
    let handle = reading.into_handle().unwrap();
    assert_eq!(b.resume_read(&handle).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let error = b.resume_write(&handle).await.unwrap_err();
    assert!(error.to_string().contains("the handle is of an upgradable reader"), "{error}");
    let reading = b.resume_upgradable(&handle).await.unwrap();
    assert_eq!(reading.token(), token);
    let writing = reading.upgrade().await.unwrap();
    assert!(writing.token() > token);
    let handle = writing.into_handle().unwrap();
    assert_eq!(a.resume_upgradable(&handle).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    a.resume_write(&handle).await.unwrap().release().await.unwrap();
}
