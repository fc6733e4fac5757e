use std::sync::Mutex;

use super::*;
use crate::connection::Reply;
use crate::mutex::lock;
use crate::redis::lab::{Lab, Said, Tasks};
use crate::redis::link::Link;
use crate::redis::link::calls::run_batch;

const OK: &str = ":1\r\n";
const ERROR: &str = "-ERR by the test\r\n";
const NOSCRIPT: &str = "-NOSCRIPT No matching script.\r\n";

/// A link, and the scripts that were sent over it: whole (`EVAL`) or by their SHA1 (`EVALSHA`).
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    link: Arc<Link>,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Self {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let link = lab.link(&mut tasks);
        Self { lab, tasks, link, sent: Arc::default() }
    }

    /// From now on, the server answers this to a call that is sent so.
    fn answers(&self, mut answer: impl FnMut(&str) -> &'static str + Send + 'static) {
        let sent = Arc::clone(&self.sent);
        self.lab.nodes[&1].answers(move |_, words| {
            words[0].starts_with("EVAL").then(|| {
                lock(&sent).push(words[0].to_owned());
                Said::Now(answer(words[0]).to_owned())
            })
        });
    }

    /// Runs so many calls of one script together. Returns how they were sent, and which of them have succeeded.
    fn run(&mut self, calls: usize) -> (Vec<String>, Vec<bool>) {
        let calls = vec![Call::new(Script::all().next().unwrap(), &["a"], &[]); calls];
        let answers = self.lab.run(&mut self.tasks, run_batch(&self.link, &calls));
        let succeeded = answers.iter().map(|answer| *answer == Ok(Reply::Integer(1))).collect();
        (std::mem::take(&mut lock(&self.sent)), succeeded)
    }
}

#[test]
fn of_several_calls_the_first_one_brings_the_script() {
    let mut scene = Scene::new();
    scene.answers(|_| OK);
    assert_eq!(scene.run(3).0, ["EVAL", "EVALSHA", "EVALSHA"]);
    assert_eq!(scene.run(2).0, ["EVALSHA", "EVALSHA"]);
}

/// The server may refuse a script that it cannot store. Only the answer to the call that has brought it tells.
#[test]
fn a_script_whose_first_call_has_failed_is_sent_again() {
    for (answers, next) in [([ERROR, OK], "EVAL"), ([OK, ERROR], "EVALSHA")] {
        let mut scene = Scene::new();
        let mut left = answers.into_iter();
        scene.answers(move |_| left.next().unwrap_or(OK));
        assert_eq!(scene.run(2), (vec!["EVAL".to_owned(), "EVALSHA".to_owned()], answers.map(|it| it == OK).to_vec()));
        assert_eq!(scene.run(1).0, [next]);
    }
    let mut scene = Scene::new();
    scene.answers(|_| ERROR);
    assert_eq!((scene.run(1).0, scene.run(1).0), (vec!["EVAL".to_owned()], vec!["EVAL".to_owned()]));
}

/// Other calls have brought the script each time, and the server has lost it again.
#[test]
fn a_script_that_the_server_keeps_losing_is_sent_whole_at_last() {
    let mut scene = Scene::new();
    scene.answers(|_| OK);
    scene.run(1);
    let up = scene.lab.run(&mut scene.tasks, scene.link.ready()).unwrap();
    let mut is_there = false;
    scene.answers(move |sent| {
        is_there |= sent == "EVAL";
        up.loaded.add(Script::all().next().unwrap());
        if is_there { OK } else { NOSCRIPT }
    });
    let all = ["EVALSHA", "EVALSHA", "EVALSHA", "EVALSHA", "EVAL", "EVALSHA"].map(str::to_owned).to_vec();
    assert_eq!(scene.run(2), (all, vec![true, true]));
}
