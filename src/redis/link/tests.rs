use std::cell::Cell;
use std::pin::pin;
use std::sync::Mutex;

use futures::FutureExt;
use futures::future::{join, join3};

use super::super::dial::progress::{DialProgress, Stage};
use super::super::lab::{Lab, Tasks, ms};
use super::limit::is_silent;
use super::*;
use crate::connection::Call;
use crate::mutex::lock;
use crate::protocol::Script;

fn lost(why: &str) -> Failure {
    Failure::Io(why.to_owned())
}

/// A link with its first connection.
fn link() -> (Arc<Lab>, Tasks, Arc<Link>) {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    (lab, tasks, link)
}

/// Makes the connection anew, once or more often.
fn reconnect(lab: &Lab, tasks: &mut Tasks, link: &Link) {
    let generation = link.current();
    link.suspect(generation, lost("by the test"));
    lab.run(tasks, link.ready()).unwrap();
    assert_eq!(link.current(), generation + 1);
}

#[test]
fn only_the_connection_that_is_meant_is_given_up() {
    let (lab, mut tasks, link) = link();
    reconnect(&lab, &mut tasks, &link);
    link.suspect(1, lost("an answer came late"));
    assert_eq!(link.current(), 2);
    assert!(link.ready().now_or_never().is_some());
    assert!(link.gone(1).now_or_never().is_some(), "another one is there instead");
    assert!(link.gone(2).now_or_never().is_none());
    link.suspect(2, lost("no answer came"));
    assert_eq!(link.current(), 0);
    assert!(link.gone(2).now_or_never().is_some());
}

#[test]
fn the_answers_of_a_connection_that_is_disowned_do_not_count() {
    let (lab, mut tasks, link) = link();
    assert!(link.is_current(1) && !link.is_disowned(1));
    link.disown(1);
    assert!(!link.is_current(1) && link.is_disowned(1), "although calls are still handed to it");
    assert!(link.ready().now_or_never().is_some());
    reconnect(&lab, &mut tasks, &link);
    assert!(link.is_current(2) && !link.is_disowned(2) && link.is_disowned(1));
    assert!(!link.is_current(1));
    link.disown(u64::MAX);
    link.disown(2);
    assert!(link.is_disowned(3), "that is not taken back");
}

#[test]
fn a_link_that_is_closed_stays_closed() {
    let (_lab, _tasks, link) = link();
    let up = link.ready().now_or_never().unwrap().unwrap();
    link.close();
    link.failed(lost("refused"));
    assert!(link.is_closed());
    link.take_up(up.server, up.connection, 2);
    assert!(link.is_closed());
    assert!(matches!(link.ready().now_or_never(), Some(Err(ConnectionError::Closed))));
    assert!(link.closed().now_or_never().is_some() && link.gone(1).now_or_never().is_some());
    assert_eq!((link.why_down(), link.unavailable()), (None, ConnectionError::Closed));
}

#[test]
fn every_change_wakes_all_who_wait() {
    let (lab, mut tasks, link) = link();
    link.suspect(1, lost("by the test"));
    let [first, second] = [link.ready(), link.ready()];
    let (first, second, ()) = lab.run(&mut tasks, join3(first, second, link.gone(1)));
    assert!(first.is_ok() && second.is_ok());
    let close = async {
        lab.sleep(ms(5)).await;
        link.close();
    };
    let gone = join(link.gone(2), link.closed());
    lab.run(&mut tasks, join(gone, close));
}

/// The state may change on another thread after a waiter has looked at it, and before it listens.
#[test]
fn a_change_before_the_first_wait_is_not_missed() {
    let (_lab, _tasks, link) = link();
    let looked = Cell::new(0);
    let second = link.state.until(|_| {
        looked.set(looked.get() + 1);
        (looked.get() == 2).then_some(())
    });
    assert!(second.now_or_never().is_some());
}

/// A user reads where the link leads, and that once.
#[test]
fn why_there_is_no_connection() {
    let (_lab, _tasks, link) = link();
    assert_eq!(link.why_down(), None);
    let unreachable = |why: &str| ConnectionError::Unreachable(why.to_owned());
    assert_eq!(link.unavailable(), unreachable("connecting took too long"));
    link.suspect(1, lost("connection refused"));
    assert_eq!(link.why_down(), Some(unreachable("h:1/0: connection refused")));
    assert_eq!(link.unavailable(), unreachable("h:1/0: connection refused"));
    link.failed(lost("the server h:1/0 is away"));
    assert_eq!(link.why_down(), Some(unreachable("the server h:1/0 is away")));
    let denied = ConnectionError::refused("WRONGPASS no");
    link.failed(Failure::Refused(denied.clone()));
    assert_eq!((link.why_down(), link.unavailable()), (Some(denied.clone()), denied));
}

