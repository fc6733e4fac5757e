use std::cell::{Cell, RefCell};
use std::future::ready;
use std::net::{Ipv4Addr, Ipv6Addr};

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;

use super::*;

/// What is tried, in order: ports, and `None` for a pause.
type Tried = RefCell<Vec<Option<u16>>>;

fn v4(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn v6(port: u16) -> SocketAddr {
    (Ipv6Addr::LOCALHOST, port).into()
}

/// Ports below 10 refuse, ports below 20 are silent, and the others accept.
fn tried(ports: &[u16]) -> (Result<u16, DialError>, Vec<Option<u16>>) {
    let tried = Tried::default();
    let connect = |address: SocketAddr| -> BoxFuture<'static, io::Result<u16>> {
        tried.borrow_mut().push(Some(address.port()));
        match address.port() {
            ..10 => Box::pin(ready(Err(io::Error::other(address.port().to_string())))),
            10..20 => Box::pin(pending()),
            port => Box::pin(ready(Ok(port))),
        }
    };
    let pause = || {
        tried.borrow_mut().push(None);
        ready(())
    };
    let connected = block_on(first(ports.iter().copied().map(v4), connect, pause));
    (connected, tried.take())
}

#[test]
fn the_first_that_accepts_is_taken_and_no_other_is_asked() {
    let (connected, tried) = tried(&[20, 21]);
    assert_eq!((connected.unwrap(), tried), (20, vec![Some(20)]));
}

#[test]
fn one_that_refuses_does_not_delay_the_next() {
    let (connected, tried) = tried(&[1, 2, 20]);
    assert_eq!((connected.unwrap(), tried), (20, vec![Some(1), Some(2), Some(20)]));
}

#[test]
fn one_that_is_silent_delays_the_next_by_one_pause() {
    let (connected, tried) = tried(&[10, 11, 20]);
    assert_eq!((connected.unwrap(), tried), (20, vec![Some(10), None, Some(11), None, Some(20)]));
}

#[test]
fn one_that_is_silent_may_still_accept_while_the_next_is_tried() {
    let (accept, accepted) = futures::channel::oneshot::channel();
    let (accept, accepted, pauses) = (Cell::new(Some(accept)), Cell::new(Some(accepted)), Cell::new(0));
    let connect = |address: SocketAddr| -> BoxFuture<'static, io::Result<u16>> {
        if let Some(accepted) = accepted.take() {
            return Box::pin(accepted.map(move |_| Ok(address.port())));
        }
        accept.take().unwrap().send(()).unwrap();
        Box::pin(pending())
    };
    let pause = || {
        pauses.set(pauses.get() + 1);
        ready(())
    };
    assert_eq!(block_on(first([v4(10), v4(11)], connect, pause)).unwrap(), 10);
    assert_eq!(pauses.get(), 1, "the last address has no next one to wait for");
}

#[test]
fn if_none_accepts_the_last_failure_is_told() {
    let (connected, _) = tried(&[1, 2]);
    assert!(matches!(connected, Err(DialError::Socket(error)) if error.to_string() == "2"));
    let (connected, tried) = tried(&[]);
    assert!(matches!(connected, Err(DialError::Name(_))));
    assert!(tried.is_empty());
}

#[test]
fn the_families_take_turns() {
    let addresses = [v6(1), v6(2), v6(3), v4(4), v4(5)];
    assert_eq!(alternate(addresses), [v6(1), v4(4), v6(2), v4(5), v6(3)]);
    assert_eq!(alternate([v4(1), v4(2), v6(3)]), [v4(1), v6(3), v4(2)]);
}
