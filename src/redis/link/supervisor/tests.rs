use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, join, pending};

use super::super::calls;
use super::*;
use crate::config::Config;
use crate::connection::{Call, ConnectionError, Reply};
use crate::mutex::lock;
use crate::protocol::Script;
use crate::redis::dial::deadline::Deadline;
use crate::redis::dial::locate::Locate;
use crate::redis::lab::{Connecting, FakeNode, Lab, Named, Said, Tasks, lasting, late, ms, soon};
use crate::runtime::Executor;

mod first;

/// Servers at the ports 1 and 2, of which the first is named, and a link.
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    named: Arc<Named>,
    link: Arc<Link>,
    connecting: Connecting,
}

impl Scene {
    fn new() -> Self {
        Self::with(Named::new(1), &Config::default())
    }

    fn with(named: Named, config: &Config) -> Self {
        let (lab, named) = (Lab::new(&[1, 2], 1), Arc::new(named));
        lab.nodes.values().for_each(|node| node.alone.store(true, Ordering::SeqCst));
        let (link, connecting) = lab.connect(named.clone(), config);
        Self { lab, tasks: Tasks::new(), named, link, connecting }
    }

    fn connected() -> Self {
        let mut scene = Self::new();
        scene.first().unwrap();
        scene
    }

    /// The result of the first attempts.
    fn first(&mut self) -> Result<Vec<Warning>, Failure> {
        self.lab.run(&mut self.tasks, &mut self.connecting).unwrap()
    }

    fn node(&self, port: u16) -> Arc<FakeNode> {
        Arc::clone(&self.lab.nodes[&port])
    }

    fn run<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.lab.run(&mut self.tasks, work)
    }

    fn sleep(&mut self, time: Duration) {
        let sleep = self.lab.sleep(time);
        self.run(sleep);
    }

    fn call(&mut self) -> Result<Reply, ConnectionError> {
        let link = Arc::clone(&self.link);
        self.run(call(&link))
    }

    /// The first server dies. Returns after this time.
    fn die(&mut self, time: Duration) {
        let (lab, link, node) = (Arc::clone(&self.lab), Arc::clone(&self.link), self.node(1));
        node.dead.store(true, Ordering::SeqCst);
        node.cut(1);
        self.run(async {
            link.gone(1).await;
            lab.sleep(time).await;
        });
    }

    /// The second server is named. Returns after how long there is a connection.
    fn takes_to_follow(&mut self) -> Duration {
        let (link, began) = (Arc::clone(&self.link), self.lab.now());
        self.named.name(2);
        self.run(link.ready()).unwrap();
        self.lab.now() - began
    }

    /// Closes the sockets of the server. Returns after how long there is a connection again.
    fn cut(&mut self) -> Duration {
        let (link, node, began) = (Arc::clone(&self.link), self.node(1), self.lab.now());
        let generation = link.current();
        node.sockets().into_iter().for_each(|socket| node.cut(socket));
        self.run(async {
            link.gone(generation).await;
            link.ready().await.unwrap();
        });
        self.lab.now() - began
    }
}

async fn call(link: &Link) -> Result<Reply, ConnectionError> {
    calls::run(link, &Call::new(Script::all().next().unwrap(), &["a"], &[])).await
}

/// Otherwise a server that hangs up after each login would be dialled a hundred times a second, and one that has
/// restarted would be missed for a second.
#[test]
fn the_pauses_grow_until_a_connection_has_lasted() {
    let mut scene = Scene::connected();
    let pauses: Vec<Duration> = (0..9).map(|_| scene.cut()).collect();
    assert!(soon().contains(&pauses[0]), "{pauses:?}");
    assert!(pauses[7] >= late() && pauses[8] >= late(), "{pauses:?}");
    scene.sleep(lasting() - ms(1));
    assert!(scene.cut() >= late(), "it did not last for long enough");
    scene.sleep(lasting());
    assert!(soon().contains(&scene.cut()), "it has lasted");
    assert_eq!(scene.link.reconnects.load(Ordering::SeqCst), 11);
}

/// Another server is named while the first one executes a call. The new primary may not have what was granted.
#[test]
fn an_answer_of_a_server_that_was_left_does_not_count() {
    let mut scene = Scene::connected();
    let named = Arc::clone(&scene.named);
    scene.node(1).answers(move |_, words| {
        if words[0].starts_with("EVAL") {
            named.name(2);
        }
        None
    });
    let answer = scene.call();
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
    assert_eq!(*lock(&scene.node(1).scripts), 1, "it has executed the call");
    let why = scene.link.why_down().map(|why| why.to_string()).unwrap_or_default();
    assert!(why.contains("another server is the primary now"), "{why:?}");
    assert_eq!(scene.call(), Ok(Reply::Integer(1)), "a call waits for the next connection");
    assert_eq!((*lock(&scene.node(1).scripts), *lock(&scene.node(2).scripts)), (1, 1));
}

