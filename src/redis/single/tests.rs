use std::sync::Mutex;

use futures::future::join;

use super::super::lab::{FakeNode, Lab, Named, Said, Tasks, ms, push};
use super::*;
use crate::config::Config;
use crate::connection::Reply;
use crate::mutex::lock;
use crate::protocol::Script;
use crate::runtime::Executor;

struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    node: Arc<FakeNode>,
    link: Arc<Link>,
}

impl Scene {
    fn new(moves: bool) -> Self {
        let lab = Lab::new(&[1], 1);
        let node = Arc::clone(&lab.nodes[&1]);
        node.alone.store(true, Ordering::SeqCst);
        let named = Arc::new(Named { moves, ..Named::new(1) });
        let link = Arc::new(Link::new(lab.clone(), lab.clone(), named, &Config::default(), 7));
        Self { lab, tasks: Tasks::new(), node, link }
    }

    fn connect(&mut self) -> Single {
        let Ok((single, _)) = self.lab.run(&mut self.tasks, Single::connect(Arc::clone(&self.link))) else {
            panic!("it does not connect")
        };
        single
    }

    fn sleep(&mut self, time: Duration) {
        let sleep = self.lab.sleep(time);
        self.lab.run(&mut self.tasks, sleep);
    }
}

#[test]
fn closing_it_closes_all_its_sockets() {
    for is_dropped in [false, true] {
        let mut scene = Scene::new(false);
        let single = scene.connect();
        let calls = [Call::new(Script::all().next().unwrap(), &["a"], &[])];
        let answers = scene.lab.run(&mut scene.tasks, single.run_acknowledged(&calls, 1, ms(1000)));
        assert_eq!(answers[0].as_ref().unwrap().replicas, 1);
        assert_eq!(scene.node.sockets().len(), 2, "one for calls that wait for replicas");
        let kept = (!is_dropped).then_some(single);
        kept.iter().for_each(Single::close);
        scene.sleep(ms(1));
        assert_eq!(scene.node.sockets().len(), 0);
    }
}

#[test]
fn an_attempt_to_connect_that_is_dropped_leaves_no_socket() {
    let mut scene = Scene::new(false);
    scene.node.answers(|_, _| Some(Said::Never));
    let connecting = Single::connect(Arc::clone(&scene.link));
    let waits = scene.lab.sleep(ms(5));
    let given_up = futures::future::select(Box::pin(connecting), waits);
    drop(scene.lab.run(&mut scene.tasks, given_up));
    assert_eq!(scene.node.sockets().len(), 1);
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets().len(), 0);
}

#[test]
fn what_is_known_about_the_server() {
    for moves in [false, true] {
        let mut scene = Scene::new(moves);
        let single = scene.connect();
        assert_eq!((single.topology().fails_over, single.why_down("a"), single.reconnects()), (moves, None, 0));
        scene.node.cut(1);
        scene.sleep(ms(100));
        assert_eq!((single.why_down("a"), single.reconnects()), (None, 1));
        scene.node.dead.store(true, Ordering::SeqCst);
        scene.node.cut(2);
        scene.sleep(ms(100));
        let why = single.why_down("a").map(|why| why.to_string()).unwrap_or_default();
        assert!(why.contains("connection refused"), "{why}");
    }
}

/// Otherwise the thousand inboxes of a host would dial their server at the same moments.
#[test]
fn subscriptions_do_not_all_come_back_at_the_same_moment() {
    let mut scene = Scene::new(false);
    let single = scene.connect();
    let subscribed = Arc::<Mutex<Vec<_>>>::default();
    let (clock, all) = (Arc::clone(&scene.lab.clock), Arc::clone(&subscribed));
    scene.node.answers(move |socket, words| match words {
        ["SUBSCRIBE", channel] => {
            // The probe is subscribed, too.
            if ["a", "b"].contains(channel) {
                lock(&all).push((socket, clock.now()));
            }
            Some(Said::Now(push("subscribe", channel)))
        }
        ["PUBSUB", ..] => Some(Said::Now("*2\r\n$1\r\np\r\n:1\r\n".to_owned())),
        _ => None,
    });
    let both = join(single.subscribe("a"), single.subscribe("b"));
    let (Ok(_first), Ok(_second)) = scene.lab.run(&mut scene.tasks, both) else { panic!("they do not subscribe") };
    for _ in 0..3 {
        let sockets: Vec<usize> = lock(&subscribed).drain(..).map(|(socket, _)| socket).collect();
        assert_eq!(sockets.len(), 2);
        sockets.into_iter().for_each(|socket| scene.node.cut(socket));
        scene.sleep(ms(2000));
    }
    let [(_, first), (_, second)] = lock(&subscribed)[..] else { panic!("two have come back") };
    assert_ne!(first, second);
}

/// The server hangs up at the first login, and no call has noticed. The next call goes to the second connection.
#[test]
fn a_second_dial_takes_the_place_of_what_was_taken_up_early() {
    let lab = Lab::new(&[1], 1);
    let (node, mut tasks) = (Arc::clone(&lab.nodes[&1]), Tasks::new());
    node.alone.store(true, Ordering::SeqCst);
    let cut = Arc::clone(&node);
    node.answers(move |socket, words| {
        (socket == 1 && words[0] == "HELLO").then(|| {
            cut.cut(1);
            Said::Never
        })
    });
    let link = Link::new(lab.clone(), lab.clone(), Arc::new(Named::new(1)), &Config::default(), 7);
    let (single, connected) = Single::begin(Arc::new(link.taking_calls_early()));
    assert!(lab.run(&mut tasks, connected).is_ok());
    let call = Call::new(Script::all().next().unwrap(), &["a"], &[]);
    assert_eq!(lab.run(&mut tasks, single.run(call)), Ok(Reply::Integer(1)));
    assert_eq!((node.sockets(), single.reconnects()), (vec![2], 0));
}
