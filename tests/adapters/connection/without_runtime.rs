//! The connection for the moment when the runtime is gone: calls block the thread that polls, and all calls share one
//! deadline.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bowline::{Arg, Call, Connection, ConnectionError, Reply};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::join_all;
use socket2::{Domain, Socket, Type};

use super::SHORT;
use super::calls::executed;
use crate::support::adapters::{
    BOUND, Keys, Runtime, acquire, acquire_all, admin, field, inspect, ours, release, script, word,
};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

/// As long as a test may take: a call that runs into it fails the test.
const LONG: Duration = Duration::from_secs(30);

pub(crate) async fn calls_need_no_runtime(rt: Runtime) {
    let server = Server::start();
    let mut root = server.client();
    redis::cmd("ACL").arg(&["SETUSER", "alice", "on", ">s3cret/", "~*", "&*", "+@all"]).exec(&mut root).unwrap();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0ther"]).exec(&mut root).unwrap();
    let (port, path) = (server.port(), server.socket_path());
    for (url, db) in [
        (format!("redis://alice:s3cret%2F@127.0.0.1:{port}/5"), "5"),
        (format!("redis://:0ther@localhost:{port}/"), "0"),
        (format!("unix://{}?db=3&pass=0ther", path.display()), "3"),
    ] {
        let connection = rt.connect(&url).await;
        // The same happens when the tasks are dropped with their runtime.
        connection.close();
        let blocking = connection.without_runtime(LONG).expect(&url);
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut root).unwrap();
        let line = list.lines().find(|line| line.contains(" resp=3")).expect("it is connected");
        assert_eq!(field(line, "db"), db, "{url}");
        let keys = Keys::of("a");
        assert_eq!(word(&acquire(&*blocking, &keys, "c1:1").await), "GRANTED");
        assert_eq!(word(&acquire(&*blocking, &keys, "c2:1").await), "BUSY");
        redis::cmd("SCRIPT").arg("FLUSH").exec(&mut root).unwrap();
        let words: Vec<_> = acquire_all(&*blocking, &[Keys::of("b"), keys], "c2:1").await.iter().map(word).collect();
        assert_eq!(words, ["GRANTED", "BUSY"]);
        assert_eq!(word(&release(&*blocking, &Keys::of("a"), "c1:1").await), "RELEASED");
        let shown = format!("{blocking:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("0ther"), "{shown}");
        assert_eq!(blocking.subscribe("test:channel").await.err(), Some(ConnectionError::Closed));
        blocking.close();
        assert_eq!(inspect(&*blocking, &Keys::of("a")).await, Err(ConnectionError::Closed));
        redis::cmd("FLUSHALL").exec(&mut root).unwrap();
    }
}

/// No task is woken: the caller polls again and again.
pub(crate) async fn calls_polled_together_are_written_together(rt: Runtime) {
    let server = Server::start();
    let blocking = rt.connect(&server.url()).await.without_runtime(LONG).unwrap();
    admin(&server, &["CONFIG", "RESETSTAT"]);
    let locks: Vec<_> = (0..300).map(|n| Keys::of(&format!("l{n}"))).collect();
    let mut calls: Vec<_> = locks.iter().map(|keys| acquire(&*blocking, keys, "c1:1").boxed()).collect();
    let mut context = Context::from_waker(Waker::noop());
    assert!(calls.iter_mut().all(|call| call.poll_unpin(&mut context).is_pending()));
    assert_eq!((executed(&server, "eval"), executed(&server, "evalsha")), (0, 0));
    // The answer of the last call comes after all others.
    assert!(calls.pop().unwrap().poll_unpin(&mut context).is_ready());
    assert_eq!((executed(&server, "eval"), executed(&server, "evalsha")), (1, 299));
    let mut rest = pin!(join_all(calls));
    let std::task::Poll::Ready(words) = rest.as_mut().poll(&mut context) else { panic!("the answers are there") };
    assert!(words.iter().all(|outcome| word(outcome) == "GRANTED"));
}

