//! What the connection promises, checked the same way on every runtime, against real servers.
#![cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use bowline::{Client, Connection, ConnectionError, ErrorKind, Notice, Reply, Warning};
use futures::future::{Either, join, join_all, select};
use futures::{FutureExt, StreamExt};
use support::adapters::{Keys, Runtime, acquire, acquire_all, admin, fake, field, inspect, ours, release, word};
use support::server::Server;

const SHORT: Duration = Duration::from_millis(400);

fn code(error: &ConnectionError) -> &str {
    match error {
        ConnectionError::Refused { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

// --- calls

async fn replies_and_scripts_that_the_server_lost(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let keys = Keys::of("a");
    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "BUSY");
    let inspected = inspect(&connection, &keys).await.unwrap();
    assert_eq!(inspected[0], Reply::Bytes(b"c1:1".to_vec()));
    assert_eq!(inspected.len(), 5, "{inspected:?}");
    assert!(matches!(inspected[2], Reply::Integer(1..)), "{inspected:?}");
    admin(&server, &["SCRIPT", "FLUSH"]);
    assert_eq!(word(&release(&connection, &keys, "c1:1").await), "RELEASED");
    // The scripts that were used before the flush are loaded again, by call and by batch.
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "GRANTED");
    admin(&server, &["SCRIPT", "FLUSH"]);
    let locks = ["b", "c", "a", "d"].map(Keys::of);
    let words: Vec<_> = acquire_all(&connection, &locks, "c3:1").await.iter().map(word).collect();
    assert_eq!(words, ["GRANTED", "GRANTED", "BUSY", "GRANTED"]);
}

async fn every_script_is_sent_whole_once_and_by_its_sha_later(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    admin(&server, &["CONFIG", "RESETSTAT"]);
    let locks: Vec<_> = (0..10).map(|n| Keys::of(&format!("l{n}"))).collect();
    assert!(acquire_all(&connection, &locks, "c1:1").await.iter().all(|outcome| word(outcome) == "GRANTED"));
    for lock in &locks {
        assert_eq!(word(&acquire(&connection, lock, "c2:1").await), "BUSY");
    }
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
    let calls = |command: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |line| line.split(',').next().unwrap().parse::<u32>().unwrap())
    };
    assert_eq!((calls("eval"), calls("evalsha")), (1, 19));
}

async fn refusals_have_the_servers_code_and_stay_with_their_call(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let wrong = Keys::of("wrong");
    admin(&server, &["SET", wrong.lock(), "x", "PX", "60000"]);
    assert_eq!(code(&acquire(&connection, &wrong, "c1:1").await.unwrap_err()), "WRONGTYPE");
    let outcomes = acquire_all(&connection, &[Keys::of("a"), wrong, Keys::of("b")], "c1:1").await;
    assert_eq!(word(&outcomes[0]), "GRANTED");
    assert_eq!(code(outcomes[1].as_ref().unwrap_err()), "WRONGTYPE");
    assert_eq!(word(&outcomes[2]), "GRANTED");
    assert!(connection.run_batch(&[]).await.is_empty());
}

async fn calls_run_in_the_order_they_are_polled(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let keys = Keys::of("a");
    for round in 0..20 {
        // Also in the first round, when the server has none of the scripts.
        let (first, second) = (format!("c1:{round}"), format!("c2:{round}"));
        let taken = join(acquire(&connection, &keys, &first), release(&connection, &keys, &first));
        let again = join(acquire(&connection, &keys, &second), release(&connection, &keys, &second));
        let ((a, b), (c, d)) = join(taken, again).await;
        assert_eq!([a, b, c, d].each_ref().map(word), ["GRANTED", "RELEASED", "GRANTED", "RELEASED"]);
    }
}

async fn many_calls_keep_their_order_too(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let (keys, ids) = (Keys::of("a"), (0..400).map(|n| format!("c1:{n}")).collect::<Vec<_>>());
    let pairs = ids.iter().map(|id| join(acquire(&connection, &keys, id), release(&connection, &keys, id)));
    // More than are sent at once: none may take the place of an earlier one that waits for its turn.
    for (n, (acquired, released)) in join_all(pairs).await.into_iter().enumerate() {
        assert_eq!((word(&acquired), word(&released)), ("GRANTED".into(), "RELEASED".into()), "{n}");
    }
}

