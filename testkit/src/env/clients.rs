//! Clients and connections to the server of a test.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, ConfigBuilder, ConnectOptions, Connection, RedisConnection};

use futures::future::join_all;

use super::super::deployment;
use super::application;
use super::{Counting, Counts, Env, Runtime, TestClient};

impl Env {
    /// A client with a command timeout of 2 s and a retry timeout of 5 s, whose user has no more rights than
    /// docs/acl.md names.
    pub async fn client(&self) -> TestClient {
        self.client_with(|config| config).await
    }

    pub async fn client_with(&self, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        self.client_as(true, configure).await
    }

    /// A client whose user may do everything.
    pub async fn client_with_all_rights(&self, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        self.client_as(false, configure).await
    }

    async fn client_as(&self, limited: bool, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        if let Some(embedded) = &self.inner.embedded {
            let config = configure(test_config()).build().unwrap();
            return self.client_over(embedded.connect(self.executor()), config).await.unwrap();
        }
        let url = if deployment::is_wanted() {
            let deployment = self.deployment();
            if limited { deployment.user_url() } else { deployment.url() }
        } else {
            let server = self.server();
            server.behind(&if limited { server.user_url() } else { server.url() })
        };
        let Some(connect) = application::wanted() else { return self.client_at(&url, configure).await.unwrap() };
        let config = configure(test_config()).build().unwrap();
        connect(self, &url, config).await
    }

    /// A client of another address, such as a proxy's.
    pub async fn client_at(
        &self,
        to: impl Into<ConnectOptions>,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> bowline::Result<TestClient> {
        let config = configure(test_config()).build()?;
        let counts = Arc::new(Counts::default());
        let wrap = |inner| -> Arc<dyn Connection> { Arc::new(Counting { inner, watch: counts.clone() }) };
        let client = match self.inner.runtime {
            #[cfg(feature = "tokio")]
            Runtime::TokioMulti | Runtime::TokioCurrent => {
                bowline::tokio::connect_over(self.executor(), to, config, wrap).await?
            }
            #[cfg(feature = "smol")]
            Runtime::Smol => bowline::smol::connect_over(self.executor(), to, config, wrap).await?,
            #[cfg(feature = "async-std")]
            Runtime::AsyncStd => bowline::async_std::connect_over(self.executor(), to, config, wrap).await?,
        };
        Ok(counted(client, counts).await)
    }

    /// A connection that is not counted, to whichever server this is.
    pub async fn connection(&self, config: &Config) -> Arc<dyn Connection> {
        if let Some(embedded) = &self.inner.embedded {
            return Arc::new(embedded.connect(self.executor()));
        }
        let url = self.url();
        Arc::new(self.open(&url, config).await.unwrap())
    }

    pub(super) async fn client_over(&self, inner: impl Connection, config: Config) -> bowline::Result<TestClient> {
        let counts = Arc::new(Counts::default());
        let connection = Counting { inner, watch: counts.clone() };
        Ok(counted(Client::connect(self.executor(), Arc::new(connection), config).await?, counts).await)
    }

    /// A bare connection, on the sockets of the runtime.
    pub async fn open(&self, to: impl Into<ConnectOptions>, config: &Config) -> bowline::Result<RedisConnection> {
        match self.inner.runtime {
            #[cfg(feature = "tokio")]
            Runtime::TokioMulti | Runtime::TokioCurrent => bowline::tokio::open(self.executor(), to, config).await,
            #[cfg(feature = "smol")]
            Runtime::Smol => bowline::smol::open(self.executor(), to, config).await,
            #[cfg(feature = "async-std")]
            Runtime::AsyncStd => bowline::async_std::open(self.executor(), to, config).await,
        }
    }
}

/// A client whose commands are counted from now on.
async fn counted(client: Client, counts: Arc<Counts>) -> TestClient {
    if deployment::is_wanted() {
        // A cluster's nodes are connected when they are first needed. This does it beforehand, so that requests are
        // sent at once, as with one server.
        let names: Vec<_> = (0..20).map(|n| client.lock(&format!("any {n}"))).collect();
        join_all(names.iter().map(bowline::Lock::inspect)).await;
    }
    counts.reset();
    TestClient { client, counts }
}

fn test_config() -> ConfigBuilder {
    Config::builder().command_timeout(Duration::from_secs(2)).retry_timeout(Duration::from_secs(5))
}
