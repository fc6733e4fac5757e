//! A real server as a child process: a port and a directory of its own, gone when dropped.
//!
//! `BOWLINE_SERVER` is the path of the binary to run; without it, `redis-server` from `PATH`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult};

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

    fn launch(&mut self) -> Result<(), Failed> {
        let binary = std::env::var("BOWLINE_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let log_path = self.dir.join("server.log");
        let log = File::create(&log_path).unwrap();
        let child = Command::new(&binary)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--unixsocket".as_ref(), self.socket_path().as_os_str()])
            .args(["--dir".as_ref(), self.dir.as_os_str()])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(["--user", "bowline", "on", ">secret"])
            .args(documented_rights())
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{binary}: {error}\nThe tests need a Redis server: install one (`apt-get install redis-server`), \
                     or set BOWLINE_SERVER to the path of a redis-server or valkey-server"
                )
            });
        self.reaper = Some(reaper(child.id(), &self.dir));
        self.child = Some(child);
        let start = Instant::now();
        while start.elapsed() < START_DEADLINE {
            // Whoever answers must be ours: another process may own the port.
            if self.answers().is_ok_and(|dir| Path::new(&dir) == self.dir) {
                return Ok(());
            }
            if self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                self.kill();
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                return Err(if log.contains("Address already in use") {
                    Failed::AddressInUse
                } else {
                    Failed::Other(log)
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
        let log = fs::read_to_string(&log_path).unwrap_or_default();
        self.kill();
        Err(Failed::Other(format!("no answer within {START_DEADLINE:?}\n{log}")))
    }

    /// The directory of the server that answers on the port.
    fn answers(&self) -> RedisResult<String> {
        let mut connection = connect(&self.url(), Duration::from_secs(1))?;
        redis::cmd("PING").exec(&mut connection)?;
        let (_, dir): (String, String) = redis::cmd("CONFIG").arg("GET").arg("dir").query(&mut connection)?;
        Ok(dir)
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

enum Failed {
    AddressInUse,
    Other(String),
}

/// Looks at every key all the time: none may ever be without a TTL.
struct Watcher {
    watch: Arc<Watch>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Watch {
    stop: AtomicBool,
    allowed: Mutex<BTreeSet<String>>,
    seen: Mutex<BTreeSet<String>>,
}

impl Watcher {
    fn start(url: String) -> Self {
        let watch = Arc::new(Watch::default());
        let thread = thread::spawn({
            let watch = Arc::clone(&watch);
            move || watch.run(&url)
        });
        Self { watch, thread }
    }

    /// What was seen, after a last look.
    fn stop(self) -> BTreeSet<String> {
        self.watch.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.join();
        std::mem::take(&mut self.watch.seen.lock().unwrap())
    }
}

impl Watch {
    fn run(&self, url: &str) {
        let mut connection = None;
        loop {
            let last = self.stop.load(Ordering::SeqCst);
            // The server may be paused, dead or busy: then it is asked again, on a new connection.
            let looked = match connection.take() {
                Some(open) => Ok(open),
                None => connect(url, Duration::from_millis(250)),
            }
            .and_then(|mut open| self.look(&mut open).map(|()| connection = Some(open)));
            if last {
                return;
            }
            thread::sleep(Duration::from_millis(if looked.is_ok() { 5 } else { 20 }));
        }
    }

    fn look(&self, connection: &mut Connection) -> RedisResult<()> {
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) =
                redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(1000).query(connection)?;
            let mut pipeline = redis::pipe();
            for key in &keys {
                pipeline.cmd("PTTL").arg(key);
            }
            let ttls: Vec<i64> = if keys.is_empty() { Vec::new() } else { pipeline.query(connection)? };
            for (key, _) in keys.iter().zip(ttls).filter(|(_, ttl)| *ttl == -1) {
                let key = String::from_utf8_lossy(key).into_owned();
                if !self.allowed.lock().unwrap().contains(&key) {
                    self.seen.lock().unwrap().insert(key);
                }
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
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

/// Waits for the end of its standard input: this process holds the other end, however it comes to its own end.
fn reaper(pid: u32, dir: &Path) -> Child {
    Command::new("sh")
        .args(["-c", "trap '' HUP INT TERM; read -r _; kill -s KILL \"$0\"; rm -rf \"$1\"", &pid.to_string()])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Short, because the path of a unix socket has about a hundred bytes at most.
fn new_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("bowline-{}-{n}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return dir.canonicalize().unwrap(),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", dir.display()),
        }
    }
}

/// The rights in the command that docs/acl.md tells operators to run.
pub fn documented_rights() -> Vec<&'static str> {
    let page = include_str!("../../docs/acl.md");
    let rule = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER bowline on >PASSWORD "));
    rule.expect("the command").split(' ').collect()
}
