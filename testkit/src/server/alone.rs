//! A cluster of one node.

use std::thread;
use std::time::{Duration, Instant};

use super::Server;
use super::process::free_cluster_port;

const DEADLINE: Duration = Duration::from_secs(20);

impl Server {
    /// A node that serves all slots: what a server on its own can do, in the way of a cluster.
    pub(super) fn start_alone_in_a_cluster(args: &[&str]) -> Self {
        let mut all = vec!["--cluster-enabled", "yes"];
        all.extend(args);
        let server = Self::start_on(free_cluster_port, &all);
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
