use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use futures::{FutureExt, StreamExt};

use super::super::super::lab::{FakeNode, Lab, Named, Said, Tasks, lasting, late, ms, push, soon};
use super::*;
use crate::config::Config;
use crate::connection::Notice;
use crate::mutex::lock;

mod ahead;
mod refused;
mod replicas;
mod watched;

/// A link for commands, and what its server says about subscriptions.
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    node: Arc<FakeNode>,
    link: Arc<Link>,
    /// How many of the next questions find that the server does not have the subscription.
    elsewhere: Arc<AtomicUsize>,
    /// The refusal of new ones.
    refuses: Arc<Mutex<Option<&'static str>>>,
    /// How often a socket was subscribed.
    subscribed: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        Self::of(|lab, tasks| lab.link(tasks))
    }

    fn of(link: impl FnOnce(&Arc<Lab>, &mut Tasks) -> Arc<Link>) -> Self {
        let (lab, mut tasks) = (Lab::new(&[1], 1), Tasks::new());
        let (link, node) = (link(&lab, &mut tasks), Arc::clone(&lab.nodes[&1]));
        let [elsewhere, subscribed] = [(); 2].map(|()| Arc::default());
        let scene = Self { lab, tasks, node, link, elsewhere, refuses: Arc::default(), subscribed };
        scene.serve(|_, _| None);
        scene
    }

    /// From now on, this comes before what the server says otherwise.
    fn serve(&self, before: impl Fn(usize, &[&str]) -> Option<Said> + Send + 'static) {
        let (elsewhere, refusal) = (Arc::clone(&self.elsewhere), Arc::clone(&self.refuses));
        let count = Arc::clone(&self.subscribed);
        self.node.answers(move |socket, words| {
            before(socket, words).or_else(|| match words {
                ["SUBSCRIBE", channels @ ..] => {
                    // The probe is subscribed, too.
                    count.fetch_add(usize::from(channels == ["a"]), Ordering::SeqCst);
                    Some(Said::Now(match *lock(&refusal) {
                        Some(refusal) => format!("-{refusal}\r\n"),
                        None => channels.iter().map(|channel| push("subscribe", channel)).collect(),
                    }))
                }
                ["PUBSUB", ..] => {
                    let less = |left: usize| left.checked_sub(1);
                    let is_here = elsewhere.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err();
                    Some(Said::Now(format!("*2\r\n$1\r\np\r\n:{}\r\n", i32::from(is_here))))
                }
                _ => None,
            })
        });
    }

    fn subscribe(&mut self) -> Result<Subscription, ConnectionError> {
        let link = Arc::clone(&self.link);
        self.lab.run(&mut self.tasks, at_one_server(&link, Subject::Channel("a"), 1))
    }

    fn next(&mut self, subscription: &mut Subscription) -> Notice {
        self.lab.run(&mut self.tasks, subscription.next()).unwrap()
    }

    fn next_at_once(&mut self, subscription: &mut Subscription) -> Option<Notice> {
        self.sleep(ms(100));
        subscription.next().now_or_never().flatten()
    }

    fn sleep(&mut self, time: Duration) {
        let sleep = self.lab.sleep(time);
        self.lab.run(&mut self.tasks, sleep);
    }

    fn cut_last(&self) {
        self.node.cut(*self.node.sockets().last().unwrap());
    }
}

/// Otherwise a server that hangs up on subscribers would be dialled a hundred times a second, and one that has
/// restarted would be missed for a second.
#[test]
fn the_pauses_grow_until_a_subscription_has_lasted() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    let cut = |scene: &mut Scene, subscription: &mut Subscription| {
        let began = scene.lab.now();
        scene.cut_last();
        for _ in 0..2 {
            // One gap when it is lost, and one when it is proven anew.
            assert!(matches!(scene.next(subscription), Notice::Gap));
        }
        scene.lab.now() - began
    };
    let pauses: Vec<Duration> = (0..9).map(|_| cut(&mut scene, &mut subscription)).collect();
    assert!(soon().contains(&pauses[0]), "{pauses:?}");
    assert!(pauses[7] >= late() && pauses[8] >= late(), "{pauses:?}");
    scene.sleep(lasting() - ms(1));
    assert!(cut(&mut scene, &mut subscription) >= late(), "it did not last for long enough");
    scene.sleep(lasting());
    assert!(soon().contains(&cut(&mut scene, &mut subscription)), "it has lasted");
    assert_eq!(scene.link.reconnects.load(Ordering::SeqCst), 11);
    assert!(scene.next_at_once(&mut subscription).is_none(), "there is no other gap");
}

#[test]
fn a_first_subscription_that_never_meets_the_commands_says_so() {
    let mut scene = Scene::new();
    scene.elsewhere.store(usize::MAX, Ordering::SeqCst);
    let began = scene.lab.now();
    let Err(failure) = scene.subscribe() else { panic!("it is on another server") };
    assert!(failure.to_string().contains("on another server than the commands"), "{failure}");
    assert_eq!(scene.lab.now() - began, scene.link.timeout);
    let tried = scene.subscribed.load(Ordering::SeqCst);
    assert!((5..20).contains(&tried), "there are pauses: {tried}");
}

#[test]
fn heartbeats_that_are_answered_at_once_correct_a_slow_login() {
    let mut scene = Scene::new();
    let _subscription = scene.subscribe().unwrap();
    scene.link.measured(ms(1000));
    assert_eq!(scene.link.patient(), ms(2000));
    scene.sleep(20 * HEARTBEAT);
    assert!(scene.link.patient() < ms(200), "{:?}", scene.link.patient());
}

