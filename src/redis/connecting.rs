//! Connecting to one server, to the master that sentinels name, or to a cluster.

use std::pin::pin;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::{BoxFuture, select};

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
        Ok(Self { servers: Box::new(later), warnings: Arc::default(), primaries: None })
    }

    /// Connects as [`connect`](Self::connect) does. For a single server, returns before the login is answered.
    pub(crate) async fn begin(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        options: ConnectOptions,
        config: &Config,
    ) -> Result<Begun<'_>> {
        if config.is_in_background {
            return Self::connect(executor, dialer, options, config).await.map(Begun::Connected);
        }
        let (attempt, parts) = (ConnectAttempt::new(executor, dialer, config), options.parts()?);
        match Servers::of(&parts)? {
            Servers::One(target) => {
                let target = Arc::new(target);
                let link = attempt.link(Arc::new(target.clone())).taking_calls_early();
                let (connection, made) = attempt.begin_at_server(Arc::new(link), target, parts.announced);
                Ok(Begun::Early(connection, made.boxed()))
            }
            servers => attempt.connect(servers, parts.announced).await.map(Begun::Connected),
        }
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
        let attempt = ConnectAttempt::new(executor, dialer, config);
        let parts = options.parts()?;
        attempt.connect(Servers::of(&parts)?, parts.announced).await
    }

    fn over(servers: impl Connection, primaries: Primaries) -> Self {
        Self { servers: Box::new(servers), warnings: Arc::default(), primaries: Some(primaries) }
    }
}

/// The result of [`RedisConnection::begin`].
pub(crate) enum Begun<'a> {
    Connected(RedisConnection),
    /// A connection that is being made, and what becomes of it. What is sent over it now is sent behind its login.
    Early(RedisConnection, BoxFuture<'a, Result<Made>>),
}

/// What has become of a connection that was used before its login was answered.
pub(crate) enum Made {
    /// It is connected, and what was sent early counts.
    Early,
    /// It is connected, but what was sent early was sent over a socket that was given up, perhaps as another user.
    Anew,
    /// Another connection takes its place, because the server is a node of a cluster.
    Elsewhere(RedisConnection),
}

/// What every connection of one attempt is made with.
struct ConnectAttempt<'a> {
    executor: Arc<dyn Executor>,
    dialer: Arc<dyn Dial>,
    config: &'a Config,
    seed: u64,
}

impl<'a> ConnectAttempt<'a> {
    fn new(executor: Arc<dyn Executor>, dialer: Arc<dyn Dial>, config: &'a Config) -> Self {
        let seed = dialer.seed();
        Self { executor, dialer, config, seed }
    }

    fn link(&self, locate: Arc<dyn Locate>) -> Link {
        Link::new(self.executor.clone(), self.dialer.clone(), locate, self.config, self.seed)
    }

    async fn connect(self, servers: Servers, announced: AddressMap) -> Result<RedisConnection> {
        match servers {
            Servers::One(target) => self.connect_to_server(target, announced).await,
            Servers::Sentinels(setup) => self.connect_by_sentinels(setup).await,
            Servers::Cluster(seeds) => self.connect_to_cluster(seeds).await,
        }
    }

    async fn connect_by_sentinels(self, setup: SentinelConfig) -> Result<RedisConnection> {
        let (executor, dialer) = (self.executor.clone(), self.dialer.clone());
        let sentinels = Arc::new(Sentinels::new(executor, dialer, setup, self.config, self.seed));
        let link = Arc::new(self.link(sentinels.clone()).dialling_ahead());
        link.executor.spawn(Box::pin(watch(sentinels.clone(), link.clone())));
        let (single, warnings) =
            Single::connect(link.clone()).await.map_err(|failure| self.not_connected(failure, &*sentinels))?;
        let connection = RedisConnection::over(single, Primaries::One(link));
        record(&connection.warnings, warnings, self.config);
        Ok(connection)
    }

    /// `announced`: for a server that is a node of a cluster.
    async fn connect_to_server(self, target: Target, announced: AddressMap) -> Result<RedisConnection> {
        let target = Arc::new(target);
        let link = Arc::new(self.link(Arc::new(target.clone())).dialling_ahead());
        let (connection, made) = self.begin_at_server(link, target, announced);
        Ok(match made.await? {
            Made::Early | Made::Anew => connection,
            Made::Elsewhere(cluster) => cluster,
        })
    }

    /// Returns the connection that is being made, and what becomes of it.
    fn begin_at_server(
        self,
        link: Arc<Link>,
        target: Arc<Target>,
        announced: AddressMap,
    ) -> (RedisConnection, impl Future<Output = Result<Made>> + Send + 'a) {
        let (single, connected) = Single::begin(link.clone());
        let connection = RedisConnection::over(single, Primaries::One(link.clone()));
        let found = Arc::clone(&connection.warnings);
        let made = async move {
            match connected.await {
                Ok(warnings) => {
                    record(&found, warnings, self.config);
                    Ok(if link.is_current(1) { Made::Early } else { Made::Anew })
                }
                Err(Some(Failure::Cluster)) => {
                    self.connect_to_cluster(Seeds::of(&target, announced)?).await.map(Made::Elsewhere)
                }
                Err(failure) => Err(self.not_connected(failure, &target)),
            }
        };
        (connection, made)
    }

    async fn connect_to_cluster(self, seeds: Seeds) -> Result<RedisConnection> {
        let (cluster, warnings) = Cluster::connect(self.executor, self.dialer, seeds, self.config, self.seed).await?;
        let masters = cluster.masters();
        let connection = RedisConnection::over(cluster, Primaries::Several(masters));
        record(&connection.warnings, warnings, self.config);
        Ok(connection)
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

/// Records what was found when connecting.
fn record(found: &OnceLock<Vec<Warning>>, warnings: Vec<Warning>, config: &Config) {
    found.get_or_init(|| warnings.into_iter().chain(slow_timeout(config)).collect());
}

/// Warns if half of a lease does not leave time for two attempts at a renewal.
fn slow_timeout(config: &Config) -> Option<Warning> {
    let Config { command_timeout, lease, .. } = *config;
    (command_timeout > lease / 2).then_some(Warning::SlowTimeout { command_timeout, lease })
}

#[cfg(test)]
mod tests;
