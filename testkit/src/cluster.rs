//! A real Redis Cluster on this machine.
//!
//! ```ignore
//! let mut cluster = Cluster::start(3, 3);
//! let master = cluster.owner_of("{orders}");
//! cluster.kill(master);
//! let promoted = cluster.await_owner("{orders}", |node| node != master);
//! ```

mod slots;

use std::thread;
use std::time::{Duration, Instant};

use redis::{FromRedisValue, RedisResult};

use super::server::Server;
use super::server::process::{connect, free_cluster_port};

/// How long the nodes may take to agree, with the longest node timeout that a test sets.
const DEADLINE: Duration = Duration::from_secs(30);

/// A replica gives a failover that it was asked for up after 5 s.
const MANUAL_FAILOVER: Duration = Duration::from_secs(6);
/// A node that does not answer within this time is taken to be frozen.
const ANSWER: Duration = Duration::from_millis(500);
pub const SLOTS: u16 = 16_384;

/// The nodes of a cluster, named by their index: the masters first, as long as nothing fails over. Dropping it kills
/// all of them.
pub struct Cluster {
    nodes: Vec<Server>,
    /// The id of each node in the cluster.
    ids: Vec<String>,
    /// The frozen ones, which would not answer.
    frozen: Vec<bool>,
}

/// A range of slots, its master and the replicas of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    pub first: u16,
    pub last: u16,
    pub master: usize,
    pub replicas: Vec<usize>,
}

impl Cluster {
    /// `masters` that share the slots, and `replicas` in all: node `masters + n` follows node `n % masters`. The node
    /// timeout is 1 s.
    pub fn start(masters: usize, replicas: usize) -> Self {
        Self::start_with(masters, replicas, &[])
    }

