//! The stream that is dialled before its subscription, and the question that is asked before this is confirmed.

use super::super::super::super::dial::locate::Locate;
use super::super::super::super::dial::wishes::Wishes;
use super::super::super::super::lab::Rotating;
use super::super::super::super::link::ahead::KEPT;
use super::super::super::super::options::ConnectOptions;
use super::super::super::super::single::Single;
use super::super::super::super::url::target::Target;
use super::*;
use crate::connection::Connection;

/// A connection that dials ahead, to where `locate` leads, after `prepare`.
fn connected_to(locate: Arc<dyn Locate>, prepare: impl FnOnce(&Lab)) -> (Scene, Single) {
    let mut single = None;
    let scene = Scene::of(|lab, tasks| {
        lab.nodes[&1].alone.store(true, Ordering::SeqCst);
        prepare(lab);
        let link = Link::new(lab.clone(), lab.clone(), locate, &Config::default(), 7);
        let link = Arc::new(link.dialling_ahead());
        single = lab.run(tasks, Single::connect(Arc::clone(&link))).ok().map(|(single, _)| single);
        link
    });
    (scene, single.expect("it connects"))
}

/// The dial of the socket `unreached` gets no answer.
fn connected_but(unreached: usize) -> (Scene, Single) {
    connected_to(Arc::new(Named::new(1)), |lab| lab.unreached.store(unreached, Ordering::SeqCst))
}

fn connected() -> (Scene, Single) {
    connected_but(0)
}

impl Scene {
    fn took<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Duration) {
        let began = self.lab.now();
        let done = work(self);
        (done, self.lab.now() - began)
    }
}

#[test]
fn the_first_subscription_gets_the_socket_and_its_messages() {
    let (mut scene, _single) = connected();
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), [1, 2]);
    let mut first = scene.subscribe().unwrap();
    assert_eq!(scene.node.sockets(), [1, 2]);
    let _second = scene.subscribe().unwrap();
    assert_eq!(scene.node.sockets(), [1, 2, 3], "there is only one ahead");
    scene.node.push(2, ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n".to_owned());
    assert!(matches!(scene.next(&mut first), Notice::Message(payload) if payload == b"hi"));
    scene.sleep(2 * KEPT);
    assert_eq!(scene.node.sockets(), [1, 2, 3], "it is in use");
}

/// The login, the introduction and the subscription are sent in one write, and the question for a proof beside it.
#[test]
fn a_connection_and_a_subscription_take_a_round_trip_each() {
    let (mut scene, _single) = connected();
    *lock(&scene.node.round_trip) = ms(100);
    let (_first, took) = scene.took(|scene| scene.subscribe().unwrap());
    assert_eq!(took, ms(100));
    let (_second, took) = scene.took(|scene| scene.subscribe().unwrap());
    assert_eq!(took, ms(100));
    let link = scene.link.sibling();
    let (single, took) = scene.took(|scene| scene.lab.run(&mut scene.tasks, Single::connect(Arc::new(link))));
    assert!(single.is_ok());
    assert_eq!(took, ms(100));
}

/// How long it takes to subscribe if the server confirms after 85 ms. The login took `round_trip` ms. Each entry of
/// `answered` is the delay of one answer in ms, and whether that answer proves the subscription.
fn subscribed_after(round_trip: u64, answered: &'static [(u64, bool)]) -> Duration {
    let (mut scene, _single) = connected();
    scene.link.measured(ms(round_trip));
    let mut asked = answered.iter();
    scene.node.answers(move |_, words| match words {
        ["SUBSCRIBE", channel] if channel.len() > 1 => Some(Said::After(ms(85), push("subscribe", channel))),
        ["PUBSUB", ..] => {
            let (after, is_here) = asked.next().expect("nothing more is asked");
            Some(Said::After(ms(*after), format!("*2\r\n$1\r\np\r\n:{}\r\n", u8::from(*is_here))))
        }
        _ => None,
    });
    scene.took(|scene| scene.subscribe().unwrap()).1
}

