use std::collections::VecDeque;
use std::fmt;
use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use ::tokio::io::duplex;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::handshake;
use super::super::wishes::Wishes;
use super::super::{DialError, Dialled, Stream};
use super::*;
use crate::mutex::lock;
use crate::redis::url::Spelling;
use crate::runtime::still::Still;

/// What the next socket does after the first bytes have arrived.
enum Next {
    /// It is not opened at all.
    Unreached,
    Refused,
    HangsUp,
    Says(&'static [u8]),
    Silent,
}

/// The sockets of one server, in order, and the first bytes that each has received.
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
        if matches!(next, Next::Unreached) {
            return std::future::pending().boxed();
        }
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
                Next::HangsUp | Next::Refused | Next::Unreached => {}
            }
        }));
        async { Dialled::Ok(Box::new(near) as Stream) }.boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Dialled> {
        self.tcp("", 0)
    }
}

/// What comes of a login.
struct Watched {
    /// `None`: it waits.
    failure: Option<Failure>,
    /// The first bytes that each socket has got.
    got: Vec<Vec<u8>>,
    /// The time that was slept.
    slept: Duration,
}

/// Logs in at the first of these sockets, and watches this for some time.
fn watch(url: &str, limit: Duration, next: impl IntoIterator<Item = Next>) -> Watched {
    watch_at(Target::parse(url).unwrap(), limit, next)
}

fn watch_at(target: Target, limit: Duration, next: impl IntoIterator<Item = Next>) -> Watched {
    let (next, tasks) = (Mutex::new(next.into_iter().collect()), Arc::new(Still::new()));
    let sockets = Sockets { next, got: Arc::default(), tasks };
    let executor: Arc<dyn Executor> = sockets.tasks.clone();
    let (target, progress) = (Arc::new(target), Arc::default());
    let first = FirstLogin { target: &target, dialer: &sockets, executor: &executor, limit };
    let login = handshake::login(Arc::clone(&target), &sockets, &executor, &progress, Wishes::default());
    let (mut watched, began) = (pin!(first.watch(&progress, login)), executor.now());
    let (mut tasks, mut failure) = (futures::stream::FuturesUnordered::new(), None);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..100 {
        if let Poll::Ready(login) = watched.as_mut().poll(&mut context) {
            failure = Some(login.map(drop).expect_err("no server logs in"));
            break;
        }
        tasks.extend(sockets.tasks.take_tasks());
        while let Poll::Ready(Some(())) = futures::StreamExt::poll_next_unpin(&mut tasks, &mut context) {}
    }
    assert!(lock(&sockets.next).is_empty(), "all sockets were dialled");
    let got = std::mem::take(&mut *lock(&sockets.got));
    Watched { failure, got, slept: executor.now() - began }
}

/// The failure of a login, and the first bytes that each socket has got.
fn log_in(url: &str, next: impl IntoIterator<Item = Next>) -> (Failure, Vec<Vec<u8>>) {
    log_in_to(Target::parse(url).unwrap(), next)
}

fn log_in_to(target: Target, next: impl IntoIterator<Item = Next>) -> (Failure, Vec<Vec<u8>>) {
    let Watched { failure, got, .. } = watch_at(target, Duration::from_secs(3), next);
    (failure.expect("a login that ends"), got)
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

/// The server may be about to stop, or be a proxy whose server is away.
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

/// Without TLS a silent server is just slow, and no timer is needed.
#[test]
fn the_silence_after_a_plain_login_says_nothing() {
    for next in [Next::Silent, Next::Unreached] {
        let Watched { failure, slept, .. } = watch(URL, Duration::from_secs(3), [next]);
        assert!(failure.is_none() && slept.is_zero());
    }
}

/// A server without TLS waits for the end of a line that the greeting does not have.
#[cfg(feature = "tls")]
mod mute {
    use super::*;

    const TLS: &str = "rediss://user:s3cret@host/";
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_server_that_answers_without_tls_has_none() {
        for answer in [&b"+PONG\r\n"[..], b"-NOAUTH no\r\n", b"-ERR what\r\n"] {
            for (limit, silence) in [(SECOND * 3, SECOND / 5), (SECOND * 3 / 10, SECOND / 10)] {
                let Watched { failure, got, slept } = watch(TLS, limit, [Next::Silent, Next::Says(answer)]);
                let failure = failure.unwrap();
                assert!(matches!(&failure, Failure::Unsupported(why) if why.contains("use redis://")), "{failure}");
                assert_eq!((got[1].as_slice(), slept), (PLAIN, silence), "and nothing of the login");
            }
        }
    }

    /// A silence says nothing, nor does what only a server with TLS says. It is asked once.
    #[test]
    fn another_one_is_waited_for() {
        for next in [Next::Refused, Next::Silent, Next::HangsUp, Next::Says(b"\x15\x03\x03\x00\x02\x02\x28")] {
            assert!(watch(TLS, SECOND * 3, [Next::Silent, next]).failure.is_none());
        }
    }

    #[test]
    fn one_that_is_not_reached_is_not_asked() {
        assert!(watch(TLS, SECOND * 3, [Next::Unreached]).failure.is_none());
    }
}

/// Users of a cluster or of sentinels have other schemes.
#[test]
fn the_scheme_that_is_recommended_is_of_the_kind_that_was_used() {
    let target = Target::parse("redis://host").unwrap();
    let spelling = Spelling { plain: "redis-cluster://", tls: "rediss-cluster://" };
    let target = target.access.of_nodes(spelling).unwrap().at(target.address).unwrap();
    let (failure, _) = log_in_to(target, [Next::HangsUp, Next::Says(b"\x15\x03\x03\x00\x02\x02\x28")]);
    assert!(failure.to_string().contains("use rediss-cluster://"), "{failure}");
}
