//! Whether the server and the user's rights are fit, found out when connecting and not half a write later.

use std::time::Duration;

use uuid::Uuid;

use crate::config::Config;
use crate::connection::{Connection, ConnectionError};
use crate::driver::server_clock::ServerClock;
use crate::error::Result;
use crate::protocol::dispatch::{AcquireArgs, ChangeArgs, Failure, Scripts};
use crate::protocol::key::{Keys, Kind, READ, WRITE, inbox_prefix};
use crate::protocol::latch::LatchCall;
use crate::protocol::reply::ServerMillis;
use crate::protocol::ticket::{AttemptId, ticket};
use crate::runtime::Executor;

/// What the check acquires ends by itself after this.
const LEASE: Duration = Duration::from_secs(1);

/// Runs the scripts of every kind of primitive, through every branch that issues a command of its own, and reads the
/// server's clock. What is stored for longer, an operator's limit of a semaphore, is not tried.
///
/// Everything written has a lease of a second, and no other client looks at it: what another check holds or has left
/// would decide which branches this one takes.
pub(crate) async fn check(
    executor: &dyn Executor,
    connection: &dyn Connection,
    config: &Config,
    client: Uuid,
    clock: &ServerClock,
) -> Result<()> {
    let prefix = inbox_prefix(&config.prefix);
    let scripts = Scripts { connection, inbox_prefix: &prefix };
    let keys = |kind| Keys::scratch(&config.prefix, kind, client);
    let (lock, permits, latch) = (keys(Kind::Lock), keys(Kind::ReadWrite), keys(Kind::Latch));
    let checked = futures::join!(
        tidy(scripts, &lock, client, check_lock(scripts, &lock, config, client)),
        tidy(scripts, &permits, client, check_permits(scripts, &permits, config, client)),
        tidy(scripts, &latch, client, check_latch(scripts, &latch, client)),
    );
    match checked.0.and_then(|now| checked.1.and(checked.2).and(Ok(now))) {
        Ok(now) => {
            clock.observe(executor.now(), now);
            Ok(())
        }
        Err(failure) => Err(failure.when_connecting(&config.prefix)),
    }
}

type Checked = std::result::Result<ServerMillis, Failure>;

/// Takes back what a refused check has left, as far as the rights go.
async fn tidy(scripts: Scripts<'_>, keys: &Keys, client: Uuid, check: impl Future<Output = Checked>) -> Checked {
    let checked = check.await;
    if let Err(Failure::Connection(ConnectionError::Refused { .. })) = checked {
        for ticket in tickets(keys, client, 1).into_iter().chain(tickets(keys, client, WRITE)) {
            let _ = scripts.cancel(keys, &ticket, false).await;
        }
        if keys.kind == Kind::Latch {
            let attempt_id = &ids(client)[0].text();
            let call = LatchCall { attempt_id, not_after: 0, known_until: 0, resent: false };
            let _ = scripts.latch().delete(keys.latch(), call).await;
            let _ = take(scripts, keys, keys.latch()[2], attempt_id).await;
        }
    }
    checked
}

/// No attempt of the client will have these ids: its own count from 1.
fn ids(client: Uuid) -> [AttemptId; 3] {
    [0, 1, 2].map(|n| AttemptId { client, n: u64::MAX - n })
}

fn tickets(keys: &Keys, client: Uuid, amount: u32) -> [String; 3] {
    ids(client).map(|id| ticket(keys.kind, id, LEASE, amount))
}

fn request(attempt_id: &str, amount: u32, queue: Option<Duration>, max_waiters: u32) -> AcquireArgs<'_> {
    AcquireArgs {
        attempt_id,
        wait: queue.is_some(),
        lease: LEASE,
        amount,
        ticket_ttl: queue.unwrap_or(LEASE),
        max_waiters,
        not_after: 0,
    }
}