/// On its way to a server that is far away, the question may overtake the subscription.
#[test]
fn a_question_without_an_answer_yet_is_asked_once_more() {
    assert_eq!(subscribed_after(80, &[(80, false), (10, true)]), ms(90), "the second answer counts");
    assert_eq!(subscribed_after(80, &[(80, true), (10, false)]), ms(85), "the first answer counts");
    assert_eq!(subscribed_after(80, &[(80, false), (2, false), (7, true)]), ms(92), "one more question follows");
    assert_eq!(subscribed_after(80, &[(9, false), (7, true)]), ms(92), "there was an answer in time");
    assert_eq!(subscribed_after(80, &[(11, false), (71, true)]), ms(85), "there was none in time");
    assert_eq!(subscribed_after(0, &[(1, false), (7, true)]), ms(92), "the server is near");
    assert_eq!(subscribed_after(0, &[(3, false), (71, true)]), ms(85), "the round trip is not known yet");
}

#[test]
fn a_socket_that_nobody_wants_is_closed() {
    let (mut scene, _single) = connected();
    scene.sleep(KEPT - ms(1));
    assert_eq!(scene.node.sockets(), [1, 2]);
    scene.sleep(ms(2));
    assert_eq!(scene.node.sockets(), [1]);
    assert!(scene.subscribe().is_ok());
    assert_eq!(scene.node.sockets(), [1, 3]);
}

#[test]
fn a_stream_that_has_ended_is_dialled_anew() {
    let (mut scene, _single) = connected();
    scene.sleep(ms(1));
    scene.node.cut(2);
    assert!(scene.subscribe().is_ok());
    assert_eq!(scene.node.sockets(), [1, 3]);
}

/// Behind a balancer, the second socket may lead to a host that does not answer.
#[test]
fn a_dial_without_an_answer_leaves_time_for_another() {
    let (mut scene, _single) = connected_but(2);
    let (subscribed, took) = scene.took(Scene::subscribe);
    assert!(subscribed.is_ok());
    assert_eq!(took, scene.link.timeout / 2);
    assert_eq!(scene.node.sockets(), [1, 3]);
}

#[test]
fn it_is_closed_with_the_connection() {
    for is_dropped in [false, true] {
        let (mut scene, single) = connected();
        scene.sleep(ms(1));
        assert_eq!(scene.node.sockets().len(), 2);
        let kept = (!is_dropped).then_some(single);
        kept.iter().for_each(Single::close);
        scene.sleep(ms(1));
        assert_eq!(scene.node.sockets().len(), 0);
    }
}

#[test]
fn a_subscription_that_is_dropped_meanwhile_takes_it_along() {
    let (mut scene, _single) = connected();
    scene.serve(|socket, _| (socket == 2).then_some(Said::Never));
    let link = Arc::clone(&scene.link);
    let subscribing = at_one_server(&link, Subject::Channel("a"), 1);
    let given_up = select(Box::pin(subscribing), scene.lab.sleep(ms(5)));
    drop(scene.lab.run(&mut scene.tasks, given_up));
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), [1]);
}

/// How often the connections for commands were asked about a subscription.
fn questions(scene: &Scene, here: impl Fn(usize) -> bool + Send + 'static) -> Arc<AtomicUsize> {
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    scene.serve(move |_, words| {
        (words[0] == "PUBSUB").then(|| {
            let is_here = here(count.fetch_add(1, Ordering::SeqCst));
            Said::Now(format!("*2\r\n$1\r\np\r\n:{}\r\n", i32::from(is_here)))
        })
    });
    asked
}

