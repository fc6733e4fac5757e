//! Servers that are no primaries, or no longer, and logins that are refused when the connection is made anew.

use bowline::{Connection, ConnectionError, ErrorKind};

use super::{SHORT, code};
use crate::support::adapters::{Keys, Runtime, acquire, ours, word};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

pub(crate) async fn a_replica_is_refused(rt: Runtime) {
    let [_primary, replica] = Server::start_pair();
    let error = rt.try_connect(&replica.url(), SHORT * 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("this is a replica; connect to its primary"), "{error}");
    assert!(format!("{error:#}").contains("READONLY"), "{error:#}");
    replica.promote();
    assert_eq!(word(&acquire(&rt.connect(&replica.url()).await, &Keys::of("a"), "c1:1").await), "GRANTED");
}

/// The sockets stay open: only what it answers tells that the server is no primary any more.
pub(crate) async fn a_primary_demoted_behind_one_address_is_left(rt: Runtime) {
    let [old, new] = Server::start_pair();
    let proxy = Proxy::start(old.port());
    let connection = rt.connect(&proxy.url()).await;
    assert_eq!(word(&acquire(&connection, &Keys::of("a"), "c1:1").await), "GRANTED");
    new.promote();
    old.demote(&new);
    proxy.lead_to(new.port());
    assert_eq!(code(&acquire(&connection, &Keys::of("b"), "c1:1").await.unwrap_err()), "READONLY");
    assert_eq!(word(&acquire(&connection, &Keys::of("b"), "c1:1").await), "GRANTED");
    assert_eq!(connection.reconnects(), 1);
    rt.eventually("the old one is left", || ours(&old).is_empty()).await;
    assert_eq!(ours(&new).len(), 1);
}

/// The address leads to a replica only: no call is handed to it, and each says why.
pub(crate) async fn a_primary_demoted_for_good_is_asked_again_and_again(rt: Runtime) {
    let [server, other] = Server::start_pair();
    let connection = rt.try_connect(&server.url(), SHORT * 3).await.unwrap();
    other.promote();
    server.follow(&other);
    for _ in 0..2 {
        assert_eq!(code(&acquire(&connection, &Keys::of("a"), "c1:1").await.unwrap_err()), "READONLY");
    }
    assert_eq!(connection.reconnects(), 0);
    server.promote();
    while acquire(&connection, &Keys::of("a"), "c1:1").await.is_err() {}
}

pub(crate) async fn a_password_changed_under_a_connection(rt: Runtime) {
    let server = Server::start();
    let mut root = server.client();
    let mut admin_says = |command: &[&str]| redis::cmd(command[0]).arg(&command[1..]).exec(&mut root).unwrap();
    admin_says(&["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all"]);
    let alice = rt.try_connect(&server.url().replace("://", "://alice:s3cret@"), SHORT * 3).await.unwrap();
    let anonymous = rt.try_connect(&server.url(), SHORT * 3).await.unwrap();
    admin_says(&["ACL", "SETUSER", "alice", "resetpass", ">0ther"]);
    admin_says(&["CONFIG", "SET", "requirepass", "0ther"]);
    admin_says(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    for (connection, expected) in [(&alice, "WRONGPASS"), (&anonymous, "NOAUTH")] {
        rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
        let error = acquire(connection, &Keys::of("a"), "c1:1").await.unwrap_err();
        assert_eq!(code(&error), expected, "{error}");
        assert!(!format!("{error} {error:?} {connection:?}").contains("s3cret"), "{error:?}");
        let error = connection.subscribe("test:channel").await.err().unwrap();
        assert_eq!(code(&error), expected, "{error}");
    }
    admin_says(&["ACL", "SETUSER", "alice", "resetpass", ">s3cret"]);
    admin_says(&["CONFIG", "SET", "requirepass", ""]);
    for (n, connection) in [&alice, &anonymous].into_iter().enumerate() {
        let keys = Keys::of(&n.to_string());
        while acquire(connection, &keys, "c1:1").await.is_err() {}
    }
    // After the server has ended, its last refusal is not reported again.
    drop(server);
    rt.eventually("the loss is noticed", || format!("{alice:?}").contains("down")).await;
    let error = acquire(&alice, &Keys::of("a"), "c1:1").await.unwrap_err();
    assert!(matches!(error, ConnectionError::Unreachable(_)), "{error:?}");
}
