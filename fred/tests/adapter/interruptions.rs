//! Connections that are lost while clients wait.

use bowline::testing::{Disturb, Relay};
use bowline::{Connection, ConnectionError, Notice};
use bowline_testkit::adapters::{Keys, acquire_all};
use futures::StreamExt;

use super::*;

fn kill(server: &Server, kind: &str) {
    admin(server, &["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
}

#[test]
fn a_waiter_is_served_after_its_connections_were_killed() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let (holder, waiter) =
            (client(&executor, centralized(server.port())).await, client(&executor, centralized(server.port())).await);
        let held = holder.lock("orders").lock().await.unwrap();
        let lock = waiter.lock("orders");
        let served = async { lock.lock().await.unwrap().release().await.unwrap() };
        let disturbed = async {
            loop {
                if holder.lock("orders").inspect().await.unwrap().waiters > 0 {
                    break;
                }
                executor.sleep(Duration::from_millis(5)).await;
            }
            for kind in ["normal", "pubsub"] {
                kill(&server, kind);
            }
            held.release().await.unwrap();
        };
        futures::join!(served, disturbed);
        for client in [holder, waiter] {
            client.close().await;
        }
    });
}

/// Only the connection of the calls is lost, and no call is under way.
#[test]
fn a_reconnect_between_two_calls_is_told() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let connection = connection(&executor, centralized(server.port())).await;
        let mut notices = connection.subscribe("bowline:inbox:test").await.unwrap();
        kill(&server, "normal");
        assert_eq!(notices.next().await, Some(Notice::Gap));
        assert_eq!(connection.reconnects(), 1);
        connection.close();
        assert_eq!(notices.next().await, None);
    });
}

/// fred keeps a number of messages only.
#[test]
fn messages_that_fred_has_dropped_are_a_gap() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let connection = connection(&executor, centralized(server.port())).await;
        let mut notices = connection.subscribe("bowline:inbox:test").await.unwrap();
        let mut pipe = redis::pipe();
        for _ in 0..10_000 {
            pipe.cmd("PUBLISH").arg("bowline:inbox:test").arg("message");
        }
        pipe.query::<Vec<i64>>(&mut server.client()).unwrap();
        admin(&server, &["PUBLISH", "bowline:inbox:test", "last"]);
        let mut gaps = 0;
        loop {
            // fred reads while this waits.
            executor.sleep(Duration::from_millis(50)).await;
            match notices.next().await {
                Some(Notice::Gap) => gaps += 1,
                Some(Notice::Message(message)) if message == b"last" => break,
                Some(Notice::Message(_)) if gaps > 0 => break,
                other => assert!(matches!(other, Some(Notice::Message(_))), "{other:?}"),
            }
        }
        assert!(gaps > 0, "messages were dropped without a gap");
    });
}

/// The calls are queued together, and the connection is lost while fred writes them. For those that are left in the
/// queue then, fred has no connection before it makes a new one.
#[test]
fn calls_that_were_not_sent_wait_for_the_next_connection() {
    bounded(|| {
        let server = Server::start();
        // With a single thread, all calls are in the queue before fred looks at it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(Tokio::new(runtime.handle().clone()));
        let connection = runtime.block_on(connection(&executor, centralized(server.port())));
        for round in 1.. {
            let locks: Vec<Keys> = (0..2_000).map(|n| Keys::of(&format!("{round}:{n}"))).collect();
            let outcomes = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(round % 40));
                    kill(&server, "normal");
                });
                runtime.block_on(acquire_all(&connection, &locks, "c1:1"))
            });
            let is_lost = |outcome: &Result<_, _>| matches!(outcome, Err(ConnectionError::Unknown(_)));
            // What is behind a lost call was granted over the next connection.
            if outcomes.iter().any(is_lost) && outcomes.last().is_some_and(Result::is_ok) {
                break;
            }
        }
    });
}

/// Nothing arrives on any socket any more, and none ends.
#[test]
fn a_silent_subscription_is_noticed() {
    bounded(|| {
        let server = Server::start();
        let relay = Relay::start(("127.0.0.1", server.port())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(Tokio::new(runtime.handle().clone()));
        runtime.block_on(async {
            let connection = connection(&executor, centralized(relay.address().port())).await;
            let mut notices = connection.subscribe("bowline:inbox:test").await.unwrap();
            assert!(relay.lose_answers().await);
            assert_eq!(notices.next().await, Some(Notice::Gap));
            // The calls' connection is silent too, until it is lost.
            relay.cut().await;
            assert_eq!(notices.next().await, Some(Notice::Gap));
        });
    });
}
