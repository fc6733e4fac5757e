//! Opens sockets of std within a deadline.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::super::dial::deadline::{Deadline, SocketDeadline};
use super::super::dial::tune;
use super::super::url::address::Address;
use super::super::url::target::Target;

/// A blocking stream to the server, whatever carries it.
pub(super) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

/// Opens a stream to the target, with TLS if needed. No step takes longer than the deadline, nor does any read or write
/// of the stream.
pub(super) fn dial(target: &Target, until: &SocketDeadline) -> Option<Box<dyn Duplex>> {
    let deadline = until.get();
    let (opened, socket) = mpsc::channel();
    let address = target.address.clone();
    // The system offers no time limit for resolving a name or connecting to a unix socket. If one takes longer, its
    // thread is left behind, and ends when the system answers.
    let dialling = thread::Builder::new().name("bowline-dial".to_owned()).spawn(move || {
        let _ = opened.send(open(&address, deadline));
    });
    drop(dialling.ok()?);
    let socket = socket.recv_timeout(deadline.left().ok()?).ok()?.ok()?;
    let timed = Timed { socket, until: until.clone() };
    #[cfg(feature = "tls")]
    if let Some(tls) = &target.tls {
        return Some(Box::new(tls.wrap_blocking(timed)?));
    }
    Some(Box::new(timed))
}

fn open(address: &Address, deadline: Deadline) -> io::Result<Socket> {
    match address {
        Address::Tcp(host, port) => {
            let addresses: Vec<_> = (&**host, *port).to_socket_addrs()?.collect();
            Ok(Socket::Tcp(first(&addresses, deadline)?))
        }
        #[cfg(unix)]
        Address::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path)?)),
    }
}

/// Connects to the first of these addresses that accepts. One that is silent leaves time for the others.
fn first(addresses: &[SocketAddr], deadline: Deadline) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for (place, address) in addresses.iter().enumerate() {
        let parts = u32::try_from(addresses.len() - place).unwrap_or(u32::MAX);
        match connect(address, deadline.share(parts)?.left()?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn connect(address: &SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, within)?;
    tune(&stream)?;
    Ok(stream)
}

enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// A socket whose every read and write ends by the deadline.
struct Timed {
    socket: Socket,
    until: SocketDeadline,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        self.until.get().left().map(Some)
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.socket {
            Socket::Tcp(socket) => socket.set_read_timeout(left).and_then(|()| socket.read(buffer)),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.set_read_timeout(left).and_then(|()| socket.read(buffer)),
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.socket {
            Socket::Tcp(socket) => socket.set_write_timeout(left).and_then(|()| socket.write(bytes)),
            #[cfg(unix)]
            Socket::Unix(socket) => socket.set_write_timeout(left).and_then(|()| socket.write(bytes)),
        }
    }

    /// Sockets have no buffer to flush.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
