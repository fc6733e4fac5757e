use std::sync::atomic::Ordering;

use futures::future::join;

use super::*;
use crate::mutex::lock;
use crate::protocol::Script;
use crate::redis::lab::{Lab, Said, Tasks};
use crate::runtime::{Executor, timeout};

async fn call(link: &Link) -> Answer {
    run(link, &Call::new(Script::all().next().unwrap(), &["a"], &[])).await
}

/// A call waits for the connection for most of its time, and its answer would come a little too late.
#[test]
fn a_connection_is_not_blamed_for_the_time_before_it_was_made() {
    let mut unknown = 0;
    // The time of the next attempt is random within bounds.
    for down in (1_500..3_000).step_by(100).map(Duration::from_millis) {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let link = lab.link(&mut tasks);
        let node = &lab.nodes[&1];
        node.answers(|_, words| {
            words[0].starts_with("EVAL").then(|| Said::After(Duration::from_millis(450), ":1\r\n".to_owned()))
        });
        node.dead.store(true, Ordering::SeqCst);
        node.cut(1);
        lab.run(&mut tasks, link.gone(1));
        let restart = async {
            lab.sleep(down).await;
            node.dead.store(false, Ordering::SeqCst);
        };
        let (answer, ()) = lab.run(&mut tasks, join(call(&link), restart));
        if matches!(answer, Err(ConnectionError::Unknown(_))) {
            unknown += 1;
            let logins = *lock(&node.logins);
            lab.run(&mut tasks, call(&link)).unwrap();
            assert_eq!(*lock(&node.logins), logins, "down for {down:?}: the connection was given up");
        }
    }
    assert!(unknown > 0, "no call was handed over shortly before its time was over");
}

/// A connection that stays silent for all the time of a call is dead, however short that time is.
#[test]
fn a_silent_connection_is_given_up() {
    for within in [Duration::from_millis(30), Duration::from_secs(3)] {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let link = lab.link(&mut tasks);
        lab.nodes[&1].answers(|socket, words| (socket == 1 && words[0].starts_with("EVAL")).then_some(Said::Never));
        let silent = Call::new(Script::all().next().unwrap(), &["a"], &[]).within(within);
        let answer = lab.run(&mut tasks, run(&link, &silent));
        assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
        lab.run(&mut tasks, call(&link)).unwrap();
    }
}

/// A caller that gives up after 700 ms never waits for as long as a connection may be silent.
#[test]
fn callers_without_patience_leave_a_silent_connection_too() {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    lab.nodes[&1].answers(|socket, words| (socket == 1 && words[0].starts_with("EVAL")).then_some(Said::Never));
    let mut given_up = 0;
    let patience = Duration::from_millis(700);
    while lab.run(&mut tasks, timeout(&link.executor, patience, call(&link))).is_none() {
        given_up += 1;
        assert!(given_up < 20, "the connection is not left");
    }
    // Together, these callers have waited for the command timeout of 3 s.
    assert_eq!(given_up, 5);
}

/// A connection that answers is not blamed for callers that do not wait for it.
#[test]
fn an_answer_ends_the_silence() {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    let node = &lab.nodes[&1];
    node.answers(|_, words| {
        words[0].starts_with("EVAL").then(|| Said::After(Duration::from_millis(800), ":1\r\n".to_owned()))
    });
    let (logins, patience) = (*lock(&node.logins), Duration::from_millis(700));
    for _ in 0..20 {
        assert!(lab.run(&mut tasks, timeout(&link.executor, patience, call(&link))).is_none());
        lab.run(&mut tasks, call(&link)).unwrap();
    }
    assert_eq!(*lock(&node.logins), logins);
}
