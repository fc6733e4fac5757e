//! The end of a connection.

use bowline::{Connection, ConnectionError, Notice};
use futures::{FutureExt, StreamExt};

use super::trouble::with_a_call_held_back;
use crate::support::adapters::{Keys, Runtime, acquire_all, inspect, ours};
use crate::support::server::Server;

pub(crate) async fn closing_ends_everything(rt: Runtime) {
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

pub(crate) async fn dropping_ends_everything(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    assert_eq!(ours(&server).len(), 2);
    drop(connection);
    assert_eq!(notices.next().await, None);
    rt.eventually("no connection is left", || ours(&server).is_empty()).await;
}

pub(crate) async fn closing_while_the_server_is_away(rt: Runtime) {
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
