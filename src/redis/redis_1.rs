//! The application's own connection of redis-rs 1: bowline's calls share its sockets (feature `redis-1`).
//!
//! | the application has | function | what is sent twice | after a loss |
//! |---|---|---|---|
//! | a [`ConnectionManager`] | [`from_manager`] | nothing | the manager reconnects |
//! | a [`MultiplexedConnection`] | [`from_multiplexed`] | nothing | it never reconnects: calls fail as unreachable |
//! | a [`ClusterConnection`] | [`from_cluster`] | nothing: one that would is refused | it reconnects |
//!
//! The calls go over the connection, which the application may go on using. Each subscription has a connection of its
//! own, made from a [`redis::Client`](https://docs.rs/redis/1/redis/struct.Client.html): a bowline client has one.
//!
//! ```no_run
//! # #[cfg(feature = "tokio")]
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use bowline::tokio::Tokio;
//! use bowline::{Client, Config, redis_1};
//!
//! let redis = redis::Client::open("redis://127.0.0.1/")?;
//! let manager = redis::aio::ConnectionManager::new(redis.clone()).await?;
//!
//! let (executor, config) = (Arc::new(Tokio::current()?), Config::default());
//! let connection = redis_1::from_manager(executor.clone(), manager.clone(), redis, &config).await?;
//! let client = Client::connect(executor, Arc::new(connection), config).await?;
//! client.lock("orders:42").lock().await?.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Prefer a connection of bowline's own, by `connect` of a runtime's module, unless the number of connections matters.
//! It finds a server that stands still, follows a failover, and says good-bye.
//!
//! # What redis-rs' connections cannot promise
//! The checks of `bowline::testing` pass, but for what the functions say. These checks do not see:
//! - **A silent connection is not replaced.** If the machine of the server vanishes, calls fail with
//!   [`Unknown`](crate::ConnectionError::Unknown) until the system gives the socket up, often after minutes. Set
//!   `set_user_timeout` or keep-alives in the application's [`TcpSettings`][tcp].
//! - **A reconnect between two calls is not told.** A [`Gap`](crate::Notice::Gap) is delivered if a call fails with the
//!   old connection. If none was under way, it may be missing, although the new connection may lead to another server.
//! - **A failed call may have been sent.** redis-rs does not say whether it was, so each failure is `Unknown`, and the
//!   client clears up after a call that never left.
//! - **The order of calls is kept while redis-rs' queue has room.** bowline has at most 32 calls under way, and the
//!   queue has room for 50 by default. An application that fills the queue, shortens it (`pipeline_buffer_size`) or
//!   sets a `concurrency_limit` may have calls executed out of order.
//! - **A cluster keeps the order of the calls of one slot only**, for which one call at a time is under way.
//! - **A demoted primary is kept** as long as its socket stands: calls fail with `READONLY`. Behind one address that
//!   fails over, use a URL.
//! - **Closing closes no socket of the application.** Calls fail at once, but a request that redis-rs has queued before
//!   may still be sent.
//! - **No acknowledged holds, and no good-bye without a runtime**:
//!   [`run_acknowledged`](crate::Connection::run_acknowledged) is unsupported, and a client whose runtime was shut down
//!   leaves its holds to their leases.
//! - **No [changes of holds](crate::Client::changes)**: [`watch_key`](crate::Connection::watch_key) is unsupported.
//!
//! [tcp]: https://docs.rs/redis/1/redis/io/tcp/struct.TcpSettings.html
//!
//! redis-rs runs its own tasks on tokio, and outside of tokio on smol if it has that feature.
//!
//! The time limit of a call is the shorter one of the [`command_timeout`](crate::ConfigBuilder::command_timeout) and of
//! redis-rs' `response_timeout`, 500 ms by default.

use std::sync::Arc;

use ::redis::aio::{ConnectionManager, MultiplexedConnection};
use ::redis::cluster_async::ClusterConnection;

pub use self::connection::ApplicationConnection;
use self::shared::{Kind, Shared};
use crate::config::Config;
use crate::connection::Topology;
use crate::error::Result;
use crate::runtime::Executor;

mod calls;
mod connection;
mod gate;
mod resends;
mod shared;
mod subscriber;

/// Calls go over the application's manager, which reconnects. `subscriber` must lead to the same server.
///
/// # Errors
/// None at present. Later versions may look at the manager.
///
/// # Cancel safety
/// Nothing has been sent if the future is dropped.
pub async fn from_manager(
    executor: Arc<dyn Executor>,
    manager: ConnectionManager,
    subscriber: ::redis::Client,
    config: &Config,
) -> Result<ApplicationConnection> {
    let shared = Shared::new(executor, Box::new(manager), Kind::Reconnects, vec![subscriber], config);
    Ok(ApplicationConnection::new(shared, Topology::single_server()))
}

/// Calls go over the application's connection. It never reconnects: once it is lost, every call fails with
/// [`Unreachable`](crate::ConnectionError::Unreachable), and subscriptions deliver a gap and then nothing. The
/// application has to make another connection and another client. This breaks the clauses `Reconnects` and `Restored`
/// of the contract.
///
/// # Errors
/// None at present. Later versions may look at the connection.
///
/// # Cancel safety
/// Nothing has been sent if the future is dropped.
pub async fn from_multiplexed(
    executor: Arc<dyn Executor>,
    connection: MultiplexedConnection,
    subscriber: ::redis::Client,
    config: &Config,
) -> Result<ApplicationConnection> {
    let shared = Shared::new(executor, Box::new(connection), Kind::EndsOnce, vec![subscriber], config);
    Ok(ApplicationConnection::new(shared, Topology::single_server()))
}

/// Calls go over the application's connection to a cluster. The subscription goes to the first of `subscribers` that
/// can be reached, each a client of one node. Waiters are told by messages to all nodes, and not by shard channels.
/// If that node leaves the cluster and goes on running, it passes no messages on, and the subscription stays there:
/// waiters are then served by their heartbeats, up to a third of their lease later. Stop a node that was removed.
///
/// The connection must come from a client that was built with
/// [`retries(0)`][retries]. With any retries, redis-rs sends a call again whose answer was lost. bowline itself sends
/// calls again that a node has turned away, for as long as the `command_timeout` lasts. While a slot moves,
/// calls of keys that have moved already wait for the end of the move.
///
/// # Errors
/// - [`Unsupported`](crate::ErrorKind::Unsupported): the connection sends calls again. This is found by a script that
///   counts its executions and then fails with `TRYAGAIN`; its key `<prefix>:resends:{<random>}` expires after 60 s.
/// - [`Unavailable`](crate::ErrorKind::Unavailable): no answer to that script within the `command_timeout`.
/// - Others: the server refused that script.
///
/// # Cancel safety
/// Dropping the future leaves that key.
///
/// [retries]: https://docs.rs/redis/1/redis/cluster/struct.ClusterClientBuilder.html#method.retries
pub async fn from_cluster(
    executor: Arc<dyn Executor>,
    connection: ClusterConnection,
    subscribers: Vec<::redis::Client>,
    config: &Config,
) -> Result<ApplicationConnection> {
    let shared = Shared::new(executor, Box::new(connection), Kind::Cluster, subscribers, config);
    resends::refuse(&shared, &config.prefix).await?;
    Ok(ApplicationConnection::new(shared, Topology::cluster()))
}
