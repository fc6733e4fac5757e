//! Checks the server and the user's rights when connecting, so that no operation fails half-way for lack of a right.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::future::try_join;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::Connection;
use crate::driver::server_clock::ServerClock;
use crate::error::Result;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::{Failure, RenewArgs, Scripts};
use crate::protocol::key::{Keys, inbox_prefix};
use crate::protocol::kind::Kind;
use crate::protocol::reply::ServerMillis;
use crate::runtime::Executor;

/// Issues every command that the scripts issue, on keys of the check's own, and reads the server's clock.
pub(crate) async fn check(
    executor: &dyn Executor,
    connection: &dyn Connection,
    config: &Config,
    client: Uuid,
    clock: &ServerClock,
) -> Result<()> {
    let prefix = inbox_prefix(&config.prefix);
    let scripts = Scripts { connection, inbox_prefix: &prefix };
    match tried(scripts, config, client).await {
        Ok(now) => {
            clock.observe(executor.now(), now);
            Ok(())
        }
        Err(failure) => Err(failure.when_connecting(&config.prefix)),
    }
}

async fn tried(scripts: Scripts<'_>, config: &Config, client: Uuid) -> std::result::Result<ServerMillis, Failure> {
    let keys = Kind::CHECKED.map(|kind| Keys::scratch(&config.prefix, kind, client));
    // The second call is an `EVALSHA`, because the first one has brought the source. Both rights are needed.
    let (now, _) = try_join(scripts.try_rights(&keys, client), scripts.try_calling(&keys[0])).await?;
    if config.replicas > 0 {
        wait(scripts, &keys[0], client, config.command_timeout).await?;
    }
    Ok(now)
}

/// Runs `WAIT` for no replica, which needs the same right. Whether enough replicas exist is checked for each grant.
async fn wait(scripts: Scripts<'_>, keys: &Keys, client: Uuid, within: Duration) -> std::result::Result<(), Failure> {
    let no_hold = AttemptId { client, n: u64::MAX };
    let lease = Duration::from_millis(1);
    let in_full = &AtomicBool::new(false);
    let hold = RenewArgs { keys, id: no_hold, lease, longest: lease, extended: true, in_full };
    scripts.renew_acknowledged(&[hold], 0, within).await.map(drop)
}