    /// As [`start`](Self::start), with further arguments of every node, such as `--cluster-node-timeout`.
    pub fn start_with(masters: usize, replicas: usize, args: &[&str]) -> Self {
        assert!(masters > 0, "a cluster needs a master");
        let mut all = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
        all.extend(Server::FOLLOWS_AT_ONCE);
        all.extend(args);
        let nodes: Vec<Server> = thread::scope(|scope| {
            let start = || Server::start_on(free_cluster_port, &all);
            let starting: Vec<_> = (0..masters + replicas).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|node| node.join().expect("a node")).collect()
        });
        let ids = nodes.iter().map(|node| query(node, &["CLUSTER", "MYID"])).collect();
        nodes.iter().for_each(Server::allow_shard_channels);
        let cluster = Self { frozen: vec![false; nodes.len()], nodes, ids };
        cluster.form(masters);
        cluster
    }

    /// `redis-cluster://host:port,...` of all nodes.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// As the user whose rights docs/acl.md names, and who has no others.
    pub fn user_url(&self) -> String {
        self.url_of("bowline:secret@")
    }

    fn url_of(&self, user: &str) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis-cluster://{user}{}/", hosts.join(","))
    }

    /// A node, for what only one of them can do or say.
    pub fn node(&self, node: usize) -> &Server {
        &self.nodes[node]
    }

    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The node that listens on `port`.
    pub fn node_at(&self, port: u16) -> usize {
        self.nodes.iter().position(|node| node.port() == port).expect("a node of this cluster")
    }

    /// SIGKILL; what was not on a replica is lost.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
        self.frozen[node] = false;
    }

    /// Starts a node again, with the slots or the master that it had; its data is what it gets from a master.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node].restart();
        self.frozen[node] = false;
    }

    /// SIGSTOP: connections stay open, and nothing is answered until [`thaw`](Self::thaw).
    pub fn freeze(&mut self, node: usize) {
        self.nodes[node].pause();
        self.frozen[node] = true;
    }

    pub fn thaw(&mut self, node: usize) {
        self.nodes[node].resume();
        self.frozen[node] = false;
    }

    /// Makes a replica the master of its shard, as an operator does, and waits until all nodes know it.
    pub fn fail_over(&self, replica: usize) {
        let ask = || self.ask::<()>(replica, &["CLUSTER", "FAILOVER"]);
        ask().unwrap();
        let mut asked = Instant::now();
        self.eventually("the replica is the master", || {
            let is_master = self.shards().iter().any(|shard| shard.master == replica);
            // On a busy machine, the master may not have answered in the time that the replica gives it.
            if !is_master && asked.elapsed() > MANUAL_FAILOVER {
                asked = Instant::now();
                // A replica that has become the master just now refuses.
                let _ = ask();
            }
            is_master && self.all_agree()
        });
    }

    /// The shards, sorted by their slots, as the first node that answers and is not cut off sees them.
    pub fn shards(&self) -> Vec<Shard> {
        self.alive().find_map(|node| self.shards_of(node).ok()).expect("a node that answers")
    }

    /// The master of the slot of `key`.
    pub fn owner_of(&self, key: &str) -> usize {
        self.owner_of_slot(self.slot_of(key))
    }

    pub fn owner_of_slot(&self, slot: u16) -> usize {
        self.shard_of_slot(slot).master
    }

    /// The replicas of the master of `key`.
    pub fn replicas_of(&self, key: &str) -> Vec<usize> {
        self.shard_of_slot(self.slot_of(key)).replicas
    }

    fn shard_of_slot(&self, slot: u16) -> Shard {
        let shards = self.shards();
        shards.into_iter().find(|shard| (shard.first..=shard.last).contains(&slot)).expect("a master of the slot")
    }

    /// The slot of `key`.
    pub fn slot_of(&self, key: &str) -> u16 {
        let ask = |node| self.ask(node, &["CLUSTER", "KEYSLOT", key]).ok();
        self.alive().find_map(ask).expect("a node that answers")
    }

    /// Waits until every node that answers names a master of `key` that `expected` accepts, and this master serves the
    /// key. Returns the master.
    pub fn await_owner(&self, key: &str, expected: impl Fn(usize) -> bool) -> usize {
        let slot = self.slot_of(key);
        let mut owner = usize::MAX;
        self.eventually("all nodes know another master", || {
            let known = self.alive().map(|node| self.shards_of(node).ok().and_then(|shards| master_of(&shards, slot)));
            let known: Vec<Option<usize>> = known.collect();
            owner = known.first().copied().flatten().unwrap_or(usize::MAX);
            owner != usize::MAX && expected(owner) && known.iter().all(|node| *node == Some(owner)) && self.all_agree()
        });
        owner
    }

    /// Waits until all nodes that answer say that the cluster is up, name the same shards, and every replica of them is
    /// in sync.
    pub fn await_agreement(&self) {
        self.eventually("all nodes agree", || self.all_agree() && self.alive().all(|node| self.in_sync(node)));
    }

    fn all_agree(&self) -> bool {
        let known: Vec<_> =
            self.alive().map(|node| Some((self.shards_of(node).ok()?, self.epochs_of(node).ok()?))).collect();
        known.iter().all(|all| all.is_some() && *all == known[0]) && self.alive().all(|node| self.is_up(node))
    }

    /// The configuration epochs of the masters that run, as the node knows them. A master that takes a slot chooses an
    /// epoch above all that it knows. If it does not know the last one, a late packet of the former owner takes the
    /// slot back, for good.
    fn epochs_of(&self, node: usize) -> RedisResult<Vec<(String, String)>> {
        let nodes: String = self.ask(node, &["CLUSTER", "NODES"])?;
        let lines = nodes.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        // The id, the address, the flags, and the epoch as the seventh.
        let masters = lines.filter(|line| line.len() > 6 && matches!(line[2], "master" | "myself,master"));
        let mut epochs: Vec<_> = masters.map(|line| (line[0].to_owned(), line[6].to_owned())).collect();
        epochs.sort_unstable();
        Ok(epochs)
    }

    fn is_up(&self, node: usize) -> bool {
        let info: RedisResult<String> = self.ask(node, &["CLUSTER", "INFO"]);
        info.is_ok_and(|info| info.contains("cluster_state:ok"))
    }

    fn in_sync(&self, node: usize) -> bool {
        let info: RedisResult<String> = self.ask(node, &["INFO", "replication"]);
        info.is_ok_and(|info| info.contains("role:master") || info.contains("master_link_status:up"))
    }

    fn shards_of(&self, node: usize) -> RedisResult<Vec<Shard>> {
        let rows: Vec<Vec<redis::Value>> = self.ask(node, &["CLUSTER", "SLOTS"])?;
        let mut shards = Vec::new();
        for row in rows {
            let mut row = row.into_iter();
            let mut number = || u16::from_redis_value(row.next().unwrap_or(redis::Value::Nil));
            let (first, last) = (number()?, number()?);
            let mut members = Vec::new();
            for address in row {
                let address: Vec<redis::Value> = Vec::from_redis_value(address)?;
                let port = address.into_iter().nth(1).unwrap_or(redis::Value::Nil);
                members.push(self.node_at(u16::from_redis_value(port)?));
            }
            let master = members.remove(0);
            members.sort_unstable();
            shards.push(Shard { first, last, master, replicas: members });
        }
        shards.sort_unstable_by_key(|shard| shard.first);
        Ok(shards)
    }

    /// Those that run and are not frozen.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].pid().is_some() && !self.frozen[node])
    }

    fn ask<T: FromRedisValue>(&self, node: usize, command: &[&str]) -> RedisResult<T> {
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connect(&self.nodes[node].url(), ANSWER)?)
    }

    /// Gives out the slots and makes the nodes know each other.
    fn form(&self, masters: usize) {
        for (n, node) in self.nodes.iter().enumerate() {
            let mut client = node.client();
            // Without an epoch of its own, each node would only get one after collisions, one node after the other.
            redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(n + 1).exec(&mut client).unwrap();
            if n < masters {
                let first = |n: usize| n * usize::from(SLOTS) / masters;
                let slots: Vec<usize> = (first(n)..first(n + 1)).collect();
                redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(&mut client).unwrap();
            }
            for other in &self.nodes[..n] {
                redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(other.port()).exec(&mut client).unwrap();
            }
        }
        for n in masters..self.nodes.len() {
            let master = &self.ids[n % masters];
            // The replica refuses until it knows the master.
            self.eventually("a replica knows its master", || {
                self.ask::<()>(n, &["CLUSTER", "REPLICATE", master]).is_ok()
            });
        }
        let replicas = self.nodes.len() - masters;
        self.eventually("all nodes know all others", || {
            self.shards().iter().map(|shard| shard.replicas.len()).sum::<usize>() == replicas
        });
        self.await_agreement();
    }

    fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}; {:?}", self.shards());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter().for_each(Server::end_watch);
    }
}

fn master_of(shards: &[Shard], slot: u16) -> Option<usize> {
    shards.iter().find(|shard| (shard.first..=shard.last).contains(&slot)).map(|shard| shard.master)
}

fn query<T: FromRedisValue>(node: &Server, command: &[&str]) -> T {
    redis::cmd(command[0]).arg(&command[1..]).query(&mut node.client()).unwrap()
}
