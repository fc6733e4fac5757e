//! The connections of this crate, on each runtime.

use std::time::Duration;

use bowline::testing::{Clause, Relay, check_connection};
use bowline::{Config, ConnectionError};

use super::kill::Kill;
use super::not_checked;
use crate::support::adapters::{Runtime, admin};
use crate::support::cluster::Cluster;
use crate::support::server::Server;

const CLAUSES: usize = 28;

/// By way of a relay, so that every clause is checked.
pub(crate) async fn the_connection_of_this_runtime(rt: Runtime) {
    let server = Server::start();
    let relay = Relay::start(("127.0.0.1", server.port())).unwrap();
    // As the user of docs/acl.md, who may do all that the checks do.
    admin(&server, &["ACL", "SETUSER", "bowline", "+wait"]);
    let url = format!("redis://bowline:secret@{}/", relay.address());
    let config = Config::builder().command_timeout(Duration::from_secs(2)).build().unwrap();
    let connect = || (rt.open)(rt.executor.clone(), url.clone(), config.clone());
    let checked =
        check_connection(rt.executor.clone(), connect).disturb(&relay).command_timeout(Duration::from_secs(2));
    let report = checked.await.unwrap();
    assert_eq!((report.kept().count(), not_checked(&report)), (CLAUSES, Vec::new()));
}

/// Its subscriptions are those of all nodes, and shard channels.
pub(crate) async fn the_connection_to_a_cluster(rt: Runtime) {
    let cluster = Cluster::start(3, 0);
    let config = Config::builder().command_timeout(Duration::from_secs(5)).build().unwrap();
    let connect = || (rt.open)(rt.executor.clone(), cluster.url(), config.clone());
    let kill = Kill(cluster.nodes());
    let checked = check_connection(rt.executor.clone(), connect).disturb(&kill).command_timeout(Duration::from_secs(5));
    let report = checked.await.unwrap();
    assert_eq!(not_checked(&report), [Clause::Outcomes, Clause::Deadline]);
}

/// It needs no relay, and cannot be disturbed.
pub(crate) async fn the_embedded_server(rt: Runtime) {
    let server = bowline::embedded::Server::new();
    let connect = || async { Ok::<_, ConnectionError>(server.connect(rt.executor.clone())) };
    let report = check_connection(rt.executor.clone(), connect).await.unwrap();
    let disturbed = [
        Clause::LostScripts,
        Clause::AtMostOnce,
        Clause::Outcomes,
        Clause::Deadline,
        Clause::Reconnects,
        Clause::Gaps,
        Clause::BothGaps,
        Clause::Restored,
    ];
    assert_eq!(not_checked(&report), disturbed);
    assert_eq!(report.kept().count(), CLAUSES - disturbed.len());
}

/// A server that cannot be reached: nothing passes.
pub(crate) async fn a_server_that_is_not_there(rt: Runtime) {
    let closed = crate::support::closed::ClosedPort::new();
    let url = format!("redis://127.0.0.1:{}/", closed.port());
    let config = Config::builder().command_timeout(Duration::from_millis(100)).build().unwrap();
    let connect = || (rt.open)(rt.executor.clone(), url.clone(), config.clone());
    let report = check_connection(rt.executor.clone(), connect).await.unwrap_err();
    assert_eq!(report.failed().map(|(clause, _)| clause).collect::<Vec<_>>(), [Clause::Connects]);
    assert_eq!((report.kept().count(), not_checked(&report).len()), (0, CLAUSES - 1));
}
