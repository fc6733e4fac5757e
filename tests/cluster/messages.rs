//! Sharded messages: what a client subscribes, and what it hears in its slots.

use std::time::Duration;

use bowline::{Config, Connection, ErrorKind, Notice, RedisConnection, wire};
use futures::{FutureExt, StreamExt};
use uuid::Uuid;

use crate::scene::user;
use crate::support::cluster::Cluster;
use crate::support::env::{Env, TestClient};
use crate::tests;

tests! {
    what_is_free_subscribes_nothing,
    a_hand_over_is_one_message_in_one_slot,
    a_hand_over_is_one_message_to_clients_that_connect_in_the_background,
    a_waiter_that_reads_no_inbox_is_passed_over,
    an_inbox_moves_with_its_slot,
    an_inbox_moves_to_a_promoted_replica,
    a_killed_subscription_is_restored,
    two_subscriptions_to_a_channel_share_it,
    what_is_dropped_is_unsubscribed,
    a_closed_client_leaves_no_task,
    a_holder_that_never_waited_hears_of_a_revocation,
    a_user_without_the_rights_goes_on_as_before,
    a_missing_right_is_found_when_connecting,
}

/// No heartbeat is due before a test ends.
const LEASE: Duration = Duration::from_secs(600);

/// A cluster, or `None` if its servers have no shard channels.
fn cluster(masters: usize, replicas: usize) -> Option<Cluster> {
    let cluster = Cluster::start(masters, replicas);
    cluster.node(0).has_shard_channels().then_some(cluster)
}

async fn client(env: &Env, cluster: &Cluster) -> TestClient {
    env.client_at(&cluster.user_url(), |config| config.lease(LEASE)).await.unwrap()
}

async fn connection(env: &Env, cluster: &Cluster) -> RedisConnection {
    let connection = env.open(&cluster.user_url(), &Config::default()).await.unwrap();
    assert!(connection.topology().sharded_messages);
    connection
}

fn resource(name: &str) -> wire::Resource {
    wire::Resource::lock("bowline", name).unwrap().sharded(true)
}

/// A channel of no client, in the slot of the name.
fn channel(name: &str) -> String {
    resource(name).inbox(Uuid::nil())
}

/// How many subscribe the channel at the master of its slot.
fn subscribers(cluster: &Cluster, channel: &str) -> u64 {
    let master = cluster.node(cluster.owner_of(channel));
    let counts: (String, u64) =
        redis::cmd("PUBSUB").arg("SHARDNUMSUB").arg(channel).query(&mut master.client()).unwrap();
    counts.1
}

/// Publishes at the master of the slot. Returns how many heard it.
fn publish(cluster: &Cluster, channel: &str, message: &str) -> u64 {
    let master = cluster.node(cluster.owner_of(channel));
    redis::cmd("SPUBLISH").arg(channel).arg(message).query(&mut master.client()).unwrap()
}

fn message(text: &str) -> Option<Notice> {
    Some(Notice::Message(text.as_bytes().to_vec()))
}

/// How often the servers have executed the command.
fn executed(cluster: &Cluster, command: &str) -> u64 {
    let calls = |info: String| {
        let start = format!("cmdstat_{command}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))?;
        line.split(',').next()?.parse::<u64>().ok()
    };
    let of = |node: &crate::support::server::Server| {
        redis::cmd("INFO").arg("commandstats").query(&mut node.client()).ok().and_then(calls)
    };
    cluster.nodes().iter().filter_map(of).sum()
}

async fn what_is_free_subscribes_nothing(env: Env) {
    let Some(cluster) = cluster(3, 0) else { return };
    let client = client(&env, &cluster).await;
    let before = executed(&cluster, "ssubscribe");
    for n in 0..20 {
        client.lock(&format!("name:{n}")).lock().await.unwrap().release().await.unwrap();
    }
    assert_eq!((executed(&cluster, "ssubscribe"), client.counts.subscribes()), (before, 1));
    client.close().await;
}

async fn a_hand_over_is_one_message_in_one_slot(env: Env) {
    let Some(cluster) = cluster(3, 0) else { return };
    let (holder, waiter) = (client(&env, &cluster).await, client(&env, &cluster).await);
    hand_overs(&env, &cluster, holder, waiter).await;
}

async fn a_hand_over_is_one_message_to_clients_that_connect_in_the_background(env: Env) {
    let Some(cluster) = cluster(3, 0) else { return };
    // One node's plain URL: only the first connect tells that there are others.
    let url = user(&cluster.node(0).url());
    let connect = async || {
        let client = env.client_at(&url, |config| config.lease(LEASE).connect_in_background(true)).await.unwrap();
        client.lock("a").inspect().await.unwrap();
        client
    };
    let (holder, waiter) = (connect().await, connect().await);
    hand_overs(&env, &cluster, holder, waiter).await;
}

async fn hand_overs(env: &Env, cluster: &Cluster, holder: TestClient, waiter: TestClient) {
    let inbox = resource("a").inbox(waiter.id());
    let (published, sharded) = (executed(cluster, "publish"), executed(cluster, "spublish"));
    for round in 0..3 {
        let guard = holder.lock("a").lock().await.unwrap();
        let lock = waiter.lock("a");
        let waiting = env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() });
        env.eventually("it waits and listens", async || {
            subscribers(cluster, &inbox) == 1 && holder.lock("a").inspect().await.unwrap().waiters == 1
        })
        .await;
        guard.release().await.unwrap();
        env.soon("the grant", waiting).await;
        assert_eq!(executed(cluster, "spublish") - sharded, round + 1);
    }
    assert_eq!(executed(cluster, "publish"), published);
    // The inbox without a slot, and one more.
    assert_eq!((waiter.counts.subscribes(), holder.counts.subscribes()), (2, 1));
    waiter.close().await;
    env.eventually("no client listens", async || subscribers(cluster, &inbox) == 0).await;
    holder.close().await;
}

