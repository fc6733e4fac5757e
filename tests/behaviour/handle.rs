//! Holds that one client leaves and another one takes over.

use std::time::Duration;

use bowline::{ErrorKind, HoldHandle, Holder, Loss};

use crate::lab::{Env, on_every_server};
use crate::lock::LONG;

on_every_server! {
    a_hold_is_taken_over_by_another_client,
    a_handle_is_good_for_one_hold,
    a_resumed_hold_is_renewed_or_extended_as_the_one_before,
    readers_writers_and_permits_are_taken_over,
    a_hold_that_is_still_renewed_is_taken_away,
    what_has_ended_is_not_resumed,
    a_handle_of_something_else_is_refused,
    what_was_split_or_merged_has_no_handle,
    those_who_wait_are_served_after_the_new_holder,
    a_client_may_be_closed_before_its_hold_is_resumed,
    in_the_scope_of_a_holder_the_hold_that_was_left_is_taken,
}

const MS: Duration = Duration::from_millis(1);

async fn a_hold_is_taken_over_by_another_client(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let guard = one.lock("a b").lock().await.unwrap();
    let token = guard.token();
    one.counts.reset();
    let secret = guard.into_handle().unwrap().to_secret();
    assert_eq!((one.counts.total(), one.stats().held), (0, 0));
    let handle = HoldHandle::from_secret(&secret).unwrap();
    assert_eq!(handle.name(), "a b");
    assert!(!format!("{handle:?}").contains(&one.id().to_string()));
    // It is held all the time.
    assert!(other.lock("a b").try_lock().await.unwrap().is_none());
    other.counts.reset();
    let resumed = other.lock("a b").resume(&handle).await.unwrap();
    assert_eq!(other.counts.total(), 1, "{:?}", other.counts.all());
    assert!(resumed.token() > token && resumed.is_valid());
    assert_eq!(other.lock("a b").inspect().await.unwrap().holder.unwrap().client, Some(other.id()));
    assert!(one.lock("a b").try_lock().await.unwrap().is_none());
    let token = resumed.token();
    resumed.release().await.unwrap();
    let next = one.lock("a b").try_lock().await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

async fn a_handle_is_good_for_one_hold(env: Env) {
    let (one, other, third) = (env.client().await, env.client().await, env.client().await);
    let handle = one.lock("a").lock().await.unwrap().into_handle().unwrap();
    let copy = HoldHandle::from_secret(&handle.to_secret()).unwrap();
    let (locks, lock) = (other.lock("a"), third.lock("a"));
    // At the same time, and one after the other.
    let (first, second) = futures::join!(locks.resume(&handle), lock.resume(&copy));
    assert_eq!([&first, &second].into_iter().filter(|resumed| resumed.is_ok()).count(), 1);
    let error = [first.as_ref().err(), second.as_ref().err()].into_iter().flatten().next().unwrap();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "resume", Some("a")));
    assert_eq!(one.lock("a").resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    let resumed = first.or(second).unwrap();
    assert!(resumed.is_valid());
    // The next handle is of another hold.
    let next = resumed.into_handle().unwrap();
    assert_eq!(one.lock("a").resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    one.lock("a").resume(&next).await.unwrap().release().await.unwrap();
    assert_eq!(one.lock("a").resume(&next).await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_resumed_hold_is_renewed_or_extended_as_the_one_before(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let lock = other.lock("a");
    let handle = one.lock("a").lock().lease(1200 * MS).await.unwrap().into_handle().unwrap();
    let resumed = lock.resume(&handle).await.unwrap();
    assert_eq!(resumed.extend(LONG).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    // Longer than the lease.
    env.eventually("it is renewed", async || other.counts.of("lock_renew") > 2).await;
    assert!(resumed.is_valid() && resumed.remaining() <= 1200 * MS);
    resumed.release().await.unwrap();

    let handle = one.lock("a").lock().expires_after(60_000 * MS).await.unwrap().into_handle().unwrap();
    let resumed = lock.resume(&handle).await.unwrap();
    assert!(resumed.remaining() <= 60_000 * MS && resumed.remaining() > 30_000 * MS);
    resumed.extend(600_000 * MS).await.unwrap();
    assert!(resumed.remaining() > 60_000 * MS);
    resumed.release().await.unwrap();
}

async fn readers_writers_and_permits_are_taken_over(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let (rw_lock, lock) = (one.rw_lock("a"), other.rw_lock("a"));
    let (reader, beside) = (rw_lock.read().await.unwrap(), rw_lock.read().await.unwrap());
    let handle = reader.into_handle().unwrap();
    assert_eq!(lock.resume_write(&handle).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let reader = lock.resume_read(&handle).await.unwrap();
    beside.release().await.unwrap();
    assert!(rw_lock.try_write().await.unwrap().is_none());
    reader.release().await.unwrap();
    let writer = rw_lock.write().await.unwrap();
    let token = writer.token();
    let handle = writer.into_handle().unwrap();
    assert_eq!(lock.resume_read(&handle).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let writer = lock.resume_write(&handle).await.unwrap();
    assert!(writer.token() > token);
    assert_eq!(lock.resume_write(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    // A guard like any other.
    let reader = writer.downgrade().await.unwrap();
    assert!(one.rw_lock("a").try_read().await.unwrap().unwrap().release().await.is_ok());
    reader.release().await.unwrap();

    let (semaphore, permits) = (one.semaphore("a", 5), other.semaphore("a", 5));
    let (three, beside) = (semaphore.acquire_many(3).await.unwrap(), semaphore.acquire().await.unwrap());
    let handle = three.into_handle().unwrap();
    let three = permits.resume(&handle).await.unwrap();
    assert_eq!((three.count(), permits.available().await.unwrap()), (3, 1));
    assert_eq!(permits.resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    three.release().await.unwrap();
    assert_eq!(permits.available().await.unwrap(), 4);
    beside.release().await.unwrap();
}

/// Another guard of the holder keeps the first client renewing.
async fn a_hold_that_is_still_renewed_is_taken_away(env: Env) {
    let one = env.client_with(|config| config.lease(900 * MS)).await;
    let other = env.client().await;
    let holder = Holder::new();
    let first = one.lock("a").lock().holder(&holder).await.unwrap();
    let second = one.lock("a").lock().holder(&holder).await.unwrap();
    let handle = second.into_handle().unwrap();
    let renewals = one.counts.of("lock_renew");
    env.eventually("it is renewed", async || one.counts.of("lock_renew") > renewals + 1).await;
    assert!(first.is_valid());
    let resumed = other.lock("a").resume(&handle).await.unwrap();
    assert!(resumed.token() > first.token());
    assert_eq!(env.soon("it is told", first.lost()).await, Loss::Gone);
    assert_eq!(first.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(resumed.is_valid());
    resumed.release().await.unwrap();
}

async fn what_has_ended_is_not_resumed(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let handle = one.lock("a").lock().expires_after(200 * MS).await.unwrap().into_handle().unwrap();
    let lock = other.lock("a");
    env.eventually("it ends", async || lock.inspect().await.unwrap().holder.is_none()).await;
    assert_eq!(lock.resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    let handle = one.lock("a").lock().await.unwrap().into_handle().unwrap();
    lock.force_release().await.unwrap().unwrap();
    assert_eq!(lock.resume(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    let guard = one.lock("a").lock().await.unwrap();
    lock.force_release().await.unwrap().unwrap();
    assert_eq!(env.soon("it is told", guard.lost()).await, Loss::Revoked);
    assert_eq!(guard.into_handle().unwrap_err().kind(), ErrorKind::Lost);
    // Nothing of it stands in the way.
    lock.try_lock().await.unwrap().unwrap().release().await.unwrap();
}

async fn a_handle_of_something_else_is_refused(env: Env) {
    let client = env.client().await;
    let handle = client.lock("a").lock().await.unwrap().into_handle().unwrap();
    client.counts.reset();
    let errors = [
        client.lock("b").resume(&handle).await.map(drop).unwrap_err(),
        client.lock("").resume(&handle).await.map(drop).unwrap_err(),
        client.rw_lock("a").resume_write(&handle).await.map(drop).unwrap_err(),
        client.semaphore("a", 1).resume(&handle).await.map(drop).unwrap_err(),
    ];
    assert_eq!(errors.map(|error| error.kind()), [ErrorKind::InvalidInput; 4]);
    assert_eq!(client.counts.total(), 0);
    client.lock("a").resume(&handle).await.unwrap().release().await.unwrap();
}

async fn what_was_split_or_merged_has_no_handle(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", 5);
    let mut permit = semaphore.acquire_many(2).await.unwrap();
    let part = permit.split(1).unwrap();
    assert_eq!(part.into_handle().unwrap_err().kind(), ErrorKind::InvalidInput);
    env.eventually("it is given back", async || semaphore.available().await.unwrap() == 4).await;
    permit.merge(semaphore.acquire().await.unwrap()).unwrap();
    assert_eq!(permit.into_handle().unwrap_err().kind(), ErrorKind::InvalidInput);
    env.eventually("all are given back", async || semaphore.available().await.unwrap() == 5).await;
}

async fn those_who_wait_are_served_after_the_new_holder(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let guard = one.lock("a").lock().await.unwrap();
    let waiter = crate::lock::waiter(&env, &one.lock("a")).await;
    let handle = guard.into_handle().unwrap();
    let resumed = other.lock("a").resume(&handle).await.unwrap();
    let token = resumed.token();
    resumed.release().await.unwrap();
    let next = env.soon("it is served", waiter).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
}

async fn a_client_may_be_closed_before_its_hold_is_resumed(env: Env) {
    let other = env.client().await;
    let one = env.client().await;
    let handle = one.lock("a").lock().await.unwrap().into_handle().unwrap();
    one.close().await;
    assert_eq!(one.lock("a").resume(&handle).await.unwrap_err().kind(), ErrorKind::Closed);
    other.lock("a").resume(&handle).await.unwrap().release().await.unwrap();
}

/// A hold of the same holder does not stand for the one that is left.
async fn in_the_scope_of_a_holder_the_hold_that_was_left_is_taken(env: Env) {
    let (one, other) = (env.client().await, env.client().await);
    let handle = one.rw_lock("a").read().await.unwrap().into_handle().unwrap();
    let (holder, lock) = (Holder::new(), other.rw_lock("a"));
    let own = lock.read().holder(&holder).await.unwrap();
    let resumed = holder.scope(lock.resume_read(&handle)).await.unwrap();
    assert_eq!((own.guard_count(), resumed.guard_count()), (1, 1));
    assert_eq!(lock.resume_read(&handle).await.unwrap_err().kind(), ErrorKind::Lost);
    own.release().await.unwrap();
    assert!(one.rw_lock("a").try_write().await.unwrap().is_none());
    resumed.release().await.unwrap();
    one.rw_lock("a").try_write().await.unwrap().unwrap().release().await.unwrap();
}
