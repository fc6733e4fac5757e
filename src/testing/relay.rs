//! A TCP relay in front of a server, which disturbs the connections that go through it.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;

use super::disturb::Disturb;
use crate::mutex::lock;

/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

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
    /// Both ends of every connection that is open, by its number.
    sockets: HashMap<u64, [TcpStream; 2]>,
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
        for (_, ends) in self.sockets.drain() {
            shut(ends);
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
            match client {
                Ok(client) => drop(self.join(client)),
                // The program may have no descriptor left for some time.
                Err(_) => rest(),
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
            let ends = [client.try_clone()?, server.try_clone()?];
            let number = open.accepted;
            open.sockets.insert(number, ends);
            open.accepted += 1;
            number
        };
        let [there, back] = [(); 2].map(|()| Arc::clone(self));
        beside(move || {
            copy(from_client, server, || true);
            lock(&there.open).sockets.remove(&number);
        });
        beside(move || {
            copy(from_server, client, || number >= lock(&back.open).silent);
            lock(&back.open).sockets.remove(&number);
        });
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
    shut([from, to]);
}

fn shut(ends: [TcpStream; 2]) {
    for socket in ends {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

#[expect(clippy::disallowed_methods, reason = "the relay stands outside of what is tested")]
fn rest() {
    thread::sleep(PAUSE);
}

/// Runs `work` on a thread of its own, which ends with its sockets.
#[expect(clippy::disallowed_methods, reason = "the relay stands outside of what is tested")]
fn beside(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(holds: impl Fn() -> bool) {
        for _ in 0..1000 {
            if holds() {
                return;
            }
            rest();
        }
        panic!("never");
    }

    /// A test may connect more often than a program may open files.
    #[test]
    fn a_connection_that_has_ended_keeps_no_socket() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::start(server.local_addr().unwrap()).unwrap();
        let open = || lock(&relay.shared.open).sockets.len();
        for client_ends_first in [true, false] {
            let client = TcpStream::connect(relay.address()).unwrap();
            let (accepted, _) = server.accept().unwrap();
            until(|| open() == 1);
            let (first, second) = if client_ends_first { (client, accepted) } else { (accepted, client) };
            drop(first);
            until(|| open() == 0);
            drop(second);
        }
    }
}
