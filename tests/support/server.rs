//! A real server as a child process: a port and a directory of its own, gone when dropped.
//!
//! `BOWLINE_SERVER` is the path of the binary to run; without it, `redis-server` from `PATH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult};

// With paths, because `tests/facade` has this file by a path too, and there they would be looked for beside it.
#[path = "server/process.rs"]
mod process;
#[path = "server/replica.rs"]
mod replica;
#[path = "server/watcher.rs"]
mod watcher;

use process::{Failed, free_port, new_dir};
use watcher::{Watch, Watcher};

const START_DEADLINE: Duration = Duration::from_secs(20);

/// One server. Dropping it kills the process, and fails the test if a key without a TTL was ever seen.
pub struct Server {
    child: Option<Child>,
    /// Kills the server and removes its directory when this process is gone without having done so.
    reaper: Option<Child>,
    port: u16,
    dir: PathBuf,
    args: Vec<String>,
    watcher: Option<Watcher>,
}

impl Server {
    /// A server that stores nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with further arguments, which win over the fixture's own.
    pub fn start_with(args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let dir = new_dir();
        for _ in 0..20 {
            let mut server = Self {
                child: None,
                reaper: None,
                port: free_port(),
                dir: dir.clone(),
                args: args.clone(),
                watcher: None,
            };
            match server.launch() {
                Ok(()) => {
                    server.watcher = Some(Watcher::start(server.url()));
                    return server;
                }
                // Somebody else was given the port in between.
                Err(Failed::AddressInUse) => server.forget(),
                Err(Failed::Other(log)) => panic!("the server did not start:\n{log}"),
            }
        }
        panic!("no free port in 20 tries");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// As the user whose rights docs/acl.md names, and who has no others.
    pub fn user_url(&self) -> String {
        format!("redis://bowline:secret@127.0.0.1:{}/", self.port)
    }

    pub fn socket_path(&self) -> PathBuf {
        self.dir.join("redis.sock")
    }

    pub fn socket_url(&self) -> String {
        format!("unix://{}", self.socket_path().display())
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// A blocking connection for looking inside, past everything that is tested.
    pub fn client(&self) -> Connection {
        connect(&self.url(), Duration::from_secs(10)).expect("connection to the test server")
    }

    /// For example `redis 7.0.15` or `valkey 9.1.0`.
    pub fn version(&self) -> String {
        let info: String = redis::cmd("INFO").arg("server").query(&mut self.client()).unwrap();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(|v| v.trim().to_owned());
        match field("valkey_version:") {
            Some(version) => format!("valkey {version}"),
            None => format!("redis {}", field("redis_version:").unwrap()),
        }
    }

    /// Every key, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut self.client()).unwrap();
        keys.sort();
        keys
    }

    /// `PTTL`: -1 has no TTL, -2 does not exist.
    pub fn ttl_ms(&self, key: &str) -> i64 {
        redis::cmd("PTTL").arg(key).query(&mut self.client()).unwrap()
    }

    /// Exempts a key that the test creates without a TTL on purpose. To be called before it is created.
    pub fn allow_forever(&self, key: &str) {
        self.watch().allowed.lock().unwrap().insert(key.to_owned());
    }

    /// SIGKILL: whatever was not on disk is lost. A paused server can be killed too.
    pub fn kill(&mut self) {
        // The reaper first: the number of a process that has ended may be given to another.
        for mut child in [self.reaper.take(), self.child.take()].into_iter().flatten() {
            let _ = child.kill();
            child.wait().expect("the killed process");
        }
    }

    /// Starts the server again on the same port and directory and with the same arguments; kills it first.
    pub fn restart(&mut self) {
        self.kill();
        let start = Instant::now();
        loop {
            match self.launch() {
                Ok(()) => return,
                Err(Failed::AddressInUse) if start.elapsed() < START_DEADLINE => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(Failed::AddressInUse) => panic!("port {} was taken by another process", self.port),
                Err(Failed::Other(log)) => panic!("the server did not restart:\n{log}"),
            }
        }
    }

    /// SIGSTOP: connections stay open, and nothing is answered until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.signal("STOP");
    }

    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Ends the server and asserts that no key without a TTL was ever seen; dropping does the same.
    pub fn finish(self) {
        drop(self);
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid().expect("the server runs");
        let status = Command::new("sh").arg("-c").arg(format!("kill -s {signal} {pid}")).status().unwrap();
        assert!(status.success(), "kill -s {signal} {pid}: {status}");
    }

    fn watch(&self) -> &Watch {
        &self.watcher.as_ref().expect("the watcher runs as long as the server").watch
    }

    /// Keeps the directory: the next try uses it.
    fn forget(mut self) {
        self.kill();
        self.dir = PathBuf::new();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let seen = self.watcher.take().map(Watcher::stop).unwrap_or_default();
        self.kill();
        if !self.dir.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.dir);
        }
        if !thread::panicking() {
            assert!(seen.is_empty(), "keys without a TTL: {seen:?}");
        }
    }
}

/// No read or write on the connection takes longer than `timeout`.
fn connect(url: &str, timeout: Duration) -> RedisResult<Connection> {
    let connection = Client::open(url)?.get_connection_with_timeout(timeout)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    Ok(connection)
}

/// The rights in the command that docs/acl.md tells operators to run.
pub fn documented_rights() -> Vec<&'static str> {
    let page = include_str!("../../docs/acl.md");
    let rule = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER bowline on >PASSWORD "));
    rule.expect("the command").split(' ').collect()
}
