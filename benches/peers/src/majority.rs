//! A lock by `SET NX PX` on a majority of servers, without a queue and without a token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_benches::Result;
use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;

/// Deletes the key if it still has the value.
pub(crate) const DELETE_OWN: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Does nothing. A pair then takes as long as it takes to send six scripts.
const EMPTY: &str = "return 1";

/// How much of the lease the servers' clocks may differ.
const DRIFT: f64 = 0.01;

/// Connections to all servers.
#[derive(Clone)]
pub(crate) struct Majority {
    connections: Vec<MultiplexedConnection>,
    delete_own: Arc<redis::Script>,
    empty: Arc<redis::Script>,
}

impl Majority {
    pub(crate) async fn open(urls: &[&str]) -> Result<Self> {
        let open = async |url: &&str| redis::Client::open(*url)?.get_multiplexed_async_connection().await;
        let connections = try_join_all(urls.iter().map(open)).await?;
        let [delete_own, empty] = [DELETE_OWN, EMPTY].map(|code| redis::Script::new(code).into());
        Ok(Self { connections, delete_own, empty })
    }

    /// Whether a majority has taken it, and some of the lease is left.
    pub(crate) async fn take(&self, name: &str, value: u64, lease: Duration) -> Result<bool> {
        let start = Instant::now();
        let mut set = redis::cmd("SET");
        set.arg(name).arg(value).arg("NX").arg("PX").arg(lease.as_millis() as u64);
        let taken = try_join_all(self.connections.iter().map(async |connection| {
            let mut connection = connection.clone();
            set.query_async::<bool>(&mut connection).await
        }));
        let votes = taken.await?.into_iter().filter(|taken| *taken).count();
        Ok(votes > self.connections.len() / 2 && start.elapsed() < lease.mul_f64(1.0 - DRIFT))
    }

    pub(crate) async fn give_back(&self, name: &str, value: u64) -> Result<()> {
        self.run(&self.delete_own, name, value).await
    }

    /// A script on all servers that does nothing.
    pub(crate) async fn do_nothing(&self, name: &str, value: u64) -> Result<()> {
        self.run(&self.empty, name, value).await
    }

    async fn run(&self, script: &redis::Script, name: &str, value: u64) -> Result<()> {
        let done = try_join_all(self.connections.iter().map(async |connection| {
            let mut connection = connection.clone();
            script.key(name).arg(value).invoke_async::<()>(&mut connection).await
        }));
        done.await?;
        Ok(())
    }
}
