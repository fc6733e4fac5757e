//! Whether the server and the user's rights are fit, found out when connecting and not half a write later.

use std::time::Duration;

use crate::config::Config;
use crate::connection::{Connection, ConnectionError};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::key::{Keys, Kind, inbox_prefix};
use crate::scripts::Script;
use crate::scripts::call::{AcquireArgs, Failure};
use crate::scripts::lock::LockScripts;
use crate::server_clock::ServerClock;
use crate::ticket::{WireId, ticket};

/// What the check acquires ends by itself after this.
const LEASE: Duration = Duration::from_secs(1);

/// Runs every script of the lock, through every branch that issues a command of its own, and reads the server's clock.
///
/// Everything written has a lease of a second, and no other client looks at it: what another check holds or has left
/// would decide which branches this one takes.
pub(crate) async fn check(
    executor: &dyn Executor,
    connection: &dyn Connection,
    config: &Config,
    clock: &ServerClock,
) -> Result<()> {
    let keys = Keys::scratch(&config.prefix, Kind::Lock, config.client_id);
    let prefix = inbox_prefix(&config.prefix);
    let scripts = LockScripts { connection, inbox_prefix: &prefix };
    match run(&scripts, &keys, config).await {
        Ok(now) => {
            clock.observe(executor.now(), now);
            Ok(())
        }
        Err(failure) => {
            if let Failure::Connection(ConnectionError::Refused { .. }) = failure {
                // As far as the rights go.
                for ticket in tickets(config) {
                    let _ = scripts.cancel(keys.lock(), &ticket, false).await;
                }
            }
            Err(Error::new(failure.kind(), "connect").with_source(Unfit { at: denied_at(&failure), failure }))
        }
    }
}

/// No attempt of the client will have these ids: its own count from 1.
fn ids(config: &Config) -> [WireId; 3] {
    [0, 1, 2].map(|n| WireId { client: config.client_id, n: u64::MAX - n })
}

fn tickets(config: &Config) -> [String; 3] {
    ids(config).map(|id| ticket(id, LEASE, 1))
}

async fn run(scripts: &LockScripts<'_>, keys: &Keys, config: &Config) -> std::result::Result<u64, Failure> {
    let lease = LEASE;
    let [holder_id, dead_id, waiter_id] = &ids(config).map(WireId::text);
    let tickets = tickets(config);
    let request = |wire_id, wait, ticket_ttl, max_waiters| AcquireArgs {
        wire_id,
        wait,
        lease,
        amount: 1,
        ticket_ttl,
        max_waiters,
        not_after: 0,
    };

    // First of all the right to remove, without which the rest would stay.
    scripts.cancel(keys.lock(), &tickets[0], false).await?;
    scripts.acquire(keys.lock(), request(holder_id, false, lease, 0)).await?;
    scripts.acquire(keys.lock(), request(holder_id, false, lease, 0)).await?;
    // A ticket that is dead at once: dropped to make room, the second one by the release.
    scripts.acquire(keys.lock(), request(dead_id, true, Duration::ZERO, 0)).await?;
    scripts.acquire(keys.lock(), request(waiter_id, true, Duration::ZERO, 1)).await?;
    scripts.release(keys.lock(), holder_id).await?;
    // A waiter that is kept alive, and told.
    scripts.acquire(keys.lock(), request(holder_id, false, lease, 0)).await?;
    scripts.acquire(keys.lock(), request(waiter_id, true, lease, 0)).await?;
    scripts.touch(keys.lock(), &[(&tickets[2], lease)]).await?;
    scripts.renew(&[(&keys.main, holder_id, lease)]).await?;
    scripts.release(keys.lock(), holder_id).await?;
    for ticket in &tickets {
        scripts.cancel(keys.lock(), ticket, false).await?;
    }
    // The one PUBLISH whose refusal is an error: elsewhere a waiter that cannot be told is passed over.
    scripts.acquire(keys.lock(), request(holder_id, false, lease, 0)).await?;
    scripts.force_release(keys.lock(), holder_id).await?;
    Ok(scripts.inspect(keys.lock()).await?.now)
}

/// The line of a script that the user may not run. The server says its number, and not what stands there.
fn denied_at(failure: &Failure) -> Option<String> {
    let Failure::Connection(ConnectionError::Refused { message, .. }) = failure else { return None };
    let (_, place) = message.split_once("script: ")?;
    let (sha1, place) = place.split_once(", on @user_script:")?;
    let number: usize = place.trim_end_matches('.').parse().ok()?;
    let script = Script::all().find(|script| script.sha1() == sha1)?;
    let line = script.source().lines().nth(number.checked_sub(1)?)?;
    Some(format!(" ({}: {})", script.name(), line.trim()))
}

#[derive(Debug, thiserror::Error)]
#[error("the server or the user's rights do not fit: {failure}{}", at.as_deref().unwrap_or_default())]
struct Unfit {
    failure: Failure,
    at: Option<String>,
}
