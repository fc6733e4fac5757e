//! A connection to one server or to a cluster, by redis-rs.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::connection::{Call, Connection, ConnectionError, Notice, Reply, Topology, Warning};

mod address_map;
mod ask;
mod blocking;
mod cluster;
mod connecting;
mod convert;
pub(crate) mod dial;
mod failure;
#[cfg(test)]
mod lab;
mod later;
mod link;
mod login;
mod options;
#[cfg(feature = "redis-1")]
pub mod redis_1;
mod sentinel;
mod servers;
mod single;
mod subscribe;
mod url;

#[doc(hidden)]
pub use self::ask::Asked;
pub(crate) use self::connecting::{Begun, Made};
pub use self::login::{Credentials, Login};
pub use self::options::ConnectOptions;
pub use self::sentinel::SentinelUrl;

/// A connection to a Redis or Valkey server, 6.2 or newer: directly, by way of sentinels, or to a cluster of them.
///
/// Made by `open` of a runtime's module, such as `bowline::tokio::open`, from a URL, or from [`ConnectOptions`] with a
/// URL and what it cannot say, such as the certificates of a private CA:
///
/// | URL | connects to |
/// |---|---|
/// | `redis://user:password@host:port/db` | one server |
/// | `rediss://..` | the same with TLS (feature `tls`) |
/// | `unix:///path/to/socket?db=0&user=..&pass=..` | one server, by a unix socket |
/// | `redis-sentinel://user:password@host:port,host:port/db?master=name` | the master of this name that the sentinels at these addresses watch |
/// | `rediss-sentinel://..` | the same with TLS to the servers and to the sentinels |
/// | `redis-cluster://user:password@host:port,host:port` | the cluster of these nodes |
/// | `rediss-cluster://..` | the same with TLS |
///
/// Everything but the host, the path and the name of the master is optional. The defaults are port 6379, port 26379 of
/// a sentinel, and database 0. Special characters in a user name, a password or the name of a master are written as
/// `%..`. An IPv6 address stands in brackets.
///
/// # Sentinel
/// [`SentinelUrl`] builds the URL from its parts. User and password are those of the master and its replicas. The
/// sentinels have a login of their own: `sentinel_user=..&sentinel_password=..`. Without these parameters, the client
/// does not log in to them. `tls=true` or `false` chooses TLS to the servers only, `sentinel_tls=true` or `false` to
/// the sentinels only. A server's certificate must be for the host that the sentinels name, which is often an IP
/// address.
///
/// Before each connection the sentinels in the URL, and those that they name, are asked which server is the master. The
/// answer with the highest configuration epoch wins, and the server itself must say that it is a master. When the
/// sentinels name another server, both connections to the old one are dropped at once, because the old master may go on
/// granting for some seconds. A client that connects during a failover waits for the failover to end, up to the
/// [`command_timeout`](crate::ConfigBuilder::command_timeout).
///
/// A failover loses the writes that the old master has not yet sent to the new one. After a lost grant, another waiter
/// is granted too, so two guards may be valid until the first is renewed. The client repeats a lost release. With
/// `min-replicas-to-write 1` on the servers, a master that is cut off from its replicas grants nothing.
///
/// # Cluster
/// The URL `redis-cluster://user:password@host:port,host:port` (`rediss-cluster://..` with TLS) names one or more
/// nodes. The plain URL of one node leads to the cluster as well.
///
/// # Errors when connecting
/// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the URL, a database other than 0 of a cluster, or the sentinels
///   know no master of that name.
/// - [`Unavailable`](crate::ErrorKind::Unavailable): no connection or no answer within the
///   [`command_timeout`](crate::ConfigBuilder::command_timeout), the connection was refused, or the name is not
///   resolved.
/// - [`Certificate`](crate::ErrorKind::Certificate): the server's certificate is not accepted, or the server asks for a
///   client certificate.
/// - [`Denied`](crate::ErrorKind::Denied): wrong or missing credentials or rights.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): the server is older than 6.2, does not speak RESP3 or is not
///   Redis; only one side uses TLS; a sentinel stands in the place of a server, or a server in the place of a sentinel;
///   or the URL names a cluster and the server is not a node of one. If the server hangs up before its first answer, or
///   is silent after the TLS greeting, a second socket, on which no login is sent, finds out whether only one side uses
///   TLS.
/// - [`Refused`](crate::ErrorKind::Refused): the server is loading its data, or is a replica, even if the sentinels
///   name it as the master.
///
/// # Guarantees
/// - All calls share one socket. When it breaks, or when the server does not answer a call within
///   [`command_timeout`](crate::ConfigBuilder::command_timeout), a task in the background connects again,
///   after 10 ms at first and with growing, jittered pauses up to 1 s while the server is away. It goes on for as
///   long as the connection is open.
/// - Nothing is ever sent twice. A call that was sent and got no answer fails with
///   [`Unknown`](ConnectionError::Unknown).
/// - Each subscription has a socket of its own, with a `PING` every 10 s, so that a dead one is noticed. On one server,
///   the socket of the first one is opened while the connection for calls logs in, and is closed if nobody subscribes
///   within 1 s.
/// - After the first connect, an attempt to connect again is given up after a third of the
///   [`lease`](crate::ConfigBuilder::lease), at least 500 ms and at most the command timeout, so that an attempt
///   without an answer leaves time for another. The next attempt may take twice as long, up to the command timeout,
///   because the server may be far away, or busy with thousands of logins.
/// - Every call may take at least two round trips, as measured at login, even if its answer is useful for a shorter
///   time. So a slow connection is not taken for a dead one.
/// - The calls and the subscriptions reach the same server. A subscription to `channel` also subscribes to
///   `channel:<random>`. It delivers messages only after the server of the calls has confirmed, by `PUBSUB NUMSUB`,
///   that it has a subscriber to that second channel. The user needs the rights to both channels and to this command.
///   After every reconnect of either socket, the server is asked again, and [`Notice::Gap`] follows.
/// - A server that is a replica is refused when connecting, and left when it says so later (`READONLY`, `MASTERDOWN`,
///   `UNBLOCKED`), because another primary may be behind the address by then.
/// - A call for which there was no connection in time fails with the reason for which the last attempt to connect
///   failed: the error of the server, such as `WRONGPASS`, [`Certificate`](ConnectionError::Certificate), or else
///   [`Unreachable`](ConnectionError::Unreachable).
/// - Closing or dropping the connection ends its tasks and closes its sockets.
/// - With [`connect_in_background`](crate::ConfigBuilder::connect_in_background), opening returns at once. Only invalid
///   options, such as a wrong URL, are an error. A task in the background connects, with the same pauses. Until it has
///   connected, calls wait as they do while the server is away, but a call that has waited is never executed: it fails,
///   with [`NotConnected`](ConnectionError::NotConnected) if the server was reached and cannot be used. The topology is
///   that of a single server until the server's is known.
///
/// # In a cluster
/// - Each call goes to the master of its keys' slot, over one socket per master. Each master gets the source of a
///   script once.
/// - `MOVED` and `ASK` are followed. `TRYAGAIN`, `CLUSTERDOWN` and `LOADING` are waited for, within the command
///   timeout. A call is sent again only after an answer which says that it was not executed.
/// - The map of slots is read every 48 to 72 s, and after each sign that it is old: at most once per 100 ms, and once
///   per 250 ms while nothing changes. A call that waits for a connection takes another way when the map changes.
/// - If the nodes have shard channels (Redis 7.0 or newer, Valkey) and the user has the rights, a channel with a hash
///   tag is a shard channel, and is subscribed at the master of its slot, over one socket per master. The subscription
///   follows the slot, and each move is a [`Notice::Gap`].
/// - Any other subscription is at one master, no matter which, because the cluster passes messages on to all nodes. It
///   moves to another master when its node is cut off or replaced, which is checked every 2 s.
/// - After a failover, [`Notice::Gap`] makes the client verify its holds and tickets at the new master. Redis copies
///   writes to replicas after it has answered: a grant that had not been copied is lost, and the next one has a larger
///   token.
/// - Without shard channels, no node knows all subscribers. So a waiter without a connection is not skipped, and costs
///   the other waiters one lease.
///
/// # Not guaranteed
/// - After `SCRIPT FLUSH`, calls that are under way at that time may be executed out of order, once.
pub struct RedisConnection {
    /// A primary, which may be replaced by another one, or a cluster. With `connect_in_background`, one that is unknown
    /// before the first connect.
    servers: Box<dyn Connection>,
    /// Unknown until the server has answered.
    warnings: Arc<OnceLock<Vec<Warning>>>,
    /// `None`: connected in the background.
    primaries: Option<ask::Primaries>,
}

