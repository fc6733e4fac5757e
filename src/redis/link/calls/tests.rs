use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use futures::future::join;

use super::*;
use crate::mutex::lock;
use crate::protocol::Script;
use crate::redis::lab::{Lab, Said, Tasks, ms};
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

/// The number of milliseconds of each `WAIT` behind one call that has this time, and the number of replicas. In the
/// first of two rounds, the server does not have the script.
fn waits(within: u64, round_trip: u64, rounds: usize) -> (Vec<String>, u32) {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    lab.run(&mut tasks, call(&link)).unwrap();
    link.measured(ms(round_trip));
    let (waits, mut left) = (Arc::<Mutex<Vec<String>>>::default(), rounds);
    let all = Arc::clone(&waits);
    lab.nodes[&1].answers(move |_, words| match words {
        ["EVAL" | "EVALSHA", ..] => {
            left -= 1;
            (left > 0).then(|| Said::Now("-NOSCRIPT No matching script.\r\n".to_owned()))
        }
        ["WAIT", replicas, millis] => {
            assert_eq!(*replicas, "1");
            lock(&all).push((*millis).to_owned());
            None
        }
        _ => None,
    });
    let waiting = Waiting { replicas: 1, within: ms(within), asking: false };
    let calls = [Call::new(Script::all().next().unwrap(), &["a"], &[])];
    let answer = lab.run(&mut tasks, run_acknowledged(&link, &calls, waiting)).remove(0).unwrap();
    let waits = lock(&waits).clone();
    (waits, answer.replicas)
}

/// The answer needs a tenth of a second and two round trips, or a fifth of the time.
#[test]
fn how_long_the_replicas_have() {
    assert_eq!(waits(2000, 0, 1), (vec!["1600".to_owned()], 1));
    assert_eq!(waits(600, 25, 1), (vec!["450".to_owned()], 1));
    assert_eq!(waits(150, 0, 1), (vec!["75".to_owned()], 1), "at least half of the time");
    assert_eq!(waits(150, 0, 2), (vec!["75".to_owned(), "50".to_owned()], 1), "what is left");
    assert_eq!(waits(90, 0, 2), (vec!["45".to_owned()], 0), "nothing is left, and zero would be without end");
}

/// A server that was demoted meanwhile may have lost what the script wrote, or not.
#[test]
fn it_is_unknown_what_became_of_scripts_behind_which_no_server_waits() {
    for (refusal, is_unknown) in [
        ("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", true),
        ("LOADING Redis is loading the dataset in memory", true),
        ("ERR WAIT cannot be used with replica instances.", true),
        ("NOPERM this user has no permissions to run the 'wait' command", false),
        ("ERR unknown command 'WAIT'", false),
    ] {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let link = lab.link(&mut tasks);
        lab.nodes[&1].answers(move |_, words| (words[0] == "WAIT").then(|| Said::Now(format!("-{refusal}\r\n"))));
        let waiting = Waiting { replicas: 1, within: ms(2000), asking: false };
        let calls = [Call::new(Script::all().next().unwrap(), &["a"], &[])];
        let error = lab.run(&mut tasks, run_acknowledged(&link, &calls, waiting)).remove(0).unwrap_err();
        match is_unknown {
            true => assert!(matches!(error, ConnectionError::Unknown(_)), "{error:?}"),
            false => assert_eq!(error, ConnectionError::refused(refusal)),
        }
    }
}

#[test]
fn a_node_that_is_taking_a_slot_over_is_told_so() {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&sent);
    lab.nodes[&1].answers(move |_, words| {
        lock(&all).push(words[0].to_owned());
        (words[0] == "ASKING").then(|| Said::Now("+OK\r\n".to_owned()))
    });
    for (asking, count) in [(true, 1), (false, 1), (true, 2)] {
        lock(&sent).clear();
        let up = lab.run(&mut tasks, link.ready()).unwrap();
        let calls = vec![Call::new(Script::all().next().unwrap(), &["a"], &[]); count];
        let limit = link.limit(&calls);
        let answers = lab.run(&mut tasks, run_over(&link, up, &calls, asking, limit, limit.started));
        assert_eq!(answers, vec![Ok(Reply::Integer(1)); count]);
        assert_eq!(lock(&sent).iter().filter(|word| *word == "ASKING").count(), if asking { count } else { 0 });
    }
}

#[test]
fn a_call_that_is_under_way_when_the_connection_is_closed_says_so() {
    let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
    let link = lab.link(&mut tasks);
    lab.nodes[&1].answers(|_, words| words[0].starts_with("EVAL").then_some(Said::Never));
    let close = async {
        lab.sleep(ms(5)).await;
        link.close();
    };
    let calls = [Call::new(Script::all().next().unwrap(), &["a"], &[])];
    let ((one, several), ()) = lab.run(&mut tasks, join(join(call(&link), run_batch(&link, &calls)), close));
    assert_eq!((one, several), (Err(ConnectionError::Closed), vec![Err(ConnectionError::Closed)]));
}
