//! Clients that connect in the background: before their server is up, and while it refuses them.

use std::future::IntoFuture;
use std::net::TcpListener;

use bowline::{Connection, ConnectionError, ErrorKind, Warning};
use uuid::Uuid;

use crate::scene::{acquiring, ms, pass, until_waiting};
use crate::support::closed::ClosedPort;
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::polled::{poll_once, polled};
use crate::support::server::Server;

on_every_runtime! {
    a_client_starts_before_its_server,
    every_primitive_waits_for_the_first_connect,
    closing_before_the_first_connect_ends_everything,
    dropping_before_the_first_connect_ends_everything,
    an_acquisition_dropped_while_the_client_connects_leaves_nothing,
    a_wrong_password_is_told_until_it_is_right,
    missing_rights_are_told_until_they_are_given,
    a_replica_is_told_until_it_is_promoted,
    an_identity_in_use_is_told_until_it_is_free,
    what_no_attempt_can_mend_is_told,
    the_warnings_are_there_after_the_first_connect,
}

/// Operations of it wait for 20 s.
async fn client_at(env: &Env, url: &str) -> TestClient {
    env.client_at(url, |config| config.connect_in_background(true).retry_timeout(ms(20_000))).await.unwrap()
}

/// Operations of it wait for 300 ms.
async fn hasty_client_at(env: &Env, url: &str) -> TestClient {
    env.client_at(url, |config| config.connect_in_background(true).retry_timeout(ms(300))).await.unwrap()
}

async fn until_it_works(env: &Env, client: &TestClient) {
    env.eventually("it works", async || client.lock("probe").inspect().await.is_ok()).await;
    pass(env, client, "a").await;
}

async fn a_client_starts_before_its_server(env: Env) {
    let url = env.server().user_url();
    env.server().kill();
    let [one, other, hasty] =
        [client_at(&env, &url).await, client_at(&env, &url).await, hasty_client_at(&env, &url).await];
    let first = acquiring(&env, &one, "a");
    let mut error = String::new();
    env.eventually("the reason is known", async || {
        let failed = hasty.lock("a").lock().await.map(drop).unwrap_err();
        assert_eq!((failed.kind(), failed.name()), (ErrorKind::Unavailable, Some("a")));
        error = format!("{failed:#}");
        error.contains("connection refused")
    })
    .await;
    assert!(error.contains("not connected: 127.0.0.1:") && !error.contains("secret"), "{error}");
    env.server().restart();
    let guard = env.soon("the lock", first).await.unwrap();
    let waiter = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 1).await;
    let heartbeats = other.counts.of("lock_heartbeat");
    guard.release().await.unwrap();
    // By a message.
    env.soon("the waiter", waiter).await.unwrap().release().await.unwrap();
    assert_eq!(other.counts.of("lock_heartbeat"), heartbeats);
    until_it_works(&env, &hasty).await;
}

async fn every_primitive_waits_for_the_first_connect(env: Env) {
    // A deleted latch leaves what makes late copies of its calls harmless.
    env.leaves_keys();
    let url = env.server().user_url();
    env.server().kill();
    let client = client_at(&env, &url).await;
    let (rw_lock, semaphore, latch) = (client.rw_lock("a"), client.semaphore("a", 2), client.latch("a"));
    let both = client.lock_all(["b", "c"]);
    let all = env.spawn(async move {
        let (writer, permit, guard, set) = futures::join!(
            rw_lock.write().into_future(),
            semaphore.acquire().into_future(),
            both.acquire().into_future(),
            latch.try_set(1, ms(60_000)),
        );
        assert!(set.unwrap());
        latch.count_down().await.unwrap();
        latch.wait().await.unwrap();
        latch.delete().await.unwrap();
        for released in
            [writer.unwrap().release().await, permit.unwrap().release().await, guard.unwrap().release().await]
        {
            released.unwrap();
        }
    });
    env.yield_now().await;
    env.server().restart();
    env.soon("all of them", all).await;
}