async fn a_waiter_that_reads_no_inbox_is_passed_over(env: Env) {
    let Some(cluster) = cluster(3, 0) else { return };
    let (holder, waiter) = (client(&env, &cluster).await, client(&env, &cluster).await);
    let guard = holder.lock("a").lock().await.unwrap();
    // A client that crashed while it waited.
    let (dead, ticket_ttl) = (Uuid::from_u128(1), Duration::from_secs(600));
    let attempt = wire::Attempt { ticket_ttl, ..wire::Attempt::new(dead, 1, LEASE) };
    let mut master = cluster.node(cluster.owner_of("{a}")).client();
    run(&mut master, &resource("a").acquire(attempt, true));
    let lock = waiter.lock("a");
    let waiting = env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() });
    let inbox = resource("a").inbox(waiter.id());
    env.eventually("both wait", async || {
        subscribers(&cluster, &inbox) == 1 && holder.lock("a").inspect().await.unwrap().waiters == 2
    })
    .await;
    guard.release().await.unwrap();
    env.soon("the grant", waiting).await;
    run(&mut master, &resource("a").cancel(attempt, false));
    holder.close().await;
    waiter.close().await;
}

/// Runs a script of another client.
fn run(connection: &mut redis::Connection, request: &wire::Request) {
    let (keys, args) = (request.keys(), request.words());
    let mut command = redis::cmd("EVAL");
    command.arg(request.script.source()).arg(keys.len()).arg(keys).arg(args).exec(connection).unwrap();
}

async fn an_inbox_moves_with_its_slot(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    let (holder, waiter) = (client(&env, &cluster).await, client(&env, &cluster).await);
    let guard = holder.lock("a").lock().await.unwrap();
    let lock = waiter.lock("a");
    let waiting = env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() });
    let inbox = resource("a").inbox(waiter.id());
    env.eventually("it listens", async || subscribers(&cluster, &inbox) == 1).await;
    let (slot, from) = (cluster.slot_of("{a}"), cluster.owner_of("{a}"));
    cluster.reshard(slot..=slot, 1 - from);
    assert_eq!(cluster.owner_of("{a}"), 1 - from);
    // This client sends nothing to either master meanwhile. The old one sends `sunsubscribe` by itself.
    env.eventually("it listens at the new master", async || subscribers(&cluster, &inbox) == 1).await;
    guard.release().await.unwrap();
    env.soon("the grant", waiting).await;
    holder.close().await;
    waiter.close().await;
}

async fn an_inbox_moves_to_a_promoted_replica(env: Env) {
    let Some(cluster) = cluster(2, 2) else { return };
    let connection = connection(&env, &cluster).await;
    let channel = channel("a");
    let mut notices = connection.subscribe(&channel).await.unwrap();
    assert_eq!(publish(&cluster, &channel, "before"), 1);
    assert_eq!(notices.next().await, message("before"));
    for _ in 0..2 {
        // The former master becomes a replica some time after its own was promoted.
        env.eventually("the master has a replica", async || !cluster.replicas_of(&channel).is_empty()).await;
        cluster.fail_over(cluster.replicas_of(&channel)[0]);
        assert_eq!(env.soon("a gap", notices.next()).await, Some(Notice::Gap));
        env.eventually("it listens at the new master", async || subscribers(&cluster, &channel) == 1).await;
        assert_eq!(publish(&cluster, &channel, "after"), 1);
        let mut gaps = 0;
        loop {
            match env.soon("the message", notices.next()).await {
                Some(Notice::Gap) => gaps += 1,
                notice => break assert_eq!(notice, message("after")),
            }
        }
        assert!(gaps >= 1, "the end of the interruption was not told");
    }
    connection.close();
    assert_eq!(notices.next().await, None);
}

async fn a_killed_subscription_is_restored(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    let connection = connection(&env, &cluster).await;
    let channel = channel("a");
    let mut notices = connection.subscribe(&channel).await.unwrap();
    for round in 0..3 {
        let mut master = cluster.node(cluster.owner_of(&channel)).client();
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").exec(&mut master).unwrap();
        for _ in 0..2 {
            assert_eq!(env.soon("a gap", notices.next()).await, Some(Notice::Gap));
        }
        assert_eq!(publish(&cluster, &channel, &round.to_string()), 1);
        assert_eq!(notices.next().await, message(&round.to_string()));
        assert_eq!(connection.reconnects(), round + 1);
    }
}

