//! A child process that listens on a port: its port, its directory and its end.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult};

pub const START_DEADLINE: Duration = Duration::from_secs(20);

/// A Redis server or sentinel. Dropping it kills the process and removes the directory.
pub struct Process {
    port: u16,
    dir: PathBuf,
    child: Option<Child>,
    /// Kills the process and removes the directory if this process ends without having done so.
    reaper: Option<Child>,
}

/// The arguments of a process, which depend on its port and directory.
pub type Arguments<'a> = &'a dyn Fn(&Process) -> Vec<OsString>;

impl Process {
    /// Starts a process on a port that `free_port` chooses.
    pub fn start(free_port: fn() -> u16, arguments: Arguments<'_>) -> Self {
        let mut process = Self { port: 0, dir: new_dir(), child: None, reaper: None };
        for _ in 0..20 {
            process.port = free_port();
            match process.launch(arguments) {
                Ok(()) => return process,
                // Another process was given the port meanwhile.
                Err(Failed::AddressInUse) => {}
                Err(Failed::Other(log)) => panic!("the server did not start:\n{log}"),
            }
        }
        panic!("no free port in 20 tries");
    }

    /// Starts the process again on the same port and directory; kills it first.
    pub fn restart(&mut self, arguments: Arguments<'_>) {
        self.kill();
        let start = Instant::now();
        loop {
            match self.launch(arguments) {
                Ok(()) => return,
                Err(Failed::AddressInUse) if start.elapsed() < START_DEADLINE => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(Failed::AddressInUse) => panic!("port {} was taken by another process", self.port),
                Err(Failed::Other(log)) => panic!("the server did not restart:\n{log}"),
            }
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// SIGKILL, also of a stopped process.
    pub fn kill(&mut self) {
        // The reaper is killed first, because the process id of an ended server may be given to another process.
        for mut child in [self.reaper.take(), self.child.take()].into_iter().flatten() {
            let _ = child.kill();
            child.wait().expect("the killed process");
        }
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.pid().expect("the server runs");
        let status = Command::new("sh").arg("-c").arg(format!("kill -s {signal} {pid}")).status().unwrap();
        assert!(status.success(), "kill -s {signal} {pid}: {status}");
    }

    fn launch(&mut self, arguments: Arguments<'_>) -> Result<(), Failed> {
        let binary = std::env::var("BOWLINE_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let log_path = self.dir.join("server.log");
        let log = File::create(&log_path).unwrap();
        let child = Command::new(&binary)
            .args(arguments(self))
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
            // The process that answers must be this one: another may own the port.
            if self.answers().is_ok_and(|pid| Some(pid) == self.pid()) {
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

    /// The number of the process that answers on the port.
    fn answers(&self) -> RedisResult<u32> {
        let mut connection = connect(&self.url(), Duration::from_secs(1))?;
        redis::cmd("PING").exec(&mut connection)?;
        let info: String = redis::cmd("INFO").arg("server").query(&mut connection)?;
        Ok(info_field(&info, "process_id").and_then(|pid| pid.parse().ok()).unwrap_or_default())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

enum Failed {
    AddressInUse,
    Other(String),
}

/// No read or write on the connection takes longer than `timeout`.
pub fn connect(url: &str, timeout: Duration) -> RedisResult<Connection> {
    let connection = Client::open(url)?.get_connection_with_timeout(timeout)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    Ok(connection)
}

/// The value of a field in an answer of `INFO`.
pub fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
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

pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// A port whose cluster bus port, which is 10,000 higher, is free too. Both are below the ports that the system gives
/// to outgoing connections.
pub fn free_cluster_port() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Each process begins at a random port. Otherwise all processes started at the same time would try the same one.
    let random = || RandomState::new().hash_one(0);
    let mut candidates = std::iter::repeat_with(|| 11_000 + (random() % 10_000) as u16);
    candidates.find(|&port| free(port) && free(port + 10_000)).expect("an endless iterator")
}

/// Short, because the path of a unix socket has about a hundred bytes at most. In memory where the system has such a
/// directory: a node of a cluster syncs a file at each change of a slot, and a disk that is busy takes so long that a
/// test which moves slots times out.
fn new_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = base.join(format!("bowline-{}-{n}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return dir.canonicalize().unwrap(),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", dir.display()),
        }
    }
}
