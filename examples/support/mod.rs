//! A server for the examples: the one at `REDIS_URL`, else a `redis-server` of their own, which is stopped at the end.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The address of a server, and its process if this program started it.
pub(crate) struct Server {
    pub(crate) url: String,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn find() -> Result<Self, String> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the server at REDIS_URL");
            return Ok(Self { url, child: None });
        }
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(|e| e.to_string())?;
        let port = port.port().to_string();
        let child = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            // A dump of another server in this folder is not loaded.
            .args(["--dbfilename", "none.rdb"])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!(
                    "There is no Redis to talk to: REDIS_URL is not set, and redis-server cannot be started ({error}).\n\
                     Install it (on Debian: apt-get install redis-server), or set REDIS_URL=redis://host:port/"
                )
            })?;
        println!("using a redis-server of our own on port {port}");
        let mut server = Self { url: format!("redis://127.0.0.1:{port}/"), child: Some(child) };
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            if let Some(Ok(Some(status))) = server.child.as_mut().map(Child::try_wait) {
                return Err(format!("redis-server ended at once: {status}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
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
