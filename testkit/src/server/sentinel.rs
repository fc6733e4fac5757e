//! A sentinel: a process that watches a server.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use super::Server;
use super::process::{Process, free_port};

/// What the sentinels call the master and its replicas.
pub const MASTER_NAME: &str = "mymaster";

impl Server {
    /// The same address and login by way of a sentinel, with `BOWLINE_SENTINEL=1`: so every suite can run behind one.
    pub fn behind(&self, url: &str) -> String {
        if std::env::var_os("BOWLINE_SENTINEL").is_none_or(|value| value != "1") {
            return url.to_owned();
        }
        let port = self.sentinel.get_or_init(|| Watched::alone(self.port()).by_a_sentinel()).port();
        let login = url.strip_prefix("redis://").expect("a URL of a server");
        let login = login.rsplit_once('@').map_or(String::new(), |(login, _)| format!("{login}@"));
        format!("redis-sentinel://{login}127.0.0.1:{port}/0?master={MASTER_NAME}")
    }
}

/// What a sentinel is told once; it writes what it learns to the same file.
pub struct Watched {
    pub master: u16,
    /// The number of sentinels that must agree that the master is down.
    pub quorum: u8,
    pub down_after: Duration,
    pub replicas: usize,
}

impl Watched {
    /// A server without replicas, at this port of it.
    pub fn alone(port: u16) -> Self {
        Self { master: port, quorum: 1, down_after: Duration::from_secs(60), replicas: 0 }
    }

    pub fn by_a_sentinel(&self) -> Process {
        self.by_a_sentinel_with(&[])
    }

    /// By one with further arguments.
    pub fn by_a_sentinel_with(&self, args: &[&str]) -> Process {
        Process::start(free_port, &|process| {
            let mut all = self.arguments(process);
            all.extend(args.iter().map(OsString::from));
            all
        })
    }

    fn arguments(&self, process: &Process) -> Vec<OsString> {
        let lines = [
            format!("port {}", process.port()),
            "bind 127.0.0.1".to_owned(),
            format!("dir {}", process.dir().display()),
            format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {} {}", self.master, self.quorum),
            format!("sentinel down-after-milliseconds {MASTER_NAME} {}", self.down_after.as_millis()),
            format!("sentinel failover-timeout {MASTER_NAME} 3000"),
            format!("sentinel parallel-syncs {MASTER_NAME} {}", self.replicas.max(1)),
        ];
        fs::write(process.dir().join("sentinel.conf"), lines.join("\n") + "\n").unwrap();
        sentinel_arguments(process)
    }
}

pub fn sentinel_arguments(process: &Process) -> Vec<OsString> {
    vec![process.dir().join("sentinel.conf").into_os_string(), "--sentinel".into()]
}
