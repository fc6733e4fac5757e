//! How often a server that fails or is silent is called, and which parts of its errors are shown.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Config, Connection, ConnectionError, ErrorKind, Notice};
use futures::future::{join_all, select};
use futures::{FutureExt, StreamExt};

use super::SHORT;
use crate::support::adapters::{Keys, Runtime, acquire, admin, word};
use crate::support::fake::{Fake, Wrong};
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::stepped::Stepped;

/// The pauses grow from 10 ms to 0.8 s, with a quarter of jitter: so many attempts of one link come before they are
/// long.
const QUICK: u64 = 8;

/// Long before the test as a whole is taken to hang.
const SOON: Duration = Duration::from_secs(20);

/// How many attempts two links make at most within `time`, and a few more.
fn most(time: Duration) -> u64 {
    2 * (QUICK + u64::try_from(time.as_millis()).unwrap() / 500) + 4
}

pub(crate) async fn a_server_that_goes_wrong_is_not_called_all_the_time(rt: Runtime) {
    let ways = [
        Wrong::Login("-WRONGPASS invalid username-password pair or user is disabled.\r\n"),
        Wrong::HangsUp,
        Wrong::Scripts("-READONLY You can't write against a read only replica.\r\n"),
        Wrong::Subscribers,
    ];
    join_all(ways.map(async |wrong| {
        let (server, fake) = (Server::start(), Fake::start(wrong));
        let proxy = Proxy::start(server.port());
        let connection = rt.try_connect(&proxy.url(), SHORT * 10).await.unwrap();
        let _notices = connection.subscribe("test:channel").await.unwrap();
        proxy.lead_to(fake.port());
        let start = rt.executor.now();
        proxy.cut();
        while fake.accepted() < QUICK || rt.executor.now() - start < Duration::from_secs(2) {
            assert!(rt.executor.now() - start < SOON, "{wrong:?}: {} calls", fake.accepted());
            // Calls do not shorten the pauses. Each call waits for its answer, because a refusal that is not read ends
            // no connection.
            let keys = Keys::of("a");
            let pause = rt.executor.sleep(Duration::from_millis(300));
            select(acquire(&connection, &keys, "c1:1").boxed(), pause).await;
            rt.executor.sleep(Duration::from_millis(2)).await;
        }
        let (accepted, took) = (fake.accepted(), rt.executor.now() - start);
        assert!(accepted <= most(took), "{wrong:?}: {accepted} within {took:?}");
        // The client finds a server that works again.
        proxy.lead_to(server.port());
        proxy.cut();
        rt.eventually("it works again", || {
            matches!(admin(&server, &["PUBLISH", "test:channel", "x"]), redis::Value::Int(1))
        })
        .await;
        let start = rt.executor.now();
        while let Err(error) = acquire(&connection, &Keys::of("b"), "c1:1").await {
            assert!(rt.executor.now() - start < SOON, "{wrong:?} does not work again: {error}, {connection:?}");
            // Lets the other cases run, which share the task.
            rt.executor.sleep(Duration::from_millis(2)).await;
        }
    }))
    .await;
}

const HEARTBEAT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(3);

/// A connection whose clock the test moves, with a subscription, and a proxy in between.
async fn stepped(rt: &Runtime, server: &Server) -> (Arc<Stepped>, Proxy, bowline::RedisConnection) {
    let (clock, proxy) = (Arc::new(Stepped::new(rt.executor.clone())), Proxy::start(server.port()));
    let config = Config::builder().command_timeout(TIMEOUT).build().unwrap();
    let connection = (rt.open)(clock.clone(), proxy.url(), config).await.unwrap();
    (clock, proxy, connection)
}

pub(crate) async fn a_quiet_subscription_is_asked_every_ten_seconds(rt: Runtime) {
    let server = Server::start();
    let (clock, proxy, connection) = stepped(&rt, &server).await;
    let _notices = connection.subscribe("test:channel").await.unwrap();
    let instant = Duration::from_nanos(1);
    let (before, ping) = (proxy.forwarded(), "*1\r\n$4\r\nPING\r\n".len() as u64);
    for beats in 0..4 {
        rt.eventually("it sleeps until the next", || clock.timers() == [HEARTBEAT]).await;
        clock.pass(HEARTBEAT - instant);
        // Time in which nothing must be sent.
        rt.executor.sleep(Duration::from_millis(20)).await;
        assert_eq!(proxy.forwarded(), before + beats * ping);
        clock.pass(instant);
        rt.eventually("it is asked", || proxy.forwarded() == before + (beats + 1) * ping).await;
    }
    assert_eq!(connection.reconnects(), 0);
}