/// A second refusal is no news.
#[test]
fn a_refusal_of_a_subscription_is_told_once_per_interruption() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    for _ in 0..2 {
        *lock(&scene.refuses) = Some("NOPERM no");
        scene.cut_last();
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
        assert!(matches!(scene.next(&mut subscription), Notice::Refused(_)));
        assert!(scene.next_at_once(&mut subscription).is_none());
        *lock(&scene.refuses) = None;
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
}

/// The heartbeat finds that out, although nothing is sent otherwise.
#[test]
fn a_subscription_whose_socket_is_silent_is_made_anew() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    let before = scene.subscribed.load(Ordering::SeqCst);
    scene.sleep(ms(60_000));
    assert!(scene.next_at_once(&mut subscription).is_none(), "it answers");
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), before);
    let last = *scene.node.sockets().last().unwrap();
    scene.serve(move |socket, _| (socket == last).then_some(Said::Never));
    let began = scene.lab.now();
    assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    let took = scene.lab.now() - began;
    assert!(took <= HEARTBEAT + scene.link.upkeep, "{took:?}");
    assert!(matches!(scene.next(&mut subscription), Notice::Gap));
}

/// The next link for commands is asked. The socket of the subscription has lost nothing.
#[test]
fn a_subscription_keeps_its_socket_when_the_commands_lose_theirs() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    let commands = scene.node.sockets()[0];
    // The next link logs in, and gives no answer to the proof.
    scene.serve(|socket, words| (socket == 3 && words[0] == "PUBSUB").then_some(Said::Never));
    scene.node.cut(commands);
    assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), 1);
    assert_eq!(scene.link.reconnects.load(Ordering::SeqCst), 2, "those of the commands");
    assert!(scene.next_at_once(&mut subscription).is_none());
}

/// The server still counts a subscription whose socket is dead.
#[test]
fn a_socket_without_a_sign_of_life_is_proven_by_nothing() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    scene.serve(|socket, words| (socket == 2 && words == ["PING"]).then_some(Said::Never));
    scene.node.cut(1);
    for _ in 0..2 {
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), 2);
    assert!(!scene.node.sockets().contains(&2));
}

/// One of the two leads to the wrong server. The subscription goes first.
#[test]
fn the_commands_dial_anew_after_every_second_refutation_in_a_row() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    for (in_a_row, generation) in [(1, 1), (1, 1), (2, 2), (1, 2)] {
        // Each socket is asked about twice: the first question may have arrived before the subscription.
        scene.elsewhere.store(2 * in_a_row, Ordering::SeqCst);
        scene.cut_last();
        for _ in 0..2 {
            assert!(matches!(scene.next(&mut subscription), Notice::Gap));
        }
        assert_eq!(scene.link.current(), generation);
    }
}

/// The new primary does not have it, and need not be asked.
#[test]
fn a_subscription_at_a_server_that_is_left_goes_at_once() {
    let (lab, mut tasks, named) = (Lab::new(&[1, 2], 1), Tasks::new(), Arc::new(Named::new(1)));
    let asked = Arc::new(AtomicUsize::new(0));
    for node in lab.nodes.values() {
        node.alone.store(true, Ordering::SeqCst);
        let (asked, mut probes) = (Arc::clone(&asked), Vec::new());
        node.answers(move |_, words| match words {
            ["SUBSCRIBE", channels @ ..] => {
                probes.extend(channels.last().map(|probe| (*probe).to_owned()));
                Some(Said::Now(channels.iter().map(|channel| push("subscribe", channel)).collect()))
            }
            ["PUBSUB", "NUMSUB", probe] => {
                asked.fetch_add(1, Ordering::SeqCst);
                let is_here = probes.iter().any(|known| known == probe);
                Some(Said::Now(format!("*2\r\n$1\r\np\r\n:{}\r\n", i32::from(is_here))))
            }
            _ => None,
        });
    }
    let (link, connecting) = lab.connect(named.clone(), &Config::default());
    lab.run(&mut tasks, connecting).unwrap().unwrap();
    let Ok(mut subscription) = lab.run(&mut tasks, at_one_server(&link, Subject::Channel("a"), 1)) else {
        panic!("not subscribed")
    };
    assert_eq!(lab.nodes[&1].sockets().len(), 2);
    named.name(2);
    for _ in 0..2 {
        assert!(matches!(lab.run(&mut tasks, subscription.next()), Some(Notice::Gap)));
    }
    lab.run(&mut tasks, lab.sleep(ms(1)));
    assert_eq!((lab.nodes[&1].sockets().len(), lab.nodes[&2].sockets().len()), (0, 2));
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once for each socket");
}

#[test]
fn nothing_is_subscribed_once_the_connection_is_closed() {
    let mut scene = Scene::new();
    scene.link.close();
    assert_eq!(scene.subscribe().err(), Some(ConnectionError::Closed));
    scene.sleep(ms(100));
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), 0);
}

/// The first attempts are too short for such a network.
#[test]
fn a_subscription_is_made_again_over_a_slow_network() {
    let mut scene = Scene::new();
    let mut subscription = scene.subscribe().unwrap();
    *lock(&scene.node.round_trip) = ms(200);
    scene.cut_last();
    let began = scene.lab.now();
    for _ in 0..2 {
        assert!(matches!(scene.next(&mut subscription), Notice::Gap));
    }
    assert!(scene.lab.now() - began < ms(5000), "{:?}", scene.lab.now() - began);
}
