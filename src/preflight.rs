//! Checks the server and the user's rights when connecting, so that no operation fails half-way for lack of a right.

use std::time::Duration;

use futures::future::join_all;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::{Connection, ConnectionError};
use crate::driver::server_clock::ServerClock;
use crate::error::Result;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::{Failure, RenewArgs, Scripts};
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
    let mut checked = join_all(checks).await.into_iter().collect::<std::result::Result<Vec<_>, _>>();
    if checked.is_ok()
        && config.replicas > 0
        && let Err(failure) = wait(scripts, &keys[0], client, config.command_timeout).await
    {
        checked = Err(failure);
    }
    match checked {
        Ok(times) => {
            clock.observe(executor.now(), times.into_iter().max().unwrap_or_default());
            Ok(())
        }
        Err(failure) => Err(failure.when_connecting(&config.prefix)),
    }
}

/// Runs `WAIT` for no replica, which needs the same right. Whether enough replicas exist is checked for each grant.
async fn wait(scripts: Scripts<'_>, keys: &Keys, client: Uuid, within: Duration) -> std::result::Result<(), Failure> {
    let no_hold = AttemptId { client, n: u64::MAX };
    let lease = Duration::from_millis(1);
    scripts
        .renew_acknowledged(&[RenewArgs { keys, id: no_hold, lease, longest: lease, extended: true }], 0, within)
        .await
        .map(drop)
}

async fn rehearse(rehearsal: Rehearsal<'_>) -> std::result::Result<ServerMillis, Failure> {
    let kind = rehearsal.keys.kind;
    let rehearsed = kind.with(|resource| resource.rehearse(rehearsal)).await;
    if let Err(Failure::Connection(ConnectionError::Refused { .. })) = rehearsed {
        kind.with(|resource| resource.tidy(rehearsal)).await;
    }
    rehearsed
}
