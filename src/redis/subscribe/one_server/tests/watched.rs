//! Keys that are watched.

use super::*;
use crate::error::ErrorKind;

/// A channel for the proof that the user may subscribe, and no other one.
#[test]
fn a_watched_key_is_tracked_and_its_changes_are_messages() {
    let denied = "NOPERM no permissions to run the 'client|tracking' command";
    for refusal in [None, Some(denied), Some("ERR unknown subcommand 'TRACKING'")] {
        let (lab, mut tasks, named) = (Lab::new(&[1], 1), Tasks::new(), Arc::new(Named::new(1)));
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        lab.nodes[&1].alone.store(true, Ordering::SeqCst);
        lab.nodes[&1].answers(move |_, words| match words {
            ["SUBSCRIBE", channels @ ..] => {
                lock(&heard).push(channels.join(" "));
                Some(Said::Now(channels.iter().map(|channel| push("subscribe", channel)).collect()))
            }
            ["PUBSUB", "NUMSUB", _] => Some(Said::Now("*2\r\n$1\r\np\r\n:1\r\n".to_owned())),
            ["CLIENT", "TRACKING", rest @ ..] => {
                lock(&heard).push(rest.join(" "));
                Some(Said::Now(refusal.map_or("+OK\r\n".to_owned(), |refusal| format!("-{refusal}\r\n"))))
            }
            ["EXISTS", key] => {
                lock(&heard).push((*key).to_owned());
                Some(Said::Now(":1\r\n".to_owned()))
            }
            _ => None,
        });
        let (link, connecting) = lab.connect(named, &Config::default());
        lab.run(&mut tasks, connecting).unwrap().unwrap();
        let subject = Subject::Key { key: "p:lock:{a}", inbox: "p:inbox:me" };
        let watched = lab.run(&mut tasks, at_one_server(&link, subject, 1));
        let taken = || std::mem::take(&mut *lock(&said));
        let begun = taken();
        assert!(begun[0].starts_with("p:inbox:me:") && !begun[0].contains(' '), "{begun:?}");
        assert_eq!(begun[1..], ["ON", "p:lock:{a}"][..if refusal.is_some() { 1 } else { 2 }]);
        let mut watched = match (watched, refusal) {
            (Ok(watched), None) => watched,
            (Err(error), Some(refusal)) => {
                let expected = if refusal == denied { ErrorKind::Denied } else { ErrorKind::Unsupported };
                assert_eq!(error.kind(), expected, "{error}");
                continue;
            }
            (other, _) => panic!("{:?}", other.map(drop)),
        };
        let changes = ["*1\r\n$10\r\np:lock:{a}\r\n", "_\r\n"];
        for change in changes {
            let pushed = format!(">2\r\n$10\r\ninvalidate\r\n{change}");
            let socket = *lab.nodes[&1].sockets().last().unwrap();
            lab.nodes[&1].push(socket, pushed);
            assert_eq!(lab.run(&mut tasks, watched.next()), Some(Notice::Message(Vec::new())));
            assert_eq!(taken(), ["p:lock:{a}"], "the next change is not reported");
        }
    }
}

/// Each further socket would be refused, too.
#[test]
fn a_key_that_the_user_may_not_read_is_asked_for_once() {
    let mut scene = Scene::new();
    scene.serve(|_, words| (words[0] == "EXISTS").then(|| Said::Now("-NOPERM no access to this key\r\n".to_owned())));
    let (link, began) = (Arc::clone(&scene.link), scene.lab.now());
    let subject = Subject::Key { key: "p:lock:{a}", inbox: "p:inbox:me" };
    let watched = scene.lab.run(&mut scene.tasks, at_one_server(&link, subject, 1));
    assert_eq!(watched.map(drop).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(scene.lab.now() - began, Duration::ZERO);
}

/// The user loses the right while the key is watched.
#[test]
fn a_key_that_may_not_be_read_any_more_is_told_of() {
    let mut scene = Scene::new();
    let (link, subject) = (Arc::clone(&scene.link), Subject::Key { key: "p:lock:{a}", inbox: "p:inbox:me" });
    let mut watched = scene.lab.run(&mut scene.tasks, at_one_server(&link, subject, 1)).unwrap();
    scene.serve(|_, words| (words[0] == "EXISTS").then(|| Said::Now("-NOPERM no access to this key\r\n".to_owned())));
    scene.cut_last();
    assert_eq!(scene.next(&mut watched), Notice::Gap);
    let notice = scene.next(&mut watched);
    assert!(matches!(notice, Notice::Refused(ConnectionError::Refused { .. })), "{notice:?}");
}
