//! Where the example finds sentinels: at `REDIS_URL`, else a master, a replica and three sentinels of its own, gone when it ends.

use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The URL of the sentinels, and the processes if they are ours: the master first.
pub(crate) struct Sentinels {
    pub(crate) url: String,
    processes: Vec<Child>,
    dir: PathBuf,
}

type Outcome<T> = Result<T, String>;

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Sentinels {
    pub(crate) fn find() -> Outcome<Self> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the sentinels at REDIS_URL");
            return Ok(Self { url, processes: Vec::new(), dir: PathBuf::new() });
        }
        let dir = std::env::temp_dir().join(format!("bowline-example-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(text)?;
        let mut servers = Self { url: String::new(), processes: Vec::new(), dir };
        let [master, replica] = [free_port()?, free_port()?];
        let replicates = "--repl-diskless-sync-delay";
        servers.run(master, &["--port", &master.to_string(), replicates, "0"])?;
        servers.run(replica, &["--port", &replica.to_string(), "--replicaof", "127.0.0.1", &master.to_string()])?;
        eventually("the replica follows", || ask(replica, "INFO replication", "master_link_status:up"))?;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            let port = free_port()?;
            let file = servers.dir.join(format!("{port}.conf"));
            let watched = format!("sentinel monitor mymaster 127.0.0.1 {master} 2");
            let soon = "sentinel down-after-milliseconds mymaster 500\nsentinel failover-timeout mymaster 3000";
            fs::write(&file, format!("port {port}\n{watched}\n{soon}\n")).map_err(text)?;
            servers.run(port, &[&file.display().to_string(), "--sentinel"])?;
            sentinels.push(port);
        }
        for port in &sentinels {
            eventually("the sentinels know each other", || ask(*port, "INFO sentinel", "slaves=1,sentinels=3"))?;
        }
        println!("using a master on port {master}, a replica on {replica} and sentinels on {sentinels:?}");
        let hosts: Vec<String> = sentinels.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        servers.url = format!("redis-sentinel://{}/?master=mymaster", hosts.join(","));
        Ok(servers)
    }

    pub(crate) fn kill_master(&mut self) -> Outcome<()> {
        if let Some(master) = self.processes.first_mut() {
            println!("the master is killed");
            master.kill().map_err(text)?;
        }
        Ok(())
    }

    fn run(&mut self, port: u16, args: &[&str]) -> Outcome<()> {
        let mut command = Command::new("redis-server");
        command.args(args).args(["--bind", "127.0.0.1", "--save", "", "--dir"]).arg(&self.dir).stdout(Stdio::null());
        let started = command.spawn();
        self.processes.push(started.map_err(|error| {
            format!("redis-server cannot be started ({error}); install it (on Debian: apt-get install redis-server)")
        })?);
        eventually("the server answers", || ask(port, "PING", "PONG"))
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        // The sentinels first, or they would begin a failover.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        if !self.processes.is_empty() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn free_port() -> Outcome<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    Ok(socket.local_addr().map_err(text)?.port())
}

/// Whether the answer to a command contains this.
fn ask(port: u16, command: &str, expected: &str) -> bool {
    let answer = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        // It is short, and comes at once.
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
