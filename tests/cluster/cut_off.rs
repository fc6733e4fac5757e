//! A node that knows none of the others any more: it refuses all calls, and answers `PING` as before.

use futures::future::join;

use crate::acknowledged::names_of;
use crate::support::adapters::{admin, field, ours};
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::support::server::Server;
use crate::tests;

tests! {
    messages_are_heard_elsewhere_when_their_node_is_cut_off,
}

/// The node forgets the others, which do not notice. (`CLUSTER FORGET` is gossiped by newer servers: all would forget
/// each other.)
fn cut_off(node: &Server) {
    // A master that has keys refuses. The only keys here are the counters of the check at connect.
    admin(node, &["FLUSHALL"]);
    admin(node, &["CLUSTER", "RESET", "SOFT"]);
}

/// How many sockets with subscriptions are at the node.
fn subscribed(node: &Server) -> usize {
    ours(node).iter().filter(|line| field(line, "sub") != "0").count()
}

async fn messages_are_heard_elsewhere_when_their_node_is_cut_off(env: Env) {
    let cluster = Cluster::start(3, 0);
    let url = cluster.user_url();
    let (client, other) = join(env.client_at(&url, |config| config), env.client_at(&url, |config| config)).await;
    let (client, other) = (&client.unwrap(), &other.unwrap());
    let at = (0..3).find(|node| subscribed(cluster.node(*node)) > 0).unwrap();
    let name = names_of(&cluster, (at + 1) % 3, 1).remove(0);
    cut_off(cluster.node(at));
    env.eventually("no subscription is left there", async || subscribed(cluster.node(at)) == 0).await;
    // The other nodes have noticed nothing.
    for (holds, waits) in [(client, other), (other, client)] {
        let held = holds.lock(&name).lock().await.unwrap();
        let next = waits.lock(&name);
        let next = env.spawn(async move { next.lock().await.unwrap().release().await.unwrap() });
        env.eventually("it waits", async || holds.lock(&name).inspect().await.unwrap().waiters == 1).await;
        held.release().await.unwrap();
        env.soon("it is told", next).await;
    }
}