async fn many_calls_at_once(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let locks: Vec<_> = (0..500).map(|n| Keys::of(&format!("l{n}"))).collect();
    let outcomes = join_all(locks.iter().map(|keys| acquire(&connection, keys, "c1:1"))).await;
    assert!(outcomes.iter().all(|outcome| word(outcome) == "GRANTED"));
}

async fn dropped_calls_leave_the_connection_in_step(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    for n in 0..50_u32 {
        let (dropped, kept) = (Keys::of(&format!("d{n}")), Keys::of(&format!("k{n}")));
        let mut call = acquire(&connection, &dropped, "c1:1").boxed();
        let _ = futures::poll!(&mut call);
        if n % 2 == 0 {
            rt.executor.sleep(Duration::from_micros(u64::from(n) * 20)).await;
        }
        drop(call);
        assert_eq!(word(&acquire(&connection, &kept, "c2:1").await), "GRANTED");
        assert_eq!(inspect(&connection, &kept).await.unwrap()[0], Reply::Bytes(b"c2:1".to_vec()));
    }
}

// --- trouble

/// Starts a call that the server holds back, until `then` is done.
async fn with_a_call_held_back(
    rt: &Runtime,
    server: &Server,
    connection: &dyn Connection,
    then: impl FnOnce(&str),
) -> Result<Vec<Reply>, ConnectionError> {
    admin(server, &["CLIENT", "PAUSE", "60000", "WRITE"]);
    let keys = Keys::of("held back");
    let mut call = acquire(connection, &keys, "c1:1").boxed();
    let mut then = Some(then);
    let outcome = loop {
        match select(call, rt.executor.sleep(Duration::from_millis(5))).await {
            Either::Left((outcome, _)) => break outcome,
            Either::Right(((), pending)) => call = pending,
        }
        let held = ours(server).into_iter().find(|line| field(line, "flags").contains('b'));
        if let Some(line) = held
            && let Some(then) = then.take()
        {
            then(field(&line, "id"));
        }
    };
    assert!(then.is_none(), "the call was never held back: {outcome:?}");
    admin(server, &["CLIENT", "UNPAUSE"]);
    outcome
}

async fn a_connection_killed_under_a_call(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let outcome = with_a_call_held_back(&rt, &server, &connection, |id| {
        admin(&server, &["CLIENT", "KILL", "ID", id]);
    })
    .await;
    assert!(matches!(outcome, Err(ConnectionError::Unknown(_))), "{outcome:?}");
    // Not sent again: the lock is free.
    let keys = Keys::of("held back");
    assert_eq!(inspect(&connection, &keys).await.unwrap()[0], Reply::Bytes(Vec::new()));
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "GRANTED");
    assert_eq!(ours(&server).len(), 1);
}

async fn an_idle_connection_killed_is_replaced(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    for round in 0..3 {
        let id = field(&ours(&server)[0], "id").to_owned();
        admin(&server, &["CLIENT", "KILL", "ID", &id]);
        rt.eventually("another connection", || {
            ours(&server).iter().any(|line| field(line, "id") != id) && format!("{connection:?}").contains("up")
        })
        .await;
        assert_eq!(word(&acquire(&connection, &Keys::of(&round.to_string()), "c1:1").await), "GRANTED");
    }
}

