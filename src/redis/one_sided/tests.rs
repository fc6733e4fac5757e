use std::collections::VecDeque;
use std::fmt;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::Mutex;

use ::tokio::io::duplex;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;

use super::super::dial::{DialError, Dialled, Stream};
use super::super::handshake;
use super::*;
use crate::mutex::lock;
use crate::runtime::still::Still;

/// What the next socket does after the first bytes have arrived.
enum Next {
    Refused,
    HangsUp,
    Says(&'static [u8]),
    Silent,
}

/// The sockets of one server, in order, and the first bytes that each has got.
struct Sockets {
    next: Mutex<VecDeque<Next>>,
    got: Arc<Mutex<Vec<Vec<u8>>>>,
    tasks: Arc<Still>,
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sockets")
    }
}

impl Dial for Sockets {
    fn tcp<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Dialled> {
        let next = lock(&self.next).pop_front().expect("a dial that the test expects");
        if matches!(next, Next::Refused) {
            let refused = DialError::Socket(io::ErrorKind::ConnectionRefused.into());
            return async { Dialled::Err(refused) }.boxed();
        }
        let ((near, mut far), got) = (duplex(4096), Arc::clone(&self.got));
        self.tasks.spawn(Box::pin(async move {
            let mut first = vec![0; 4096];
            let count = far.read(&mut first).await.unwrap();
            first.truncate(count);
            lock(&got).push(first);
            match next {
                Next::Says(answer) => far.write_all(answer).await.unwrap(),
                Next::Silent => std::future::pending().await,
                Next::HangsUp | Next::Refused => {}
            }
        }));
        async { Dialled::Ok(Box::new(near) as Stream) }.boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Dialled> {
        self.tcp("", 0)
    }
}

/// Logs in at the first of these sockets, without TLS.
fn log_in(url: &str, next: impl IntoIterator<Item = Next>) -> (Failure, Vec<Vec<u8>>) {
    let (next, tasks) = (Mutex::new(next.into_iter().collect()), Arc::new(Still::new()));
    let sockets = Sockets { next, got: Arc::default(), tasks };
    let executor: Arc<dyn Executor> = sockets.tasks.clone();
    let (target, progress) = (Arc::new(Target::parse(url).unwrap()), Arc::default());
    let first = First { target: &target, dialer: &sockets, executor: &executor, limit: Duration::from_secs(3) };
    let login = handshake::login(Arc::clone(&target), &sockets, None, &progress);
    let mut watched = pin!(first.watch(&progress, login));
    let mut tasks = futures::stream::FuturesUnordered::new();
    let failure = block_on(std::future::poll_fn(|context| {
        let polled = watched.as_mut().poll(context);
        tasks.extend(sockets.tasks.take_tasks());
        while let std::task::Poll::Ready(Some(())) = futures::StreamExt::poll_next_unpin(&mut tasks, context) {}
        polled
    }));
    let Err(failure) = failure else { panic!("no server logs in") };
    assert!(lock(&sockets.next).is_empty(), "all sockets were dialled");
    let got = std::mem::take(&mut *lock(&sockets.got));
    (failure, got)
}

const URL: &str = "redis://user:s3cret@host/";

#[test]
fn a_server_that_hangs_up_and_answers_to_tls_speaks_tls() {
    // An alert, and the greeting of a server.
    for answer in [b"\x15\x03\x03\x00\x02\x02\x28", b"\x16\x03\x03\x00\x04\x02\x00"] {
        let (failure, got) = log_in(URL, [Next::HangsUp, Next::Says(answer)]);
        assert!(matches!(&failure, Failure::Unsupported(reason) if reason.contains("use rediss://")), "{failure}");
        assert_eq!(got[1], GREETING, "and nothing of the login");
    }
}

/// It may be about to stop, or be a proxy whose server is away.
#[test]
fn a_server_that_hangs_up_for_another_reason_is_unavailable() {
    for next in [Next::HangsUp, Next::Refused, Next::Silent, Next::Says(b"+PONG\r\n"), Next::Says(b"-ERR no\r\n")] {
        let (failure, _) = log_in(URL, [Next::HangsUp, next]);
        assert!(matches!(&failure, Failure::Io(reason) if reason.contains("hung up")), "{failure}");
    }
}

#[test]
fn no_one_else_is_asked_twice() {
    let (failure, _) = log_in(URL, [Next::Refused]);
    assert!(matches!(failure, Failure::Io(_)), "{failure}");
    let (failure, _) = log_in(URL, [Next::Says(b"-WRONGPASS no\r\n")]);
    assert!(matches!(failure, Failure::Refused(_)), "{failure}");
    let (failure, _) = log_in("unix:///socket", [Next::HangsUp]);
    assert!(matches!(failure, Failure::Io(_)), "{failure}");
}

/// The greeting is well-formed: its lengths say where it ends.
#[test]
fn the_greeting_is_one_record() {
    assert_eq!(usize::from(u16::from_be_bytes([GREETING[3], GREETING[4]])), GREETING.len() - 5);
    assert_eq!(usize::from(u16::from_be_bytes([GREETING[7], GREETING[8]])), GREETING.len() - 9);
}
