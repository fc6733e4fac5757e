//! What a message costs a cluster: `PUBLISH` goes to every node, `SPUBLISH` to those of one shard, here a master and a
//! replica.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command as Process, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bowline_benches::{Result, raw};

use crate::Line;

/// How long the nodes may take to know each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages in one write.
const BLOCK: usize = 100;

/// About as long as a grant.
const MESSAGE_BYTES: usize = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Publish,
    Sharded,
}

impl Command {
    pub(crate) const ALL: [Self; 2] = [Self::Publish, Self::Sharded];

    /// What its cases begin with.
    pub(crate) fn case(self) -> &'static str {
        match self {
            Self::Publish => "bus",
            Self::Sharded => "bus-sharded",
        }
    }

    /// The inbox of a client.
    fn channel(self) -> Result<String> {
        match self {
            Self::Publish => Ok(raw::inbox()),
            Self::Sharded => raw::sharded_inbox(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Publish => "PUBLISH",
            Self::Sharded => "SPUBLISH",
        }
    }
}

/// Nodes of which at most one is a replica. A replica gets every message too, so what counts is how many nodes get it.
/// Killed when dropped.
struct Cluster(Vec<Node>);

struct Node {
    process: Child,
    connection: redis::Connection,
}

/// What all nodes have used so far.
#[derive(Clone, Copy)]
struct Used {
    sender_cpu: f64,
    receivers_cpu: f64,
    written: f64,
    at: Instant,
}

pub(crate) fn measure(case: &str, command: Command, nodes: usize, messages: usize) -> Result<Vec<Line>> {
    let replicas = match command {
        Command::Publish => 0,
        Command::Sharded => 1,
    };
    let mut cluster = Cluster::start(nodes, nodes - replicas)?;
    let channel = command.channel()?;
    // The slot of the channel decides who may publish to it by SPUBLISH.
    let sender = cluster.owner_of(&channel, nodes - replicas)?;
    if replicas > 0 {
        cluster.follow(sender)?;
    }
    cluster.0.swap(0, sender);
    // Connections of the bus are made lazily, and gossip is dense at first.
    sleep(Duration::from_secs(1));
    let start = cluster.used()?;
    sleep(Duration::from_secs(2));
    let idle = cluster.used()?;
    let message = "m".repeat(MESSAGE_BYTES);
    for _ in 0..messages.div_ceil(BLOCK) {
        let mut pipe = redis::pipe();
        (0..BLOCK).for_each(|_| {
            pipe.cmd(command.name()).arg(&channel).arg(&message).ignore();
        });
        pipe.exec(&mut cluster.0[0].connection)?;
    }
    // Time for the other nodes to read what is on the way.
    sleep(Duration::from_millis(500));
    let end = cluster.used()?;
    let sent = (messages.div_ceil(BLOCK) * BLOCK) as f64;
    let seconds = (end.at - idle.at).as_secs_f64() / (idle.at - start.at).as_secs_f64();
    let each = |value: fn(&Used) -> f64| (value(&end) - value(&idle) - (value(&idle) - value(&start)) * seconds) / sent;
    // The number of nodes that get the message.
    let receivers = if replicas > 0 { replicas } else { nodes - 1 } as f64;
    let lines = [
        ("sender_us", each(|used| used.sender_cpu)),
        ("receiver_us", each(|used| used.receivers_cpu) / receivers),
        ("all_nodes_us", each(|used| used.sender_cpu + used.receivers_cpu)),
        ("bytes", each(|used| used.written)),
    ];
    Ok(lines.into_iter().map(|(metric, value)| (case.to_owned(), metric, value)).collect())
}

