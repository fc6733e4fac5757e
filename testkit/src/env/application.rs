//! Connections of an application, in place of bowline's own: `BOWLINE_CONNECTION=manager`, `cluster` or `fred`.

use bowline::Config;
use futures::future::BoxFuture;

use super::{Env, TestClient};

/// Makes a client over the connection of an application, which leads to a URL.
pub(super) type Connect = for<'a> fn(&'a Env, &'a str, Config) -> BoxFuture<'a, TestClient>;

/// `None`: the tests use bowline's own connections.
pub(super) fn wanted() -> Option<Connect> {
    let wanted = std::env::var("BOWLINE_CONNECTION").ok()?;
    match &*wanted {
        #[cfg(feature = "redis-1")]
        "manager" => Some(|env, url, config| Box::pin(manager(env, url, config))),
        #[cfg(feature = "redis-1")]
        "cluster" => Some(|env, url, config| Box::pin(cluster(env, url, config))),
        #[cfg(feature = "fred")]
        "fred" => Some(|env, url, config| Box::pin(fred(env, url, config))),
        _ => panic!("BOWLINE_CONNECTION={wanted}: not one of manager, cluster and fred, or without its feature"),
    }
}

#[cfg(feature = "redis-1")]
async fn manager(env: &Env, url: &str, config: Config) -> TestClient {
    let client = redis::Client::open(url).unwrap();
    let manager = redis::aio::ConnectionManager::new(client.clone()).await.unwrap();
    let connection = bowline::redis_1::from_manager(env.executor(), manager, client, &config).await.unwrap();
    env.client_over(connection, config).await.unwrap()
}

#[cfg(feature = "redis-1")]
async fn cluster(env: &Env, url: &str, config: Config) -> TestClient {
    let first = url.split(',').next().unwrap();
    let node = first.replace("redis-cluster://", "redis://");
    let cluster = redis::cluster::ClusterClientBuilder::new([&*node]).retries(0).build().unwrap();
    let cluster = cluster.get_async_connection().await.unwrap();
    let subscribers = vec![redis::Client::open(node).unwrap()];
    let connection = bowline::redis_1::from_cluster(env.executor(), cluster, subscribers, &config).await.unwrap();
    env.client_over(connection, config).await.unwrap()
}

#[cfg(feature = "fred")]
async fn fred(env: &Env, url: &str, config: Config) -> TestClient {
    use fred::interfaces::ClientLike;
    use fred::types::config::ReconnectPolicy;

    let settings = fred::types::config::Config::from_url(url).unwrap();
    let policy = ReconnectPolicy::new_constant(0, 20);
    let client = fred::clients::Client::new(settings, None, None, Some(policy));
    client.init().await.unwrap();
    let connection = bowline_fred::from_client(env.executor(), client, &config).unwrap();
    env.client_over(connection, config).await.unwrap()
}