/// A silence is one of the connection after half a second, or when all the time of a short call is over.
#[test]
fn how_long_a_connection_may_be_silent() {
    for (time, limit, silent) in [(29, 30, false), (30, 30, true), (499, 3000, false), (500, 3000, true)] {
        assert_eq!(is_silent(ms(time), ms(limit)), silent, "{time} of {limit} ms");
    }
}

/// The time limit of the next attempt, after one that had 2 s and took that long.
#[test]
fn how_long_the_next_attempt_may_take() {
    let after = |took: u64, made: bool| {
        let (lab, mut limit, progress) = (Lab::new(&[], 1), ms(2000), DialProgress::default());
        progress.enter(Stage::Login);
        let executor: Arc<dyn Executor> = lab.clone();
        let work = async {
            lab.sleep(ms(took)).await;
            if made { Ok(()) } else { Err(lost("by the test")) }
        };
        let bounds = [ms(1000), ms(6000)];
        let attempted = lab.run(&mut Tasks::new(), pin!(attempt(&executor, bounds, &mut limit, &progress, work)));
        (attempted.map_err(|failure| failure.to_string()), limit.as_millis())
    };
    let failed = || Err("by the test".to_owned());
    assert_eq!(after(300, true), (Ok(()), 1000), "a fast network: as little as is sensible");
    assert_eq!(after(900, true), (Ok(()), 1800), "there is room for one that takes twice as long");
    assert_eq!(after(1900, true), (Ok(()), 3800));
    assert_eq!(after(300, false), (failed(), 2000), "this says nothing about the network");
    let (late, limit) = after(2500, true);
    assert!(late.unwrap_err().contains("no answer within 2s"), "as long as it had");
    assert_eq!(limit, 4000, "the network is slower");
    let (lab, progress, mut limit) = (Lab::new(&[], 1), DialProgress::default(), ms(4000));
    let executor: Arc<dyn Executor> = lab.clone();
    let never = futures::future::pending::<Result<(), Failure>>();
    let attempted = attempt(&executor, [ms(1000), ms(6000)], &mut limit, &progress, never);
    assert!(lab.run(&mut Tasks::new(), pin!(attempted)).is_err());
    assert_eq!(limit, ms(6000), "no longer than the user allows");
}

/// The caller of the first call is gone before the call is written. The second one relies on the script of the first.
#[test]
fn a_call_that_sends_a_script_is_written_although_nobody_waits_for_it() {
    let (lab, mut tasks, link) = link();
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&heard);
    lab.nodes[&1].answers(move |_, words| {
        lock(&all).push(words[0].to_owned());
        None
    });
    let script = Script::all().next().unwrap();
    let [first, second] = [Call::new(script, &["a"], &[]), Call::new(script, &["b"], &[])];
    assert!(calls::run(&link, &first).now_or_never().is_none());
    lab.run(&mut tasks, calls::run(&link, &second)).unwrap();
    assert_eq!(*lock(&heard), ["EVAL", "EVALSHA"]);
}

/// It may have waited for the server, or for replicas.
#[test]
fn a_call_makes_the_round_trip_no_longer() {
    let (_lab, _tasks, link) = link();
    link.measured(ms(80));
    (0..100).for_each(|_| link.called(ms(2000)));
    assert_eq!(link.round_trip(), ms(80));
    (0..100).for_each(|_| link.called(ms(20)));
    assert!((ms(19)..ms(22)).contains(&link.round_trip()), "{:?}", link.round_trip());
}

#[test]
fn one_slow_answer_says_little_about_the_round_trip() {
    let (_lab, _tasks, link) = link();
    link.measured(ms(80));
    link.answered(ms(2000));
    assert_eq!(link.round_trip(), ms(90));
    (0..100).for_each(|_| link.answered(ms(20)));
    assert!((ms(19)..ms(22)).contains(&link.round_trip()), "{:?}", link.round_trip());
    (0..100).for_each(|_| link.answered(ms(40)));
    assert!((ms(38)..ms(42)).contains(&link.round_trip()), "{:?}", link.round_trip());
}
