//! Replicas: servers that follow another one, and change places with it.

use std::thread;
use std::time::{Duration, Instant};

use super::{START_DEADLINE, Server};

impl Server {
    /// What a replica or its primary needs beyond a server alone, so that it follows at once.
    pub const FOLLOWS_AT_ONCE: [&'static str; 4] =
        ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];

    /// A primary and its replica, in sync.
    pub fn start_pair() -> [Self; 2] {
        let pair = [0, 1].map(|_| Self::start_with(&Self::FOLLOWS_AT_ONCE));
        pair[1].follow(&pair[0]);
        pair
    }

    /// Becomes a replica of `primary`, and waits until it has all of its data.
    pub fn follow(&self, primary: &Server) {
        self.demote(primary);
        let start = Instant::now();
        while !self.replication().contains("master_link_status:up") {
            assert!(start.elapsed() < START_DEADLINE, "never in sync: {}", self.replication());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Becomes a replica of `primary`, without waiting.
    pub fn demote(&self, primary: &Server) {
        let port = primary.port().to_string();
        redis::cmd("REPLICAOF").arg(&["127.0.0.1", &port]).exec(&mut self.client()).unwrap();
    }

    /// Becomes a primary, and stays connected with its clients.
    pub fn promote(&self) {
        redis::cmd("REPLICAOF").arg(&["NO", "ONE"]).exec(&mut self.client()).unwrap();
    }

    fn replication(&self) -> String {
        redis::cmd("INFO").arg("replication").query(&mut self.client()).unwrap()
    }
}