pub(crate) async fn a_server_that_cannot_be_reached_costs_no_more_than_was_given(rt: Runtime) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let connection = rt.connect(&proxy.url()).await;
    let within = |given: Duration| {
        let start = Instant::now();
        let connected = connection.without_runtime(given);
        assert!(start.elapsed() < given + BOUND / 4, "{:?}", start.elapsed());
        connected
    };
    assert!(within(Duration::ZERO).is_none());
    assert!(within(LONG).is_some());
    // The server accepts and sends nothing.
    proxy.stall(true);
    assert!(within(SHORT).is_none());
    proxy.stall(false);
    // The server closes each connection.
    proxy.refuse(true);
    assert!(within(LONG).is_none());
    // No server listens.
    let port = proxy.port();
    drop(proxy);
    assert!(within(LONG).is_none());
    // A black hole: no process accepts connections, and the backlog is full.
    let hole = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    hole.set_reuse_address(true).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    hole.bind(&address.into()).unwrap();
    hole.listen(0).unwrap();
    let filled: Vec<_> = (0..64).map_while(|_| TcpStream::connect_timeout(&address, SHORT / 4).ok()).collect();
    assert!(filled.len() < 64, "it takes whatever comes");
    assert!(within(SHORT).is_none());
}

pub(crate) async fn a_login_that_is_refused_is_no_connection(rt: Runtime) {
    let server = Server::start();
    let mut root = server.client();
    redis::cmd("ACL").arg(&["SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all"]).exec(&mut root).unwrap();
    let connection = rt.connect(&server.url().replace("://", "://alice:s3cret@")).await;
    assert!(connection.without_runtime(LONG).is_some());
    redis::cmd("ACL").arg(&["SETUSER", "alice", "resetpass", ">0ther"]).exec(&mut root).unwrap();
    assert!(connection.without_runtime(LONG).is_none());
}

pub(crate) async fn a_server_that_falls_silent_costs_no_more_than_was_given(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let start = Instant::now();
    let blocking = connection.without_runtime(SHORT * 3).unwrap();
    server.pause();
    let keys = Keys::of("a");
    let [first, second] = [0, 1].map(|_| block_on(acquire(&*blocking, &keys, "c1:1")).unwrap_err());
    let batch = block_on(acquire_all(&*blocking, &[Keys::of("b"), Keys::of("c")], "c1:1"));
    assert!(start.elapsed() < SHORT * 3 + BOUND / 4, "{:?}", start.elapsed());
    assert!(matches!(first, ConnectionError::Unknown(_)), "{first:?}");
    assert!(matches!(second, ConnectionError::Unreachable(_)), "{second:?}");
    assert!(batch.iter().all(|outcome| matches!(outcome, Err(ConnectionError::Unreachable(_)))), "{batch:?}");
    server.resume();
    rt.eventually("its socket is closed", || ours(&server).len() == 1).await;
}

pub(crate) async fn answers_are_those_of_their_calls(rt: Runtime) {
    let server = Server::start();
    let blocking = rt.connect(&server.url()).await.without_runtime(LONG).unwrap();
    let wrong = Keys::of("wrong");
    admin(&server, &["SET", wrong.lock(), "x", "PX", "60000"]);
    let free = Keys::of("free");
    let all = free.all();
    let call = Call::new(script("lock_inspect"), &all, &[Arg::Number(0)]);
    // More calls than fit into any buffer.
    let outcomes = blocking.run_batch(&[call; 5000]).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Reply::Array(_)))), "{outcomes:?}");
    let both = [acquire(&*blocking, &wrong, "c1:1").boxed(), acquire(&*blocking, &free, "c1:1").boxed()];
    let outcomes = join_all(both).await;
    assert_eq!(super::code(outcomes[0].as_ref().unwrap_err()), "WRONGTYPE");
    assert_eq!(word(&outcomes[1]), "GRANTED");
    // A call that is dropped before its second poll is written with the next one, or never.
    let mut dropped = inspect(&*blocking, &free).boxed();
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(word(&release(&*blocking, &free, "c1:1").await), "RELEASED");
}