pub(crate) async fn a_subscription_that_says_nothing_is_given_up(rt: Runtime) {
    let server = Server::start();
    let (clock, proxy, connection) = stepped(&rt, &server).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    proxy.silence();
    rt.eventually("it sleeps until it is asked", || clock.timers() == [HEARTBEAT]).await;
    clock.pass(HEARTBEAT);
    rt.eventually("it is asked", || clock.timers() == [TIMEOUT]).await;
    assert!(notices.next().now_or_never().is_none());
    clock.pass(TIMEOUT);
    assert_eq!(notices.next().await, Some(Notice::Gap));
    // The connection for commands is silent, too. That is noticed when it is asked for a proof.
    let restored = loop {
        if let Some(notice) = notices.next().now_or_never() {
            break notice;
        }
        clock.pass(Duration::from_millis(100));
        rt.executor.sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(restored, Some(Notice::Gap));
    assert_eq!(connection.reconnects(), 2);
    admin(&server, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
    assert_eq!(word(&acquire(&connection, &Keys::of("a"), "c1:1").await), "GRANTED");
}

/// The server does not know that the socket of the subscription is dead, and says that it has it.
pub(crate) async fn a_new_connection_of_the_commands_asks_the_subscription_for_life(rt: Runtime) {
    let server = Server::start();
    let (clock, proxy, connection) = stepped(&rt, &server).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    proxy.silence();
    let (keys, mut passed) = (Keys::of("a"), Duration::ZERO);
    let mut call = acquire(&connection, &keys, "c1:1").boxed().fuse();
    let mut gaps = 0;
    while gaps < 2 {
        let _ = futures::poll!(&mut call);
        match notices.next().now_or_never() {
            Some(notice) => {
                assert_eq!(notice, Some(Notice::Gap));
                gaps += 1;
            }
            None => {
                passed += Duration::from_millis(100);
                clock.pass(Duration::from_millis(100));
                rt.executor.sleep(Duration::from_millis(5)).await;
            }
        }
        assert!(passed < HEARTBEAT, "it was the heartbeat that noticed");
    }
    assert_eq!(connection.reconnects(), 2);
    admin(&server, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
}

/// Lines with a user and a password as they are in the URL of the test below.
pub(crate) const QUOTES: [&str; 4] = [
    "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'alice' 's3cret' \r\n",
    "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `alice`, `s3cret`, \r\n",
    "-DENIED alice may not log in with s3cret from here\r\n",
    "-NOPERM HELLO 3 AUTH alice s3cret\r\n",
];

pub(crate) async fn a_password_that_the_server_quotes_is_shown_nowhere(rt: Runtime) {
    join_all(QUOTES.map(async |line| {
        let (server, fake) = (Server::start(), Fake::start(Wrong::Login(line)));
        admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all"]);
        let proxy = Proxy::start(server.port());
        let at = |port: u16| format!("redis://alice:s3cret@127.0.0.1:{port}/");
        let hidden = |shown: String| assert!(!shown.contains("s3cret"), "{line} is shown as {shown}");
        // The error is the same at the first connect and at a reconnect.
        let error = rt.try_connect(&at(fake.port()), SHORT * 10).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Denied | ErrorKind::Refused), "{error}");
        hidden(format!("{error} {error:?}"));
        let connection = rt.try_connect(&at(proxy.port()), SHORT * 5).await.unwrap();
        let mut notices = connection.subscribe("test:channel").await.unwrap();
        proxy.lead_to(fake.port());
        proxy.cut();
        let dialled = fake.accepted();
        rt.eventually("both were refused", || fake.accepted() >= dialled + 4).await;
        let error = acquire(&connection, &Keys::of("a"), "c1:1").await.unwrap_err();
        assert!(matches!(error, ConnectionError::Refused { .. } | ConnectionError::Unreachable(_)), "{error:?}");
        hidden(format!("{error} {error:?} {connection:?}"));
        let error = connection.subscribe("test:other").await.err().unwrap();
        hidden(format!("{error} {error:?}"));
        assert_eq!(notices.next().await, Some(Notice::Gap));
        if let Some(notice) = notices.next().now_or_never() {
            assert!(matches!(notice, Some(Notice::Refused(_))), "{notice:?}");
            hidden(format!("{notice:?}"));
        }
    }))
    .await;
}
