//! The fixture itself: what it cannot do, no test that uses it can show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, RedisResult};
use support::server::Server;

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_answers_on_both_its_addresses() {
    let server = Server::start();
    for url in [server.url(), server.socket_url()] {
        let mut client = Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd("SET").arg("k").arg(1).arg("PX").arg(60_000).exec(&mut client).unwrap();
    }
    assert_eq!(server.keys(), ["k"]);
    assert!((1..=60_000).contains(&server.ttl_ms("k")));
    assert_eq!(server.ttl_ms("none"), -2);
    assert!(server.version().contains('.'), "{}", server.version());
    let (dir, url) = (server.dir().to_owned(), server.url());
    server.finish();
    assert!(!dir.exists());
    assert!(Client::open(url).unwrap().get_connection().is_err());
}

#[test]
fn a_restart_keeps_the_port_and_what_is_on_disk() {
    for (args, kept) in [(&[][..], false), (&["--appendonly", "yes", "--appendfsync", "always"][..], true)] {
        let mut server = Server::start_with(args);
        let port = server.port();
        redis::cmd("SET").arg("k").arg(1).arg("PX").arg(600_000).exec(&mut server.client()).unwrap();
        server.kill();
        assert!(Client::open(server.url()).unwrap().get_connection().is_err());
        server.restart();
        assert_eq!(server.port(), port);
        assert_eq!(!server.keys().is_empty(), kept);
    }
}

#[test]
fn a_paused_server_is_silent_until_it_is_resumed() {
    let server = Server::start();
    let mut client = server.client();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    server.pause();
    assert!(redis::cmd("PING").exec(&mut client).is_err());
    server.resume();
    redis::cmd("PING").exec(&mut server.client()).unwrap();
}

#[test]
fn a_key_without_ttl_fails_the_test_even_when_it_is_gone_and_the_server_was_restarted() {
    let mut server = Server::start();
    server.pause();
    thread::sleep(Duration::from_millis(300));
    server.restart();
    redis::cmd("SET").arg("eternal").arg(1).exec(&mut server.client()).unwrap();
    // The watcher connects anew after the restart; its command shows in the list of clients.
    eventually("the watcher looks", || {
        let clients: RedisResult<String> = redis::cmd("CLIENT").arg("LIST").query(&mut server.client());
        clients.unwrap().contains("cmd=pttl")
    });
    redis::cmd("DEL").arg("eternal").exec(&mut server.client()).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(server))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("eternal"));
}

#[test]
fn a_key_that_is_allowed_to_live_forever_does_not() {
    let server = Server::start();
    server.allow_forever("wrong");
    redis::cmd("SET").arg("wrong").arg(1).exec(&mut server.client()).unwrap();
    server.finish();
}

/// Runs the test below in a process of its own, and kills that.
#[test]
fn a_server_ends_with_its_test_even_when_that_is_killed() {
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_server_until_it_is_killed", "--nocapture"])
        .env("BOWLINE_HOLD_A_SERVER", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.into_iter().find_map(|line| line.split_once("server at ").map(|(_, at)| at.to_owned())).unwrap();
    let (url, dir) = line.split_once(' ').unwrap();
    Client::open(url).unwrap().get_connection().unwrap();
    test.kill().unwrap();
    test.wait().unwrap();
    eventually("the server is gone", || Client::open(url).unwrap().get_connection().is_err());
    eventually("its directory is gone", || !Path::new(dir).exists());
}

#[test]
fn holds_a_server_until_it_is_killed() {
    if std::env::var_os("BOWLINE_HOLD_A_SERVER").is_none() {
        return;
    }
    let server = Server::start();
    println!("server at {} {}", server.url(), server.dir().display());
    thread::sleep(Duration::from_secs(60));
}

/// The environment of the behaviour tests bites.
#[cfg(feature = "tokio")]
mod env {
    use std::future::{Future, pending};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use crate::support::env::{Env, Runtime, run};
    use crate::support::run::run_once;

    fn failure<Fut: Future<Output = ()>>(test: impl FnOnce(Env) -> Fut + Send + 'static) -> String {
        let ended = catch_unwind(AssertUnwindSafe(|| run_once(Runtime::TokioMulti, Env::new, test)));
        let panic = ended.expect_err("the test passed");
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
    }

    #[test]
    fn a_test_that_leaves_a_key_fails() {
        let failure = failure(|env: Env| async move {
            let () = env.redis(&["SET", "left", "1", "PX", "60000"]);
        });
        assert!(failure.contains("left on the server: [\"left\"]"), "{failure}");
    }

    #[test]
    fn a_test_that_leaves_tasks_and_timers_fails() {
        let failure = failure(|env: Env| async move {
            env.executor().spawn(Box::pin(pending()));
            std::mem::forget(env.executor().sleep(Duration::from_secs(60)));
        });
        assert!(failure.contains("1 tasks, 1 timers"), "{failure}");
    }

    #[test]
    fn a_panic_of_a_task_that_nobody_awaits_fails_the_test() {
        let failure = failure(|env: Env| async move { drop(env.spawn(async { panic!("on purpose") })) });
        assert!(failure.contains("on purpose"), "{failure}");
    }

    /// Each time anew, in an environment of its own.
    #[test]
    fn a_test_that_fails_beside_others_runs_once_more_and_no_oftener() {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let until = |n: u32| async move { assert!(RUNS.fetch_add(1, Ordering::SeqCst) + 1 >= n, "on purpose") };
        let twice = catch_unwind(AssertUnwindSafe(|| run(Runtime::TokioMulti, move |_: Env| until(2))));
        let runs = RUNS.swap(0, Ordering::SeqCst);
        let thrice = catch_unwind(AssertUnwindSafe(|| run(Runtime::TokioMulti, move |_: Env| until(3))));
        if std::env::var_os("BOWLINE_ONCE").is_none() {
            assert!(twice.is_ok() && runs == 2, "{runs} runs");
            assert!(thrice.is_err() && RUNS.load(Ordering::SeqCst) == 2);
        }
    }

    #[test]
    fn commands_are_counted() {
        run(Runtime::TokioMulti, |env: Env| async move {
            let client = env.client().await;
            assert_eq!((client.counts.total(), client.counts.subscribes()), (0, 1));
            client.lock("a").lock().await.unwrap().release().await.unwrap();
            assert_eq!((client.counts.of("lock_acquire"), client.counts.of("lock_release")), (1, 1));
            assert_eq!(client.counts.of("lock_renew"), 0);
            client.counts.reset();
            assert_eq!(client.counts.total(), 0);
        });
    }
}
