//! Connecting to one server, to the master that sentinels name, or to a cluster.

use std::pin::pin;
use std::sync::Arc;

use futures::future::select;

use super::RedisConnection;
use super::address_map::AddressMap;
use super::ask::Primaries;
use super::cluster::{Cluster, Seeds};
use super::dial::Dial;
use super::dial::locate::Locate;
use super::failure::Failure;
use super::later::InBackground;
use super::link::Link;
use super::options::ConnectOptions;
use super::sentinel::{self, SentinelConfig, Sentinels};
use super::servers::Servers;
use super::single::Single;
use super::url::target::Target;
use crate::config::Config;
use crate::connection::{Connection, Warning};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::Executor;

/// A primary or a cluster, where to find its links, and the problems of its setup.
type Connected = (Box<dyn Connection>, Primaries, Vec<Warning>);

impl RedisConnection {
    /// Connects, in the background if the configuration says so.
    pub(crate) async fn connect(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        options: ConnectOptions,
        config: &Config,
    ) -> Result<Self> {
        if !config.is_in_background {
            return Self::connect_now(executor, dialer, &options, config).await;
        }
        // The attempts parse it again, with the certificates of their time.
        let target = Servers::of(&options.parts()?)?.to_string();
        let of_attempts = config.clone();
        let attempts = Arc::clone(&executor);
        let later = InBackground::start(&executor, target, config, dialer.seed(), move || {
            let (executor, dialer) = (Arc::clone(&attempts), Arc::clone(&dialer));
            let (options, config) = (options.clone(), of_attempts.clone());
            Box::pin(async move {
                let connection = Self::connect_now(executor, dialer, &options, &config).await?;
                Ok(Box::new(connection) as Box<dyn Connection>)
            })
        });
        Ok(Self { servers: Box::new(later), warnings: Vec::new(), primaries: None })
    }

    /// Connects, logs in and checks the server, within the command timeout, or twice that time for a cluster that the
    /// URL of one of its nodes leads to. A second attempt is made only if the sentinels may name another server by
    /// then.
    async fn connect_now(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        options: &ConnectOptions,
        config: &Config,
    ) -> Result<Self> {
        let seed = dialer.seed();
        let attempt = ConnectAttempt { executor, dialer, config, seed };
        let parts = options.parts()?;
        let (servers, primaries, mut warnings) = match Servers::of(&parts)? {
            Servers::One(target) => attempt.connect_to_server(target, parts.announced).await?,
            Servers::Sentinels(setup) => attempt.connect_by_sentinels(setup).await?,
            Servers::Cluster(seeds) => attempt.connect_to_cluster(seeds).await?,
        };
        warnings.extend(slow_timeout(config));
        Ok(Self { servers, warnings, primaries: Some(primaries) })
    }
}

/// What every connection of one attempt is made with.
struct ConnectAttempt<'a> {
    executor: Arc<dyn Executor>,
    dialer: Arc<dyn Dial>,
    config: &'a Config,
    seed: u64,
}

impl ConnectAttempt<'_> {
    fn link(&self, locate: Arc<dyn Locate>) -> Arc<Link> {
        let link = Link::new(self.executor.clone(), self.dialer.clone(), locate, self.config, self.seed);
        Arc::new(link.dialling_ahead())
    }

    async fn connect_by_sentinels(self, setup: SentinelConfig) -> Result<Connected> {
        let (executor, dialer) = (self.executor.clone(), self.dialer.clone());
        let sentinels = Arc::new(Sentinels::new(executor, dialer, setup, self.config, self.seed));
        let link = self.link(sentinels.clone());
        link.executor.spawn(Box::pin(watch(sentinels.clone(), link.clone())));
        let (single, warnings) =
            Single::connect(link.clone()).await.map_err(|failure| self.not_connected(failure, &*sentinels))?;
        Ok((Box::new(single), Primaries::One(link), warnings))
    }

    /// `announced`: for a server that is a node of a cluster.
    async fn connect_to_server(self, target: Target, announced: AddressMap) -> Result<Connected> {
        let target = Arc::new(target);
        let link = self.link(Arc::new(target.clone()));
        match Single::connect(link.clone()).await {
            Ok((single, warnings)) => Ok((Box::new(single), Primaries::One(link), warnings)),
            Err(Some(Failure::Cluster)) => self.connect_to_cluster(Seeds::of(&target, announced)?).await,
            Err(failure) => Err(self.not_connected(failure, &target)),
        }
    }

    async fn connect_to_cluster(self, seeds: Seeds) -> Result<Connected> {
        let (cluster, warnings) = Cluster::connect(self.executor, self.dialer, seeds, self.config, self.seed).await?;
        let masters = cluster.masters();
        Ok((Box::new(cluster), Primaries::Several(masters), warnings))
    }

    /// `None`: the runtime was shut down.
    fn not_connected(&self, failure: Option<Failure>, target: &impl ToString) -> Error {
        match failure {
            Some(failure) => failure.into_error(&target.to_string(), &self.config.prefix),
            None => Error::new(ErrorKind::Closed, "connect"),
        }
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
