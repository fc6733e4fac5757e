//! Replicas: servers that follow another one, and change places with it.

use std::thread;
use std::time::{Duration, Instant};

use redis::RedisResult;

use super::process::{START_DEADLINE, connect};
use super::{Server, documented_right_to_wait};

/// A sentinel takes 10 s to make a former master follow the new one.
const SYNC_DEADLINE: Duration = Duration::from_secs(30);

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

    /// As [`start_pair`](Self::start_pair), for clients that wait for replicas: with the right that docs/acl.md names
    /// for them.
    pub fn start_acknowledging_pair() -> [Self; 2] {
        let pair = Self::start_pair();
        pair.iter().for_each(Self::allow_to_wait);
        pair
    }

    /// Gives the user the right that docs/acl.md names for clients that wait for replicas.
    pub fn allow_to_wait(&self) {
        let rule = redis::cmd("ACL").arg(&["SETUSER", "bowline"]).arg(documented_right_to_wait()).clone();
        rule.exec(&mut self.client()).unwrap();
    }

    /// Becomes a replica of `primary`, and waits until it has all of its data.
    pub fn follow(&self, primary: &Server) {
        self.demote(primary);
        self.await_sync();
        // Before its first acknowledgement, about a second later, a primary does not count a replica that was
        // synchronised without a disk.
        let (start, online) = (Instant::now(), format!("port={},state=online", self.port()));
        while !primary.replication().contains(&online) {
            assert!(start.elapsed() < SYNC_DEADLINE, "never online: {}", primary.replication());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until this replica has all data of its primary. A sentinel that makes a server a replica cuts its
    /// connections.
    pub fn await_sync(&self) {
        let start = Instant::now();
        let mut last = self.try_replication();
        while !last.as_ref().is_ok_and(|info| info.contains("master_link_status:up")) {
            assert!(start.elapsed() < SYNC_DEADLINE, "never in sync: {last:?}");
            thread::sleep(Duration::from_millis(5));
            last = self.try_replication();
        }
    }

    /// Whether it runs, answers and is no replica.
    pub fn is_master(&self) -> bool {
        self.try_replication().is_ok_and(|info| info.contains("role:master"))
    }

    fn try_replication(&self) -> RedisResult<String> {
        let mut client = connect(&self.url(), Duration::from_millis(500))?;
        redis::cmd("INFO").arg("replication").query(&mut client)
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

    /// Hands the role over to `replica`, as an operator does: nothing that was answered is lost. A connected client
    /// stays so. What is written meanwhile waits, and is refused afterwards.
    pub fn hand_over_to(&self, replica: &Server) {
        let mut admin = self.client();
        redis::cmd("CLIENT").arg(&["PAUSE", "20000", "WRITE"]).exec(&mut admin).unwrap();
        let (start, written) = (Instant::now(), self.offset("master_repl_offset:"));
        while replica.offset("slave_repl_offset:") < written {
            assert!(start.elapsed() < START_DEADLINE, "the replica has not caught up");
            thread::sleep(Duration::from_millis(1));
        }
        replica.promote();
        self.demote(replica);
        redis::cmd("CLIENT").arg("UNPAUSE").exec(&mut admin).unwrap();
    }

    fn offset(&self, field: &str) -> u64 {
        let info = self.replication();
        let offset = info.lines().find_map(|line| line.strip_prefix(field)).expect(field);
        offset.trim().parse().unwrap()
    }

    fn replication(&self) -> String {
        redis::cmd("INFO").arg("replication").query(&mut self.client()).unwrap()
    }
}
