//! Clients on threads of bowline's own, with the sockets of smol.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::threads::Threads;
use bowline::{Client, Config, ErrorKind, blocking};
use futures::executor::block_on;

use crate::deployed::eventually;
use crate::support::adapters::{BOUND, bounded};
use crate::support::server::Server;

fn connect(server: &Server, lease: Duration) -> (Threads, blocking::Client) {
    let threads = Threads::new(1).unwrap();
    let config = Config::builder().lease(lease).build().unwrap();
    let client = block_on(async {
        let executor = Arc::new(threads.clone());
        let connection = bowline::smol::open(executor.clone(), server.url(), &config).await.unwrap();
        Client::connect(executor, Arc::new(connection), config).await.unwrap()
    });
    (threads, client.into())
}

#[test]
fn a_lock_is_renewed_and_handed_over() {
    bounded(|| {
        let server = Server::start();
        let [(_, first), (_, second)] = [connect(&server, BOUND / 10), connect(&server, BOUND / 10)];
        let guard = first.lock("orders").lock().block().unwrap();
        let token = guard.token();
        let waiter = {
            let second = second.clone();
            thread::spawn(move || {
                let guard = second.lock("orders").lock().block().unwrap();
                let token = guard.token();
                guard.release().unwrap();
                token
            })
        };
        eventually("the lease is renewed", || first.stats().renewals > 0 && second.stats().waiting == 1);
        guard.release().unwrap();
        assert!(waiter.join().unwrap() > token);
        for client in [first, second] {
            client.close().unwrap();
        }
        assert!(server.keys().iter().all(|key| key.ends_with(":fence")), "{:?}", server.keys());
    });
}

#[test]
fn a_client_whose_threads_are_shut_down_says_good_bye() {
    bounded(|| {
        let server = Server::start();
        let (threads, client) = connect(&server, 100 * BOUND);
        let (_, other) = connect(&server, 100 * BOUND);
        let guard = client.lock("orders").lock().block().unwrap();
        threads.shut_down();
        other.lock("orders").lock().timeout(BOUND).block().unwrap().release().unwrap();
        assert_eq!(client.lock("orders").lock().block().unwrap_err().kind(), ErrorKind::Closed);
        drop(guard);
        other.close().unwrap();
    });
}
