//! Programs ask others to release what they hold.

use std::time::Duration;

use std::future::IntoFuture;

use bowline::{ErrorKind, Loss, Whose};
use futures::FutureExt;
use futures::future::select_all;

use crate::support::env::{Env, on_every_server};

on_every_server! {
    a_holder_is_told_and_decides,
    a_lock_that_nobody_holds_is_not_asked_for,
    readers_writers_and_permits_are_asked,
    a_guard_of_several_is_asked_for_one,
    a_lock_is_taken_by_force_after_a_time,
    a_member_of_a_cohort_tells_the_next,
    an_idle_lock_is_released,
    what_makes_no_sense_is_refused,
}

const LONG: Duration = Duration::from_secs(20);

/// Less than a third of the lease.
const KEPT: Duration = Duration::from_secs(8);

async fn a_holder_is_told_and_decides(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let other = a.lock("b").lock().await.unwrap();
    let mut waits = Box::pin(guard.asked_to_release());
    assert!(futures::poll!(&mut waits).is_pending() && !guard.is_asked_to_release());
    assert!(b.lock("a").ask_to_release().await.unwrap());
    env.soon("it is told", waits).await;
    // Also for those who begin to wait afterwards, and a second time.
    env.soon("it is told", guard.asked_to_release()).await;
    assert!(b.lock("a").ask_to_release().await.unwrap());
    assert!(guard.is_asked_to_release() && guard.is_valid() && guard.lost().now_or_never().is_none());
    assert!(!other.is_asked_to_release() && other.asked_to_release().now_or_never().is_none());
    guard.release().await.unwrap();
    // A hold after it is another one.
    let next = a.lock("a").lock().await.unwrap();
    assert!(!next.is_asked_to_release());
    next.release().await.unwrap();
    other.release().await.unwrap();
}

async fn a_lock_that_nobody_holds_is_not_asked_for(env: Env) {
    let client = env.client().await;
    client.counts.reset();
    assert!(!client.lock("a").ask_to_release().await.unwrap());
    // One look.
    assert_eq!(client.counts.total(), 1);
    let guard = client.lock("a").lock().await.unwrap();
    client.counts.reset();
    assert!(client.lock("a").ask_to_release().await.unwrap());
    assert_eq!((client.counts.total(), client.counts.of("client_ask")), (2, 1), "{:?}", client.counts.all());
    env.soon("its own client is told, too", guard.asked_to_release()).await;
    guard.release().await.unwrap();
}

async fn readers_writers_and_permits_are_asked(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let readers = [a.rw_lock("a").read().await.unwrap(), b.rw_lock("a").read().await.unwrap()];
    assert_eq!(b.rw_lock("a").ask_to_release(Whose::Client(a.id())).await.unwrap(), 1);
    env.soon("one is told", readers[0].asked_to_release()).await;
    assert!(!readers[1].is_asked_to_release());
    assert_eq!(b.rw_lock("a").ask_to_release(Whose::Everybody).await.unwrap(), 2);
    env.soon("the other is told", readers[1].asked_to_release()).await;
    for reader in readers {
        reader.release().await.unwrap();
    }
    let writer = a.rw_lock("a").write().await.unwrap();
    assert_eq!(b.rw_lock("a").ask_to_release(Whose::Everybody).await.unwrap(), 1);
    env.soon("the writer is told", writer.asked_to_release()).await;
    assert!(writer.is_asked_to_release());
    writer.release().await.unwrap();
    let semaphore = a.semaphore("a", 3);
    let mut permits = semaphore.acquire_many(2).await.unwrap();
    let part = permits.split(1).unwrap();
    let other = semaphore.acquire().await.unwrap();
    assert_eq!(b.semaphore("a", 3).ask_to_release(Whose::Client(b.id())).await.unwrap(), 0);
    assert_eq!(b.semaphore("a", 3).ask_to_release(Whose::Everybody).await.unwrap(), 2);
    for permit in [permits, part, other] {
        env.soon("a permit is told", permit.asked_to_release()).await;
        assert!(permit.is_asked_to_release());
        permit.release().await.unwrap();
    }
}

async fn a_guard_of_several_is_asked_for_one(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock_all(["a", "b"]).acquire().await.unwrap();
    assert!(!guard.is_asked_to_release() && guard.asked_to_release().now_or_never().is_none());
    assert!(b.lock("b").ask_to_release().await.unwrap());
    env.soon("it is told", guard.asked_to_release()).await;
    assert!(guard.is_asked_to_release());
    guard.release().await.unwrap();
    let none: [&str; 0] = [];
    assert!(a.lock_all(none).acquire().await.is_err());
}