async fn two_subscriptions_to_a_channel_share_it(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    let connection = connection(&env, &cluster).await;
    let channel = channel("a");
    let first = connection.subscribe(&channel).await.unwrap();
    let mut second = connection.subscribe(&channel).await.unwrap();
    drop(first);
    // A write to the same socket. If the first subscription had been ended, the server would have executed that before.
    let other = channel.replace("00000000", "11111111");
    let _other = connection.subscribe(&other).await.unwrap();
    assert_eq!(publish(&cluster, &channel, "m"), 1);
    assert_eq!(second.next().await, message("m"));
}

async fn what_is_dropped_is_unsubscribed(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    let connection = connection(&env, &cluster).await;
    let channel = channel("a");
    // Channels of other slots keep the sockets of both masters open.
    let mut others = Vec::new();
    for n in 0..8 {
        others.push(connection.subscribe(&self::channel(&format!("other:{n}"))).await.unwrap());
    }
    for _ in 0..20 {
        // Dropped while the answer is under way. It may also be there already, because the server may be quicker than
        // this thread.
        drop(connection.subscribe(&channel).now_or_never());
        env.sleep(Duration::from_millis(1)).await;
        drop(connection.subscribe(&channel).await.unwrap());
        let notices = connection.subscribe(&channel).await.unwrap();
        assert_eq!(publish(&cluster, &channel, "m"), 1, "it is subscribed when it says so");
        drop(notices);
    }
    env.eventually("no client listens", async || subscribers(&cluster, &channel) == 0).await;
    drop(others);
    env.eventually("no socket is left", async || {
        cluster.nodes().iter().all(|node| {
            let clients: String =
                redis::cmd("CLIENT").arg("LIST").arg("TYPE").arg("pubsub").query(&mut node.client()).unwrap();
            clients.trim().is_empty()
        })
    })
    .await;
}

async fn a_closed_client_leaves_no_task(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    let client = client(&env, &cluster).await;
    let guard = client.lock("a").lock().await.unwrap();
    let lock = client.lock("a");
    let waiting = env.spawn(async move { lock.lock().fair().await.map(drop) });
    let inbox = resource("a").inbox(client.id());
    env.eventually("it listens", async || subscribers(&cluster, &inbox) == 1).await;
    client.close().await;
    waiting.await.unwrap_err();
    env.eventually("no task is left", async || env.live() == (0, 0)).await;
    drop(guard);
}

async fn a_holder_that_never_waited_hears_of_a_revocation(env: Env) {
    let Some(cluster) = cluster(3, 0) else { return };
    let (holder, operator) = (client(&env, &cluster).await, client(&env, &cluster).await);
    for n in 0..6 {
        let name = format!("name:{n}");
        let guard = holder.lock(&name).lock().await.unwrap();
        operator.lock(&name).force_release().await.unwrap();
        env.soon("the loss", guard.lost()).await;
    }
    holder.close().await;
    operator.close().await;
}

/// Takes a right from the user of the tests, on all nodes.
fn take(cluster: &Cluster, right: &str) {
    for node in cluster.nodes() {
        redis::cmd("ACL").arg("SETUSER").arg("bowline").arg(right).exec(&mut node.client()).unwrap();
    }
}

async fn a_user_without_the_rights_goes_on_as_before(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    for right in ["-spublish", "-ssubscribe", "-sunsubscribe", "-pubsub|shardnumsub"] {
        take(&cluster, right);
    }
    let (holder, waiter) = (client(&env, &cluster).await, client(&env, &cluster).await);
    let guard = holder.lock("a").lock().await.unwrap();
    let lock = waiter.lock("a");
    let waiting = env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() });
    env.eventually("it waits", async || holder.lock("a").inspect().await.unwrap().waiters == 1).await;
    let before = executed(&cluster, "publish");
    guard.release().await.unwrap();
    env.soon("the grant", waiting).await;
    assert_eq!(executed(&cluster, "publish"), before + 1);
    holder.close().await;
    waiter.close().await;
}

async fn a_missing_right_is_found_when_connecting(env: Env) {
    let Some(cluster) = cluster(2, 0) else { return };
    for command in ["spublish", "ssubscribe", "sunsubscribe"] {
        take(&cluster, &format!("-{command}"));
        let error = env.client_at(&cluster.user_url(), |config| config).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
        let named = error.to_string();
        assert!(named.contains(&format!("may not run {}", command.to_uppercase())), "{named}");
        assert!(named.contains("docs/acl.md"), "{named}");
        take(&cluster, &format!("+{command}"));
    }
    take(&cluster, "resetchannels");
    take(&cluster, "&other:*");
    let error = env.client_at(&cluster.user_url(), |config| config).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
    assert!(error.to_string().contains("use the channel"), "{error:#}");
}
