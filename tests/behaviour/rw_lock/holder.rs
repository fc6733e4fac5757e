//! Re-entry.

use bowline::{ErrorKind, Holder};

use super::{free_at_once, reader};
use crate::lab::{Env, Upgrade, on_every_server};

on_every_server! {
    a_holder_re_enters_what_it_has_without_a_command,
    writing_while_reading_is_an_error_and_no_hang,
    without_a_holder_writing_while_reading_waits,
    a_denied_re_entry_is_an_error_whatever_is_held,
    a_change_keeps_the_count_of_the_guards,
}

async fn a_holder_re_enters_what_it_has_without_a_command(env: Env) {
    let (client, other) = (env.client().await, env.client().await.rw_lock("a"));
    let (lock, holder) = (client.rw_lock("a"), Holder::new());

    let outer = lock.read().holder(&holder).await.unwrap();
    client.counts.reset();
    let inner = lock.read().holder(&holder).await.unwrap();
    assert_eq!(inner.token(), outer.token());
    outer.release().await.unwrap();
    assert!(other.try_write().await.unwrap().is_none(), "the inner one reads");
    assert_eq!(client.counts.total(), 0);
    inner.release().await.unwrap();
    assert_eq!(client.counts.total(), 1);

    let outer = lock.write().holder(&holder).await.unwrap();
    client.counts.reset();
    let waiting = reader(&env, &other).await;
    let inner = lock.write().holder(&holder).await.unwrap();
    // Granted before the waiting readers, because the writer's own holder asks.
    let innermost = lock.read().holder(&holder).await.unwrap();
    assert_eq!((inner.token(), innermost.token()), (outer.token(), outer.token()));
    assert_eq!(client.counts.total(), 0);
    outer.release().await.unwrap();
    inner.release().await.unwrap();
    assert_eq!(other.inspect().await.unwrap().waiters, 1, "the innermost one holds it");
    innermost.release().await.unwrap();
    env.soon("the reader", waiting).await.release().await.unwrap();
    free_at_once(&env, &other).await;
}

async fn writing_while_reading_is_an_error_and_no_hang(env: Env) {
    let (client, holder) = (env.client().await, Holder::new());
    let lock = client.rw_lock("a");
    let reading = lock.read().holder(&holder).await.unwrap();
    client.counts.reset();
    assert_eq!(lock.write().holder(&holder).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(lock.try_write().holder(&holder).await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(client.counts.total(), 0);
    assert!(reading.is_valid());
    reading.release().await.unwrap();
    lock.write().holder(&holder).await.unwrap().release().await.unwrap();
}

async fn without_a_holder_writing_while_reading_waits(env: Env) {
    let lock = env.client().await.rw_lock("a");
    let reading = lock.read().await.unwrap();
    let short = std::time::Duration::from_millis(50);
    assert_eq!(lock.write().timeout(short).await.unwrap_err().kind(), ErrorKind::TimedOut);
    reading.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn a_denied_re_entry_is_an_error_whatever_is_held(env: Env) {
    let (client, holder) = (env.client().await, Holder::new());
    let lock = client.rw_lock("a");
    let reading = lock.read().holder(&holder).await.unwrap();
    client.counts.reset();
    assert_eq!(lock.read().holder(&holder).deny_reentry().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(lock.try_write().holder(&holder).deny_reentry().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(client.counts.total(), 0);
    // Another reader is no re-entry.
    lock.read().holder(&Holder::new()).deny_reentry().await.unwrap().release().await.unwrap();
    reading.release().await.unwrap();
    let writing = lock.write().holder(&holder).deny_reentry().await.unwrap();
    for error in [
        lock.write().holder(&holder).deny_reentry().await.map(drop).unwrap_err(),
        lock.try_read().holder(&holder).deny_reentry().await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
    }
    writing.release().await.unwrap();
    free_at_once(&env, &lock).await;
}

async fn a_change_keeps_the_count_of_the_guards(env: Env) {
    let (lock, holder) = (env.client().await.rw_lock("a"), Holder::new());
    let writing = lock.write().holder(&holder).await.unwrap();
    let inner = lock.read().holder(&holder).await.unwrap();
    assert_eq!((writing.guard_count(), inner.guard_count()), (2, 2));
    let reading = writing.downgrade().await.unwrap();
    assert_eq!((reading.guard_count(), inner.guard_count()), (2, 2), "none of them changes the hold");
    inner.release().await.unwrap();
    let Upgrade::Writing(writing) = reading.try_upgrade().await.unwrap() else { panic!("a writer's hold") };
    let reading = writing.downgrade().await.unwrap();
    let inner = lock.read().holder(&holder).await.unwrap();
    assert_eq!((reading.guard_count(), inner.guard_count()), (2, 2), "of the new hold");
    inner.release().await.unwrap();
    reading.release().await.unwrap();
    free_at_once(&env, &lock).await;
}
