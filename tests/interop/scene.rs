//! A deployment with a client of bowline and one of Redisson.

use std::time::{Duration, Instant};

use bowline::{Client, Config, Redisson};
use futures::future::{Either, select};

use crate::java::{Java, program};
use crate::support::cluster::Cluster;
use crate::support::sentinels::Sentinels;
use crate::support::server::Server;

/// Of both sides, unless a test says something else. A waiter that is not woken waits for so long.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// A waiter that was woken by a message has the lock within this part of the lease, however busy the machine is.
pub(crate) const WOKEN: Duration = Duration::from_secs(7);

enum Servers {
    Single(Server),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

pub(crate) struct Scene {
    pub(crate) java: Java,
    pub(crate) client: Client,
    servers: Servers,
}

impl Scene {
    /// `None`: without the Java program, nothing is tested.
    pub(crate) async fn single() -> Option<Self> {
        program()?;
        Some(Self::of(Servers::Single(Server::start())).await)
    }

    pub(crate) async fn sentinels() -> Option<Self> {
        program()?;
        Some(Self::of(Servers::Sentinels(Sentinels::start())).await)
    }

    pub(crate) async fn cluster() -> Option<Self> {
        program()?;
        Some(Self::of(Servers::Cluster(Cluster::start(3, 0))).await)
    }

    async fn of(servers: Servers) -> Self {
        let java = Java::start(&servers.java_args(&[]));
        let client = connect(&servers.url(), LEASE).await;
        Self { java, client, servers }
    }

    pub(crate) fn url(&self) -> String {
        self.servers.url()
    }

    /// Another client of bowline with this lease.
    pub(crate) async fn client(&self, lease: Duration) -> Client {
        connect(&self.url(), lease).await
    }

    /// Another Java program with these arguments.
    pub(crate) fn another_java(&self, args: &[&str]) -> Java {
        Java::start(&self.servers.java_args(args))
    }

    pub(crate) fn redisson(&self) -> Redisson {
        self.client.redisson()
    }

    /// Exempts a key that the test creates without a TTL.
    pub(crate) fn allow_forever(&self, key: &str) {
        self.servers.all().iter().for_each(|server| server.allow_forever(key));
    }

    /// A connection to the server that has the key.
    pub(crate) fn connection(&self, key: &str) -> redis::Connection {
        self.servers.of_key(key).client()
    }

    /// Makes a replica the master that has all that was written. Behind sentinels only.
    pub(crate) fn fail_over(&self) {
        let Servers::Sentinels(sentinels) = &self.servers else { panic!("not behind sentinels") };
        sentinels.await_ready();
        let mut master = self.connection("");
        redis::cmd("SET").arg("java:written").arg(1).exec(&mut master).unwrap();
        redis::cmd("DEL").arg("java:written").exec(&mut master).unwrap();
        let replicas: usize = redis::cmd("WAIT").arg(2).arg(10_000).query(&mut master).unwrap();
        assert_eq!(replicas, 2);
        sentinels.fail_over();
    }

    /// Moves the slot of a name to another master. In a cluster only.
    pub(crate) fn move_slot(&self, name: &str) {
        let Servers::Cluster(cluster) = &self.servers else { panic!("not in a cluster") };
        let (slot, from) = (cluster.slot_of(name), cluster.owner_of(name));
        cluster.reshard(slot..=slot, (from + 1) % 3);
    }

    /// Waits until so many clients listen to the channel of the lock.
    pub(crate) async fn listened_to(&self, name: &str, clients: i64) {
        let channel = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        self.heard_by(&format!("redisson_lock__channel:{channel}"), clients).await;
    }

    /// Whether messages go through shard channels.
    pub(crate) fn has_shard_channels(&self) -> bool {
        matches!(&self.servers, Servers::Cluster(cluster) if cluster.node(0).has_shard_channels())
    }

    /// Waits until so many clients listen to the channel.
    pub(crate) async fn heard_by(&self, channel: &str, clients: i64) {
        let count = if self.has_shard_channels() { "SHARDNUMSUB" } else { "NUMSUB" };
        eventually(&format!("{clients} listen"), async || {
            let listeners = |server: &Server| {
                let counted: (String, i64) =
                    redis::cmd("PUBSUB").arg(count).arg(channel).query(&mut server.client()).unwrap();
                counted.1
            };
            self.servers.masters(channel).into_iter().map(listeners).sum::<i64>() == clients
        })
        .await;
    }
}

impl Servers {
    fn all(&self) -> &[Server] {
        match self {
            Self::Single(server) => std::slice::from_ref(server),
            Self::Sentinels(sentinels) => sentinels.servers(),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    fn of_key(&self, key: &str) -> &Server {
        match self {
            Self::Single(server) => server,
            Self::Sentinels(sentinels) => sentinels.server(sentinels.master()),
            Self::Cluster(cluster) => cluster.node(cluster.owner_of(key)),
        }
    }

    /// Where subscribers of the channel of a name may be.
    fn masters(&self, key: &str) -> Vec<&Server> {
        match self {
            Self::Cluster(cluster) if !cluster.node(0).has_shard_channels() => cluster.nodes().iter().collect(),
            _ => vec![self.of_key(key)],
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Single(server) => server.url(),
            Self::Sentinels(sentinels) => sentinels.url(),
            Self::Cluster(cluster) => cluster.url(),
        }
    }

    fn java_args(&self, more: &[&str]) -> Vec<String> {
        let address = |port: u16| format!("redis://127.0.0.1:{port}");
        let (mode, addresses) = match self {
            Self::Single(server) => ("single", vec![address(server.port())]),
            Self::Sentinels(sentinels) => {
                ("sentinel", (0..3).map(|n| address(sentinels.sentinel_port(n))).collect::<Vec<_>>())
            }
            Self::Cluster(cluster) => ("cluster", cluster.nodes().iter().map(|node| address(node.port())).collect()),
        };
        let args = [format!("mode={mode}"), format!("addresses={}", addresses.join(","))];
        args.into_iter().chain(more.iter().map(|arg| (*arg).to_owned())).collect()
    }
}

async fn connect(url: &str, lease: Duration) -> Client {
    bowline::tokio::connect_with(url, Config::builder().lease(lease).build().unwrap()).await.unwrap()
}

pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < 2 * LEASE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The output of `future`, or a panic if it takes longer than a wake-up by a message.
pub(crate) async fn woken<F: Future>(what: &str, future: F) -> F::Output {
    within(WOKEN, what, future).await
}

pub(crate) async fn within<F: Future>(limit: Duration, what: &str, future: F) -> F::Output {
    match select(Box::pin(future), Box::pin(tokio::time::sleep(limit))).await {
        Either::Left((output, _)) => output,
        Either::Right(_) => panic!("not within {limit:?}: {what}"),
    }
}