async fn a_server_that_stands_still(rt: Runtime) {
    let server = Server::start();
    let connection = rt.try_connect(&server.url(), SHORT).await.unwrap();
    let keys = Keys::of("a");
    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
    server.pause();
    let first = inspect(&connection, &keys).await.unwrap_err();
    assert!(matches!(first, ConnectionError::Unknown(_)), "{first:?}");
    // That connection is given up, and there is no other: this call is never sent.
    let second = inspect(&connection, &keys).await.unwrap_err();
    assert!(matches!(second, ConnectionError::Unreachable(_)), "{second:?}");
    let batch = acquire_all(&connection, &[Keys::of("b"), Keys::of("c")], "c1:1").await;
    assert!(batch.iter().all(|outcome| matches!(outcome, Err(ConnectionError::Unreachable(_)))), "{batch:?}");
    server.resume();
    while inspect(&connection, &keys).await.is_err() {}
    assert_eq!(inspect(&connection, &keys).await.unwrap()[0], Reply::Bytes(b"c1:1".to_vec()));
    assert_eq!(inspect(&connection, &Keys::of("b")).await.unwrap()[0], Reply::Bytes(Vec::new()));
}

async fn calls_wait_for_a_server_that_restarts(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let keys = Keys::of("a");
    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
    server.kill();
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
    let restart = thread::spawn(move || {
        server.restart();
        server
    });
    // The new server has neither the lock nor the scripts.
    let (one, all) =
        join(acquire(&connection, &keys, "c2:1"), acquire_all(&connection, &[Keys::of("b")], "c2:1")).await;
    assert_eq!((word(&one), word(&all[0])), ("GRANTED".to_owned(), "GRANTED".to_owned()));
    drop(restart.join().unwrap());
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
}

async fn a_server_that_is_gone(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.try_connect(&server.url(), SHORT).await.unwrap();
    server.kill();
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
    let error = inspect(&connection, &Keys::of("a")).await.unwrap_err();
    assert!(matches!(error, ConnectionError::Unreachable(_)), "{error:?}");
    let error = connection.subscribe("test:channel").await.err().unwrap();
    assert!(matches!(error, ConnectionError::Unreachable(_)), "{error:?}");
    server.restart();
    while inspect(&connection, &Keys::of("a")).await.is_err() {}
}

// --- subscriptions

async fn messages_arrive_in_order_and_gaps_are_told(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let mut other = connection.subscribe("test:other").await.unwrap();
    let message = |text: &str| Some(Notice::Message(text.as_bytes().to_vec()));
    for text in ["one", "two"] {
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", text]), redis::Value::Int(1));
    }
    assert_eq!(notices.next().await, message("one"));
    assert_eq!(notices.next().await, message("two"));
    for round in 0..3 {
        admin(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_eq!(notices.next().await, Some(Notice::Gap));
        assert_eq!(notices.next().await, Some(Notice::Gap));
        // The second gap says that it stands again, so that nothing is lost from here.
        let text = format!("round {round}");
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", &text]), redis::Value::Int(1));
        assert_eq!(notices.next().await, message(&text));
        assert_eq!(other.next().await, Some(Notice::Gap));
        assert_eq!(other.next().await, Some(Notice::Gap));
    }
    admin(&server, &["PUBLISH", "test:other", "x"]);
    assert_eq!(other.next().await, message("x"));
}

async fn subscriptions_survive_a_restart(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    server.restart();
    assert_eq!(notices.next().await, Some(Notice::Gap));
    assert_eq!(notices.next().await, Some(Notice::Gap));
    admin(&server, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
}

async fn a_dropped_subscription_closes_its_connection(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let notices = connection.subscribe("test:channel").await.unwrap();
    assert_eq!(ours(&server).len(), 2);
    drop(notices);
    rt.eventually("one connection is left", || ours(&server).len() == 1).await;
    let mut half = connection.subscribe("test:channel");
    let _ = futures::poll!(&mut half);
    drop(half);
    rt.eventually("nobody is subscribed", || {
        ours(&server).len() == 1 && admin(&server, &["PUBLISH", "test:channel", "x"]) == redis::Value::Int(0)
    })
    .await;
}

async fn a_subscription_without_the_right(rt: Runtime) {
    let server = Server::start();
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "+@all", "resetchannels", "&allowed"]);
    let url = server.url().replace("://", "://alice:s3cret@");
    let connection = rt.connect(&url).await;
    assert_eq!(code(&connection.subscribe("test:channel").await.err().unwrap()), "NOPERM");
    drop(connection.subscribe("allowed").await.unwrap());
}

// --- connecting