/// The first server is dead for a while, so that the pauses are long. Then it stands still: its socket opens, and
/// nothing is answered.
#[test]
fn a_dial_ends_when_there_is_another_server_to_dial() {
    let mut scene = Scene::connected();
    scene.die(ms(5000));
    let (lab, node) = (Arc::clone(&scene.lab), scene.node(1));
    node.answers(|_, _| Some(Said::Never));
    node.dead.store(false, Ordering::SeqCst);
    scene.run(async {
        while node.sockets().is_empty() {
            lab.sleep(ms(1)).await;
        }
    });
    scene.sleep(ms(5));
    let took = scene.takes_to_follow();
    assert!(took < ms(30), "{took:?}");
    assert_eq!(scene.call(), Ok(Reply::Integer(1)));
    assert_eq!((*lock(&scene.node(1).scripts), *lock(&scene.node(2).scripts)), (0, 1));
}

/// Another server is named during a pause.
#[test]
fn a_pause_ends_when_there_is_another_server_to_dial() {
    let mut scene = Scene::connected();
    // It is in a pause of 600 ms at least then, or dials.
    scene.die(ms(3000));
    assert_eq!(scene.takes_to_follow(), Duration::ZERO);
}

#[test]
fn the_cause_of_the_last_attempt_is_told() {
    let mut scene = Scene::connected();
    let (node, link) = (scene.node(1), Arc::clone(&scene.link));
    node.cut(1);
    scene.run(link.gone(1));
    let why = |scene: &Scene| scene.link.why_down().unwrap().to_string();
    assert!(why(&scene).contains("the connection was lost"), "{}", why(&scene));
    node.dead.store(true, Ordering::SeqCst);
    scene.sleep(ms(100));
    assert!(why(&scene).contains("h:1 was named: connection refused"), "{}", why(&scene));
    node.dead.store(false, Ordering::SeqCst);
    node.answers(|_, words| (words[0] == "HELLO").then(|| Said::Now("-LOADING wait\r\n".to_owned())));
    scene.sleep(ms(1500));
    assert!(matches!(link.why_down(), Some(ConnectionError::Refused { code, .. }) if code == "LOADING"));
}

/// A runtime drops its tasks when it shuts down.
#[test]
fn without_its_task_a_link_is_closed() {
    let mut scene = Scene::connected();
    scene.tasks.clear();
    assert!(scene.link.is_closed());
    let mut scene = Scene::connected();
    scene.link.close();
    assert_eq!(scene.call(), Err(ConnectionError::Closed));
    scene.sleep(ms(1));
    assert_eq!(scene.node(1).sockets(), [0; 0], "its socket is closed too");
}

/// A server behind a slow network is slow, and not dead.
#[test]
fn the_first_answer_says_how_patient_a_link_is() {
    for (round_trip, patient) in [(ms(0), ms(0)), (ms(100), ms(200)), (ms(400), ms(800)), (ms(600), ms(1000))] {
        let config = Config::builder().command_timeout(ms(3000)).lease(ms(3000)).build().unwrap();
        let mut scene = Scene::with(Named::new(1), &config);
        *lock(&scene.node(1).round_trip) = round_trip;
        scene.first().unwrap();
        assert_eq!(scene.link.patient(), patient, "{round_trip:?}");
    }
}

/// The first time, a slow network is waited for as long as the user says. Later there must be time for a second
/// attempt.
#[test]
fn a_link_beside_the_first_one_does_not_wait_for_a_silent_socket_all_the_time() {
    let config = Config::builder().command_timeout(ms(3000)).lease(ms(3000)).build().unwrap();
    let mut scene = Scene::with(Named::new(1), &config);
    scene.first().unwrap();
    let sibling = Arc::new(scene.link.sibling());
    assert_ne!(sibling.seed, scene.link.seed, "they do not dial at the same moments");
    scene.node(1).answers(|socket, _| (socket == 2).then_some(Said::Never));
    let began = scene.lab.now();
    scene.lab.spawn(supervise_again(Arc::clone(&sibling), |_| {}).boxed());
    scene.run(sibling.ready()).unwrap();
    let took = scene.lab.now() - began;
    assert!((ms(1000)..ms(1000) + *soon().end()).contains(&took), "{took:?}");
}
