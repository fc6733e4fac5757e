//! Clients of each runtime, and servers of each deployment that share their users.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, ConnectOptions, RedisConnection, Result};
use futures::future::BoxFuture;

use crate::support::adapters::{BOUND, admin};
use crate::support::cluster::Cluster;
use crate::support::server::sentinel::{MASTER_NAME, Watched};
use crate::support::server::{
    Server, documented_rights, documented_rights_in_a_cluster, documented_rights_to_shard_channels,
};

pub(crate) type Connect = fn(ConnectOptions, Config) -> BoxFuture<'static, Result<Client>>;
pub(crate) type Open = fn(ConnectOptions, Config) -> BoxFuture<'static, Result<RedisConnection>>;

pub(crate) fn on_each_runtime(test: impl Fn(Connect, Open)) {
    #[cfg(feature = "tokio")]
    {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        test(
            |options, config| Box::pin(bowline::tokio::connect_with(options, config)),
            |options, config| {
                Box::pin(async move {
                    let executor = Arc::new(bowline::tokio::Tokio::current().unwrap());
                    bowline::tokio::open(executor, options, &config).await
                })
            },
        );
    }
    #[cfg(feature = "smol")]
    test(
        |options, config| Box::pin(bowline::smol::connect_with(options, config)),
        |options, config| {
            Box::pin(async move { bowline::smol::open(Arc::new(bowline::smol::Smol), options, &config).await })
        },
    );
    #[cfg(feature = "async-std")]
    test(
        |options, config| Box::pin(bowline::async_std::connect_with(options, config)),
        |options, config| {
            Box::pin(
                async move { bowline::async_std::open(Arc::new(bowline::async_std::AsyncStd), options, &config).await },
            )
        },
    );
}

/// Servers that share their users, and the URL that leads to them.
pub(crate) struct Deployed<'a> {
    pub(crate) servers: Vec<&'a Server>,
    pub(crate) rights: Vec<&'static str>,
    pub(crate) url: String,
}

impl Deployed<'_> {
    pub(crate) fn set_user(&self, user: &str, password: &str) {
        let password = format!(">{password}");
        let words = ["ACL", "SETUSER", user, "reset", "on", &password];
        // The last keys are those of the calls that a test makes itself.
        self.all(&[&words[..], &self.rights, &["~test:*", "&test:inbox:*"]].concat());
    }

    pub(crate) fn all(&self, command: &[&str]) {
        for server in &self.servers {
            admin(server, command);
        }
    }

    /// The lines of `CLIENT LIST` of the connections of this user, on all servers.
    pub(crate) fn connections(&self, user: &str) -> Vec<String> {
        let list =
            |server: &&Server| -> String { redis::cmd("CLIENT").arg("LIST").query(&mut server.client()).unwrap() };
        let lists: String = self.servers.iter().map(list).collect();
        lists.lines().filter(|line| line.contains(&format!(" user={user} "))).map(str::to_owned).collect()
    }
}

pub(crate) fn on_each_deployment(test: impl Fn(&Deployed<'_>)) {
    let server = Server::start();
    test(&Deployed {
        servers: vec![&server],
        rights: documented_rights(),
        url: format!("redis://127.0.0.1:{}", server.port()),
    });
    let watched = Watched::alone(server.port());
    let sentinel = watched.by_a_sentinel();
    let url = format!("redis-sentinel://127.0.0.1:{}/?master={MASTER_NAME}", sentinel.port());
    test(&Deployed { servers: vec![&server], rights: documented_rights(), url });
    let cluster = Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"]);
    let rights =
        [documented_rights(), documented_rights_in_a_cluster(), documented_rights_to_shard_channels()].concat();
    let url = format!("redis-cluster://127.0.0.1:{}", cluster.node(0).port());
    test(&Deployed { servers: cluster.nodes().iter().collect(), rights, url });
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let tries = BOUND.as_millis() / 20;
    assert!(
        (0..tries).any(|_| is_so() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }),
        "never: {what}"
    );
}

pub(crate) fn config() -> Config {
    Config::builder().command_timeout(BOUND / 4).build().unwrap()
}
