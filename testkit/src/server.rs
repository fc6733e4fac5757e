//! A real server as a child process: a port and a directory of its own, gone when dropped.
//!
//! `BOWLINE_SERVER` is the path of the binary to run; without it, `redis-server` from `PATH`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use redis::Connection;

mod alone;
pub mod process;
mod replica;
pub mod sentinel;
mod watcher;

pub use process::free_port;
use process::{Process, connect, info_field};
use watcher::{Watch, Watcher};

/// One server. Dropping it kills the process, and fails the test if a key without a TTL was ever seen.
pub struct Server {
    /// Dropped first, or it would take the end of the server for a failure.
    sentinel: OnceLock<Process>,
    process: Process,
    args: Vec<String>,
    watcher: Option<Watcher>,
}

impl Server {
    /// A server that stores nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A server with further arguments, which win over the fixture's own.
    ///
    /// With `BOWLINE_CLUSTER=1` it is a cluster of its own, so that every suite can run over one.
    pub fn start_with(args: &[&str]) -> Self {
        if std::env::var_os("BOWLINE_CLUSTER").is_some_and(|value| value == "1") {
            return Self::start_alone_in_a_cluster(args);
        }
        Self::start_on(free_port, args)
    }

    /// A server on a port that `free_port` chooses.
    pub(crate) fn start_on(free_port: fn() -> u16, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let process = Process::start(free_port, &|process| arguments(process, &args));
        let watcher = Some(Watcher::start(process.url()));
        Self { sentinel: OnceLock::new(), process, args, watcher }
    }

    pub fn port(&self) -> u16 {
        self.process.port()
    }

    pub fn url(&self) -> String {
        self.process.url()
    }

    /// As the user whose rights docs/acl.md names, and who has no others.
    pub fn user_url(&self) -> String {
        format!("redis://bowline:secret@127.0.0.1:{}/", self.port())
    }

    pub fn socket_path(&self) -> PathBuf {
        socket_path(&self.process)
    }

    pub fn socket_url(&self) -> String {
        format!("unix://{}", self.socket_path().display())
    }

    pub fn dir(&self) -> &Path {
        self.process.dir()
    }

    /// The process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// A blocking connection for looking inside, past everything that is tested.
    pub fn client(&self) -> Connection {
        connect(&self.url(), Duration::from_secs(10)).expect("connection to the test server")
    }

    /// For example `redis 7.0.15` or `valkey 9.1.0`.
    pub fn version(&self) -> String {
        let info: String = redis::cmd("INFO").arg("server").query(&mut self.client()).unwrap();
        match info_field(&info, "valkey_version") {
            Some(version) => format!("valkey {version}"),
            None => format!("redis {}", info_field(&info, "redis_version").unwrap()),
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
        self.process.kill();
    }

    /// Starts the server again on the same port and directory and with the same arguments; kills it first.
    pub fn restart(&mut self) {
        let args = &self.args;
        self.process.restart(&|process| arguments(process, args));
    }

    /// SIGSTOP: connections stay open, and nothing is answered until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.process.signal("STOP");
    }

    pub fn resume(&self) {
        self.process.signal("CONT");
    }

    /// Ends the server and asserts that no key without a TTL was ever seen; dropping does the same.
    pub fn finish(self) {
        drop(self);
    }

    /// Tells the watcher to take its last look, without waiting for it: many servers end faster so.
    pub(crate) fn end_watch(&self) {
        self.watch().end();
    }

    /// Fails if a key without a TTL was seen. From now on no key is exempt.
    pub fn check(&self) {
        self.watch().allowed.lock().unwrap().clear();
        let seen = std::mem::take(&mut *self.watch().seen.lock().unwrap());
        assert!(seen.is_empty(), "keys without a TTL: {seen:?}");
    }

    fn watch(&self) -> &Watch {
        &self.watcher.as_ref().expect("the watcher runs as long as the server").watch
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let seen = self.watcher.take().map(Watcher::stop).unwrap_or_default();
        self.kill();
        if !std::thread::panicking() {
            assert!(seen.is_empty(), "keys without a TTL: {seen:?}");
        }
    }
}

fn socket_path(process: &Process) -> PathBuf {
    process.dir().join("redis.sock")
}

fn arguments(process: &Process, args: &[String]) -> Vec<OsString> {
    let (port, socket) = (process.port().to_string(), socket_path(process).into_os_string());
    let mut all: Vec<OsString> = ["--port", &port, "--bind", "127.0.0.1"].map(OsString::from).into();
    all.extend(["--unixsocket".into(), socket, "--dir".into(), process.dir().as_os_str().to_owned()]);
    all.extend(["--save", "", "--appendonly", "no", "--daemonize", "no"].map(OsString::from));
    all.extend(["--user", "bowline", "on", ">secret"].map(OsString::from));
    let more = documented_right_to_list().into_iter().chain(documented_right_to_watch());
    all.extend(documented_rights().into_iter().chain(more).map(OsString::from));
    if args.iter().any(|arg| arg == "--cluster-enabled") {
        all.extend(documented_rights_in_a_cluster().into_iter().map(OsString::from));
    }
    all.extend(args.iter().map(OsString::from));
    all
}

/// The rights in the command that docs/acl.md tells operators to run.
pub fn documented_rights() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline on >PASSWORD ")
}

/// Those that docs/acl.md adds for the nodes of a cluster.
pub fn documented_rights_in_a_cluster() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline +asking ")
}

/// Those that docs/acl.md adds where there are shard channels. Older servers refuse them.
pub fn documented_rights_to_shard_channels() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline +pubsub|shardnumsub ")
}

/// What docs/acl.md adds for those who list names.
pub fn documented_right_to_list() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline +scan")
}

/// What docs/acl.md adds for those who watch who holds a name.
pub fn documented_right_to_watch() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline +client|tracking")
}

/// The first right that docs/acl.md adds for locks of Redisson. The others are patterns.
pub fn documented_right_to_count() -> &'static str {
    rights_after("ACL SETUSER bowline +incrby").swap_remove(0)
}

/// What docs/acl.md adds for clients that wait for replicas.
pub fn documented_right_to_wait() -> Vec<&'static str> {
    rights_after("ACL SETUSER bowline +wait")
}

fn rights_after(command: &str) -> Vec<&'static str> {
    let page = include_str!("../../docs/acl.md");
    let own = command.rsplit_once(" +").map_or(command.len(), |(own, _)| own.len() + 1);
    let rule = page.lines().find(|line| line.starts_with(command)).map(|line| &line[own..]);
    rule.expect("the command").split(' ').collect()
}