impl RedisConnection {
    /// Sends these commands to the primary, or to each master of the cluster, for the crate `bowline-cli` of the same
    /// version. The answers come with the address that they are from, up to the first command without an answer.
    /// Masters that are not known at this moment are left out, and all are after a connect in the background. Not part
    /// of the public API.
    #[doc(hidden)]
    pub async fn ask_each(&self, questions: &[&[&str]]) -> Vec<(String, Vec<Asked>)> {
        let Some(primaries) = &self.primaries else { return Vec::new() };
        primaries.ask_each(&self.slot_of_each_server().unwrap_or_default(), questions).await
    }
}

#[async_trait]
impl Connection for RedisConnection {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&*self.servers)
    }

    /// Returns the future of the servers: one around it would be one more allocation per call.
    fn run<'s, 'c, 'f>(&'s self, call: Call<'c>) -> BoxFuture<'f, Result<Reply, ConnectionError>>
    where
        's: 'f,
        'c: 'f,
        Self: 'f,
    {
        self.servers.run(call)
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.servers.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.servers.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.servers.topology()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.servers.warnings().into_iter().chain(self.warnings.get().into_iter().flatten().cloned()).collect()
    }

    fn close(&self) {
        self.servers.close();
    }
}

/// Shows the address and the state, but no credentials.
impl fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConnection").field("link", &self.servers).field("warnings", &self.warnings).finish()
    }
}
