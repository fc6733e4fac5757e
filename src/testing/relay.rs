//! A TCP relay in front of a server, which disturbs the connections that go through it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;

use super::disturb::Disturb;
use crate::mutex::lock;

/// How long the server has to answer `SCRIPT FLUSH`.
const PATIENCE: Duration = Duration::from_secs(10);

/// A TCP relay on the local machine in front of one server. Connect to [`address`](Self::address) instead of the server
/// to have a check [disturb](Disturb) the connection.
///
/// It passes TLS on as it is, so the certificate must be for the relay's address. It cannot stand in front of a cluster
/// or of sentinels, because these name the addresses of servers themselves.
///
/// It sends `SCRIPT FLUSH` to the server, without a login. If the server refuses it, the clause
/// [`LostScripts`](super::Clause::LostScripts) is not checked.
///
/// Its threads end when it is dropped, and its connections are closed.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: Vec<SocketAddr>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    stopped: bool,
    accepted: u64,
    /// Of the connections below this number, nothing that the server sends is passed on.
    silent: u64,
    /// Both ends of every connection.
    sockets: Vec<TcpStream>,
}

impl Relay {
    /// Starts a relay in front of the server at this address, such as `127.0.0.1:6379`.
    ///
    /// # Errors
    /// The address is not resolved, or no port of the local machine can be listened on.
    pub fn start(server: impl ToSocketAddrs) -> io::Result<Self> {
        let server: Vec<SocketAddr> = server.to_socket_addrs()?.collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { server, open: Mutex::default() });
        let accepting = Arc::clone(&shared);
        beside(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Where to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[async_trait]
impl Disturb for Relay {
    async fn cut(&self) {
        lock(&self.shared.open).cut();
    }

    async fn lose_answers(&self) -> bool {
        let mut open = lock(&self.shared.open);
        open.silent = open.accepted;
        true
    }

    async fn forget_scripts(&self) -> bool {
        self.shared.flush_scripts().unwrap_or(false)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        {
            let mut open = lock(&self.shared.open);
            open.stopped = true;
            open.cut();
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).field("server", &self.shared.server).finish()
    }
}

impl Open {
    fn cut(&mut self) {
        for socket in self.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if lock(&self.open).stopped {
                return;
            }
            // A client whose server cannot be reached is closed.
            if let Ok(client) = client {
                let _ = self.join(client);
            }
        }
    }

    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&*self.server)?;
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
        }
        let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
        let number = {
            let mut open = lock(&self.open);
            if open.stopped {
                return Ok(());
            }
            open.sockets.extend([client.try_clone()?, server.try_clone()?]);
            open.accepted += 1;
            open.accepted - 1
        };
        beside(move || copy(from_client, server, || true));
        let shared = Arc::clone(self);
        beside(move || copy(from_server, client, || number >= lock(&shared.open).silent));
        Ok(())
    }

    fn flush_scripts(&self) -> io::Result<bool> {
        let mut server = TcpStream::connect(&*self.server)?;
        server.set_read_timeout(Some(PATIENCE))?;
        server.write_all(b"*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n")?;
        let mut answer = [0];
        server.read_exact(&mut answer)?;
        Ok(answer == *b"+")
    }
}

/// Copies until an end is closed, then closes both. What arrives while it does not `pass` is dropped.
fn copy(mut from: TcpStream, mut to: TcpStream, passes: impl Fn() -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if passes() && to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    for socket in [from, to] {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// Runs `work` on a thread of its own, which ends with its sockets.
#[expect(clippy::disallowed_methods, reason = "the relay stands outside of what is tested")]
fn beside(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work);
}
