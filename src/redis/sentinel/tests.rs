use std::io;
#[cfg(unix)]
use std::path::Path;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::board::SentinelAnswer;
use super::*;
use crate::config::Config;
use crate::connection::ConnectionError;
use crate::mutex::lock;
use crate::redis::dial::{Dial, Dialled};
use crate::redis::url::address::Address;
use crate::runtime::{Executor, an_instant};

/// A clock that the test moves. Everything is polled by hand.
#[derive(Clone, Debug)]
struct Clock(Arc<Mutex<Instant>>);

impl Executor for Clock {
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("nothing is spawned")
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (clock, until) = (self.clone(), self.now() + duration);
        std::future::poll_fn(move |_| if clock.now() >= until { Poll::Ready(()) } else { Poll::Pending }).boxed()
    }

    fn now(&self) -> Instant {
        *lock(&self.0)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> crate::error::Result<()> {
        unreachable!("nothing blocks")
    }
}

/// The test answers in the place of the sentinels.
#[derive(Debug)]
struct Nowhere;

impl Dial for Nowhere {
    fn tcp<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Dialled> {
        async { Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()) }.boxed()
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Dialled> {
        self.tcp("", 0)
    }
}

fn sentinels() -> (Sentinels, Clock) {
    let clock = Clock(Arc::new(Mutex::new(an_instant())));
    let url = "redis-sentinel://a:1,b:2,c:3/?master=m";
    let setup = SentinelConfig::parse(url).unwrap();
    let sentinels = Sentinels::new(Arc::new(clock.clone()), Arc::new(Nowhere), setup, &Config::default(), 7);
    (sentinels, clock)
}

fn names(port: u16, epoch: u64) -> SentinelAnswer {
    SentinelAnswer::Master(Named { address: Address::Tcp("10.0.0.1".to_owned(), port), epoch })
}

/// The port that is dialled, once the sentinels have decided.
fn located(locating: &mut BoxFuture<'_, Result<Arc<Target>, Failure>>) -> Option<u16> {
    match locating.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(target)) => match target.address {
            Address::Tcp(_, port) => Some(port),
            #[cfg(unix)]
            Address::Unix(_) => panic!("{:?}", target.address),
        },
        Poll::Ready(Err(failure)) => panic!("{failure}"),
        Poll::Pending => None,
    }
}

const MS: Duration = Duration::from_millis(1);

/// A sentinel has missed a failover, and answers faster than the others.
#[test]
fn a_fast_sentinel_does_not_decide_alone() {
    let (sentinels, clock) = sentinels();
    let mut locating = sentinels.locate();
    assert_eq!(located(&mut locating), None);
    let round = sentinels.look(Board::round);
    sentinels.post(|board| board.answered(0, round, names(1, 6)));
    assert_eq!(located(&mut locating), None);
    *lock(&clock.0) += 50 * MS;
    assert_eq!(located(&mut locating), None, "the others have 100 ms");
    sentinels.post(|board| board.answered(1, round, names(2, 7)));
    assert_eq!(located(&mut locating), None, "there is a third one");
    sentinels.post(|board| board.answered(2, round, names(2, 7)));
    assert_eq!(located(&mut locating), Some(2), "all have answered");
}

#[test]
fn a_frozen_sentinel_delays_a_dial_by_a_tenth_of_a_second() {
    let (sentinels, clock) = sentinels();
    let mut locating = sentinels.locate();
    assert_eq!(located(&mut locating), None);
    *lock(&clock.0) += 1000 * MS;
    assert_eq!(located(&mut locating), None, "no one has answered");
    let round = sentinels.look(Board::round);
    sentinels.post(|board| board.answered(2, round, names(1, 6)));
    assert_eq!(located(&mut locating), None);
    *lock(&clock.0) += 99 * MS;
    assert_eq!(located(&mut locating), None);
    *lock(&clock.0) += MS;
    assert_eq!(located(&mut locating), Some(1));
}

/// An answer to an earlier round may be older than the reason for this dial.
#[test]
fn only_answers_of_the_round_count_as_the_first_one() {
    let (sentinels, clock) = sentinels();
    let before = sentinels.look(Board::round);
    sentinels.post(|board| (0..3).for_each(|n| board.answered(n, before, names(1, 6))));
    let mut locating = sentinels.locate();
    assert_eq!(located(&mut locating), None);
    *lock(&clock.0) += 1000 * MS;
    assert_eq!(located(&mut locating), None);
    let round = sentinels.look(Board::round);
    sentinels.post(|board| (0..3).for_each(|n| board.answered(n, round, names(2, 7))));
    assert_eq!(located(&mut locating), Some(2));
}

#[test]
fn a_connection_leaves_a_server_that_is_named_no_more() {
    let (sentinels, _) = sentinels();
    sentinels.post(|board| board.answered(0, 0, names(1, 6)));
    let old = sentinels.server(sentinels.look(|board| board.master("m")).unwrap()).unwrap();
    let (mut left, mut moved) = (sentinels.left(&old), sentinels.moved());
    let poll = |future: &mut BoxFuture<'_, ()>| future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll(&mut left).is_pending() && poll(&mut moved).is_pending());
    sentinels.post(|board| board.answered(1, 0, names(2, 5)));
    assert!(poll(&mut left).is_pending() && poll(&mut moved).is_pending(), "an older epoch");
    sentinels.post(|board| board.answered(1, 0, names(2, 7)));
    assert!(poll(&mut left).is_ready() && poll(&mut moved).is_ready());
}

#[test]
fn a_failure_says_who_has_named_the_server() {
    let (sentinels, _) = sentinels();
    let target = Target::parse("redis://h:1").unwrap();
    let refused = |line: &str| Failure::Refused(ConnectionError::refused(line));
    let lost = sentinels.explain(&target, Failure::Io("connection refused".to_owned()));
    assert_eq!(lost.to_string(), "h:1, which the sentinels name as the master, cannot be used: connection refused");
    let Failure::Explained(_, why) = sentinels.explain(&target, refused("READONLY no")) else {
        panic!("not explained")
    };
    assert_eq!(why, "h:1, which the sentinels name as the master, is a replica; a failover may be under way");
    assert!(matches!(sentinels.explain(&target, refused("WRONGPASS no")), Failure::Refused(_)), "it is clear enough");
    assert!(sentinels.moves(), "the next attempt may find another one");
}
