//! The server of a bench: at `REDIS_URL`, else a `redis-server` of its own, gone when the bench ends.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::bare::ScriptCall;

/// A server's address, a connection to ask it for its counts, and the process if it is ours.
#[derive(Debug)]
pub struct Server {
    /// What clients connect to.
    pub url: String,
    child: Option<Child>,
}

/// What the server has executed since it started, as `INFO commandstats` counts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Executed {
    /// Calls of scripts.
    pub scripts: u64,
    /// The microseconds that these took, what they called included.
    pub micros: u64,
    /// The server's share of a processor, as a sum of seconds.
    pub cpu_seconds: f64,
}

impl std::ops::Sub for Executed {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            scripts: self.scripts - earlier.scripts,
            micros: self.micros - earlier.micros,
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
        }
    }
}

impl std::ops::AddAssign for Executed {
    fn add_assign(&mut self, other: Self) {
        self.scripts += other.scripts;
        self.micros += other.micros;
        self.cpu_seconds += other.cpu_seconds;
    }
}

impl Server {
    /// Finds one or starts one.
    pub fn find() -> Result<Self> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the server at REDIS_URL, which should have no other clients");
            return Ok(Self::at(url));
        }
        let error = |error| format!("REDIS_URL is not set, and there is no server: {error}").into();
        Self::start(&[]).map_err(error)
    }

    /// A server that somebody else has started.
    pub fn at(url: String) -> Self {
        Self { url, child: None }
    }

    /// Starts a primary and its replica.
    pub fn start_pair() -> Result<(Self, Self)> {
        let primary = Self::start(&["--repl-diskless-sync-delay", "0"])?;
        let port = &primary.port()?.to_string();
        // Otherwise the replica writes what it receives to a file in the current directory.
        let diskless = ["--repl-diskless-load", "on-empty-db"];
        let replica = Self::start(&["--replicaof", "127.0.0.1", port, diskless[0], diskless[1]])?;
        let mut probe = replica.probe()?;
        while !probe.ask::<String>(&["INFO", "replication"])?.contains("master_link_status:up") {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok((primary, replica))
    }

    /// Starts three servers that know nothing of each other.
    pub fn start_three() -> Result<Vec<Self>> {
        (0..3).map(|_| Self::start(&[])).collect()
    }

    /// The port that it listens on.
    pub fn port(&self) -> Result<u16> {
        let port = self.url.trim_end_matches('/').rsplit(':').next().unwrap_or_default();
        Ok(port.parse().map_err(|error| format!("no port in {}: {error}", self.url))?)
    }

    /// Stops the process, which answers nothing until it is [thawed](Self::thaw).
    pub fn freeze(&self) -> Result<()> {
        self.signal("STOP")
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) -> Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let child = self.child.as_ref().ok_or("the server is not ours")?;
        let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err(format!("kill -s {signal}: {status}").into()) }
    }

    fn start(args: &[&str]) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let child = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            // A dump of another server in this folder is not loaded.
            .args(["--dbfilename", "none.rdb"])
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("redis-server cannot be started: {error}"))?;
        let mut server = Self { url: format!("redis://127.0.0.1:{port}/"), child: Some(child) };
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            if let Some(Ok(Some(status))) = server.child.as_mut().map(Child::try_wait) {
                return Err(format!("redis-server ended at once: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// A connection that blocks the caller, for what is not measured.
    pub fn probe(&self) -> Result<Probe> {
        Ok(Probe(redis::Client::open(self.url.as_str())?.get_connection()?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks the server what it has done.
pub struct Probe(redis::Connection);

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

impl Probe {
    /// The reply to any command.
    pub fn ask<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> Result<T> {
        let (name, args) = words.split_first().ok_or("no command")?;
        Ok(redis::cmd(name).arg(args).query(&mut self.0)?)
    }

    /// Sends the calls at once. Fails if one of them does.
    pub fn send(&mut self, calls: impl IntoIterator<Item = ScriptCall>) -> Result<()> {
        let mut pipeline = redis::Pipeline::new();
        for call in calls {
            pipeline.add_command(call.command()).ignore();
        }
        Ok(pipeline.query(&mut self.0)?)
    }

    /// A number from `INFO everything`: of a line, or of a field in it.
    pub fn info(&mut self, name: &str, part: Option<&str>) -> Result<u64> {
        let info: String = self.ask(&["INFO", "everything"])?;
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        match (line, part) {
            (None, _) => Ok(0),
            (Some(value), None) => Ok(value.trim().parse()?),
            (Some(value), Some(part)) => field(value, part),
        }
    }

    /// Everything so far. What lies between two looks is their difference, so nothing is ever reset.
    pub fn executed(&mut self) -> Result<Executed> {
        let info: String = redis::cmd("INFO").arg("everything").query(&mut self.0)?;
        let mut executed = Executed::default();
        for line in info.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                // The first use of a script is an `EVAL`.
                "cmdstat_evalsha" | "cmdstat_eval" => {
                    executed.scripts += field(value, "calls")?;
                    executed.micros += field(value, "usec")?;
                }
                "used_cpu_sys" | "used_cpu_user" => executed.cpu_seconds += value.parse::<f64>()?,
                _ => {}
            }
        }
        Ok(executed)
    }
}

fn field(stats: &str, name: &str) -> Result<u64> {
    let found = stats.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    Ok(found.ok_or_else(|| format!("no {name} in {stats}"))?.parse()?)
}
