//! Transfers between two accounts: each needs the locks of both, and each task names them in its own order.
//!
//! `cargo run --example transfer`: on the Redis at `REDIS_URL`, else on a `redis-server` of its own.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use bowline::{Client, MultiGuard, Token};
use redis::AsyncCommands;

/// Accounts are hashes with a balance and the token of the last write. A write to two accounts is rejected if one of
/// the tokens is smaller than the last one of its account.
#[derive(Clone)]
struct Bank {
    connection: redis::aio::MultiplexedConnection,
    write: redis::Script,
}

impl Bank {
    async fn open(url: &str) -> redis::RedisResult<Self> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let write = redis::Script::new(
            "for i, account in ipairs(KEYS) do
               local last = tonumber(redis.call('HGET', account, 'token') or '0')
               if tonumber(ARGV[2 * i]) < last then return 0 end
             end
             for i, account in ipairs(KEYS) do
               redis.call('HSET', account, 'balance', ARGV[2 * i - 1], 'token', ARGV[2 * i])
               redis.call('EXPIRE', account, 60)
             end
             return 1",
        );
        Ok(Self { connection, write })
    }

    async fn balance(&self, account: &str) -> redis::RedisResult<i64> {
        self.connection.clone().hget(account, "balance").await
    }

    /// Whether the bank accepted the balances.
    async fn write(&self, balances: [(&str, i64, Token); 2]) -> redis::RedisResult<bool> {
        let mut call = self.write.prepare_invoke();
        for (account, balance, token) in balances {
            call.key(account).arg(balance).arg(token.get());
        }
        call.invoke_async(&mut self.connection.clone()).await
    }

    /// Reads both balances, and writes them. Without the locks, another transfer could write in between and be
    /// overwritten.
    async fn transfer(
        &self,
        guard: &MultiGuard,
        from: &str,
        to: &str,
        amount: i64,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let token = |account: &str| guard.token(account).ok_or("not locked");
        let (rest, sum) = (self.balance(from).await? - amount, self.balance(to).await? + amount);
        let accepted = self.write([(from, rest, token(from)?), (to, sum, token(to)?)]).await?;
        accepted.then_some(()).ok_or_else(|| "a later holder has already written".into())
    }
}

/// Sends an amount to and fro. The guard stops the transfer if one of the two locks is lost.
async fn task(
    client: Client,
    bank: Bank,
    from: &'static str,
    to: &'static str,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for _ in 0..25 {
        let both = client.lock_all([from, to]).acquire().timeout(Duration::from_secs(30));
        let guard = both.await?;
        guard.protect(bank.transfer(&guard, from, to, 1)).await??;
        guard.release().await?;
    }
    println!("  25 transfers from {from} to {to} are done");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let server = support::Server::find()?;
    let (client, bank) = (bowline::tokio::connect(&server.url).await?, Bank::open(&server.url).await?);
    let guard = client.lock_all(["account:alice", "account:bob"]).acquire().await?;
    let tokens: Vec<_> = guard.tokens().collect();
    println!("the accounts are locked with {tokens:?}, and opened with 100 each");
    let opened = [(tokens[0].0, 100, tokens[0].1), (tokens[1].0, 100, tokens[1].1)];
    assert!(bank.write(opened).await?);
    guard.release().await?;

    // If each task locked the account that it takes from first, two tasks could wait for each other forever.
    println!("four tasks transfer in opposite directions:");
    let directions = [("account:alice", "account:bob"), ("account:bob", "account:alice")];
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let (from, to) = directions[n % 2];
            tokio::spawn(task(client.clone(), bank.clone(), from, to))
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let balances = (bank.balance("account:alice").await?, bank.balance("account:bob").await?);
    println!("the balances are {balances:?}");
    assert_eq!(balances, (100, 100));
    client.close().await;
    Ok(())
}