/// Addresses of a server that refuses connections, and of one that says nothing.
fn dead_ends() -> (ClosedPort, TcpListener, [String; 2]) {
    let closed = ClosedPort::new();
    let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let ports = [closed.port(), mute.local_addr().unwrap().port()];
    (closed, mute, ports.map(|port| format!("redis://127.0.0.1:{port}/")))
}

async fn closing_before_the_first_connect_ends_everything(env: Env) {
    let (_closed, _mute, urls) = dead_ends();
    for url in urls {
        let patient = ms(600_000);
        let config = |config: bowline::ConfigBuilder| {
            config.connect_in_background(true).command_timeout(patient).retry_timeout(patient)
        };
        let client = env.client_at(&url, config).await.unwrap();
        let mut waiter = Box::pin(client.lock("a").lock().into_future());
        assert!(poll_once(&mut waiter).await.is_none());
        client.close().await;
        assert_eq!(env.soon("the end", waiter).await.map(drop).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(client.lock("a").lock().await.map(drop).unwrap_err().kind(), ErrorKind::Closed);
        env.eventually("nothing runs", async || env.live() == (0, 0)).await;
    }
}

async fn dropping_before_the_first_connect_ends_everything(env: Env) {
    let (_closed, _mute, urls) = dead_ends();
    for url in urls {
        let client = client_at(&env, &url).await;
        let lock = client.lock("a");
        for polls in 0..4 {
            assert!(polled(lock.lock().into_future(), polls, async || env.yield_now().await).await.is_none());
        }
        drop((lock, client));
        env.eventually("nothing runs", async || env.live() == (0, 0)).await;
    }
}

async fn an_acquisition_dropped_while_the_client_connects_leaves_nothing(env: Env) {
    env.leaves_keys();
    let url = env.server().user_url();
    let mut polls = 0;
    // Until the client has connected before the last poll, and the lock is held.
    loop {
        let client = client_at(&env, &url).await;
        let guard = polled(client.lock("a").lock().into_future(), polls, async || env.sleep(ms(1)).await).await;
        let is_held = guard.is_some();
        drop((guard, client));
        env.eventually("nothing runs", async || env.live() == (0, 0)).await;
        assert!(env.keys().is_empty(), "{polls}: {:?}", env.keys());
        if is_held {
            break;
        }
        polls += 1;
        assert!(polls < 200, "it never ends");
    }
    assert!(polls > 0, "nothing was dropped half way");
}

async fn a_wrong_password_is_told_until_it_is_right(env: Env) {
    let url = env.server().user_url().replace("secret", "0ther");
    let client = client_at(&env, &url).await;
    for _ in 0..3 {
        let error = env.soon("the refusal", client.lock("a").lock()).await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Denied, "lock"));
        let told = format!("{error:#}");
        assert!(told.contains("name or password is wrong"), "{told}");
        assert!(!format!("{told} {error:?}").contains("0ther"), "{told}");
    }
    env.redis::<()>(&["ACL", "SETUSER", "bowline", ">0ther"]);
    until_it_works(&env, &client).await;
}

async fn missing_rights_are_told_until_they_are_given(env: Env) {
    for (take, give, says) in [("-zadd", "+zadd", "ZADD"), ("resetchannels", "&bowline:inbox:*", "channel")] {
        env.redis::<()>(&["ACL", "SETUSER", "bowline", take]);
        let url = env.server().user_url();
        let client = client_at(&env, &url).await;
        let error = env.soon("the refusal", client.lock("a").lock()).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
        assert!(format!("{error:#}").contains(says), "{error:#}");
        env.redis::<()>(&["ACL", "SETUSER", "bowline", give]);
        until_it_works(&env, &client).await;
    }
}

