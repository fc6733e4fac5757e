//! The application's connection to a cluster.

use std::net::TcpListener;

use bowline::{Client, ErrorKind, NameInUse, PrimitiveKind};
use redis::cluster::ClusterClientBuilder;

use super::clients::hold_up_nobody;
use super::*;
use crate::conformance::kill::Kill;
use crate::support::adapters::{admin, hand_over};
use crate::support::cluster::Cluster;

async fn connect(
    executor: Arc<dyn Executor>,
    nodes: Vec<String>,
    retries: Option<u32>,
) -> Result<ApplicationConnection, bowline::Error> {
    let clients = nodes.iter().map(|node| redis::Client::open(node.as_str()).unwrap()).collect();
    let builder = ClusterClientBuilder::new(nodes);
    let builder = retries.into_iter().fold(builder, ClusterClientBuilder::retries);
    let connection = builder.build().unwrap().get_async_connection().await.unwrap();
    redis_1::from_cluster(executor, connection, clients, &config()).await
}

fn urls(cluster: &Cluster) -> Vec<String> {
    cluster.nodes().iter().map(Server::url).collect()
}

#[test]
fn a_connection_without_retries_keeps_the_contract() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(3, 0);
        let nodes = urls(&cluster);
        let check = check_connection(executor.clone(), || connect(executor.clone(), nodes.clone(), Some(0)));
        let report = check.disturb(&Kill(cluster.nodes())).command_timeout(TIMEOUT).await.unwrap();
        // Answers are not lost alone, and no node counts the subscribers of all.
        let not_checked = [
            Clause::Outcomes,
            Clause::Deadline,
            Clause::Subscribed,
            Clause::Unsubscribes,
            Clause::DroppedSubscribe,
            Clause::WithoutRuntime,
        ];
        assert_eq!(clauses(report.not_checked()), not_checked);
    });
}

#[test]
fn the_check_for_calls_that_are_sent_again_leaves_nothing() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(3, 0);
        let connection = connect(executor, urls(&cluster), Some(0)).await.unwrap();
        let left: Vec<String> = cluster.nodes().iter().flat_map(|node| node.keys()).collect();
        assert_eq!(left, [""; 0]);
        drop(connection);
    });
}

#[test]
fn a_connection_that_sends_calls_again_is_refused() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(1, 0);
        for retries in [None, Some(1)] {
            let error = connect(executor.clone(), urls(&cluster), retries).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("retries(0)"), "{error}");
        }
    });
}

#[test]
fn a_cluster_that_gives_no_answer_or_refuses() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(1, 0);
        admin(cluster.node(0), &["ACL", "SETUSER", "poor", "on", ">p", "~*", "&*", "+@all", "-eval"]);
        let poor = vec![cluster.node(0).url().replace("://", "://poor:p@")];
        let error = connect(executor.clone(), poor, Some(0)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        admin(cluster.node(0), &["ACL", "SETUSER", "poor", "+eval", "-pexpire"]);
        let poor = vec![cluster.node(0).url().replace("://", "://poor:p@")];
        let error = connect(executor.clone(), poor, Some(0)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert_eq!(cluster.node(0).keys(), [""; 0], "none that would not expire");

        let builder = ClusterClientBuilder::new(urls(&cluster)).retries(0);
        let connection = builder.build().unwrap().get_async_connection().await.unwrap();
        let short = Config::builder().command_timeout(Duration::from_millis(200)).build().unwrap();
        cluster.node(0).pause();
        let error = redis_1::from_cluster(executor, connection, Vec::new(), &short).await.unwrap_err();
        cluster.node(0).resume();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("no answer of the cluster"), "{error}");
    });
}

/// A frozen node accepts connections too.
#[test]
fn a_silent_node_leaves_time_for_the_next_subscriber() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(1, 0);
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let nodes = [format!("redis://{}/", silent.local_addr().unwrap()), cluster.node(0).url()];
        let subscribers = nodes.map(|node| redis::Client::open(node).unwrap());
        let builder = ClusterClientBuilder::new(urls(&cluster)).retries(0);
        let connection = builder.build().unwrap().get_async_connection().await.unwrap();
        let connection = redis_1::from_cluster(executor.clone(), connection, subscribers.into(), &config()).await;
        let client = Client::connect(executor, Arc::new(connection.unwrap()), config()).await.unwrap();
        client.lock("a").lock().await.unwrap().release().await.unwrap();
        client.close().await;
    });
}

#[test]
fn locks_of_all_nodes_are_handed_over() {
    on_tokio(|executor| async move {
        let cluster = Cluster::start(3, 0);
        let mut clients = Vec::new();
        for _ in 0..2 {
            let connection = connect(executor.clone(), urls(&cluster), Some(0)).await.unwrap();
            clients.push(Client::connect(executor.clone(), Arc::new(connection), config()).await.unwrap());
        }
        hand_over(&clients).await;
        hold_up_nobody(&clients[0]).await;
        // Some slots are of each node.
        for n in 0..20 {
            clients[n % 2].lock(&format!("orders:{n}")).lock().await.unwrap().release().await.unwrap();
        }
        // The application's connection does not say which servers there are.
        let error = clients[0].names().all().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let name = NameInUse::new(PrimitiveKind::Lock, "orders:1");
        assert_eq!(clients[0].look(&[name]).await.pop().unwrap().unwrap().waiters, 0);
        for client in &clients {
            client.close().await;
        }
    });
}
