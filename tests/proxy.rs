//! The proxy itself: each fault does what it says, and only that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult};
use support::proxy::Proxy;
use support::server::Server;

fn connect(proxy: &Proxy) -> RedisResult<Connection> {
    let connection = Client::open(proxy.url()).unwrap().get_connection_with_timeout(Duration::from_secs(5))?;
    timeout(&connection, 5_000);
    Ok(connection)
}

fn timeout(connection: &Connection, millis: u64) {
    connection.set_read_timeout(Some(Duration::from_millis(millis))).unwrap();
}

fn ping(connection: &mut Connection) -> RedisResult<()> {
    redis::cmd("PING").exec(connection)
}

fn incr(connection: &mut Connection) -> RedisResult<()> {
    redis::pipe().atomic().cmd("INCR").arg("n").cmd("PEXPIRE").arg("n").arg(60_000).exec(connection)
}

#[track_caller]
fn wait_for_count(server: &Server, expected: i64) {
    let start = Instant::now();
    while count(server) != expected {
        assert!(start.elapsed() < Duration::from_secs(10), "{} executed, not {expected}", count(server));
        thread::sleep(Duration::from_millis(2));
    }
}

fn count(server: &Server) -> i64 {
    redis::cmd("GET").arg("n").query::<Option<i64>>(&mut server.client()).unwrap().unwrap_or(0)
}

#[test]
fn a_cut_closes_what_is_open_and_nothing_else() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (mut a, mut b) = (connect(&proxy).unwrap(), connect(&proxy).unwrap());
    ping(&mut a).unwrap();
    proxy.cut();
    assert!(ping(&mut a).is_err());
    assert!(ping(&mut b).is_err());
    ping(&mut connect(&proxy).unwrap()).unwrap();
}

#[test]
fn a_cut_at_every_byte_of_a_request_executes_it_wholly_or_not_at_all() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut connection = connect(&proxy).unwrap();
    let before = proxy.forwarded();
    incr(&mut connection).unwrap();
    let length = proxy.forwarded() - before;
    assert!(length > 20, "{length}");
    let mut executed = 1;
    for n in 1..=length {
        let mut connection = connect(&proxy).unwrap();
        proxy.cut_after(n);
        assert!(incr(&mut connection).is_err() || n == length, "byte {n} of {length}");
        executed += i64::from(n == length);
        wait_for_count(&server, executed);
    }
}

#[test]
fn a_dropped_reply_is_of_a_call_that_was_executed() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut connection = connect(&proxy).unwrap();
    proxy.drop_replies(true);
    timeout(&connection, 200);
    assert!(incr(&mut connection).is_err());
    wait_for_count(&server, 1);
    proxy.drop_replies(false);
    incr(&mut connect(&proxy).unwrap()).unwrap();
}

#[test]
fn what_is_stalled_arrives_in_the_end() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut connection = connect(&proxy).unwrap();
    proxy.stall(true);
    timeout(&connection, 200);
    assert!(incr(&mut connection).is_err());
    assert_eq!(count(&server), 0);
    proxy.stall(false);
    wait_for_count(&server, 1);
}

#[test]
fn refused_connections_do_not_disturb_open_ones() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut open = connect(&proxy).unwrap();
    proxy.refuse(true);
    assert!(connect(&proxy).is_err());
    ping(&mut open).unwrap();
    proxy.refuse(false);
    ping(&mut connect(&proxy).unwrap()).unwrap();
}

#[test]
fn a_new_target_is_for_new_connections() {
    let servers = [Server::start(), Server::start()];
    let proxy = Proxy::start(servers[0].port());
    let mut open = connect(&proxy).unwrap();
    proxy.lead_to(servers[1].port());
    incr(&mut open).unwrap();
    let mut new = connect(&proxy).unwrap();
    incr(&mut new).unwrap();
    incr(&mut new).unwrap();
    assert_eq!(servers.each_ref().map(count), [1, 2]);
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn silence_is_for_open_connections() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut open = connect(&proxy).unwrap();
    proxy.silence();
    timeout(&open, 200);
    assert!(incr(&mut open).is_err());
    incr(&mut connect(&proxy).unwrap()).unwrap();
    assert_eq!(count(&server), 1);
}
