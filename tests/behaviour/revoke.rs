//! How operators take permits, readers and writers away.

use bowline::{ErrorKind, Loss, Whose};

use crate::lab::{Env, on_every_server};
use crate::lock::LONG;

on_every_server! {
    permits_are_taken_from_one_client_or_from_all,
    a_writer_is_told_and_fenced_out,
    readers_make_room_for_a_writer,
    what_nobody_holds_is_not_taken,
}

async fn permits_are_taken_from_one_client_or_from_all(env: Env) {
    let (a, b, operator) = (env.client().await, env.client().await, env.client().await);
    let of_a = [a.semaphore("a", 5).acquire().await.unwrap(), a.semaphore("a", 5).acquire_many(2).await.unwrap()];
    let of_b = b.semaphore("a", 5).acquire_many(2).await.unwrap();
    let semaphore = operator.semaphore("a", 5);
    let revoked = semaphore.force_release(Whose::Client(a.id())).await.unwrap();
    assert_eq!((revoked.holds, revoked.token), (2, None));
    for permit in of_a {
        // At once, and not by a renewal 10 s later.
        assert_eq!(env.soon("the holder is told", permit.lost()).await, Loss::Revoked);
        assert_eq!(permit.release().await.unwrap_err().kind(), ErrorKind::Lost);
    }
    assert!(of_b.is_valid());
    assert_eq!(semaphore.available().await.unwrap(), 3);
    assert_eq!(semaphore.force_release(Whose::Client(a.id())).await.unwrap().holds, 0);
    let of_a = a.semaphore("a", 5).acquire().await.unwrap();
    assert_eq!(semaphore.force_release(Whose::Everybody).await.unwrap().holds, 2);
    assert_eq!(env.soon("one is told", of_a.lost()).await, Loss::Revoked);
    assert_eq!(env.soon("the other is told", of_b.lost()).await, Loss::Revoked);
    assert_eq!(semaphore.available().await.unwrap(), 5);
}

async fn a_writer_is_told_and_fenced_out(env: Env) {
    let (a, b, operator) = (env.client().await, env.client().await, env.client().await);
    let (lock, next) = (operator.rw_lock("a"), b.rw_lock("a"));
    let guard = a.rw_lock("a").write().await.unwrap();
    let next = env.spawn(async move { next.write().timeout(LONG).await.unwrap() });
    env.eventually("it waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    let revoked = lock.force_release(Whose::Everybody).await.unwrap();
    let between = revoked.token.expect("a writer held");
    assert_eq!(env.soon("the holder is told", guard.lost()).await, Loss::Revoked);
    let next = env.soon("the next one is served", next).await;
    assert!(guard.token() < between && between < next.token(), "{} {between} {}", guard.token(), next.token());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    next.release().await.unwrap();
}

async fn readers_make_room_for_a_writer(env: Env) {
    let (a, b, operator) = (env.client().await, env.client().await, env.client().await);
    let (lock, writer) = (operator.rw_lock("a"), operator.rw_lock("a"));
    let (one, other) = (a.rw_lock("a").read().await.unwrap(), b.rw_lock("a").read().await.unwrap());
    let writes = env.spawn(async move { writer.write().timeout(LONG).await.unwrap() });
    env.eventually("it waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    let revoked = lock.force_release(Whose::Client(a.id())).await.unwrap();
    assert_eq!((revoked.holds, revoked.token), (1, None));
    assert_eq!(env.soon("one is told", one.lost()).await, Loss::Revoked);
    assert!(other.is_valid());
    other.release().await.unwrap();
    env.soon("the writer", writes).await.release().await.unwrap();
}

async fn what_nobody_holds_is_not_taken(env: Env) {
    let client = env.client().await;
    let (lock, semaphore) = (client.rw_lock("a"), client.semaphore("a", 2));
    for whose in [Whose::Everybody, Whose::Client(client.id())] {
        let revoked = [lock.force_release(whose).await.unwrap(), semaphore.force_release(whose).await.unwrap()];
        assert!(revoked.iter().all(|revoked| revoked.holds == 0 && revoked.token.is_none()), "{revoked:?}");
    }
    let errors = [
        client.semaphore("a", 0).force_release(Whose::Everybody).await.unwrap_err(),
        client.rw_lock("").force_release(Whose::Everybody).await.unwrap_err(),
    ];
    assert_eq!(errors.map(|error| error.kind()), [ErrorKind::InvalidInput; 2]);
}
