//! The lock on the embedded server, on every runtime. Nothing here needs a Redis.

use std::time::Duration;

use crate::support::env::{Env, on_the_embedded_server};
use bowline::embedded::Server;
use bowline::{Client, Config, ErrorKind, Loss};
use futures::FutureExt;

const LONG: Duration = Duration::from_secs(20);

on_the_embedded_server! {
    acquire_contend_and_hand_over,
    a_try_does_not_wait,
    an_expired_lease_frees_the_lock_and_is_found_out,
    force_release_tells_the_holder,
    a_dropped_waiter_leaves_nothing,
    the_keys_can_be_looked_at_and_lost,
    a_clock_that_jumps_back_keeps_tokens_growing,
    an_extension_takes_back_what_the_clock_added,
    a_server_by_hand_needs_no_sleep,
}

async fn acquire_contend_and_hand_over(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("x").lock().await.unwrap();
    let lock = b.lock("x");
    let next = env.spawn({
        let lock = lock.clone();
        async move { lock.lock().timeout(LONG).await.unwrap() }
    });
    env.eventually("queued", async || lock.inspect().await.unwrap().waiters == 1).await;
    let token = guard.token();
    guard.release().await.unwrap();
    let next = env.soon("handed over", next).await;
    assert!(next.token() > token);
    let timed_out = a.lock("x").lock().timeout(Duration::from_millis(30)).await.unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    next.release().await.unwrap();
}

async fn a_try_does_not_wait(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("x").try_lock().await.unwrap().expect("free");
    assert!(b.lock("x").try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    b.lock("x").try_lock().await.unwrap().expect("free again").release().await.unwrap();
}

/// The holder's own clock has not moved: it is the server that has forgotten it.
async fn an_expired_lease_frees_the_lock_and_is_found_out(env: Env) {
    let lease = Duration::from_secs(2);
    let a = env.client_with(|config| config.lease(lease)).await;
    let b = env.client().await;
    let guard = a.lock("x").lock().await.unwrap();
    assert!(b.lock("x").try_lock().await.unwrap().is_none());
    env.embedded().advance(lease + Duration::from_millis(1));
    let next = b.lock("x").try_lock().await.unwrap().expect("expired");
    assert!(next.token() > guard.token());
    assert!(guard.is_valid(), "not known yet");
    assert_eq!(env.soon("the renewal finds another", guard.lost()).await, Loss::Gone);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    next.release().await.unwrap();
}

async fn force_release_tells_the_holder(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("x").lock().await.unwrap();
    let between = b.lock("x").force_release().await.unwrap().expect("it was held");
    assert_eq!(env.soon("told", guard.lost()).await, Loss::Revoked);
    let next = b.lock("x").try_lock().await.unwrap().expect("free");
    assert!(guard.token() < between && between < next.token());
    next.release().await.unwrap();
}

async fn a_dropped_waiter_leaves_nothing(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("x").lock().await.unwrap();
    let lock = b.lock("x");
    for polls in 0..6 {
        let mut waiter = Box::pin(lock.lock().into_future());
        for _ in 0..polls {
            assert!(waiter.as_mut().now_or_never().is_none());
            env.yield_now().await;
        }
        drop(waiter);
        env.eventually("no ticket is left", async || lock.inspect().await.unwrap().waiters == 0).await;
    }
    guard.release().await.unwrap();
    lock.try_lock().await.unwrap().expect("free").release().await.unwrap();
}

async fn the_keys_can_be_looked_at_and_lost(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_secs(1))).await;
    let guard = client.lock("x").lock().await.unwrap();
    let dump = env.embedded().dump();
    assert!(dump.contains_key(&b"bowline:lock:{x}"[..]) && dump.contains_key(&b"bowline:lock:{x}:fence"[..]));
    assert!(dump.values().all(|entry| entry.expires.is_some()));
    env.embedded().flush_all();
    let next = client.lock("x").try_lock().await.unwrap().expect("forgotten");
    assert!(next.token() > guard.token(), "the clock is the floor");
    env.soon("found out", guard.lost()).await;
    next.release().await.unwrap();
}

async fn a_clock_that_jumps_back_keeps_tokens_growing(env: Env) {
    let client = env.client().await;
    let lock = client.lock("x");
    let first = lock.lock().await.unwrap();
    let token = first.token();
    first.release().await.unwrap();
    let server = env.embedded();
    server.set_clock(server.now() - Duration::from_secs(3600));
    let second = lock.lock().await.unwrap();
    assert!(second.token() > token);
    second.release().await.unwrap();
}

/// The server's clock is set back by an hour, so every lease lasts an hour longer. If the holder dies, others wait for
/// that time.
async fn an_extension_takes_back_what_the_clock_added(env: Env) {
    let client = env.client().await;
    let (lease, longer) = (Duration::from_secs(20), Duration::from_secs(60));
    let (lock, permits) = (client.lock("x"), client.semaphore("x", 2));
    let (written, read) = (client.rw_lock("x"), client.rw_lock("y"));
    let locked = lock.lock().expires_after(lease).await.unwrap();
    let writer = written.write().expires_after(lease).await.unwrap();
    let reader = read.read().expires_after(lease).await.unwrap();
    let permit = permits.acquire().expires_after(lease).await.unwrap();
    let left = async || {
        [
            lock.inspect().await.unwrap().holder.unwrap().remaining,
            written.inspect().await.unwrap().writer.unwrap().remaining,
            read.inspect().await.unwrap().readers[0].remaining,
            permits.inspect().await.unwrap().holders[0].remaining,
        ]
    };
    let extend = async |lease| {
        locked.extend(lease).await.unwrap();
        writer.extend(lease).await.unwrap();
        reader.extend(lease).await.unwrap();
        permit.extend(lease).await.unwrap();
    };
    let server = env.embedded();
    let set_back = || server.set_clock(server.now() - Duration::from_secs(3600));
    // A shorter one shortens to the lease of the grant, a longer one to its own, and after that a shorter one to that.
    for (asked, longest) in [(lease / 2, lease), (longer, longer), (lease / 2, longer)] {
        set_back();
        assert!(left().await.iter().all(|left| *left > Duration::from_secs(3600)));
        extend(asked).await;
        let left = left().await;
        assert!(left.iter().all(|left| *left <= longest && *left > longest / 2), "{asked:?} {longest:?} {left:?}");
        let counted = [locked.remaining(), writer.remaining(), reader.remaining(), permit.remaining()];
        assert!(counted.iter().zip(left).all(|(counted, left)| *counted <= left), "{counted:?} {left:?}");
    }
    locked.release().await.unwrap();
    writer.release().await.unwrap();
    reader.release().await.unwrap();
    permit.release().await.unwrap();
    assert!(env.keys().iter().all(|key| key.ends_with(":fence")), "{:?}", env.keys());
}

async fn a_server_by_hand_needs_no_sleep(env: Env) {
    let server = Server::manual();
    let start = server.now();
    let connect = async || {
        let connection = server.connect(env.executor());
        Client::connect(env.executor(), std::sync::Arc::new(connection), Config::default()).await.unwrap()
    };
    let (a, b) = (connect().await, connect().await);
    let guard = a.lock("x").lock().expires_after(Duration::from_secs(3600)).await.unwrap();
    assert!(b.lock("x").try_lock().await.unwrap().is_none());
    assert_eq!(server.now(), start, "it stands");
    server.advance(Duration::from_secs(3601));
    let next = b.lock("x").try_lock().await.unwrap().expect("an hour has passed");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    next.release().await.unwrap();
}