async fn addresses(rt: Runtime) {
    let v6 = TcpListener::bind(("::1", 0)).is_ok();
    let server = if v6 { Server::start_with(&["--bind", "127.0.0.1", "::1"]) } else { Server::start() };
    let mut urls = vec![
        server.url(),
        server.url().replace("127.0.0.1", "localhost"),
        format!("valkey://127.0.0.1:{}/3?protocol=resp3", server.port()),
        server.socket_url(),
        format!("{}?db=3", server.socket_url()),
    ];
    if v6 {
        urls.push(format!("redis://[::1]:{}/", server.port()));
    }
    for (n, url) in urls.iter().enumerate() {
        let keys = Keys::of(&n.to_string());
        let connection = rt.connect(url).await;
        assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED", "{url}");
        let db = if url.contains('3') && (url.contains("/3") || url.contains("db=3")) { "3" } else { "0" };
        assert_eq!(field(&ours(&server)[0], "db"), db, "{url}");
        connection.close();
        rt.eventually("it is closed", || ours(&server).is_empty()).await;
    }
}

async fn a_reconnection_selects_the_database_again(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&format!("{}5", server.url())).await;
    admin(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let keys = Keys::of("a");
    while acquire(&connection, &keys, "c1:1").await.is_err() {}
    assert!(ours(&server).iter().all(|line| field(line, "db") == "5"));
}

