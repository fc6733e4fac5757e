//! Connections of an application, in place of bowline's own: `BOWLINE_CONNECTION=manager`, `cluster` or `fred`.

use bowline::Config;

use super::{Env, TestClient};

#[derive(Clone, Copy)]
pub(super) enum Application {
    #[cfg(feature = "redis-1")]
    Manager,
    #[cfg(feature = "redis-1")]
    Cluster,
    #[cfg(feature = "fred")]
    Fred,
}

impl Application {
    /// `None`: the tests use bowline's own connections.
    pub(super) fn wanted() -> Option<Self> {
        let wanted = std::env::var("BOWLINE_CONNECTION").ok()?;
        Some(match &*wanted {
            #[cfg(feature = "redis-1")]
            "manager" => Self::Manager,
            #[cfg(feature = "redis-1")]
            "cluster" => Self::Cluster,
            #[cfg(feature = "fred")]
            "fred" => Self::Fred,
            _ => panic!("BOWLINE_CONNECTION={wanted}: not one of manager, cluster and fred, or without its feature"),
        })
    }
}

impl Env {
    /// A client over the connection of an application, which leads to `url`.
    pub(super) async fn client_of(&self, application: Application, url: &str, config: Config) -> TestClient {
        let executor = self.executor();
        let client = match application {
            #[cfg(feature = "redis-1")]
            Application::Manager => {
                let client = redis::Client::open(url).unwrap();
                let manager = redis::aio::ConnectionManager::new(client.clone()).await.unwrap();
                let connection = bowline::redis_1::from_manager(executor, manager, client, &config).await.unwrap();
                self.client_over(connection, config).await
            }
            #[cfg(feature = "redis-1")]
            Application::Cluster => {
                let first = url.split(',').next().unwrap();
                let node = first.replace("redis-cluster://", "redis://");
                let cluster = redis::cluster::ClusterClientBuilder::new([&*node]).retries(0).build().unwrap();
                let cluster = cluster.get_async_connection().await.unwrap();
                let subscribers = vec![redis::Client::open(node).unwrap()];
                let connection = bowline::redis_1::from_cluster(executor, cluster, subscribers, &config).await.unwrap();
                self.client_over(connection, config).await
            }
            #[cfg(feature = "fred")]
            Application::Fred => {
                use fred::interfaces::ClientLike;
                use fred::types::config::ReconnectPolicy;

                let settings = fred::types::config::Config::from_url(url).unwrap();
                let policy = ReconnectPolicy::new_constant(0, 20);
                let client = fred::clients::Client::new(settings, None, None, Some(policy));
                client.init().await.unwrap();
                let connection = bowline_fred::from_client(executor, client, &config).unwrap();
                self.client_over(connection, config).await
            }
        };
        client.unwrap()
    }
}
