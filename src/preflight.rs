//! Checks the server and the user's rights when connecting, so that no operation fails half-way for lack of a right.

use futures::future::join_all;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::{Connection, ConnectionError};
use crate::driver::server_clock::ServerClock;
use crate::error::Result;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, inbox_prefix};
use crate::protocol::kind::Kind;
use crate::protocol::reply::ServerMillis;
use crate::protocol::resource::Rehearsal;
use crate::runtime::Executor;

/// Runs the scripts of every kind of resource on keys of the check's own, and reads the server's clock.
pub(crate) async fn check(
    executor: &dyn Executor,
    connection: &dyn Connection,
    config: &Config,
    client: Uuid,
    clock: &ServerClock,
) -> Result<()> {
    let prefix = inbox_prefix(&config.prefix);
    let scripts = Scripts { connection, inbox_prefix: &prefix };
    let keys = Kind::CHECKED.map(|kind| Keys::scratch(&config.prefix, kind, client));
    let checks = keys
        .each_ref()
        .map(|keys| rehearse(Rehearsal { scripts, keys, client, command_timeout: config.command_timeout }));
    match join_all(checks).await.into_iter().collect::<std::result::Result<Vec<_>, _>>() {
        Ok(times) => {
            clock.observe(executor.now(), times.into_iter().max().unwrap_or_default());
            Ok(())
        }
        Err(failure) => Err(failure.when_connecting(&config.prefix)),
    }
}

async fn rehearse(rehearsal: Rehearsal<'_>) -> std::result::Result<ServerMillis, Failure> {
    let kind = rehearsal.keys.kind;
    let rehearsed = kind.with(|resource| resource.rehearse(rehearsal)).await;
    if let Err(Failure::Connection(ConnectionError::Refused { .. })) = rehearsed {
        kind.with(|resource| resource.tidy(rehearsal)).await;
    }
    rehearsed
}
