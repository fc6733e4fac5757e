//! The process of a server, its directory and its end.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::RedisResult;

use super::{START_DEADLINE, Server, connect, documented_rights};

impl Server {
    pub(super) fn launch(&mut self) -> Result<(), Failed> {
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
}

pub(super) enum Failed {
    AddressInUse,
    Other(String),
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

pub(super) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Short, because the path of a unix socket has about a hundred bytes at most.
pub(super) fn new_dir() -> PathBuf {
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
