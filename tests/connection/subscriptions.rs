//! Subscriptions: messages, gaps, and their end.

use bowline::{Connection, Notice};
use futures::StreamExt;

use crate::code;
use crate::support::adapters::{Runtime, admin, ours};
use crate::support::server::Server;

pub(crate) async fn messages_arrive_in_order_and_gaps_are_told(rt: Runtime) {
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

pub(crate) async fn subscriptions_survive_a_restart(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    server.restart();
    assert_eq!(notices.next().await, Some(Notice::Gap));
    assert_eq!(notices.next().await, Some(Notice::Gap));
    admin(&server, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
}

pub(crate) async fn a_dropped_subscription_closes_its_connection(rt: Runtime) {
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

pub(crate) async fn a_subscription_without_the_right(rt: Runtime) {
    let server = Server::start();
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "+@all", "resetchannels", "&allowed*"]);
    let url = server.url().replace("://", "://alice:s3cret@");
    let connection = rt.connect(&url).await;
    assert_eq!(code(&connection.subscribe("test:channel").await.err().unwrap()), "NOPERM");
    drop(connection.subscribe("allowed").await.unwrap());
}
