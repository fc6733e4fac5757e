//! What the tests look at.

use std::time::Duration;

use bowline::LockGuard;

use crate::support::adapters::ours;
use crate::support::env::{Env, TestClient};
use crate::support::sentinels::Sentinels;
use crate::support::server::Server;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A client that may wait for a whole failover, as a user with the documented rights.
pub(crate) async fn client(env: &Env, servers: &Sentinels) -> TestClient {
    env.client_at(&servers.user_url(), |config| config.lease(ms(10_000)).retry_timeout(ms(20_000))).await.unwrap()
}

/// Waits until all connections of so many clients are on the server, and none is on another one that answers.
pub(crate) async fn all_on(env: &Env, servers: &Sentinels, clients: usize, server: usize, others: &[usize]) {
    let elsewhere = || others.iter().any(|&other| !ours(servers.server(other)).is_empty());
    let here = || ours(servers.server(server)).len() == 2 * clients;
    env.eventually("both connections of each client are on the master", async || here() && !elsewhere()).await;
}

/// The token of the hold that the server has.
pub(crate) fn stored_token(server: &Server, name: &str) -> Option<u64> {
    redis::cmd("HGET").arg(format!("bowline:lock:{{{name}}}")).arg("token").query(&mut server.client()).unwrap()
}

pub(crate) fn is_held_at(server: &Server, guard: &LockGuard) -> bool {
    stored_token(server, guard.name()) == Some(guard.token().get())
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
