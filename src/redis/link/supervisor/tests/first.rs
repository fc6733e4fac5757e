//! The first attempts, which end when the time to connect is over.

use super::*;

/// The time that a client has to connect.
const LIMIT: Duration = Duration::from_secs(3);

#[test]
fn a_server_that_is_gone_is_dialled_for_as_long_as_there_is_time() {
    let mut scene = Scene::new();
    scene.node(1).dead.store(true, Ordering::SeqCst);
    let began = scene.lab.now();
    let failure = scene.first().unwrap_err().to_string();
    assert!(failure.contains("connection refused"), "{failure}");
    let took = scene.lab.now() - began;
    assert!((LIMIT - ms(1000)..=LIMIT).contains(&took), "{took:?}");
    assert!(scene.named.asked.load(Ordering::SeqCst) > 5, "each dial asks where to");
}

/// It has just become the primary, or loads its data.
#[test]
fn a_server_that_says_later_is_asked_again() {
    let mut scene = Scene::new();
    let (clock, ready) = (Arc::clone(&scene.lab.clock), scene.lab.now() + ms(500));
    scene.node(1).answers(move |_, words| {
        (words[0] == "HELLO" && clock.now() < ready).then(|| Said::Now("-LOADING wait\r\n".to_owned()))
    });
    scene.first().unwrap();
    assert!(scene.lab.now() >= ready);
}

/// "No answer within 2 ms" would be no help.
#[test]
fn an_attempt_that_was_cut_off_does_not_hide_the_cause() {
    let mut scene = Scene::new();
    let (lab, node, began) = (Arc::clone(&scene.lab), scene.node(1), scene.lab.now());
    node.dead.store(true, Ordering::SeqCst);
    let freezes = async {
        lab.sleep(ms(5)).await;
        node.frozen.store(true, Ordering::SeqCst);
        node.dead.store(false, Ordering::SeqCst);
    };
    let (first, ()) = lab.run(&mut scene.tasks, join(&mut scene.connecting, freezes));
    let failure = first.unwrap().unwrap_err().to_string();
    assert!(failure.contains("connection refused"), "{failure}");
    assert_eq!(lab.now() - began, LIMIT);
    assert_eq!(*lock(&node.logins), 1);
    // With nothing before it, it is the cause.
    let mut scene = Scene::new();
    scene.node(1).frozen.store(true, Ordering::SeqCst);
    let failure = scene.first().unwrap_err().to_string();
    assert!(failure.contains("no answer within 3s"), "{failure}");
}

/// The pause before the last attempt ends early, because another server is named. That one has all the time that is
/// left.
#[test]
fn an_attempt_after_a_pause_that_was_cut_short_has_the_rest_of_the_time() {
    for wait in (1_500..2_200).step_by(100).map(ms) {
        let mut scene = Scene::new();
        let (lab, named, began) = (Arc::clone(&scene.lab), Arc::clone(&scene.named), scene.lab.now());
        scene.node(1).dead.store(true, Ordering::SeqCst);
        scene.node(2).frozen.store(true, Ordering::SeqCst);
        let names = async {
            lab.sleep(wait).await;
            named.name(2);
        };
        let (first, ()) = lab.run(&mut scene.tasks, join(&mut scene.connecting, names));
        let failure = first.unwrap().unwrap_err().to_string();
        assert!(failure.contains("h:1 was named: connection refused"), "{wait:?}: {failure}");
        assert_eq!(lab.now() - began, LIMIT, "{wait:?}");
        assert_eq!(*lock(&scene.node(2).logins), 1, "{wait:?}");
    }
}

/// No other server may work soon: it is not known that one has failed, there is no other one, or it would say the same.
#[test]
fn other_failures_are_told_at_once() {
    let nowhere = Named { port: Mutex::new(None), ..Named::new(1) };
    let alone = Named { moves: false, ..Named::new(1) };
    for (named, why) in [(nowhere, "no one knows"), (alone, "connection refused"), (Named::new(1), "WRONGPASS")] {
        let is_dead = !named.moves;
        let mut scene = Scene::with(named, &Config::default());
        let (node, began) = (scene.node(1), scene.lab.now());
        node.dead.store(is_dead, Ordering::SeqCst);
        node.answers(|_, words| (words[0] == "HELLO").then(|| Said::Now("-WRONGPASS no\r\n".to_owned())));
        let failure = scene.first().unwrap_err().to_string();
        assert!(failure.contains(why), "{failure}");
        let asked = scene.named.asked.load(Ordering::SeqCst);
        assert_eq!((asked, scene.lab.now() - began), (1, ms(0)), "{why}");
    }
}

/// After the login too.
#[test]
fn who_named_a_server_that_does_not_fit_is_told() {
    let mut scene = Scene::new();
    let replica = || "%1\r\n$4\r\nrole\r\n$5\r\nslave\r\n".to_owned();
    scene.node(1).answers(move |_, words| (words[0] == "HELLO").then(|| Said::Now(replica())));
    let failure = scene.first().unwrap_err();
    assert!(matches!(&failure, Failure::Explained(_, why) if why == "h:1 was named"), "{failure}");
}

