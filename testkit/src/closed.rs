//! An address at which nobody listens.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of this machine that refuses connections. It is taken until this is dropped: otherwise the system would soon
/// give it to a server of another test.
pub struct ClosedPort(Socket);

impl ClosedPort {
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        Self(socket)
    }

    pub fn port(&self) -> u16 {
        self.0.local_addr().unwrap().as_socket().expect("it is of IPv4").port()
    }
}

impl Default for ClosedPort {
    fn default() -> Self {
        Self::new()
    }
}
