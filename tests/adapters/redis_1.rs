//! Connections of the application, by redis-rs 1: what they promise passes the checks, and what they cannot is named.

mod clients;
mod cluster;

use std::sync::Arc;
use std::time::Duration;

use bowline::redis_1::{self, ApplicationConnection};
use bowline::testing::{Clause, Relay, Report, check_connection};
use bowline::{Call, Config, Connection, Executor, Notice, Script};
use futures::StreamExt;
use redis::aio::ConnectionManager;

use crate::support::adapters::on_tokio;
use crate::support::server::Server;

const TIMEOUT: Duration = Duration::from_secs(3);

fn config() -> Config {
    Config::builder().command_timeout(TIMEOUT).build().unwrap()
}

fn clauses<'a>(found: impl Iterator<Item = (Clause, &'a str)>) -> Vec<Clause> {
    found.map(|(clause, _)| clause).collect()
}

async fn check<F, Fut>(executor: Arc<dyn Executor>, connect: impl Fn(redis::Client) -> F) -> Result<Report, Report>
where
    F: Fn() -> Fut + Send + Sync,
    Fut: Future<Output = Result<ApplicationConnection, String>> + Send,
{
    let server = Server::start();
    let relay = Relay::start(("127.0.0.1", server.port())).unwrap();
    let client = redis::Client::open(format!("redis://{}/", relay.address())).unwrap();
    // Also the wait for what does not come back.
    let limit = Duration::from_secs(10);
    check_connection(executor, connect(client)).disturb(&relay).command_timeout(TIMEOUT).limit(limit).await
}

async fn by_manager(executor: Arc<dyn Executor>, client: redis::Client) -> Result<ApplicationConnection, String> {
    let manager = ConnectionManager::new(client.clone()).await.map_err(|error| error.to_string())?;
    redis_1::from_manager(executor, manager, client, &config()).await.map_err(|error| error.to_string())
}

async fn by_multiplexed(executor: Arc<dyn Executor>, client: redis::Client) -> Result<ApplicationConnection, String> {
    let connection = client.get_multiplexed_async_connection().await.map_err(|error| error.to_string())?;
    redis_1::from_multiplexed(executor, connection, client, &config()).await.map_err(|error| error.to_string())
}

#[test]
fn a_manager_keeps_the_contract() {
    on_tokio(|executor| async move {
        let connect = |client: redis::Client| {
            let executor = executor.clone();
            move || by_manager(executor.clone(), client.clone())
        };
        let report = check(executor.clone(), connect).await.unwrap();
        assert_eq!(clauses(report.not_checked()), [Clause::WithoutRuntime]);
        assert_eq!(report.kept().count(), 27);
    });
}

#[test]
fn a_multiplexed_connection_does_not_come_back() {
    on_tokio(|executor| async move {
        let connect = |client: redis::Client| {
            let executor = executor.clone();
            move || by_multiplexed(executor.clone(), client.clone())
        };
        let report = check(executor.clone(), connect).await.unwrap_err();
        assert_eq!(clauses(report.failed()), [Clause::Reconnects, Clause::Restored]);
        assert_eq!(clauses(report.not_checked()), [Clause::Gaps, Clause::BothGaps, Clause::WithoutRuntime]);
    });
}

/// The gap is reported, and then the server has no subscriber any more.
#[test]
fn a_lost_multiplexed_connection_tells_a_gap() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let redis = redis::Client::open(server.url()).unwrap();
        let connection = by_multiplexed(executor.clone(), redis).await.unwrap();
        let mut notices = connection.subscribe("bowline:inbox:test").await.unwrap();
        let mut admin = server.client();
        redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]).exec(&mut admin).unwrap();
        let call = Call::new(Script::all().next().unwrap(), &["a"], &[]);
        assert!(connection.run(call).await.is_err());
        assert_eq!(notices.next().await, Some(Notice::Gap));
        let mut subscribers = u64::MAX;
        while subscribers > 0 {
            let numsub = redis::cmd("PUBSUB").arg(&["NUMSUB", "bowline:inbox:test"]).query(&mut admin).unwrap();
            let (_, number): (String, u64) = numsub;
            subscribers = number;
            executor.sleep(Duration::from_millis(5)).await;
        }
        connection.close();
    });
}