/// An address that is never learned is not a server that was never reached.
#[test]
fn how_far_an_attempt_came_is_told() {
    struct Mute;

    impl fmt::Display for Mute {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("mute")
        }
    }

    impl Locate for Mute {
        fn locate(&self) -> BoxFuture<'_, Result<Arc<Target>, Failure>> {
            pending().boxed()
        }

        fn left<'a>(&'a self, _: &'a Target) -> BoxFuture<'a, ()> {
            pending().boxed()
        }

        fn moved(&self) -> BoxFuture<'_, ()> {
            pending().boxed()
        }

        fn locate_blocking(&self, _: Deadline) -> Option<Arc<Target>> {
            None
        }
    }

    let late = |locate: Arc<dyn Locate>| {
        let lab = Lab::new(&[1], 1);
        let (_link, connecting) = lab.connect(locate, &Config::default());
        lab.run(&mut Tasks::new(), connecting).unwrap().unwrap_err().to_string()
    };
    assert_eq!(late(Arc::new(Mute)), "the address of the server was not learned within 3s");
    #[cfg(unix)]
    {
        // The lab's dials of Unix sockets never end.
        let unix = Arc::new(Target::parse("unix:///socket").unwrap());
        assert_eq!(late(Arc::new(unix)), "unreachable: no connection within 3s");
    }
}

/// A user is warned once about how the server is set up.
#[test]
fn only_the_first_connection_looks_at_how_the_server_is_set_up() {
    let mut scene = Scene::new();
    let asked = Arc::new(AtomicUsize::new(0));
    scene.node(1).answers({
        let asked = Arc::clone(&asked);
        move |_, words| {
            (words[0] == "INFO").then(|| {
                asked.fetch_add(1, Ordering::SeqCst);
                Said::Now("$28\r\nmaxmemory_policy:allkeys-lru\r\n".to_owned())
            })
        }
    });
    assert_eq!(scene.first().unwrap(), [Warning::Eviction { policy: "allkeys-lru".to_owned() }]);
    scene.cut();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A server that hangs up at the first login may be one with TLS, and is asked once more over another socket. One that
/// has been logged in to is not.
#[test]
fn only_the_first_login_asks_whether_one_side_uses_tls() {
    let hangs_up = |scene: &Scene, last: usize| {
        let node = Arc::downgrade(&scene.node(1));
        scene.node(1).answers(move |socket, _| {
            (socket <= last).then(|| {
                node.upgrade().unwrap().cut(socket);
                Said::Now(String::new())
            })
        });
    };
    let mut scene = Scene::with(Named { moves: false, ..Named::new(1) }, &Config::default());
    hangs_up(&scene, 2);
    // The fake server does not understand the greeting of TLS, and says nothing.
    let failure = scene.first().unwrap_err().to_string();
    assert!(failure.contains("hung up"), "{failure}");
    assert_eq!(*lock(&scene.node(1).logins), 2);
    let mut scene = Scene::connected();
    hangs_up(&scene, 2);
    scene.cut();
    assert_eq!(scene.node(1).sockets(), [3], "the second one hung up, and the next one is a login");
}

/// A single server at this address, which answers to this command. It is dialled once.
fn at_a_server(url: &str, to: &'static str, answer: &'static str) -> Result<Vec<Warning>, Failure> {
    let (lab, target) = (Lab::new(&[1], 1), Target::parse(url).unwrap());
    let node = &lab.nodes[&1];
    node.alone.store(true, Ordering::SeqCst);
    node.dead.store(to.is_empty(), Ordering::SeqCst);
    node.answers(move |_, words| (words[0] == to).then(|| Said::Now(format!("{answer}\r\n"))));
    let began = lab.now();
    let (_link, connecting) = lab.connect(Arc::new(Arc::new(target)), &Config::default());
    let first = lab.run(&mut Tasks::new(), connecting).unwrap();
    assert_eq!(lab.now(), began, "{to} {answer}");
    first
}

#[test]
fn what_a_server_says_to_the_checks() {
    assert!(at_a_server("redis://h:1/5", "SELECT", "+OK").is_ok());
    let failure = at_a_server("redis://h:1/5", "SELECT", "-ERR DB index is out of range").unwrap_err();
    assert!(matches!(failure, Failure::Invalid(_)), "the URL is wrong: {failure}");
    for (to, answer) in [("SELECT", "-NOPERM no"), ("PING", "-LOADING wait"), ("PING", "-ERR out of order")] {
        let failure = at_a_server("redis://h:1/5", to, answer).unwrap_err();
        assert!(matches!(failure, Failure::Refused(_)), "{to} {answer}: {failure}");
    }
    // Those who may run scripts need no other right.
    for to in ["PING", "INFO"] {
        assert_eq!(at_a_server("redis://h:1/5", to, "-NOPERM no").unwrap(), [], "{to}");
    }
}

#[test]
fn no_other_server_takes_the_place_of_a_single_one() {
    let failure = at_a_server("redis://h:1/", "", "").unwrap_err().to_string();
    assert!(failure.contains("connection refused"), "{failure}");
}
