//! Three addresses of one name, of which only the last accepts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};

/// The addresses of a machine: one refuses, one is silent, and one accepts.
pub(crate) struct Addresses {
    refusing: Socket,
    silent: Socket,
    /// They have filled the queue of the silent one, so the system drops every further attempt.
    _queued: [Socket; 2],
    pub(crate) accepting: TcpListener,
}

impl Addresses {
    pub(crate) fn new() -> Self {
        let [refusing, silent] = [(); 2].map(|()| {
            let socket = tcp();
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
            socket
        });
        silent.listen(0).unwrap();
        let queued = [(); 2].map(|()| {
            let socket = tcp();
            socket.set_nonblocking(true).unwrap();
            // The attempt has begun, and that is all it takes.
            socket.connect(&silent.local_addr().unwrap()).unwrap_err();
            socket
        });
        let accepting = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { refusing, silent, _queued: queued, accepting }
    }

    pub(crate) fn list(&self) -> [SocketAddr; 3] {
        let [refusing, silent] = [&self.refusing, &self.silent].map(|socket| socket.local_addr().unwrap());
        [refusing.as_socket().unwrap(), silent.as_socket().unwrap(), self.accepting.local_addr().unwrap()]
    }
}

fn tcp() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
}
