//! The application's own client of [fred](https://docs.rs/fred/10): bowline's calls share its connection.
//!
//! | the application's client leads to | works | after a loss |
//! |---|---|---|
//! | one server | yes | fred reconnects, by the policy of the client |
//! | the primary that sentinels name | yes | fred asks the sentinels again |
//! | a cluster | no: it is refused | |
//!
//! No call is sent twice, whatever the client is set to. By default fred sends a command up to three times
//! (`max_command_attempts`) if a connection is lost before the answer. bowline's calls have one attempt each.
//!
//! The calls go over the client, which the application may go on using. Each subscription has a connection of its own
//! with the same settings: a bowline client has one.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use bowline::tokio::Tokio;
//! use bowline::{Client, Config};
//! use fred::interfaces::ClientLike;
//! use fred::types::Builder;
//! use fred::types::config::{Config as FredConfig, ReconnectPolicy};
//!
//! let mut builder = Builder::from_config(FredConfig::from_url("redis://127.0.0.1/")?);
//! builder.set_policy(ReconnectPolicy::new_exponential(0, 50, 2_000, 2));
//! let fred = builder.build()?;
//! fred.init().await?;
//!
//! let (executor, config) = (Arc::new(Tokio::current()?), Config::default());
//! let connection = bowline_fred::from_client(executor.clone(), fred.clone(), &config)?;
//! let client = Client::connect(executor, Arc::new(connection), config).await?;
//! client.lock("orders:42").lock().await?.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Prefer a connection of bowline's own, by `connect` of a runtime's module, unless the number of connections matters.
//! It finds a server that stands still, runs in a cluster, and says good-bye.
//!
//! # What fred's client cannot promise
//! The checks of `bowline::testing` pass. These checks do not see:
//! - **A silent connection is not replaced** unless the application sets `ConnectionConfig::unresponsive`. If the
//!   machine of the server vanishes, calls fail with [`Unknown`](bowline::ConnectionError::Unknown) until the system
//!   gives the socket up, often after minutes.
//! - **A failed call may have been sent.** fred does not say whether it was. A failure is `Unknown`, and the client
//!   clears up after a call that never left, unless fred had no connection for the call or its queue was full.
//! - **A limited policy ends.** After the last attempt of the application's `ReconnectPolicy`, calls are not answered
//!   until the application connects its client again.
//! - **The application can hold calls up.** A blocking command of the application, such as `BLPOP`, delays all calls
//!   behind it. Give such commands a client of their own. A full queue (`max_command_buffer_len`) fails calls as
//!   [`Unreachable`](bowline::ConnectionError::Unreachable).
//! - **A demoted primary is kept** as long as its socket stands: calls fail with `READONLY`. Sentinels close the
//!   sockets of a primary that they demote.
//! - **Closing closes no socket of the application.** Calls fail at once, but a request that fred has queued before may
//!   still be sent. If the application quits its client, bowline's calls fail.
//! - **A stream works while it is polled.** fred keeps 1024 messages for a stream that is not. If there are more, a
//!   [`Gap`](bowline::Notice::Gap) takes their place. bowline's clients always poll.
//! - **A resolver that was set by `set_resolver`** is not that of the subscription's connection.
//! - **No acknowledged holds, and no good-bye without a runtime**:
//!   [`run_acknowledged`](bowline::Connection::run_acknowledged) is unsupported, and a client whose runtime was shut
//!   down leaves its holds to their leases.
//!
//! A reconnect of the application's client is told, also one between two calls: a `Gap` is delivered after it.
//!
//! # Why not a cluster
//! fred counts each redirection as an attempt. With one attempt, a call that a node answers with `MOVED` fails with the
//! same error as a call whose connection was lost. With more, a call whose answer was lost is sent again.

use std::sync::Arc;

use bowline::{Config, Error, ErrorKind, Executor, Result, Topology};
use fred::clients::Client;
use fred::interfaces::ClientLike;
use tokio::runtime::Handle;

pub use self::connection::FredConnection;
use self::shared::Shared;

mod calls;
mod connection;
mod convert;
mod shared;
mod socket;
mod subscription;

/// Calls go over the application's client, which reconnects by its policy. The client need not be connected yet.
///
/// The longest wait for an answer is the [`command_timeout`](bowline::ConfigBuilder::command_timeout) of `config`.
/// `executor` may be one of any runtime.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): the client leads to a cluster, or has no `ReconnectPolicy`, so that it
///   would never reconnect.
/// - [`InvalidInput`](ErrorKind::InvalidInput): it was not called in a tokio runtime, which must be the one that runs
///   the client.
pub fn from_client(executor: Arc<dyn Executor>, client: Client, config: &Config) -> Result<FredConnection> {
    let failed = |kind, reason: &str| Err(Error::new(kind, "connect").with_reason(reason));
    if client.is_clustered() {
        return failed(ErrorKind::Unsupported, "this client of fred leads to a cluster");
    }
    if !client.has_reconnect_policy() {
        return failed(ErrorKind::Unsupported, "this client of fred never reconnects; set a ReconnectPolicy");
    }
    let Ok(tokio) = Handle::try_current() else {
        return failed(ErrorKind::InvalidInput, "there is no tokio runtime here, and fred needs one");
    };
    let mut topology = Topology::single_server();
    topology.fails_over = client.uses_sentinels();
    Ok(FredConnection::new(Shared::new(executor, client, tokio, config.command_timeout()), topology))
}
