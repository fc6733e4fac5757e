//! A server that goes, stands still or comes back under a call.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use bowline::{Arg, Call, Config, Connection, ConnectionError, Notice, Reply};
use futures::future::{Either, join, select};
use futures::{FutureExt, StreamExt};

use super::SHORT;
use crate::support::adapters::{
    Keys, Runtime, acquire, acquire_all, admin, attempt_id, field, inspect, ours, script, word,
};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

/// Starts a call that the server holds back, until `then` is done.
pub(crate) async fn with_a_call_held_back(
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

pub(crate) async fn a_connection_killed_under_a_call(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let outcome = with_a_call_held_back(&rt, &server, &connection, |id| {
        admin(&server, &["CLIENT", "KILL", "ID", id]);
    })
    .await;
    assert!(matches!(outcome, Err(ConnectionError::Unknown(_))), "{outcome:?}");
    // The call was not sent again, because the lock is free.
    let keys = Keys::of("held back");
    assert_eq!(inspect(&connection, &keys).await.unwrap()[0], Reply::Bytes(Vec::new()));
    assert_eq!(word(&acquire(&connection, &keys, "c2:1").await), "GRANTED");
    assert_eq!(ours(&server).len(), 1);
}

pub(crate) async fn an_idle_connection_killed_is_replaced(rt: Runtime) {
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

/// Asks who holds the lock until there is an answer.
async fn holder(connection: &dyn Connection, keys: &Keys) -> Reply {
    loop {
        if let Ok(inspected) = inspect(connection, keys).await {
            return inspected[0].clone();
        }
    }
}

pub(crate) async fn a_server_that_stands_still(rt: Runtime) {
    let server = Server::start();
    let connection = rt.try_connect(&server.url(), SHORT).await.unwrap();
    let keys = Keys::of("a");
    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
    server.pause();
    let first = inspect(&connection, &keys).await.unwrap_err();
    assert!(matches!(first, ConnectionError::Unknown(_)), "{first:?}");
    // The connection was given up and there is no other one, so this call is never sent.
    let second = inspect(&connection, &keys).await.unwrap_err();
    assert!(matches!(second, ConnectionError::Unreachable(_)), "{second:?}");
    let batch = acquire_all(&connection, &[Keys::of("b"), Keys::of("c")], "c1:1").await;
    assert!(batch.iter().all(|outcome| matches!(outcome, Err(ConnectionError::Unreachable(_)))), "{batch:?}");
    server.resume();
    assert_eq!(holder(&connection, &keys).await, Reply::Bytes(attempt_id("c1:1").into_bytes()));
    assert_eq!(holder(&connection, &Keys::of("b")).await, Reply::Bytes(Vec::new()));
}

pub(crate) async fn calls_wait_for_a_server_that_restarts(rt: Runtime) {
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

pub(crate) async fn a_server_that_is_gone(rt: Runtime) {
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

/// The command timeout is much longer than an answer is of use.
pub(crate) async fn a_call_of_little_use_gives_a_silent_connection_up(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let connection = rt.try_connect(&proxy.url(), Duration::from_secs(600)).await.unwrap();
    let keys = ["a", "b"].map(Keys::of);
    assert_eq!(word(&acquire(&connection, &keys[0], "c1:1").await), "GRANTED");
    let script = script("lock_inspect");
    let keys = keys.each_ref().map(Keys::all);
    let calls = keys.each_ref().map(|keys| Call::new(script, keys, &[Arg::Number(0)]).within(SHORT));
    for round in 1..=2 {
        proxy.silence();
        let outcomes = if round == 1 {
            vec![connection.run(calls[0]).await]
        } else {
            // The call with the shortest time limit decides.
            connection.run_batch(&[Call::new(script, &keys[1], &[Arg::Number(0)]), calls[0]]).await
        };
        for outcome in outcomes {
            assert!(matches!(outcome, Err(ConnectionError::Unknown(_))), "{outcome:?}");
        }
        let again = calls[0].within(SHORT * 20);
        assert!(matches!(connection.run(again).await, Ok(Reply::Array(_))));
        assert_eq!(connection.reconnects(), round);
    }
    // A limit above the connection's own changes nothing.
    let short = rt.try_connect(&proxy.url(), SHORT * 3).await.unwrap();
    proxy.silence();
    let outcome = short.run(calls[0].within(Duration::from_secs(600))).await;
    assert!(matches!(outcome, Err(ConnectionError::Unknown(_))), "{outcome:?}");
    // The call was never handed to a connection, so it was not executed.
    proxy.refuse(true);
    proxy.cut();
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
    let outcome = connection.run(calls[0]).await;
    assert!(matches!(outcome, Err(ConnectionError::Unreachable(_))), "{outcome:?}");
}

/// The first attempts to reconnect lead to a server that never answers.
pub(crate) async fn an_attempt_to_connect_again_leaves_time_for_another(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let config = Config::builder().command_timeout(Duration::from_secs(600)).lease(SHORT).build().unwrap();
    let connection = (rt.open)(rt.executor.clone(), proxy.url(), config).await.unwrap();
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let hole = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    proxy.lead_to(hole.local_addr().unwrap().port());
    proxy.cut();
    assert_eq!(notices.next().await, Some(Notice::Gap));
    let dials = proxy.accepted();
    rt.eventually("both are tried twice", || proxy.accepted() >= dials + 4).await;
    proxy.lead_to(server.port());
    assert_eq!(word(&acquire(&connection, &Keys::of("a"), "c1:1").await), "GRANTED");
    assert_eq!(notices.next().await, Some(Notice::Gap));
}

/// To connect takes longer than a third of the lease and 500 ms, to subscribe yet longer.
pub(crate) async fn a_server_a_long_way_off_is_reached_again(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    proxy.delay(Duration::from_millis(300));
    let config = Config::builder().command_timeout(Duration::from_secs(20)).lease(SHORT).build().unwrap();
    let connection = (rt.open)(rt.executor.clone(), proxy.url(), config).await.unwrap();
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    for _ in 0..2 {
        proxy.cut();
        assert_eq!(notices.next().await, Some(Notice::Gap));
        assert_eq!(holder(&connection, &Keys::of("a")).await, Reply::Bytes(Vec::new()));
        assert_eq!(notices.next().await, Some(Notice::Gap));
    }
}

/// The answers are on their way for longer than they are of use.
pub(crate) async fn a_slow_connection_is_not_taken_for_a_silent_one(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    proxy.delay(SHORT);
    let connection = rt.connect(&proxy.url()).await;
    let keys = Keys::of("a");
    for _ in 0..2 {
        let keys = keys.all();
        let call = Call::new(script("lock_inspect"), &keys, &[Arg::Number(0)]).within(SHORT / 2);
        assert!(matches!(connection.run(call).await, Ok(Reply::Array(_))));
    }
    assert_eq!(connection.reconnects(), 0);
}
