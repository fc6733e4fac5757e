//! Connecting to one server, to the master that sentinels name, or to a cluster.

use std::pin::pin;
use std::sync::Arc;

use futures::future::select;

use super::RedisConnection;
use super::cluster::{Cluster, Seeds};
use super::dial::Dial;
use super::dial::locate::Locate;
use super::failure::Failure;
use super::later::InBackground;
use super::link::Link;
use super::sentinel::{self, SentinelConfig, Sentinels};
use super::servers::Servers;
use super::single::Single;
use super::url::target::Target;
use crate::config::Config;
use crate::connection::{Connection, Warning};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Executor;

/// A primary or a cluster, and the problems of its setup.
type Connected = (Box<dyn Connection>, Vec<Warning>);

impl RedisConnection {
    /// Connects, in the background if the configuration says so.
    pub(crate) async fn connect(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        url: &str,
        config: &Config,
    ) -> Result<Self> {
        if !config.is_in_background {
            return Self::connect_now(executor, dialer, url, config).await;
        }
        // The attempts parse it again, with the certificates of their time.
        let target = Servers::parse(url)?.to_string();
        let (url, of_attempts) = (url.to_owned(), config.clone());
        let attempts = Arc::clone(&executor);
        let later = InBackground::start(&executor, target, config, dialer.seed(), move || {
            let (executor, dialer) = (Arc::clone(&attempts), Arc::clone(&dialer));
            let (url, config) = (url.clone(), of_attempts.clone());
            Box::pin(async move {
                let connection = Self::connect_now(executor, dialer, &url, &config).await?;
                Ok(Box::new(connection) as Box<dyn Connection>)
            })
        });
        Ok(Self { servers: Box::new(later), warnings: Vec::new() })
    }

    /// Connects, logs in and checks the server, within the command timeout. A second attempt is made only if the
    /// sentinels may name another server by then.
    async fn connect_now(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        url: &str,
        config: &Config,
    ) -> Result<Self> {
        let (servers, mut warnings) = match Servers::parse(url)? {
            Servers::One(target) => Self::connect_to_server(executor, dialer, target, config).await?,
            Servers::Sentinels(setup) => Self::connect_by_sentinels(executor, dialer, setup, config).await?,
            Servers::Cluster(seeds) => Self::connect_to_cluster(executor, dialer, seeds, config).await?,
        };
        warnings.extend(slow_timeout(config));
        Ok(Self { servers, warnings })
    }

    async fn connect_by_sentinels(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        setup: SentinelConfig,
        config: &Config,
    ) -> Result<Connected> {
        let seed = dialer.seed();
        let sentinels = Arc::new(Sentinels::new(Arc::clone(&executor), Arc::clone(&dialer), setup, config, seed));
        let link = Arc::new(Link::new(executor, dialer, sentinels.clone(), config, seed));
        link.executor.spawn(Box::pin(watch(Arc::clone(&sentinels), Arc::clone(&link))));
        let connected = Single::connect(link).await;
        let (single, warnings) = connected.map_err(|failure| not_connected(failure, &sentinels.to_string(), config))?;
        Ok((Box::new(single), warnings))
    }

    async fn connect_to_server(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        target: Target,
        config: &Config,
    ) -> Result<Connected> {
        let target = Arc::new(target);
        let locate: Arc<dyn Locate> = Arc::new(Arc::clone(&target));
        let seed = dialer.seed();
        let link = Link::new(Arc::clone(&executor), Arc::clone(&dialer), locate, config, seed);
        match Single::connect(Arc::new(link)).await {
            Ok((single, warnings)) => Ok((Box::new(single), warnings)),
            Err(Some(Failure::Cluster)) => {
                Self::connect_to_cluster(executor, dialer, Seeds::of(&target)?, config).await
            }
            Err(failure) => Err(not_connected(failure, &target.to_string(), config)),
        }
    }

    async fn connect_to_cluster(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        seeds: Seeds,
        config: &Config,
    ) -> Result<Connected> {
        let seed = dialer.seed();
        let (cluster, warnings) = Cluster::connect(executor, dialer, seeds, config, seed).await?;
        Ok((Box::new(cluster), warnings))
    }
}

/// `None`: the runtime was shut down.
fn not_connected(failure: Option<Failure>, target: &str, config: &Config) -> Error {
    match failure {
        Some(failure) => failure.into_error(target, &config.prefix),
        None => Error::new(ErrorKind::Closed, "connect"),
    }
}

/// Asks the sentinels regularly, until the connection is closed.
async fn watch(sentinels: Arc<Sentinels>, link: Arc<Link>) {
    select(pin!(sentinel::watch(&sentinels)), pin!(link.closed())).await;
}

/// Warns if half of a lease does not leave time for two attempts at a renewal.
fn slow_timeout(config: &Config) -> Option<Warning> {
    let Config { command_timeout, lease, .. } = *config;
    (command_timeout > lease / 2).then_some(Warning::SlowTimeout { command_timeout, lease })
}
