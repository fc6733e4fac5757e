//! Opens sockets: the interface that each runtime implements, and the options of every socket.

use std::fmt;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncWrite};
use futures::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};

#[cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))]
pub(crate) mod addresses;
mod agreed;
pub(super) mod ahead;
pub(super) mod checks;
pub(super) mod deadline;
#[cfg(feature = "_wire")]
pub mod dialled;
pub(super) mod gate;
pub(super) mod handshake;
pub(super) mod introduction;
pub(super) mod locate;
pub(super) mod one_sided;
pub(super) mod progress;
mod renewal;
pub(super) mod wishes;

/// A byte stream to the server over any transport. The traits are those of tokio, but need no tokio runtime.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub(crate) type Stream = Box<dyn Duplex>;

/// The reasons why a socket could not be opened.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The host's name could not be resolved.
    Name(io::Error),
    Socket(io::Error),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

pub(crate) type Dialled = Result<Stream, DialError>;

/// The sockets of a runtime. Only polled in tasks of that runtime.
pub(crate) trait Dial: fmt::Debug + Send + Sync + 'static {
    /// Opens a TCP connection, with the [`tune`]d options. `host` is a name or an address without brackets.
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled>;

    /// Opens a unix socket.
    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled>;

    /// A seed for jitter, so that the connections of many programs do not all come back at once.
    #[expect(clippy::disallowed_methods, reason = "a connection is one of many, and nothing else says which")]
    fn seed(&self) -> u64 {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        high ^ low
    }
}

/// The silence after which the kernel begins to probe whether the other side still exists.
const IDLE: Duration = Duration::from_secs(10);
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd", target_os = "windows"))]
const INTERVAL: Duration = Duration::from_secs(5);
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd", target_os = "windows"))]
const RETRIES: u32 = 3;

/// Disables the delay of small writes, and enables probes that detect a dead peer after 25 s even if nothing is sent.
pub(crate) fn tune<'a, S>(socket: &'a S) -> io::Result<()>
where
    SockRef<'a>: From<&'a S>,
{
    let socket = SockRef::from(socket);
    refuse_itself(&socket)?;
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(IDLE);
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd", target_os = "windows"))]
    let keepalive = keepalive.with_interval(INTERVAL).with_retries(RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    // Keepalive probes are not sent while sent data is unacknowledged. This limit covers that case.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(IDLE + INTERVAL * RETRIES))?;
    Ok(())
}

/// Refuses a socket that is connected to itself. The system may give a client's socket the very port to which it
/// connects, if that port is on the same host, in the range of client ports, and without a listener. Such a client
/// would read its own commands as answers, and keep the server from returning to its port.
fn refuse_itself(socket: &SockRef<'_>) -> io::Result<()> {
    if socket.local_addr()?.as_socket() == socket.peer_addr()?.as_socket() {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "no server listens"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_connection_to_itself_is_none() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        // Not every system can connect a socket to itself.
        if socket.connect(&socket.local_addr().unwrap()).is_ok() {
            assert_eq!(tune(&socket).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        }
    }

    #[test]
    fn options_are_set() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        tune(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
        assert!(SockRef::from(&stream).keepalive().unwrap());
        // Three probes, the first after 10 s of silence.
        #[cfg(target_os = "linux")]
        {
            let socket = SockRef::from(&stream);
            assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(10));
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(5));
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        }
        #[cfg(target_os = "linux")]
        assert_eq!(SockRef::from(&stream).tcp_user_timeout().unwrap(), Some(Duration::from_secs(25)));
    }
}