impl Cluster {
    /// The first `masters` nodes share the slots.
    fn start(nodes: usize, masters: usize) -> Result<Self> {
        let mut cluster = Self(Vec::new());
        let mut ports = Vec::new();
        for _ in 0..nodes {
            let (node, port) = Node::start()?;
            cluster.0.push(node);
            ports.push(port);
        }
        for (n, node) in cluster.0.iter_mut().enumerate() {
            redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(n + 1).exec(&mut node.connection)?;
            if n < masters {
                let first = |n: usize| n * 16_384 / masters;
                let slots: Vec<usize> = (first(n)..first(n + 1)).collect();
                redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(&mut node.connection)?;
            }
            for port in &ports[..n] {
                redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(*port).exec(&mut node.connection)?;
            }
        }
        let start = Instant::now();
        while !cluster.is_up()? {
            if start.elapsed() > PATIENCE {
                return Err("the nodes do not agree".into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(cluster)
    }

    fn is_up(&mut self) -> Result<bool> {
        let known = format!("cluster_known_nodes:{}", self.0.len());
        for node in &mut self.0 {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut node.connection)?;
            if !info.contains("cluster_state:ok") || !info.lines().any(|line| line == known) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the last node a replica of a master.
    fn follow(&mut self, master: usize) -> Result<()> {
        let id: String = redis::cmd("CLUSTER").arg("MYID").query(&mut self.0[master].connection)?;
        let replica = self.0.last_mut().ok_or("no node")?;
        redis::cmd("CLUSTER").arg("REPLICATE").arg(id).exec(&mut replica.connection)?;
        let start = Instant::now();
        loop {
            let info: String = redis::cmd("INFO").arg("replication").query(&mut replica.connection)?;
            if info.contains("master_link_status:up") {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err("the replica does not follow its master".into());
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// The master with the slot of `key`.
    fn owner_of(&mut self, key: &str, masters: usize) -> Result<usize> {
        let slot: usize = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut self.0[0].connection)?;
        Ok((0..masters).rfind(|n| n * 16_384 / masters <= slot).unwrap_or(0))
    }

    fn used(&mut self) -> Result<Used> {
        let mut used = Used { sender_cpu: 0.0, receivers_cpu: 0.0, written: 0.0, at: Instant::now() };
        for (n, node) in self.0.iter_mut().enumerate() {
            let cpu = node.cpu_micros()?;
            *if n == 0 { &mut used.sender_cpu } else { &mut used.receivers_cpu } += cpu;
            used.written += node.written()?;
        }
        Ok(used)
    }
}

impl Node {
    fn start() -> Result<(Self, u16)> {
        // The port of the bus is that of the node plus 10,000.
        let port = loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
                break port;
            }
        };
        let file = std::env::temp_dir().join(format!("bowline-bench-{port}.conf"));
        let _ = fs::remove_file(&file);
        let server = std::env::var("BOWLINE_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let process = Process::new(&server)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            // A dump of another server in this folder is not loaded.
            .args(["--dbfilename", "none.rdb"])
            .args(["--cluster-enabled", "yes", "--cluster-config-file"])
            .arg(&file)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{server} cannot be started: {error}"))?;
        let address = ("127.0.0.1", port);
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > PATIENCE {
                return Err(format!("{server} does not listen").into());
            }
            sleep(Duration::from_millis(10));
        }
        let connection = redis::Client::open(address)?.get_connection()?;
        // The file is open and is not needed any more.
        let _ = fs::remove_file(&file);
        Ok((Self { process, connection }, port))
    }

    fn cpu_micros(&mut self) -> Result<f64> {
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut self.connection)?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        let (Some(system), Some(user)) = (field("used_cpu_sys:"), field("used_cpu_user:")) else {
            return Err("the server does not say what it uses".into());
        };
        Ok((system + user) * 1e6)
    }

    /// Bytes that the process has written, to sockets as well; not a number where the system does not count them.
    fn written(&self) -> Result<f64> {
        let Ok(counts) = fs::read_to_string(format!("/proc/{}/io", self.process.id())) else { return Ok(f64::NAN) };
        let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
        Ok(written.map_or(Ok(f64::NAN), str::parse)?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