async fn credentials(rt: Runtime) {
    let server = Server::start();
    let acl = ["ACL", "SETUSER", "alice", "on", ">s3cret/?#", "~*", "&*", "+@all", "-ping", "-info"];
    admin(&server, &acl);
    let mut admin = server.client();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0ther"]).exec(&mut admin).unwrap();
    let at = |login: &str| server.url().replace("://", &format!("://{login}"));
    for bad in ["", ":wr0ng@", "alice:wr0ng@", "bob:s3cret@"] {
        let error = rt.try_connect(&at(bad), SHORT * 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{bad} {error}");
        assert!(!format!("{error} {error:?}").contains("wr0ng"), "{error}");
    }
    for good in [":0ther@", "default:0ther@", "alice:s3cret%2F%3F%23@"] {
        let connection = rt.connect(&at(good)).await;
        assert!(acquire(&connection, &Keys::of("a"), "c1:1").await.is_ok());
        let shown = format!("{connection:?}");
        assert!(!shown.contains("0ther") && !shown.contains("s3cret") && !shown.contains("alice"), "{shown}");
    }
    redis::cmd("ACL").arg(&["SETUSER", "alice", "-evalsha", "-eval"]).exec(&mut admin).unwrap();
    let connection = rt.connect(&at("alice:s3cret%2F%3F%23@")).await;
    assert_eq!(code(&acquire(&connection, &Keys::of("a"), "c1:1").await.unwrap_err()), "NOPERM");
}

async fn what_does_not_answer_or_does_not_exist(rt: Runtime) {
    let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let server = Server::start();
    for (url, kind) in [
        (format!("redis://:s3cret@127.0.0.1:{}/", mute.local_addr().unwrap().port()), ErrorKind::Unavailable),
        (format!("redis://:s3cret@127.0.0.1:{closed}/"), ErrorKind::Unavailable),
        ("redis://:s3cret@no-such-host.invalid/".to_owned(), ErrorKind::Unavailable),
        ("unix:///no/such/socket?pass=s3cret".to_owned(), ErrorKind::Unavailable),
        (format!("{}99", server.url()), ErrorKind::InvalidInput),
        ("redis://:s3cret@0.0.0.0/".to_owned(), ErrorKind::InvalidInput),
        ("http://:s3cret@127.0.0.1/".to_owned(), ErrorKind::InvalidInput),
        ("rediss://:s3cret@127.0.0.1/#insecure".to_owned(), ErrorKind::InvalidInput),
    ] {
        let error = rt.try_connect(&url, SHORT).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (kind, "connect"), "{url} {error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    rt.eventually("nothing is left", || ours(&server).is_empty()).await;
}

async fn servers_that_do_not_fit(rt: Runtime) {
    let old =
        "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n";
    let cluster = "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$7\r\ncluster\r\n";
    let unknown = "-ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `default` `s3cret` \r\n";
    let renamed = "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' \r\n";
    for hello in [old, cluster, unknown, renamed, "-NOPROTO unsupported protocol version\r\n"] {
        let url = format!("redis://:s3cret@127.0.0.1:{}/", fake(hello));
        let error = rt.try_connect(&url, SHORT * 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{hello} {error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    let url = format!("redis://127.0.0.1:{}/", fake("+this is no map\r\n"));
    rt.connect(&url).await;
    let error = rt.try_connect(&format!("redis://127.0.0.1:{}/", fake("HTTP/1.1 400\r\n\r\n")), SHORT * 10).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
}

async fn warnings(rt: Runtime) {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let warnings = rt.connect(&server.url()).await.warnings();
    assert_eq!(warnings, [Warning::Eviction { policy: "allkeys-lru".to_owned() }]);
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all", "-info"]);
    let url = server.url().replace("://", "://alice:s3cret@");
    assert_eq!(rt.connect(&url).await.warnings(), []);
    admin(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(rt.connect(&server.url()).await.warnings(), []);
}

async fn dropping_a_connection_attempt_closes_its_socket(rt: Runtime) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let attempt = rt.try_connect(&url, Duration::from_secs(600)).boxed();
    let (sender, received) = futures::channel::oneshot::channel();
    let (closed_sender, closed) = futures::channel::oneshot::channel();
    thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1024];
        let _ = sender.send(stream.read(&mut buffer).unwrap());
        let _ = closed_sender.send(matches!(stream.read(&mut buffer), Ok(0) | Err(_)));
    });
    let Either::Left((_, attempt)) = select(received, attempt).await else { panic!("connected to nobody") };
    drop(attempt);
    assert!(closed.await.unwrap());
}

// --- the end

async fn closing_ends_everything(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let outcome = with_a_call_held_back(&rt, &server, &connection, |_| connection.close()).await;
    assert_eq!(outcome, Err(ConnectionError::Closed));
    assert_eq!(notices.next().await, None);
    rt.eventually("no connection is left", || ours(&server).is_empty()).await;
    assert_eq!(inspect(&connection, &Keys::of("a")).await, Err(ConnectionError::Closed));
    assert_eq!(acquire_all(&connection, &[Keys::of("a")], "c1:1").await, [Err(ConnectionError::Closed)]);
    assert_eq!(connection.subscribe("test:channel").await.err(), Some(ConnectionError::Closed));
    connection.close();
    assert!(format!("{connection:?}").contains("closed"));
}

async fn dropping_ends_everything(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    assert_eq!(ours(&server).len(), 2);
    drop(connection);
    assert_eq!(notices.next().await, None);
    rt.eventually("no connection is left", || ours(&server).is_empty()).await;
}

async fn closing_while_the_server_is_away(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    server.kill();
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
    let keys = Keys::of("a");
    let mut call = inspect(&connection, &keys).boxed();
    assert!(futures::poll!(&mut call).is_pending());
    connection.close();
    assert_eq!(call.await, Err(ConnectionError::Closed));
    assert_eq!(notices.next().await, Some(Notice::Gap));
    assert_eq!(notices.next().await, None);
}

/// The whole way: a client by `connect`, and a lock.
async fn a_client(client: bowline::Result<Client>) {
    let client = client.unwrap();
    let guard = client.lock("orders").lock().await.unwrap();
    assert!(client.lock("orders").try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(client.lock("orders").try_lock().await.unwrap().is_some());
    client.close().await;
}

macro_rules! suite {
    ($on:path: $($test:ident)+) => {
        $(#[test]
        fn $test() {
            crate::support::adapters::bounded(|| $on(|rt| Box::pin(super::$test(rt))));
        })+
    };
    ($on:path) => {
        suite!($on:
            replies_and_scripts_that_the_server_lost every_script_is_sent_whole_once_and_by_its_sha_later
            refusals_have_the_servers_code_and_stay_with_their_call calls_run_in_the_order_they_are_polled
            many_calls_keep_their_order_too many_calls_at_once dropped_calls_leave_the_connection_in_step
            a_connection_killed_under_a_call an_idle_connection_killed_is_replaced a_server_that_stands_still calls_wait_for_a_server_that_restarts
            a_server_that_is_gone messages_arrive_in_order_and_gaps_are_told subscriptions_survive_a_restart
            a_dropped_subscription_closes_its_connection a_subscription_without_the_right addresses
            a_reconnection_selects_the_database_again credentials what_does_not_answer_or_does_not_exist
            servers_that_do_not_fit warnings dropping_a_connection_attempt_closes_its_socket closing_ends_everything
            dropping_ends_everything closing_while_the_server_is_away);
    };
}

type Test = fn(Runtime) -> futures::future::BoxFuture<'static, ()>;

#[cfg(feature = "smol")]
mod smol {
    use std::sync::Arc;

    use crate::support::adapters::Runtime;

    fn run(test: super::Test) {
        let open =
            |executor: Arc<dyn bowline::Executor>, url: String, config| -> futures::future::BoxFuture<'static, _> {
                Box::pin(async move { bowline::smol::open(executor, &url, &config).await })
            };
        ::smol::block_on(test(Runtime { executor: Arc::new(bowline::smol::Smol), open }));
    }

    suite!(run);

    #[test]
    fn connects() {
        crate::support::adapters::bounded(|| {
            let server = crate::support::server::Server::start();
            ::smol::block_on(async { super::a_client(bowline::smol::connect(&server.url()).await).await });
        });
    }
}

#[cfg(feature = "async-std")]
mod async_std {
    use std::sync::Arc;

    use crate::support::adapters::Runtime;

    fn run(test: super::Test) {
        let open =
            |executor: Arc<dyn bowline::Executor>, url: String, config| -> futures::future::BoxFuture<'static, _> {
                Box::pin(async move { bowline::async_std::open(executor, &url, &config).await })
            };
        ::async_std::task::block_on(test(Runtime { executor: Arc::new(bowline::async_std::AsyncStd), open }));
    }

    suite!(run);

    #[test]
    fn connects() {
        crate::support::adapters::bounded(|| {
            let server = crate::support::server::Server::start();
            ::async_std::task::block_on(async {
                super::a_client(bowline::async_std::connect(&server.url()).await).await
            });
        });
    }
}

#[cfg(feature = "tokio")]
fn on_tokio(mut builder: tokio::runtime::Builder, test: Test) {
    let runtime = builder.enable_all().build().unwrap();
    let executor = std::sync::Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
    let open = |executor: std::sync::Arc<dyn bowline::Executor>,
                url: String,
                config|
     -> futures::future::BoxFuture<'static, _> {
        Box::pin(async move { bowline::tokio::open(executor, &url, &config).await })
    };
    runtime.block_on(test(Runtime { executor, open }));
}

