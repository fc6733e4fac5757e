use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join;

use super::*;
use crate::config::Config;
use crate::connection::Reply;
use crate::protocol::Script;
use crate::redis::failure::Failure;
use crate::redis::lab::{FakeNode, Lab, Said, Tasks};
use crate::redis::url::target::Target;
use crate::runtime::Executor;

/// A link to a single server, and the links beside it that wait for replicas.
struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    node: Arc<FakeNode>,
    commands: Arc<Link>,
    acknowledging: Acknowledging,
}

impl Scene {
    fn new() -> Self {
        let lab = Lab::new(&[1], 1);
        let node = Arc::clone(&lab.nodes[&1]);
        let mut tasks = Tasks::new();
        let commands = lab.link(&mut tasks);
        Self { lab, tasks, node, commands, acknowledging: Acknowledging::default() }
    }

    /// Runs one call, which may take two seconds.
    fn call(&mut self) -> Result<Acknowledged, ConnectionError> {
        self.lab.run(&mut self.tasks, call(&self.acknowledging, &self.commands))
    }

    fn sleep(&mut self, time: Duration) {
        self.lab.run(&mut self.tasks, self.lab.sleep(time));
    }
}

async fn call(acknowledging: &Acknowledging, commands: &Link) -> Result<Acknowledged, ConnectionError> {
    let script = Script::all().next().unwrap();
    let waiting = Waiting { replicas: 1, within: Duration::from_secs(2), asking: false };
    acknowledging.run(commands, &[Call::new(script, &["a"], &[])], waiting).await.remove(0)
}

/// After a reconnect, another server may be behind the address.
#[test]
fn the_link_that_waits_is_made_anew_with_the_link_for_commands() {
    let mut scene = Scene::new();
    assert_eq!(scene.call().unwrap().replicas, 1);
    assert_eq!(scene.node.sockets(), [1, 2], "one for commands, and one that waits");
    scene.node.cut(1);
    scene.sleep(Duration::from_secs(1));
    assert_eq!(scene.node.sockets(), [2, 3], "the link for commands was made anew");
    assert_eq!(scene.call().unwrap().replicas, 1);
    assert_eq!(scene.node.sockets(), [3, 4], "it was dialled after the link for commands");
}

#[test]
fn a_call_ends_with_its_link_for_commands() {
    let mut scene = Scene::new();
    scene.call().unwrap();
    scene.node.answers(|_, words| (words[0] == "WAIT").then_some(Said::Never));
    let (lab, node, began) = (Arc::clone(&scene.lab), Arc::clone(&scene.node), scene.lab.now());
    let cut = async {
        lab.sleep(Duration::from_millis(50)).await;
        node.cut(1);
    };
    let (answer, ()) = scene.lab.run(&mut scene.tasks, join(call(&scene.acknowledging, &scene.commands), cut));
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
    assert_eq!(scene.lab.now() - began, Duration::from_millis(50));
}

/// The link for commands is given up before the answer is read.
#[test]
fn an_answer_that_comes_after_the_link_for_commands_has_gone_does_not_count() {
    let mut scene = Scene::new();
    scene.call().unwrap();
    let commands = Arc::clone(&scene.commands);
    scene.node.answers(move |_, words| {
        if words[0] == "WAIT" {
            commands.suspect(1, Failure::Io("the connection was lost".to_owned()));
        }
        None
    });
    let answer = scene.call();
    assert!(matches!(answer, Err(ConnectionError::Unknown(_))), "{answer:?}");
}

/// The script is executed in the second round only, and no replica acknowledges it.
#[test]
fn the_replicas_that_waited_for_less_than_the_call_do_not_count() {
    let mut scene = Scene::new();
    assert_eq!(scene.call().unwrap().replicas, 1);
    let (mut scripts, mut waits) = (0, 0);
    scene.node.answers(move |_, words| match words[0] {
        "EVAL" | "EVALSHA" => {
            scripts += 1;
            (scripts == 1).then(|| Said::Now("-NOSCRIPT No matching script.\r\n".to_owned()))
        }
        "WAIT" => {
            waits += 1;
            (waits > 1).then(|| Said::Now(":0\r\n".to_owned()))
        }
        _ => None,
    });
    let answer = scene.call().unwrap();
    assert_eq!((answer.reply, answer.replicas), (Reply::Integer(1), 0));
}

