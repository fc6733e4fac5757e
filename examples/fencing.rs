//! The store rejects the stale write of a stalled holder: each write carries the token, and the store keeps the
//! largest.
//!
//! `cargo run --example fencing`: on the Redis at `REDIS_URL`, else on a `redis-server` of its own.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::Token;

/// A hash with a balance and the token of the last write. In SQL, a column for the token does the same:
/// `UPDATE accounts SET balance = ?, token = ? WHERE id = ? AND token <= ?`.
struct Store {
    connection: redis::aio::MultiplexedConnection,
    write: redis::Script,
}

impl Store {
    /// Whether the store accepted the write.
    async fn write(&mut self, balance: u32, token: Token) -> redis::RedisResult<bool> {
        self.write.key("account:7").arg(balance).arg(token.get()).invoke_async(&mut self.connection).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = support::Server::find()?;
    let connection = redis::Client::open(&*server.url)?.get_multiplexed_async_connection().await?;
    let write = redis::Script::new(
        "local last = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
         if tonumber(ARGV[2]) < last then return 0 end
         redis.call('HSET', KEYS[1], 'balance', ARGV[1], 'token', ARGV[2])
         redis.call('EXPIRE', KEYS[1], 60)
         return 1",
    );
    let mut store = Store { connection, write };
    let client = bowline::tokio::connect(&server.url).await?;
    let account = client.lock("account:7");

    // The first holder stalls for longer than its lease: a long garbage collection, or a suspended machine.
    let stalled = account.lock().expires_after(Duration::from_millis(200)).await?;
    println!("the first holder has token {}, and stalls", stalled.token());

    // Meanwhile the lease expires, and another holder gets the lock.
    let next = account.lock().await?;
    println!("the next holder has token {}", next.token());
    println!("  its write is accepted: {}", store.write(150, next.token()).await?);

    // The first holder resumes. A check just before the stall would not have helped: the guard was valid then.
    println!("the first holder resumes; its guard is valid: {}", stalled.is_valid());
    println!("  its stale write is accepted: {}", store.write(90, stalled.token()).await?);

    next.release().await?;
    client.close().await;
    Ok(())
}
