//! bowline over clients of fred, with real servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

mod clients;
mod conformance;
mod interruptions;
mod refused;
mod sentinels;

use std::sync::Arc;
use std::time::Duration;

use bowline::tokio::Tokio;
use bowline::{Client, Config, Executor};
use bowline_fred::{FredConnection, from_client};
use bowline_testkit::adapters::{BOUND, admin, bounded, hand_over, on_tokio};
use bowline_testkit::server::Server;
use fred::interfaces::ClientLike;
use fred::types::RespVersion;
use fred::types::config::{Config as FredConfig, ReconnectPolicy, ServerConfig};

const TIMEOUT: Duration = Duration::from_secs(5);

fn config() -> Config {
    config_within(TIMEOUT)
}

fn config_within(timeout: Duration) -> Config {
    Config::builder().command_timeout(timeout).build().unwrap()
}

fn fred_config(server: ServerConfig) -> FredConfig {
    FredConfig { server, ..FredConfig::default() }
}

fn centralized(port: u16) -> FredConfig {
    fred_config(ServerConfig::new_centralized("127.0.0.1", port))
}

/// Its commands have three attempts, as fred has it by default.
fn unconnected(config: FredConfig) -> fred::clients::Client {
    fred::clients::Client::new(config, None, None, Some(ReconnectPolicy::new_constant(0, 20)))
}

/// The client of an application.
async fn application(config: FredConfig) -> fred::clients::Client {
    let client = unconnected(config);
    client.init().await.unwrap();
    client
}

async fn connection(executor: &Arc<dyn Executor>, config: FredConfig) -> FredConnection {
    connection_within(TIMEOUT, executor, config).await
}

async fn connection_within(timeout: Duration, executor: &Arc<dyn Executor>, config: FredConfig) -> FredConnection {
    from_client(executor.clone(), application(config).await, &config_within(timeout)).unwrap()
}

async fn client(executor: &Arc<dyn Executor>, config: FredConfig) -> Client {
    let connection = connection(executor, config).await;
    Client::connect(executor.clone(), Arc::new(connection), self::config()).await.unwrap()
}

/// Looks again and again until `condition` holds.
async fn eventually(executor: &Arc<dyn Executor>, what: &str, mut condition: impl FnMut() -> bool) {
    let start = executor.now();
    while !condition() {
        assert!(executor.now() - start < BOUND / 2, "never: {what}");
        executor.sleep(Duration::from_millis(5)).await;
    }
}
