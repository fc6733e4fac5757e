use std::net::{Ipv4Addr, TcpListener};

use super::*;

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20)).unwrap()
}

#[test]
fn its_sockets_have_the_options_of_the_others() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = Address::Tcp("127.0.0.1".to_owned(), listener.local_addr().unwrap().port());
    let Socket::Tcp(stream) = open(&address, soon()).unwrap() else { panic!("not a TCP socket") };
    assert!(stream.nodelay().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn an_address_that_is_silent_leaves_time_for_the_next_one() {
    use crate::redis::dial::addresses::lab::Addresses;

    let addresses = Addresses::new();
    let [refusing, silent, accepting] = addresses.list();
    let deadline = || Deadline::after(Duration::from_secs(3)).unwrap();
    let stream = first(&addresses.list(), deadline()).unwrap();
    assert_eq!(stream.peer_addr().unwrap(), accepting);
    assert_eq!(first(&[silent, refusing], deadline()).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}

/// The system has no time limit for these sockets.
#[cfg(target_os = "linux")]
#[test]
fn a_unix_socket_that_takes_no_one_costs_no_more_than_was_given() {
    use socket2::{Domain, SockAddr, Socket, Type};

    let path = std::env::temp_dir().join(format!("bowline-full-{}", std::process::id()));
    let (address, new) = (SockAddr::unix(&path).unwrap(), || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap());
    let (listener, waits) = (new(), new());
    listener.bind(&address).unwrap();
    listener.listen(0).unwrap();
    // There is room for one that was not accepted.
    waits.connect(&address).unwrap();
    let target = Target::parse(&format!("unix://{}", path.display())).unwrap();
    assert!(dial(&target, &SocketDeadline::new(Deadline::after(Duration::from_millis(50)).unwrap())).is_none());
    std::fs::remove_file(path).unwrap();
}
