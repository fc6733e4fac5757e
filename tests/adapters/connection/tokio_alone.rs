//! What only tokio can do to a connection: end, lack sockets, run out of budget, stop its clock.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::{Config, Connection, ConnectionError, ErrorKind, Notice};
use futures::executor::block_on;
use futures::{FutureExt, StreamExt};

use crate::support::adapters::{Keys, acquire, admin, bounded, field, inspect, ours, word};
use crate::support::server::Server;

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
        let config = Config::default();
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
        let config = Config::default();
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
            let config = Config::default();
            let executor = Arc::new(bowline::tokio::Tokio::current().unwrap());
            let connection = bowline::tokio::open(executor, &server.url(), &config).await.unwrap();
            let mut notices = connection.subscribe("test:channel").await.unwrap();
            server.pause();
            tokio::time::pause();
            // The clock now jumps to the next timer whenever no task can run: first to the heartbeat, then to the end
            // of the wait for its answer.
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