#[test]
fn a_question_that_overtakes_the_subscription_is_asked_again() {
    let mut scene = Scene::new();
    let asked = questions(&scene, |_| true);
    assert!(scene.subscribe().is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let asked = questions(&scene, |before| before > 0);
    assert!(scene.subscribe().is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(scene.subscribed.load(Ordering::SeqCst), 2, "each has one socket");
}

/// The next connection may lead to another server.
#[test]
fn an_answer_of_a_connection_that_is_lost_meanwhile_proves_nothing() {
    let mut scene = Scene::new();
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    scene.serve(move |_, words| match words {
        ["SUBSCRIBE", channels @ ..] => {
            Some(Said::After(ms(100), channels.iter().map(|channel| push("subscribe", channel)).collect()))
        }
        ["PUBSUB", ..] => {
            count.fetch_add(1, Ordering::SeqCst);
            None
        }
        _ => None,
    });
    let link = Arc::clone(&scene.link);
    let (node, wait) = (Arc::clone(&scene.node), scene.lab.sleep(ms(50)));
    let cut = async {
        wait.await;
        node.cut(1);
    };
    let (subscribed, ()) = scene.lab.run(&mut scene.tasks, join(at_one_server(&link, Subject::Channel("a"), 1), cut));
    let mut subscription = subscribed.unwrap();
    assert_eq!((scene.link.current(), asked.load(Ordering::SeqCst)), (2, 2));
    assert!(scene.next_at_once(&mut subscription).is_none(), "it was proven by the second one from the beginning");
}

/// A server whose credentials change.
fn rotating() -> Arc<dyn Locate> {
    let options = ConnectOptions::new("redis://h:1").credentials(Rotating::default());
    Arc::new(Arc::new(Target::of(&options.parts().unwrap()).unwrap()))
}

/// A connection whose login is refused may be subscribed all the same, as the default user. It proves nothing about the
/// next one.
#[test]
fn a_socket_that_was_given_up_proves_nothing_about_the_next_one() {
    let mut scene = Scene::of(|lab, tasks| {
        lab.nodes[&1].alone.store(true, Ordering::SeqCst);
        let (link, connecting) = lab.connect(rotating(), &Config::default());
        lab.run(tasks, connecting).unwrap().unwrap();
        link
    });
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    scene.serve(move |socket, words| match words {
        ["HELLO", ..] if socket == 2 => Some(Said::After(ms(10), "-WRONGPASS no\r\n".to_owned())),
        // Only the first socket is at this server, and the last one.
        ["PUBSUB", ..] => {
            let here = count.fetch_add(1, Ordering::SeqCst) != 1;
            Some(Said::Now(format!("*2\r\n$1\r\np\r\n:{}\r\n", i32::from(here))))
        }
        _ => None,
    });
    assert!(scene.subscribe().is_ok());
    assert_eq!((scene.node.sockets(), asked.load(Ordering::SeqCst)), (vec![1, 4], 3));
}

#[test]
fn a_second_login_dials_no_second_one_ahead() {
    let (mut scene, _single) = connected_to(rotating(), |lab| {
        lab.nodes[&1].answers(|socket, words| {
            (socket == 1 && words[0] == "HELLO").then(|| Said::Now("-WRONGPASS no\r\n".to_owned()))
        });
    });
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), [2, 3]);
    assert!(scene.subscribe().is_ok());
    assert_eq!(scene.node.sockets(), [2, 3]);
}

/// What a socket says about its end depends on how far it came, also if another attempt has dialled it.
#[test]
fn the_end_of_the_socket_is_explained_by_what_it_has_said() {
    let (mut scene, _single) = connected();
    scene.sleep(ms(1));
    let node = Arc::clone(&scene.node);
    scene.serve(move |socket, words| {
        (socket == 2 && words[0] == "SUBSCRIBE").then(|| {
            node.cut(2);
            Said::Now(String::new())
        })
    });
    let (link, progress) = (Arc::clone(&scene.link), Arc::default());
    let wishes = Wishes::subscribing(Arc::new(|_| Ok::<_, ::redis::aio::SendError>(())), &["a"]);
    let Some(failure) = scene.lab.run(&mut scene.tasks, link.dial_to_subscribe(wishes, &progress)).err() else {
        panic!("it has no answer")
    };
    let text = failure.to_string();
    assert!(!text.contains("before its first answer"), "{text}");
}