/// What the queue, shared by lock and permits, does with a holder, a dead ticket and a living one.
async fn check_queue(
    scripts: Scripts<'_>,
    keys: &Keys,
    config: &Config,
    client: Uuid,
    amount: u32,
) -> std::result::Result<(), Failure> {
    let [holder, dead, waiter] = &ids(client).map(AttemptId::text);
    let tickets = tickets(keys, client, amount);
    // First of all the rights to remove, without which the rest would stay.
    scripts.cancel(keys, &tickets[0], false).await?;
    scripts.acquire(keys, request(holder, amount, None, 0)).await?;
    scripts.release(keys, holder).await?;
    scripts.acquire(keys, request(holder, amount, None, 0)).await?;
    scripts.acquire(keys, request(holder, amount, None, 0)).await?;
    // A ticket that is dead at once: dropped to make room, the second one by the release.
    scripts.acquire(keys, request(dead, amount, Some(Duration::ZERO), 0)).await?;
    scripts.acquire(keys, request(waiter, amount, Some(Duration::ZERO), 1)).await?;
    scripts.release(keys, holder).await?;
    // A waiter that is kept alive, and told.
    scripts.acquire(keys, request(holder, amount, None, 0)).await?;
    scripts.acquire(keys, request(waiter, amount, Some(LEASE), 0)).await?;
    scripts.heartbeat(keys, &[(&tickets[2], LEASE)]).await?;
    scripts.renew(&[(keys, holder, LEASE)], config.command_timeout).await?;
    scripts.release(keys, holder).await?;
    for ticket in &tickets {
        scripts.cancel(keys, ticket, false).await?;
    }
    Ok(())
}

async fn check_lock(scripts: Scripts<'_>, keys: &Keys, config: &Config, client: Uuid) -> Checked {
    let holder = &ids(client)[0].text();
    check_queue(scripts, keys, config, client, 1).await?;
    // Asks whether a client listens, and tells it; a refusal of either is an error here only: elsewhere a waiter that cannot
    // be told is passed over.
    scripts.acquire(keys, request(holder, 1, None, 0)).await?;
    scripts.force_release_lock(keys, holder).await?;
    Ok(scripts.inspect_lock(keys).await?.now)
}

async fn check_permits(scripts: Scripts<'_>, keys: &Keys, config: &Config, client: Uuid) -> Checked {
    let [writer, reader, _] = &ids(client).map(AttemptId::text);
    check_queue(scripts, keys, config, client, WRITE).await?;
    scripts.acquire(keys, request(writer, WRITE, None, 0)).await?;
    let change = ChangeArgs { old_id: writer, new_id: reader, units: READ, lease: LEASE, limit: WRITE, not_after: 0 };
    scripts.change(keys, change).await?;
    // The lease of one of two is lost, which is the only case that reads all holds.
    scripts.acquire(keys, request(writer, READ, None, 0)).await?;
    let [_, leases] = keys.held();
    take(scripts, keys, leases, writer).await?;
    scripts.acquire(keys, request(reader, READ, None, 0)).await?;
    scripts.release(keys, reader).await?;
    Ok(scripts.inspect(keys, WRITE).await?.now)
}

async fn check_latch(scripts: Scripts<'_>, keys: &Keys, client: Uuid) -> Checked {
    let [setter, waiter, other] = &ids(client).map(AttemptId::text);
    let latch = scripts.latch();
    latch.cancel(keys.latch(), waiter).await?;
    let now = take(scripts, keys, keys.latch()[2], setter).await?;
    let call = |attempt_id, known_until| LatchCall { attempt_id, not_after: 0, known_until, resent: false };
    latch.set(keys.latch(), call(setter, now + LEASE.as_secs() * 1000), 1, LEASE).await?;
    latch.wait(keys.latch(), waiter, LEASE, 0).await?;
    latch.heartbeat(keys.latch(), &[(waiter, LEASE)]).await?;
    latch.count_down(keys.latch(), call(other, 0)).await?;
    latch.delete(keys.latch(), call(waiter, 0)).await?;
    // Calls are left to expire elsewhere.
    take(scripts, keys, keys.latch()[2], setter).await?;
    Ok(latch.inspect(keys.latch()).await?.now)
}

/// Takes a member out of a sorted set, by the script that does so for the tickets of a latch.
async fn take(scripts: Scripts<'_>, keys: &Keys, set: &str, member: &str) -> Checked {
    Ok(scripts.latch().cancel([keys.main(), set, set], member).await?.now)
}
