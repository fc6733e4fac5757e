//! Redis servers that an example starts on free ports. They end with the example.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) type Outcome<T> = Result<T, String>;

/// The servers, in the order of their start, and their folder.
pub(crate) struct Processes {
    pub(crate) dir: PathBuf,
    children: Vec<Child>,
}

impl Processes {
    pub(crate) fn new() -> Outcome<Self> {
        let dir = std::env::temp_dir().join(format!("bowline-example-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        Ok(Self { dir, children: Vec::new() })
    }

    /// Starts a server whose arguments make it listen on `port`.
    pub(crate) fn run(&mut self, port: u16, args: &[&str]) -> Outcome<()> {
        let mut command = Command::new("redis-server");
        command.args(args).args(["--bind", "127.0.0.1", "--save", "", "--dir"]).arg(&self.dir).stdout(Stdio::null());
        self.children.push(command.spawn().map_err(|error| {
            format!("redis-server cannot be started ({error}); install it (on Debian: apt-get install redis-server)")
        })?);
        eventually("the server answers", || ask(port, "PING", "PONG"))
    }

    /// A primary and its replica, with their ports, once the replica follows.
    pub(crate) fn replicated() -> Outcome<(Self, [u16; 2])> {
        let [primary, replica] = [free_port()?, free_port()?];
        let mut servers = Self::new()?;
        servers.run(primary, &["--port", &primary.to_string(), "--repl-diskless-sync-delay", "0"])?;
        servers.run(replica, &["--port", &replica.to_string(), "--replicaof", "127.0.0.1", &primary.to_string()])?;
        eventually("the replica follows", || ask(replica, "INFO replication", "master_link_status:up"))?;
        Ok((servers, [primary, replica]))
    }

    pub(crate) fn kill_first(&mut self) -> Outcome<()> {
        self.children.first_mut().map_or(Ok(()), Child::kill).map_err(|error| error.to_string())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // In reverse order, because sentinels that outlive their master would begin a failover.
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn free_port() -> Outcome<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    socket.map(|address| address.port()).map_err(|error| error.to_string())
}

/// Whether the answer to a command contains `expected`.
pub(crate) fn ask(port: u16, command: &str, expected: &str) -> bool {
    let answer = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        // The answer is short, and comes in one piece.
        let mut answer = [0; 16 * 1024];
        let length = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    };
    answer().is_ok_and(|answer| answer.contains(expected))
}

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Outcome<()> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(format!("not within 20 s: {what}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
