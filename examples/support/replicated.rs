//! Where the example finds a primary with a replica: at `REDIS_URL`, else two servers of its own, gone when it ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The URL of the primary, and the processes if they are ours: the primary first.
pub(crate) struct Replicated {
    pub(crate) url: String,
    processes: Vec<Child>,
    replica: u16,
}

type Outcome<T> = Result<T, String>;

impl Replicated {
    pub(crate) fn find() -> Outcome<Self> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the server at REDIS_URL, which needs a replica");
            return Ok(Self { url, processes: Vec::new(), replica: 0 });
        }
        let [primary, replica] = [free_port()?, free_port()?];
        let url = format!("redis://127.0.0.1:{primary}/");
        let mut servers = Self { url, processes: Vec::new(), replica };
        servers.run(primary, &["--repl-diskless-sync-delay", "0"])?;
        servers.run(replica, &["--replicaof", "127.0.0.1", &primary.to_string()])?;
        eventually("the replica follows", || ask(replica, "INFO replication", "master_link_status:up"))?;
        println!("using a primary on port {primary} and its replica on {replica}");
        Ok(servers)
    }

    /// Kills the primary, makes the replica the primary and returns its URL. `None`: the servers are not ours.
    pub(crate) fn fail_over(&mut self) -> Outcome<Option<String>> {
        let Some(primary) = self.processes.first_mut() else { return Ok(None) };
        primary.kill().map_err(|error| error.to_string())?;
        eventually("the replica is the primary", || ask(self.replica, "REPLICAOF NO ONE", "OK"))?;
        Ok(Some(format!("redis://127.0.0.1:{}/", self.replica)))
    }

    fn run(&mut self, port: u16, args: &[&str]) -> Outcome<()> {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
        let started = command.arg(std::env::temp_dir()).args(args).stdout(Stdio::null()).spawn();
        self.processes.push(started.map_err(|error| {
            format!("redis-server cannot be started ({error}); install it (on Debian: apt-get install redis-server)")
        })?);
        eventually("the server answers", || ask(port, "PING", "PONG"))
    }
}

impl Drop for Replicated {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn free_port() -> Outcome<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    socket.map(|address| address.port()).map_err(|error| error.to_string())
}

/// Whether the answer to a command contains this.
fn ask(port: u16, command: &str, expected: &str) -> bool {
    let answer = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut answer = [0; 16 * 1024];
        let length = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    };
    answer().is_ok_and(|answer| answer.contains(expected))
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) -> Outcome<()> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(format!("not within 20 s: {what}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
