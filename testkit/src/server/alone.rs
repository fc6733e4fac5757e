//! A cluster of one node.

use std::thread;
use std::time::{Duration, Instant};

use super::process::free_cluster_port;
use super::{Server, documented_rights_to_shard_channels};

const DEADLINE: Duration = Duration::from_secs(20);

impl Server {
    /// Whether it knows shard channels.
    pub fn has_shard_channels(&self) -> bool {
        redis::cmd("PUBSUB").arg("SHARDNUMSUB").exec(&mut self.client()).is_ok()
    }

    /// Gives the user the rights to shard channels, if there are any.
    pub(crate) fn allow_shard_channels(&self) {
        if self.has_shard_channels() {
            let mut allow = redis::cmd("ACL");
            allow.arg("SETUSER").arg("bowline").arg(documented_rights_to_shard_channels());
            allow.exec(&mut self.client()).unwrap();
        }
    }

    /// Takes these rights, so that messages go to all nodes.
    pub fn forbid_shard_channels(&self) {
        if self.has_shard_channels() {
            let mut forbid = redis::cmd("ACL");
            forbid.arg("SETUSER").arg("bowline");
            for right in documented_rights_to_shard_channels() {
                forbid.arg(right.replacen('+', "-", 1));
            }
            forbid.exec(&mut self.client()).unwrap();
        }
    }

    /// A node that serves all slots: it can do what a single server can, by the rules of a cluster.
    pub(super) fn start_alone_in_a_cluster(args: &[&str]) -> Self {
        let mut all = vec!["--cluster-enabled", "yes"];
        all.extend(args);
        let server = Self::start_on(free_cluster_port, &all);
        server.allow_shard_channels();
        let mut client = server.client();
        redis::cmd("CLUSTER").arg("ADDSLOTS").arg((0..16_384).collect::<Vec<_>>()).exec(&mut client).unwrap();
        let start = Instant::now();
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut client).unwrap();
            if info.contains("cluster_state:ok") {
                return server;
            }
            assert!(start.elapsed() < DEADLINE, "the node does not serve its slots: {info}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
