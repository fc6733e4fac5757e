//! The lock's shipped scripts by hand, without the client around them.

use std::time::Duration;

use bowline::wire::{self, Attempt, PREFIX, Request, Resource};
use bowline::{Call, Connection, Reply};

use crate::Result;

/// Long enough for any bench.
const LEASE: Duration = Duration::from_secs(3600);

/// One lock of clients with the usual prefix.
#[derive(Debug)]
pub struct RawLock(Resource);

impl RawLock {
    /// The lock of this name.
    pub fn new(name: &str) -> Result<Self> {
        Ok(Self(Resource::lock(PREFIX, name)?))
    }

    /// Acquires for the `n`th attempt, or queues up. Whether it was granted.
    pub async fn acquire(&self, connection: &dyn Connection, n: u64) -> Result<bool> {
        let request = self.0.acquire(attempt(n), true);
        match run(connection, &request).await?.as_str() {
            "GRANTED" => Ok(true),
            "QUEUED" => Ok(false),
            other => Err(unexpected(&request, other)),
        }
    }

    /// Releases the hold of the `n`th attempt, and hands the lock over if a ticket waits.
    pub async fn release(&self, connection: &dyn Connection, n: u64) -> Result<()> {
        let request = self.0.release(attempt(n), None).ok_or("a lock is never held")?;
        expect(connection, &request, "RELEASED").await
    }

    /// Takes the ticket of the `n`th attempt out of the queue.
    pub async fn cancel(&self, connection: &dyn Connection, n: u64, from_tail: bool) -> Result<()> {
        expect(connection, &self.0.cancel(attempt(n), from_tail), "CANCELLED").await
    }

    /// Keeps the ticket of the `n`th attempt alive.
    pub async fn heartbeat(&self, connection: &dyn Connection, n: u64) -> Result<()> {
        let request = self.0.heartbeat(&[attempt(n)]).ok_or("a lock has a queue")?;
        expect(connection, &request, "WAITING").await
    }
}

/// The channel on which the client of all attempts is told about grants.
pub fn inbox() -> String {
    wire::inbox(PREFIX, wire::client(1))
}

/// The same in one slot of a cluster, where messages are sharded.
pub fn sharded_inbox() -> Result<String> {
    Ok(wire::Resource::lock(PREFIX, "n")?.sharded(true).inbox(wire::client(1)))
}

fn attempt(n: u64) -> Attempt {
    Attempt::new(wire::client(1), n, LEASE)
}

async fn expect(connection: &dyn Connection, request: &Request, word: &str) -> Result<()> {
    match run(connection, request).await? {
        replied if replied == word => Ok(()),
        other => Err(unexpected(request, &other)),
    }
}

/// The first word in the reply.
async fn run(connection: &dyn Connection, request: &Request) -> Result<String> {
    let (keys, args) = (request.keys(), request.args());
    let reply = connection.run(Call::new(request.script, &keys, &args)).await?;
    let Reply::Array(items) = wire::in_full(reply) else {
        return Err(unexpected(request, "no list"));
    };
    let word = items.into_iter().find_map(|item| match item {
        Reply::Bytes(word) => Some(String::from_utf8_lossy(&word).into_owned()),
        _ => None,
    });
    word.ok_or_else(|| unexpected(request, "no word"))
}

fn unexpected(request: &Request, word: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("{} replied {word}", request.script.name()).into()
}