async fn a_replica_is_told_until_it_is_promoted(env: Env) {
    let [_primary, replica] = Server::start_pair();
    let client = hasty_client_at(&env, &replica.user_url()).await;
    let mut error = None;
    env.eventually("it is refused", async || {
        let failed = client.lock("a").lock().await.map(drop).unwrap_err();
        error.insert(failed).kind() == ErrorKind::Refused
    })
    .await;
    assert!(format!("{:#}", error.unwrap()).contains("READONLY"));
    replica.promote();
    env.eventually("it works", async || client.lock("a").inspect().await.is_ok()).await;
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    // Waits for what the refused requests have left to be cleaned up.
    client.close().await;
}

async fn an_identity_in_use_is_told_until_it_is_free(env: Env) {
    let id = Uuid::from_u128(7);
    let first = env.client_with(|config| config.client_id(id)).await;
    let url = env.server().user_url();
    let configure =
        |config: bowline::ConfigBuilder| config.connect_in_background(true).client_id(id).retry_timeout(ms(1000));
    let second = env.client_at(&url, configure).await.unwrap();
    env.eventually("it is refused", async || {
        let error = second.lock("a").lock().await.map(drop).unwrap_err();
        error.kind() == ErrorKind::ClientIdInUse
    })
    .await;
    first.close().await;
    until_it_works(&env, &second).await;
}

async fn what_no_attempt_can_mend_is_told(env: Env) {
    let url = env.server().user_url();
    let client = client_at(&env, &format!("{url}99")).await;
    let error = env.soon("the refusal", client.lock("a").lock()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:#}");
    assert!(format!("{error:#}").contains("DB index"), "{error:#}");
    for url in ["http://127.0.0.1/", "redis-cluster://", "redis-sentinel://127.0.0.1/"] {
        let error = env.client_at(url, |config| config.connect_in_background(true)).await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "connect"), "{url}");
    }
}

async fn the_warnings_are_there_after_the_first_connect(env: Env) {
    let env = env.with_server_args(&["--maxmemory-policy", "allkeys-lru"]);
    let url = env.server().user_url();
    env.server().kill();
    let client = client_at(&env, &url).await;
    assert_eq!(client.warnings(), []);
    env.server().restart();
    let expected = [Warning::Eviction { policy: "allkeys-lru".to_owned() }];
    env.eventually("the warning", async || client.warnings() == expected).await;
}

#[cfg(feature = "tokio")]
#[test]
fn a_runtime_that_is_shut_down_ends_the_attempts() {
    crate::support::bounded::bounded(|| {
        let (_closed, _mute, [url, _]) = dead_ends();
        let patient = ms(600_000);
        let config = bowline::Config::builder().connect_in_background(true).command_timeout(patient).build().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(async {
            let executor = std::sync::Arc::new(bowline::tokio::Tokio::current().unwrap());
            let connection = bowline::tokio::open(executor, &url, &config).await.unwrap();
            (bowline::tokio::connect_with(&url, config).await.unwrap(), connection)
        });
        drop(runtime);
        let locked = futures::executor::block_on(client.lock("a").lock().into_future());
        assert_eq!(locked.map(drop).unwrap_err().kind(), ErrorKind::Closed);
        let subscribed = futures::executor::block_on(connection.subscribe("bowline:inbox:a"));
        assert_eq!(subscribed.map(drop), Err(ConnectionError::Closed));
    });
}

#[cfg(feature = "blocking")]
#[test]
fn a_thread_starts_before_its_server() {
    crate::support::bounded::bounded(|| {
        let mut server = Server::start();
        let url = server.user_url();
        server.kill();
        let config = bowline::Config::builder().connect_in_background(true).retry_timeout(ms(20_000)).build().unwrap();
        let client = bowline::blocking::connect_with(&url, config).unwrap();
        let lock = client.lock("a");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock.lock().block().unwrap().release().unwrap());
            server.restart();
            waiter.join().unwrap();
        });
        client.close().unwrap();
        assert_eq!(lock.lock().block().map(drop).unwrap_err().kind(), ErrorKind::Closed);
    });
}