/// The request is about the lock, which the client keeps.
async fn a_member_of_a_cohort_tells_the_next(env: Env) {
    let a = env.client_with(|config| config.handoff_time(Duration::from_secs(10))).await;
    let b = env.client().await;
    for is_watched in [false, true] {
        // A cohort of three, whose first member gets a hold for all of them.
        let first = a.lock("a").lock().non_fair().await.unwrap();
        let members = (0..3).map(|_| env.spawn(a.lock("a").lock().non_fair().timeout(LONG).into_future()));
        let members: Vec<_> = members.collect();
        env.eventually("they wait", async || a.stats().waiting == 3).await;
        first.release().await.unwrap();
        let (guard, _, members) = env.soon("the first member", select_all(members)).await;
        let guard = guard.unwrap();
        // A hold that is watched is not handed off in place.
        let signal = is_watched.then(|| guard.lost_signal());
        assert!(b.lock("a").ask_to_release().await.unwrap());
        env.soon("it is told", guard.asked_to_release()).await;
        let token = guard.token();
        guard.release().await.unwrap();
        let (next, _, members) = env.soon("the next", select_all(members)).await;
        let next = next.unwrap();
        assert_eq!(next.token().get(), token.get() + 1, "it was handed off");
        assert!(next.is_asked_to_release() && signal.is_none_or(|signal| !signal.is_lost()));
        next.release().await.unwrap();
        let (last, ..) = env.soon("the last", select_all(members)).await;
        last.unwrap().release().await.unwrap();
    }
}

async fn an_idle_lock_is_released(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let is_idle = async || a.lock("a").inspect().await.unwrap().holder.and_then(|holder| holder.idle);
    a.lock("a").lock().retained(KEPT).await.unwrap().release().await.unwrap();
    assert_eq!(is_idle().await, Some(true));
    assert!(b.lock("a").ask_to_release().await.unwrap());
    env.eventually("it is free", async || is_idle().await.is_none()).await;
    // One in use does not become idle after the request.
    let guard = a.lock("a").lock().retained(KEPT).await.unwrap();
    assert!(b.lock("a").ask_to_release().await.unwrap());
    env.soon("it is told", guard.asked_to_release()).await;
    guard.release().await.unwrap();
    assert_eq!(is_idle().await, None);
}

async fn what_makes_no_sense_is_refused(env: Env) {
    let client = env.client().await;
    let error = client.lock("").ask_to_release().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "ask_to_release"), "{error}");
    client.close().await;
    let error = client.semaphore("a", 2).ask_to_release(Whose::Everybody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

async fn a_lock_is_taken_by_force_after_a_time(env: Env) {
    let (a, b, c) = (env.client().await, env.client().await, env.client().await);
    // The holder releases when it is asked.
    let guard = a.lock("a").lock().await.unwrap();
    let next = env.spawn(b.lock("a").lock().force_after(10 * LONG).into_future());
    env.soon("it is told", guard.asked_to_release()).await;
    let token = guard.token();
    guard.release().await.unwrap();
    let guard = env.soon("it is free", next).await.unwrap();
    assert!(guard.token() > token && !guard.is_asked_to_release());
    // The holder does not, and those before in the queue are served first.
    let first = env.spawn(c.lock("a").lock().timeout(LONG).into_future());
    env.eventually("it waits", async || a.lock("a").inspect().await.unwrap().waiters == 1).await;
    let last = env.spawn(a.lock("a").lock().force_after(Duration::from_millis(300)).into_future());
    assert_eq!(env.soon("it is taken", guard.lost()).await, Loss::Revoked);
    let first = env.soon("the first", first).await.unwrap();
    assert!(first.token() > guard.token() && !first.is_asked_to_release());
    env.sleep(Duration::from_millis(600)).await;
    assert!(first.is_valid());
    first.release().await.unwrap();
    env.soon("the last", last).await.unwrap().release().await.unwrap();
    // Nobody is pressed if it is free.
    b.counts.reset();
    b.lock("a").lock().force_after(Duration::ZERO).await.unwrap().release().await.unwrap();
    assert_eq!(b.counts.of("client_ask") + b.counts.of("lock_force_release"), 0, "{:?}", b.counts.all());
    // The holder may be of the same client.
    let guard = b.lock("a").lock().await.unwrap();
    let next = env.spawn(b.lock("a").lock().force_after(Duration::from_millis(100)).into_future());
    assert_eq!(env.soon("it is taken", guard.lost()).await, Loss::Revoked);
    env.soon("the next", next).await.unwrap().release().await.unwrap();
    // The timeout is that of the acquisition.
    let guard = a.lock("a").lock().await.unwrap();
    let error = b.lock("a").lock().timeout(Duration::from_millis(200)).force_after(LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}
