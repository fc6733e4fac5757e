//! Three independent servers for the example, which are stopped at the end.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) struct Masters {
    pub(crate) urls: Vec<String>,
    children: Vec<Child>,
}

impl Masters {
    pub(crate) fn start() -> Result<Self, String> {
        let mut masters = Self { urls: Vec::new(), children: Vec::new() };
        for _ in 0..3 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
            let port = port.map_err(|error| error.to_string())?.port().to_string();
            let child = Command::new("redis-server")
                .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
                // A dump of another server in this folder is not loaded.
                .args(["--dbfilename", "none.rdb"])
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| format!("redis-server cannot be started: {error}"))?;
            masters.children.push(child);
            masters.urls.push(format!("redis://127.0.0.1:{port}/"));
            for _ in 0..500 {
                if TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        println!("using three redis-servers of our own: {}", masters.urls.join(", "));
        Ok(masters)
    }

    /// Kills a server.
    pub(crate) fn kill(&mut self, n: usize) {
        if let Some(child) = self.children.get_mut(n) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Masters {
    fn drop(&mut self) {
        (0..self.children.len()).for_each(|n| self.kill(n));
    }
}
