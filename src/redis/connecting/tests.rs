//! What a client sends first, behind the logins of its connections.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::Either;

use super::super::lab::{FakeNode, Lab, Rotating, Said, Tasks, ms};
use super::*;
use crate::client::Client;
use crate::connect;
use crate::mutex::lock;

struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    node: Arc<FakeNode>,
    /// The sockets over which scripts were sent.
    called: Arc<Mutex<Vec<usize>>>,
    /// How often the client was made over another connection.
    wrapped: AtomicUsize,
}

impl Scene {
    fn new() -> Self {
        let lab = Lab::new(&[1, 2, 3], 1);
        let node = Arc::clone(&lab.nodes[&1]);
        node.alone.store(true, Ordering::SeqCst);
        let scene = Self { lab, tasks: Tasks::new(), node, called: Arc::default(), wrapped: AtomicUsize::new(0) };
        scene.serve(|_, _| None);
        scene
    }

    /// What all nodes answer from now on. `before` comes first.
    fn serve(&self, before: impl Fn(usize, &[&str]) -> Option<&'static str> + Send + Sync + 'static) {
        let before = Arc::new(before);
        for node in self.lab.nodes.values() {
            let (before, called) = (Arc::clone(&before), Arc::clone(&self.called));
            node.answers(move |socket, words| {
                let is_script = words[0].starts_with("EVAL");
                lock(&called).extend(is_script.then_some(socket));
                let said = before(socket, words).or(match words[0] {
                    "PUBSUB" => Some("*2\r\n$1\r\np\r\n:1\r\n"),
                    _ => is_script.then_some("*1\r\n:1\r\n"),
                });
                said.map(|said| Said::Now(said.to_owned()))
            });
        }
    }

    fn connect(&mut self, to: impl Into<ConnectOptions>) -> Result<Client> {
        let (lab, wrapped) = (Arc::clone(&self.lab), &self.wrapped);
        let client = connect::client(lab.clone(), lab.clone(), to.into(), Config::default(), |connection| {
            wrapped.fetch_add(1, Ordering::SeqCst);
            Arc::new(connection)
        });
        self.lab.run(&mut self.tasks, client)
    }

    fn sleep(&mut self, time: std::time::Duration) {
        let sleep = self.lab.sleep(time);
        self.lab.run(&mut self.tasks, sleep);
    }

    fn called(&self) -> Vec<usize> {
        std::mem::take(&mut *lock(&self.called))
    }
}

#[test]
fn a_client_of_one_server_is_opened_in_one_round_trip() {
    let mut scene = Scene::new();
    *lock(&scene.node.round_trip) = ms(100);
    let began = scene.lab.now();
    let client = scene.connect("redis://h:1").unwrap();
    assert_eq!(scene.lab.now() - began, ms(100));
    assert_eq!(
        (scene.node.sockets(), scene.called(), scene.wrapped.load(Ordering::SeqCst)),
        (vec![1, 2], vec![1, 1], 1)
    );
    assert!(client.warnings().is_empty());
    drop(client);
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), []);
}

#[test]
fn what_is_found_about_the_server_is_told() {
    let mut scene = Scene::new();
    scene.serve(|_, words| (words[0] == "INFO").then_some("$31\r\nmaxmemory_policy:allkeys-random\r\n"));
    let client = scene.connect("redis://h:1").unwrap();
    assert!(matches!(&client.warnings()[..], [Warning::Eviction { policy }] if policy == "allkeys-random"));
}

/// The refusal of the login counts, and not those of the calls behind it.
#[test]
fn a_refused_login_ends_the_attempt() {
    let mut scene = Scene::new();
    scene.serve(|_, words| match words[0] {
        "HELLO" => Some("-WRONGPASS no\r\n"),
        _ => Some("-NOAUTH no\r\n"),
    });
    let error = scene.connect("redis://h:1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(format!("{error:#}").contains("WRONGPASS"), "{error:#}");
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), []);
}

