use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::join;

use super::super::super::lab::{FakeNode, Lab, Said, Tasks, ms, push};
use super::super::url::SentinelConfig;
use super::*;
use crate::config::Config;
use crate::mutex::lock;
use crate::redis::address_map::AddressMap;
use crate::redis::dial::locate::Locate;
use crate::runtime::Executor;

mod connections;

/// What a sentinel says, and what it was asked.
struct Says {
    /// Where the master is, and under which epoch.
    master: (u16, u64),
    id: String,
    /// The others, by id and port.
    others: Vec<(&'static str, u16)>,
    delay: Duration,
    asked: Vec<(Duration, String)>,
}

/// Sentinels at these ports, and a client that watches some of them. The masters that they name do not exist.
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    sentinels: Arc<Sentinels>,
    says: HashMap<u16, Arc<Mutex<Says>>>,
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn map(pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(format!("%{}\r\n", pairs.len()), |all, (key, value)| all + &bulk(key) + &bulk(value))
}

impl Says {
    fn answer(&self, words: &[&str]) -> Option<String> {
        let (port, epoch) = self.master;
        Some(match words {
            ["HELLO", ..] => map(&[("mode", "sentinel")]),
            ["SENTINEL", "MYID"] => bulk(&self.id),
            ["SENTINEL", "MASTER", "m"] => map(&[("config-epoch", &epoch.to_string())]),
            ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"] => format!("*2\r\n{}{}", bulk("h"), bulk(&port.to_string())),
            ["SENTINEL", "SENTINELS", "m"] => {
                let other = |(id, port): &(&str, u16)| map(&[("runid", id), ("ip", "h"), ("port", &port.to_string())]);
                self.others.iter().map(other).fold(format!("*{}\r\n", self.others.len()), |all, other| all + &other)
            }
            _ => return None,
        })
    }
}

impl Scene {
    fn new(all: &[u16], listed: &[u16]) -> Self {
        Self::behind(all, listed, AddressMap::default())
    }

    /// Sentinels that announce other addresses than those that are reached.
    fn behind(all: &[u16], listed: &[u16], announced: AddressMap) -> Self {
        let (lab, mut says) = (Lab::new(all, 0), HashMap::new());
        for port in all {
            let said = Says {
                master: (101, 1),
                id: format!("id{port}"),
                others: Vec::new(),
                delay: Duration::ZERO,
                asked: Vec::new(),
            };
            let said = Arc::new(Mutex::new(said));
            says.insert(*port, Arc::clone(&said));
            let (clock, began) = (Arc::clone(&lab.clock), lab.now());
            lab.nodes[port].answers(move |_, words| {
                let mut said = lock(&said);
                said.asked.push((clock.now() - began, words.join(" ")));
                said.answer(words).map(|answer| match said.delay.is_zero() {
                    true => Said::Now(answer),
                    false => Said::After(said.delay, answer),
                })
            });
        }
        let hosts: Vec<String> = listed.iter().map(|port| format!("h:{port}")).collect();
        let url = format!("redis-sentinel://{}/?master=m", hosts.join(","));
        let setup = SentinelConfig { announced, ..SentinelConfig::parse(&url).unwrap() };
        let sentinels = Arc::new(Sentinels::new(lab.clone(), lab.clone(), setup, &Config::default(), 7));
        let watched = Arc::clone(&sentinels);
        lab.spawn(Box::pin(async move { watch(&watched).await }));
        Self { lab, tasks: Tasks::new(), sentinels, says }
    }

    fn says(&self, port: u16) -> std::sync::MutexGuard<'_, Says> {
        lock(&self.says[&port])
    }

    fn node(&self, port: u16) -> Arc<FakeNode> {
        Arc::clone(&self.lab.nodes[&port])
    }

    fn sleep(&mut self, time: Duration) {
        let sleep = self.lab.sleep(time);
        self.lab.run(&mut self.tasks, sleep);
    }

    fn locate(&mut self) -> Result<Arc<Target>, Failure> {
        let sentinels = Arc::clone(&self.sentinels);
        self.lab.run(&mut self.tasks, sentinels.locate())
    }

    /// After how long a connection to this server is left.
    fn left(&mut self, target: &Target) -> Duration {
        let (sentinels, began) = (Arc::clone(&self.sentinels), self.lab.now());
        self.lab.run(&mut self.tasks, sentinels.left(target));
        self.lab.now() - began
    }

    /// When the sentinel was asked that.
    fn asked(&self, port: u16, what: &str) -> Vec<Duration> {
        self.says(port).asked.iter().filter(|(_, words)| words.starts_with(what)).map(|(at, _)| *at).collect()
    }
}

fn at(target: &Target) -> String {
    target.address.to_string()
}

#[test]
fn a_dial_has_the_sentinels_asked_at_once() {
    let mut scene = Scene::new(&[1, 2], &[1, 2]);
    assert_eq!(at(&scene.locate().unwrap()), "h:101");
    scene.sleep(ms(5000));
    (1..3).for_each(|port| scene.says(port).master = (102, 2));
    let began = scene.lab.now();
    assert_eq!(at(&scene.locate().unwrap()), "h:102");
    assert_eq!(scene.lab.now(), began);
}

#[test]
fn what_is_announced_is_reached_elsewhere() {
    let mut scene = Scene::behind(&[1, 2], &[1], AddressMap::new(|host, port| (host.to_owned(), port - 10)));
    scene.says(1).others = vec![("id2", 12)];
    let master = scene.locate().unwrap();
    assert_eq!(at(&master), "h:91");
    let before = scene.asked(1, "SENTINEL MASTER").len();
    scene.sleep(ms(20_000));
    assert!(scene.asked(1, "SENTINEL GET-MASTER-ADDR-BY-NAME").len() > 10);
    assert_eq!(scene.asked(1, "SENTINEL MASTER").len(), before, "it is still the same master");
    assert!(scene.sentinels.left(&master).now_or_never().is_none());
    assert!(!scene.asked(2, "SENTINEL MASTER").is_empty(), "the other sentinel is found");
}