#[cfg(feature = "tokio")]
mod tokio_multi_thread {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use bowline::{Config, Connection, ConnectionError, ErrorKind, Notice};
    use futures::executor::block_on;
    use futures::{FutureExt, StreamExt};

    use crate::support::adapters::{Keys, acquire, admin, bounded, field, inspect, ours, word};
    use crate::support::server::Server;

    fn run(test: super::Test) {
        super::on_tokio(tokio::runtime::Builder::new_multi_thread(), test);
    }

    suite!(run);

    #[test]
    fn connects() {
        bounded(|| {
            let server = Server::start();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async { super::a_client(bowline::tokio::connect(&server.url()).await).await });
        });
    }

    /// The blocking facade's situation: a caller outside of the runtime, and a runtime that ends.
    #[test]
    fn calls_from_outside_fail_when_the_runtime_is_shut_down() {
        bounded(|| {
            let server = Server::start();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let config = Config::builder().command_timeout(Duration::from_secs(600)).build().unwrap();
            let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
            let connection = runtime.block_on(bowline::tokio::open(executor, &server.url(), &config)).unwrap();
            let connection = Arc::new(connection);
            let notices = block_on(connection.subscribe("test:channel")).unwrap();
            admin(&server, &["CLIENT", "PAUSE", "60000", "WRITE"]);
            let caller = {
                let connection = Arc::clone(&connection);
                thread::spawn(move || block_on(acquire(&*connection, &Keys::of("a"), "c1:1")))
            };
            while !ours(&server).iter().any(|line| field(line, "flags").contains('b')) {
                thread::yield_now();
            }
            drop(runtime);
            assert_eq!(caller.join().unwrap(), Err(ConnectionError::Closed));
            assert_eq!(block_on(notices.collect::<Vec<_>>()), []);
            assert_eq!(block_on(inspect(&*connection, &Keys::of("a"))), Err(ConnectionError::Closed));
            assert_eq!(block_on(connection.subscribe("x")).err(), Some(ConnectionError::Closed));
            while !ours(&server).is_empty() {
                thread::yield_now();
            }
        });
    }

    #[test]
    fn a_runtime_without_sockets_is_an_error() {
        bounded(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
            let config = Config::builder().build().unwrap();
            let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
            let opened = runtime.block_on(bowline::tokio::open(executor, "redis://127.0.0.1:1/", &config));
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::Closed);
        });
    }

    /// A task that has used up its budget is sent away by tokio wherever it waits, but not by a call.
    #[test]
    fn a_task_without_budget_is_not_overtaken() {
        bounded(|| {
            let server = Server::start();
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let config = Config::builder().build().unwrap();
            let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
            let opened = runtime.block_on(bowline::tokio::open(executor, &server.url(), &config));
            let connection = Arc::new(opened.unwrap());
            let (start, started) = std::sync::mpsc::channel::<()>();
            let (polled, polls) = std::sync::mpsc::channel();
            let later = {
                let connection = Arc::clone(&connection);
                thread::spawn(move || {
                    started.recv().unwrap();
                    let keys = Keys::of("a");
                    let mut call = acquire(&*connection, &keys, "c2:1").boxed();
                    let _ = block_on(async { futures::poll!(&mut call) });
                    polled.send(()).unwrap();
                    let _ = block_on(call);
                })
            };
            let first = runtime.spawn(async move {
                while tokio::task::coop::has_budget_remaining() {
                    let _ = futures::poll!(std::pin::pin!(tokio::task::coop::consume_budget()));
                }
                let keys = Keys::of("a");
                let mut call = acquire(&*connection, &keys, "c1:1").boxed();
                let _ = futures::poll!(&mut call);
                start.send(()).unwrap();
                polls.recv().unwrap();
                word(&call.await)
            });
            assert_eq!(block_on(first).unwrap(), "GRANTED");
            later.join().unwrap();
        });
    }

    /// Only a clock that can be moved makes the heartbeat testable: it comes every 10 s.
    #[test]
    fn a_subscription_notices_a_server_that_stands_still() {
        bounded(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::start();
                let config = Config::builder().build().unwrap();
                let executor = Arc::new(bowline::tokio::Tokio::current().unwrap());
                let connection = bowline::tokio::open(executor, &server.url(), &config).await.unwrap();
                let mut notices = connection.subscribe("test:channel").await.unwrap();
                server.pause();
                tokio::time::pause();
                // The clock now jumps to the next timer whenever nothing else is to be done: to the heartbeat, and
                // to the end of the wait for its answer.
                assert_eq!(notices.next().await, Some(Notice::Gap));
                tokio::time::resume();
                server.resume();
                assert_eq!(notices.next().await, Some(Notice::Gap));
                admin(&server, &["PUBLISH", "test:channel", "x"]);
                assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
            });
        });
    }

    #[test]
    fn connecting_outside_of_a_runtime_is_an_error() {
        let error = bowline::tokio::Tokio::current().unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "connect"));
        let error = block_on(bowline::tokio::connect("redis://127.0.0.1/")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[cfg(feature = "tokio")]
mod tokio_current_thread {
    fn run(test: super::Test) {
        super::on_tokio(tokio::runtime::Builder::new_current_thread(), test);
    }

    suite!(run);
}