/// A link ends when no call has needed it for a minute. A call that still waits needs its link.
#[test]
fn a_link_that_is_idle_is_ended() {
    let mut scene = Scene::new();
    for _ in 0..5 {
        assert_eq!(scene.call().unwrap().replicas, 1);
        scene.sleep(Duration::from_secs(59));
        assert_eq!(scene.node.sockets(), [1, 2], "it is in use");
    }
    scene.sleep(Duration::from_secs(60));
    assert_eq!(scene.node.sockets(), [1]);
    scene
        .node
        .answers(|_, words| (words[0] == "WAIT").then(|| Said::After(Duration::from_secs(200), ":1\r\n".to_owned())));
    let waiting = Waiting { replicas: 1, within: Duration::from_secs(300), asking: false };
    let script = Script::all().next().unwrap();
    let slow = async { scene.acknowledging.run(&scene.commands, &[Call::new(script, &["a"], &[])], waiting).await };
    assert_eq!(scene.lab.run(&mut scene.tasks, slow).remove(0).unwrap().replicas, 1);
    assert_eq!(scene.node.sockets(), [1, 3]);
    scene.sleep(Duration::from_secs(59));
    assert_eq!(scene.node.sockets(), [1, 3], "the minute begins with the end of the call");
    scene.sleep(Duration::from_secs(62));
    assert_eq!(scene.node.sockets(), [1]);
}

#[test]
fn calls_that_are_answered_soon_set_no_timers() {
    let mut scene = Scene::new();
    scene.call().unwrap();
    let before = scene.lab.timers();
    for _ in 0..100 {
        scene.call().unwrap();
    }
    assert!(scene.lab.timers() - before <= 1, "{} timers", scene.lab.timers() - before);
}

/// Also if the user waits for less time than most of them take.
#[test]
fn calls_that_may_take_a_short_time_set_no_timers() {
    let lab = Lab::new(&[1], 1);
    let (mut tasks, within) = (Tasks::new(), Duration::from_millis(300));
    lab.nodes[&1].alone.store(true, Ordering::SeqCst);
    let config = Config::builder().command_timeout(within).build().unwrap();
    let locate = Arc::new(Arc::new(Target::parse("redis://h:1").unwrap()));
    let (commands, connecting) = lab.connect(locate, &config);
    lab.run(&mut tasks, connecting).unwrap().unwrap();
    let acknowledging = Acknowledging::default();
    let waiting = Waiting { replicas: 1, within, asking: false };
    let mut call = || {
        let calls = [Call::new(Script::all().next().unwrap(), &["a"], &[])];
        lab.run(&mut tasks, acknowledging.run(&commands, &calls, waiting)).remove(0).unwrap();
    };
    call();
    let before = lab.timers();
    (0..100).for_each(|_| call());
    assert!(lab.timers() - before <= 1, "{} timers", lab.timers() - before);
}

/// A call that is slow still has its whole time, and no more.
#[test]
fn a_slow_call_ends_in_time() {
    let mut scene = Scene::new();
    scene.call().unwrap();
    scene.node.answers(|_, words| (words[0] == "WAIT").then_some(Said::Never));
    let began = scene.lab.now();
    let answer = scene.call();
    assert!(matches!(answer, Err(ConnectionError::Unknown(_)) | Ok(Acknowledged { replicas: 0, .. })), "{answer:?}");
    assert_eq!(scene.lab.now() - began, Duration::from_secs(2));
}

/// The call has waited for the link for commands, and has the rest of its time.
#[test]
fn a_call_that_waits_for_its_link_has_no_time_of_its_own_behind_it() {
    let mut scene = Scene::new();
    scene.node.answers(|_, words| (words[0] == "WAIT").then_some(Said::Never));
    scene.node.dead.store(true, Ordering::SeqCst);
    scene.node.cut(1);
    scene.sleep(Duration::from_millis(1));
    let (lab, node, began) = (Arc::clone(&scene.lab), Arc::clone(&scene.node), scene.lab.now());
    let restart = async {
        lab.sleep(Duration::from_millis(800)).await;
        node.dead.store(false, Ordering::SeqCst);
    };
    let call = call(&scene.acknowledging, &scene.commands);
    let (answer, took) = scene.lab.run(&mut scene.tasks, async {
        let (answer, ()) = join(call, restart).await;
        (answer, lab.now() - began)
    });
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(took, Duration::from_secs(2));
}

#[test]
fn the_links_end_with_what_holds_them() {
    let mut scene = Scene::new();
    scene.call().unwrap();
    assert_eq!(scene.node.sockets(), [1, 2]);
    scene.acknowledging = Acknowledging::default();
    scene.sleep(Duration::from_millis(1));
    assert_eq!(scene.node.sockets(), [1]);
}
