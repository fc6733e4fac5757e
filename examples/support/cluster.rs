//! A cluster for an example: three masters and a replica of the first one, stopped at the end.

use std::error::Error;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Processes of `redis-server`, in the order of their ports.
pub(crate) struct Cluster {
    nodes: Vec<(u16, Child)>,
    dir: PathBuf,
}

impl Cluster {
    pub(crate) fn start() -> Outcome<Self> {
        let dir = std::env::temp_dir().join(format!("bowline-example-{}", std::process::id()));
        let mut cluster = Self { nodes: Vec::new(), dir };
        for _ in 0..4 {
            cluster.add()?;
        }
        let first = |n: usize| n * 16_384 / 3;
        for n in 0..3 {
            cluster.ask::<()>(
                n,
                redis::cmd("CLUSTER").arg("ADDSLOTS").arg((first(n)..first(n + 1)).collect::<Vec<_>>()),
            )?;
        }
        for n in 1..4 {
            cluster.ask::<()>(n, redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(cluster.nodes[0].0))?;
        }
        let master: String = cluster.ask(0, redis::cmd("CLUSTER").arg("MYID"))?;
        // The node refuses until it has heard of its master.
        while cluster.ask::<()>(3, redis::cmd("CLUSTER").arg("REPLICATE").arg(&master)).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        for n in 0..4 {
            while !cluster.ask::<String>(n, redis::cmd("CLUSTER").arg("INFO"))?.contains("cluster_state:ok") {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        while !cluster.ask::<String>(3, redis::cmd("INFO").arg("replication"))?.contains("master_link_status:up") {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(cluster)
    }

    /// The URL names some nodes. The client learns of the others.
    pub(crate) fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        format!("redis-cluster://{}/", nodes.join(","))
    }

    /// Kills the first master.
    pub(crate) fn kill_master(&mut self) -> Outcome<()> {
        self.nodes[0].1.kill()?;
        self.nodes[0].1.wait()?;
        Ok(())
    }

    fn add(&mut self) -> Outcome<()> {
        let port = loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            // The nodes talk to each other on a second port.
            if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
                break port;
            }
        };
        let dir = self.dir.join(port.to_string());
        std::fs::create_dir_all(&dir)?;
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"])
            .arg("--dir")
            .arg(&dir)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("redis-server cannot be started ({error}); on Debian: apt-get install redis-server")
            })?;
        self.nodes.push((port, child));
        while self.ask::<()>(self.nodes.len() - 1, &redis::cmd("PING")).is_err() {
            if let Some(status) = self.nodes.last_mut().map(|(_, node)| node.try_wait()).transpose()?.flatten() {
                return Err(format!("redis-server ended at once: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn ask<T: redis::FromRedisValue>(&self, node: usize, command: &redis::Cmd) -> Outcome<T> {
        let url = format!("redis://127.0.0.1:{}/", self.nodes[node].0);
        Ok(command.query(&mut redis::Client::open(url)?.get_connection()?)?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, node) in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
