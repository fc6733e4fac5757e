//! Whole deployments that the tests of a suite use one after the other: `BOWLINE_CLUSTER=full` is a cluster of three
//! masters with a replica each, `BOWLINE_SENTINEL=full` a master, two replicas and three sentinels. The user of the
//! cluster may use shard channels with `BOWLINE_SHARDED=1` only.
//!
//! A test has a deployment for itself, empties it at the end and hands it on. One that fails takes its deployment with
//! it. So as many of them run as there are tests at a time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{FromRedisValue, RedisResult, Value};

use super::cluster::Cluster;
use super::sentinels::Sentinels;
use super::server::Server;

/// The process may end with some of them here: the servers end with it.
static FREE: Mutex<Vec<Deployment>> = Mutex::new(Vec::new());

pub enum Deployment {
    Cluster(Cluster),
    Sentinels(Sentinels),
}

/// Whether tests that ask for no server of their own run on a whole deployment.
pub fn is_wanted() -> bool {
    is_full("BOWLINE_CLUSTER") || is_full("BOWLINE_SENTINEL")
}

fn is_full(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "full")
}

impl Deployment {
    /// One that no test uses, or else a new one.
    pub fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| {
            // A long timeout, so that no failover begins on a busy machine.
            if is_full("BOWLINE_CLUSTER") {
                let cluster = Cluster::start_with(3, 3, &["--cluster-node-timeout", "15000"]);
                if std::env::var_os("BOWLINE_SHARDED").is_none() {
                    cluster.nodes().iter().for_each(Server::forbid_shard_channels);
                }
                Self::Cluster(cluster)
            } else {
                Self::Sentinels(Sentinels::start_with(Duration::from_secs(60), &[]))
            }
        })
    }

    /// For the next test. Fails if a key without a TTL was seen.
    pub fn hand_on(self) {
        self.masters().for_each(|server| redis::cmd("FLUSHALL").exec(&mut server.client()).unwrap());
        self.servers().iter().for_each(Server::check);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Of a user who may do everything.
    pub fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinels(sentinels) => sentinels.url(),
        }
    }

    /// As the user whose rights docs/acl.md names, and who has no others.
    pub fn user_url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.user_url(),
            Self::Sentinels(sentinels) => sentinels.user_url(),
        }
    }

    pub fn servers(&self) -> &[Server] {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::Sentinels(sentinels) => sentinels.servers(),
        }
    }

    /// Nothing fails over, so these are the first ones.
    fn masters(&self) -> impl Iterator<Item = &Server> {
        let masters = match self {
            Self::Cluster(_) => 3,
            Self::Sentinels(_) => 1,
        };
        self.servers().iter().take(masters)
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.masters().flat_map(Server::keys).collect();
        keys.sort();
        keys
    }

    /// Runs a command on the master that has its keys, or on all masters: numbers are added up, and lists joined.
    pub fn run<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let mut all = Value::Nil;
        for server in self.masters() {
            let answer: RedisResult<Value> = redis::cmd(command[0]).arg(&command[1..]).query(&mut server.client());
            all = match (all, answer) {
                (all, Err(error)) if error.code() == Some("MOVED") => all,
                (Value::Int(sum), Ok(Value::Int(answer))) => Value::Int(sum + answer),
                (Value::Array(mut list), Ok(Value::Array(answer))) => {
                    list.extend(answer);
                    Value::Array(list)
                }
                (_, answer) => answer.unwrap(),
            };
        }
        T::from_redis_value(all).unwrap()
    }

    /// How many subscriptions a channel has at all servers, as a channel or as a shard channel.
    pub fn listeners(&self, channel: &str) -> i64 {
        let count = |server: &Server, kind: &str| {
            redis::cmd("PUBSUB").arg(kind).arg(channel).query::<(String, i64)>(&mut server.client())
        };
        let at = |server| {
            // Older servers have no shard channels.
            count(server, "NUMSUB").unwrap().1 + count(server, "SHARDNUMSUB").map_or(0, |(_, count)| count)
        };
        self.servers().iter().map(at).sum()
    }

    pub fn ttl_ms(&self, key: &str) -> i64 {
        self.run(&["PTTL", key])
    }

    pub fn allow_forever(&self, key: &str) {
        self.servers().iter().for_each(|server| server.allow_forever(key));
    }
}