/// The address is asked for about once a second, and at once after a message.
#[test]
fn a_failover_is_noticed() {
    let mut scene = Scene::new(&[1], &[1]);
    let first = scene.locate().unwrap();
    scene.sleep(ms(4100));
    scene.says(1).master = (102, 2);
    let noticed = scene.left(&first);
    assert!(noticed > ms(0) && noticed <= ms(1250), "{noticed:?}");
    let second = scene.locate().unwrap();
    scene.sleep(ms(100));
    scene.says(1).master = (103, 3);
    let socket = scene.node(1).sockets()[0];
    scene.node(1).push(socket, push("message", "+switch-master"));
    assert_eq!(scene.left(&second), ms(0));
    assert_eq!(at(&scene.locate().unwrap()), "h:103");
}

/// The clients of a sentinel do not all ask at the same moments.
#[test]
fn sentinels_are_asked_about_once_a_second() {
    let mut scene = Scene::new(&[1, 2], &[1]);
    scene.says(1).others = vec![("id2", 2)];
    scene.sleep(ms(100_000));
    let polls = scene.asked(1, "SENTINEL GET-MASTER-ADDR-BY-NAME");
    assert!((80..=125).contains(&polls.len()), "{}", polls.len());
    let pauses: Vec<Duration> = polls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.iter().all(|pause| (ms(750)..=ms(1250)).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause < ms(900)) && pauses.iter().any(|pause| *pause > ms(1100)), "{pauses:?}");
    assert_ne!(pauses, scene.asked(2, "SENTINEL GET").windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>());
    // The full question is asked again only if something may have changed.
    assert_eq!(scene.asked(1, "SENTINEL MASTER").len(), 1);
    let others = scene.asked(1, "SENTINEL SENTINELS");
    assert!(others[0] == ms(0) && (3..=5).contains(&others.len()), "every thirty seconds: {others:?}");
}

/// The reason for a dial may be newer than the question that is under way.
#[test]
fn the_answer_to_an_earlier_question_does_not_count() {
    let mut scene = Scene::new(&[1], &[1]);
    scene.locate().unwrap();
    scene.says(1).delay = ms(50);
    let (lab, sentinels, says) = (Arc::clone(&scene.lab), Arc::clone(&scene.sentinels), Arc::clone(&scene.says[&1]));
    let later = async {
        // It has read both parts of the first question, and is about to answer the second one.
        lab.sleep(ms(60)).await;
        lock(&says).master = (102, 2);
        sentinels.locate().await
    };
    let (first, second) = lab.run(&mut scene.tasks, join(sentinels.locate(), later));
    assert_eq!((at(&first.unwrap()), at(&second.unwrap())), ("h:101".to_owned(), "h:102".to_owned()));
}

#[test]
fn a_sentinel_that_is_gone_is_not_waited_for() {
    let mut scene = Scene::new(&[1, 2], &[1, 2]);
    scene.node(2).dead.store(true, Ordering::SeqCst);
    let began = scene.lab.now();
    scene.locate().unwrap();
    assert_eq!(scene.lab.now(), began);
    // One that answered before.
    let node = scene.node(1);
    node.dead.store(true, Ordering::SeqCst);
    node.cut(node.sockets()[0]);
    scene.sleep(ms(5));
    let failure = scene.locate().unwrap_err().to_string();
    assert!(failure.starts_with("no sentinel answers (h:1: ") && failure.contains("; h:2: "), "{failure}");
    assert!(failure.contains("connection refused"), "{failure}");
    assert_eq!(scene.lab.now(), began + ms(5));
}

/// Each answer may take three quarters of the time of an attempt to connect, which can therefore tell about it.
#[test]
fn a_sentinel_that_says_nothing_is_given_up() {
    for was_up in [false, true] {
        let mut scene = Scene::new(&[1], &[1]);
        if was_up {
            scene.locate().unwrap();
        }
        scene.node(1).frozen.store(true, Ordering::SeqCst);
        let began = scene.lab.now();
        let failure = scene.locate().unwrap_err().to_string();
        assert!(failure.contains("no answer within 2.25s"), "{failure}");
        assert_eq!(scene.lab.now() - began, ms(2250));
    }
}

#[test]
fn a_server_is_no_sentinel() {
    let mut scene = Scene::new(&[1], &[1]);
    let server = || map(&[("mode", "standalone")]);
    scene.node(1).answers(move |_, words| (words[0] == "HELLO").then(|| Said::Now(server())));
    let failure = scene.locate().unwrap_err();
    assert!(matches!(&failure, Failure::Unsupported(why) if why.contains("not a sentinel")), "{failure}");
}

/// A refusal is no answer, and the user is told.
#[test]
fn a_sentinel_that_refuses_the_question_is_told() {
    let mut scene = Scene::new(&[1], &[1]);
    scene.locate().unwrap();
    let says = Arc::clone(&scene.says[&1]);
    scene.node(1).answers(move |_, words| match words {
        ["SENTINEL", what, ..] if *what != "MYID" => Some(Said::Now("-NOPERM no\r\n".to_owned())),
        _ => lock(&says).answer(words).map(Said::Now),
    });
    let failure = scene.locate().unwrap_err().to_string();
    assert!(failure.contains("sentinel h:1: the sentinels' user lacks a right"), "{failure}");
    assert!(scene.sentinels.moved().now_or_never().is_none(), "the last answer is kept");
}