/// The check is not repeated, and the error is the server's refusal.
#[test]
fn a_refused_call_is_the_error() {
    let mut scene = Scene::new();
    scene.serve(|_, words| words[0].starts_with("EVAL").then_some("-NOPERM no\r\n"));
    assert_eq!(scene.connect("redis://h:1").unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(scene.called(), [1, 1]);
    scene.sleep(ms(1));
    assert_eq!(scene.node.sockets(), []);
}

/// The default user may run scripts before any login. What the other user may do is found out with the second login.
#[test]
fn what_was_sent_behind_a_refused_login_does_not_count() {
    for default_user in ["*1\r\n:1\r\n", "-NOAUTH no\r\n"] {
        let mut scene = Scene::new();
        scene.serve(move |socket, words| match words[0] {
            "HELLO" if socket == 1 => Some("-WRONGPASS no\r\n"),
            "EVAL" | "EVALSHA" if socket == 1 => Some(default_user),
            _ => None,
        });
        let options = ConnectOptions::new("redis://h:1").credentials(Rotating::default());
        let _client = scene.connect(options).unwrap();
        let called = scene.called();
        assert_eq!((called[..2].to_vec(), called[2..].to_vec()), (vec![1, 1], vec![3, 3]), "{default_user}");
    }
}

/// The early calls give the connection up. It is taken up again after the login.
#[test]
fn a_call_that_finds_a_replica_is_made_again() {
    let mut scene = Scene::new();
    let refused = AtomicUsize::new(0);
    scene.serve(move |_, words| {
        let is_first = words[0] == "EVAL" && refused.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then_some("-READONLY You can't write against a read only replica.\r\n")
    });
    assert!(scene.connect("redis://h:1").is_ok());
    let mut called = scene.called();
    called.dedup();
    assert_eq!(called, [1]);
}

#[test]
fn the_node_of_a_cluster_leads_to_the_cluster() {
    let mut scene = Scene::new();
    scene.node.alone.store(false, Ordering::SeqCst);
    let client = scene.connect("redis://h:1").unwrap();
    assert_eq!(scene.wrapped.load(Ordering::SeqCst), 2);
    scene.sleep(ms(1));
    let early = [1, 2];
    assert!(!scene.node.sockets().iter().any(|socket| early.contains(socket)), "{:?}", scene.node.sockets());
    drop(client);
}

/// A slow login leaves less time for what was sent behind it. The second check has a time of its own.
#[test]
fn a_check_that_a_slow_login_has_left_no_time_is_made_again() {
    let timeout = Config::default().command_timeout;
    for (login, check, is_again) in [(60, 60, true), (40, 80, false), (0, 1000, false)] {
        let mut scene = Scene::new();
        let after = move |percent| timeout * percent / 100;
        let checks = AtomicUsize::new(0);
        scene.node.answers(move |socket, words| {
            let said = match words[0] {
                "HELLO" if socket == 1 => return None,
                "PING" if socket == 1 => return Some(Said::After(after(login), "+PONG\r\n".to_owned())),
                "PUBSUB" => "*2\r\n$1\r\np\r\n:1\r\n",
                "EVAL" if checks.fetch_add(1, Ordering::SeqCst) == 0 => {
                    return Some(Said::After(after(check), "*1\r\n:1\r\n".to_owned()));
                }
                "EVAL" | "EVALSHA" => "*1\r\n:1\r\n",
                _ => return None,
            };
            Some(Said::Now(said.to_owned()))
        });
        let began = scene.lab.now();
        let client = scene.connect("redis://h:1");
        let took = scene.lab.now() - began;
        assert_eq!(client.is_ok(), is_again, "{login} {check}: {client:?}");
        assert!(took < if is_again { timeout * 2 } else { timeout + ms(1) }, "{login} {check}: {took:?}");
    }
}

/// What is sent to a socket that was closed may hide what the server has said. A server that hangs up for another
/// reason is used all the same.
#[test]
fn a_server_that_hangs_up_is_asked_once_more() {
    for (answer, called) in [(Some("-ERR max number of clients reached\r\n"), vec![]), (None, vec![3, 3])] {
        let mut scene = Scene::new();
        let (node, calls) = (Arc::clone(&scene.node), Arc::clone(&scene.called));
        scene.node.answers(move |socket, words| {
            if words[0] == "HELLO" && socket < 3 {
                node.cut(socket);
                return Some(Said::Never);
            }
            let said = match words[0] {
                "HELLO" => answer?,
                "PUBSUB" => "*2\r\n$1\r\np\r\n:1\r\n",
                "EVAL" | "EVALSHA" => {
                    lock(&calls).push(socket);
                    "*1\r\n:1\r\n"
                }
                _ => return None,
            };
            Some(Said::Now(said.to_owned()))
        });
        let client = scene.connect("redis://h:1");
        match answer {
            Some(_) => {
                let error = client.unwrap_err();
                assert!(format!("{error:#}").contains("max number of clients"), "{error:#}");
                scene.sleep(ms(1));
                assert_eq!(scene.node.sockets(), []);
            }
            None => assert!(client.is_ok(), "{client:?}"),
        }
        assert_eq!(scene.called(), called);
    }
}

/// Dropping the future closes both connections, at any moment.
#[test]
fn a_connect_that_is_dropped_leaves_nothing() {
    for after in (0..10).chain(11..20) {
        let mut scene = Scene::new();
        *lock(&scene.node.round_trip) = ms(10);
        let lab = Arc::clone(&scene.lab);
        let connecting = connect::client(lab.clone(), lab, "redis://h:1".into(), Config::default(), |connection| {
            Arc::new(connection)
        });
        let dropped = scene.lab.sleep(ms(after));
        let outcome = select(connecting.boxed(), dropped);
        let is_early = matches!(scene.lab.run(&mut scene.tasks, outcome), Either::Right(_));
        assert_eq!(is_early, after < 10, "{after}");
        scene.sleep(ms(50));
        assert_eq!(scene.node.sockets(), [], "{after}");
        assert_eq!(scene.tasks.len(), 0, "{after}");
    }
}
