//! What the tests look at.

use std::pin::pin;
use std::time::Duration;

use bowline::LockGuard;
use futures::future::{Either, select};

use crate::support::adapters::ours;
use crate::support::env::{Env, TestClient};
use crate::support::sentinels::{MASTER_NAME, Sentinels};
use crate::support::server::Server;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The URL of sentinels at these addresses, as a user with the documented rights.
pub(crate) fn url(sentinels: &[&str]) -> String {
    format!("redis-sentinel://bowline:secret@{}/?master={MASTER_NAME}", sentinels.join(","))
}

/// A client that may wait for a whole failover, also for one that has to be tried twice.
pub(crate) async fn client_at(env: &Env, url: &str) -> bowline::Result<TestClient> {
    env.client_at(url, |config| config.lease(ms(30_000)).retry_timeout(LONG)).await
}

pub(crate) async fn client(env: &Env, servers: &Sentinels) -> TestClient {
    client_at(env, &servers.user_url()).await.unwrap()
}

/// Sentinels that vote for different ones begin again after six seconds.
const LONG: Duration = Duration::from_secs(30);

/// `future`, or a panic when it takes longer than the longest failover.
pub(crate) async fn in_the_end<T>(env: &Env, what: &str, future: impl Future<Output = T>) -> T {
    match select(pin!(future), pin!(env.sleep(LONG))).await {
        Either::Left((output, _)) => output,
        Either::Right(_) => panic!("not within {LONG:?}: {what}"),
    }
}

/// Waits until all connections of so many clients are on the server, and none is on another one that answers.
pub(crate) async fn all_on(env: &Env, servers: &Sentinels, clients: usize, server: usize, others: &[usize]) {
    let elsewhere = || others.iter().any(|&other| !ours(servers.server(other)).is_empty());
    let here = || ours(servers.server(server)).len() == 2 * clients;
    env.eventually("both connections of each client are on the master", async || here() && !elsewhere()).await;
}

/// Whether the server has this very hold, by its token.
pub(crate) fn is_held_at(server: &Server, guard: &LockGuard) -> bool {
    let key = format!("bowline:lock:{{{}}}", guard.name());
    let tokens: Vec<u64> = redis::cmd("HVALS").arg(key).query(&mut server.client()).unwrap();
    tokens == [guard.token().get()]
}

/// Waits until the replicas have all that the master has written so far.
pub(crate) async fn caught_up(env: &Env, servers: &Sentinels, master: usize, replicas: &[usize]) {
    let offset = |server: usize, field: &str| {
        let info: String = redis::cmd("INFO").arg("replication").query(&mut servers.server(server).client()).unwrap();
        info.lines().find_map(|line| line.strip_prefix(field)?.trim().parse::<u64>().ok()).expect("an offset")
    };
    let written = offset(master, "master_repl_offset:");
    env.eventually("the replicas have caught up", async || {
        replicas.iter().all(|&replica| offset(replica, "slave_repl_offset:") >= written)
    })
    .await;
}
