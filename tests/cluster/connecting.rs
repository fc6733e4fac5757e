//! URLs that lead to a cluster, and those that do not.

use bowline::{Config, ErrorKind};

use crate::scene::user;
use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::support::server::Server;
use crate::tests;

tests! {
    every_url_of_a_cluster_leads_to_it,
    what_is_wrong_with_a_url_is_said,
    announced_addresses_are_translated,
}

async fn every_url_of_a_cluster_leads_to_it(env: Env) {
    let cluster = Cluster::start(2, 1);
    let (first, replica) = (cluster.node(0), cluster.node(2));
    let dead = "127.0.0.1:1";
    let urls = [
        cluster.url(),
        cluster.user_url(),
        format!("redis-cluster://{dead},127.0.0.1:{}", first.port()),
        user(&first.url()),
        replica.url(),
    ];
    for url in urls {
        let client = env.client_at(&url, |config| config).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        for n in 0..10 {
            client.lock(&format!("name:{n}")).lock().await.unwrap().release().await.unwrap();
        }
        client.close().await;
    }
}

async fn what_is_wrong_with_a_url_is_said(env: Env) {
    let cluster = Cluster::start(1, 0);
    let server = Server::start();
    let node = cluster.node(0);
    let error = async |url: &str| env.open(url, &Config::default()).await.err().unwrap_or_else(|| panic!("{url}"));
    for (url, kind, words) in [
        ("redis-cluster://127.0.0.1:1".to_owned(), ErrorKind::Unavailable, "connection refused"),
        (format!("redis-cluster://127.0.0.1:{}", server.port()), ErrorKind::Unsupported, "use redis://"),
        (format!("redis-cluster://127.0.0.1:{}/1", node.port()), ErrorKind::InvalidInput, "database 0"),
        (format!("redis://127.0.0.1:{}/1", node.port()), ErrorKind::InvalidInput, ""),
        (cluster.user_url().replace("secret", "wrong"), ErrorKind::Denied, "password is wrong"),
        ("redis-cluster://".to_owned(), ErrorKind::InvalidInput, "names at least one node"),
    ] {
        let error = error(&url).await;
        assert_eq!(error.kind(), kind, "{url}: {error}");
        assert!(format!("{error}").contains(words), "{url}: {error}");
    }
}

/// The node announces an address at which it does not listen.
async fn announced_addresses_are_translated(env: Env) {
    let cluster = Cluster::start_with(1, 0, &["--cluster-announce-ip", "127.0.0.9"]);
    let url = cluster.user_url();
    let listens = |host: &str, port: u16| {
        assert_eq!(host, "127.0.0.9");
        ("127.0.0.1".to_owned(), port)
    };
    let options = bowline::ConnectOptions::new(&url).addresses(listens);
    let client = env.client_at(options, |config| config).await.unwrap();
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    client.close().await;
    let short = |config: bowline::ConfigBuilder| config.command_timeout(std::time::Duration::from_millis(300));
    let error = env.client_at(&url, short).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
