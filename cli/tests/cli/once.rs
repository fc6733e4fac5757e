//! Once in a period, and the other things that a command can run under.

use std::time::Duration;

use bowline_testkit::proxy::Proxy;
use bowline_testkit::server::Server;
use rustix::process::Signal;

use crate::program::{Running, Traces, bowline, code, output, until};

#[test]
fn of_the_cron_lines_of_several_hosts_one_runs_in_a_period() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo $BOWLINE_NAME $BOWLINE_TOKEN >> {}", traces.word("ran"));
    let arguments = ["run", "report", "--once", "1h", "--", "sh", "-c", &script];
    let mut hosts: Vec<_> = (0..8).map(|_| Running::start(bowline(&server.url(), &arguments))).collect();
    // One that did not run is no error, so that cron sends no mail.
    assert!(hosts.iter_mut().all(|host| host.ended().success()));
    // An hour may have ended between the first and the last.
    let ran = traces.lines("ran");
    assert!((1..=2).contains(&ran.len()), "{ran:?}");
    assert!(ran[0].strip_prefix("report ").unwrap().parse::<u64>().unwrap() > 1_000_000_000_000_000, "{ran:?}");
}

#[test]
fn the_next_period_has_its_run() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo >> {}", traces.word("ran"));
    until("three periods have had their runs", || {
        assert_eq!(code(&output(&server.url(), &["run", "a", "--once", "1s", "--", "sh", "-c", &script])).0, 0);
        traces.lines("ran").len() == 3
    });
}

#[test]
fn a_signal_before_the_run_begins_leaves_the_period_its_run() {
    let (server, traces) = (Server::start(), Traces::new());
    let proxy = Proxy::start(server.port());
    // So that there is time between the client's subscription, which is the end of its connect, and the run.
    proxy.delay(Duration::from_millis(20));
    let script = format!("echo ran >> {}", traces.word("ran"));
    // On a busy machine, a run may begin before the server is stopped from that.
    for attempt in 0..10 {
        let name = format!("job-{attempt}");
        let arguments = ["run", &name, "--once", "1h", "--", "sh", "-c", &script];
        let mut run = Running::start(bowline(&proxy.url(), &arguments));
        until("it is connected", || {
            !redis::cmd("PUBSUB").arg("CHANNELS").query::<Vec<String>>(&mut server.client()).unwrap().is_empty()
        });
        let _: () = redis::cmd("CLIENT").arg(&["PAUSE", "600000", "WRITE"]).query(&mut server.client()).unwrap();
        until("it asks for something", || {
            let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.client()).unwrap();
            clients.lines().any(|line| line.contains("flags=b")) || run.0.try_wait().unwrap().is_some()
        });
        let has_begun: bool =
            redis::cmd("EXISTS").arg(format!("bowline:once:{{{name}}}:fence")).query(&mut server.client()).unwrap();
        if !has_begun {
            run.signal(Signal::TERM);
            assert_eq!(run.ended().code(), Some(143));
        }
        let _: () = redis::cmd("CLIENT").arg("UNPAUSE").query(&mut server.client()).unwrap();
        if !has_begun {
            assert!(traces.lines("ran").is_empty());
            assert_eq!(code(&output(&server.url(), &arguments)).0, 0);
            assert_eq!(traces.lines("ran"), ["ran"]);
            return;
        }
        run.ended();
        let _ = std::fs::remove_file(traces.path("ran"));
    }
    panic!("all runs have begun too soon");
}

#[test]
fn a_command_that_fails_runs_again_only_if_asked() {
    let server = Server::start();
    let run = |name: &str, more: &[&str]| {
        let arguments = [&["run", name, "--once", "1h"], more, &["--", "sh", "-c", "echo ran; exit 9"]].concat();
        let (found, out, _) = code(&output(&server.url(), &arguments));
        (found, out)
    };
    let ran = (9, "ran\n".to_owned());
    assert_eq!(run("again", &["--retry-on-error"]), ran);
    assert_eq!(run("again", &["--retry-on-error"]), ran);
    // Within one hour: if it ends between the two, the second one runs as well, and the third shows it.
    assert_eq!(run("first", &[]), ran);
    let others = [run("first", &["-E", "75"]), run("first", &["-E", "75"])];
    assert!(others.contains(&(75, String::new())), "{others:?}");
}

#[test]
fn what_a_command_runs_under() {
    let server = Server::start();
    let script = "echo ${BOWLINE_NAME-none} ${BOWLINE_TOKEN-none}";
    for (options, name, tokens) in [
        (&["a"][..], "a", 1),
        (&["a", "--shared"], "a", 1),
        (&["a", "--exclusive"], "a", 1),
        (&["a", "--elect"], "a", 1),
        (&["a", "--permits", "2/4"], "a", 0),
        (&["--all", "c,b,a"], "c,b,a", 3),
    ] {
        for wait in [&[][..], &["--try"], &["--timeout", "5s"]] {
            let arguments = [&["run"], options, wait, &["--", "sh", "-c", script]].concat();
            let (found, out, err) = code(&output(&server.url(), &arguments));
            assert_eq!(found, 0, "{arguments:?}: {err}");
            let (shown, token) = out.trim().split_once(' ').unwrap();
            assert_eq!(shown, name);
            if tokens == 0 {
                assert_eq!(token, "none", "{arguments:?}");
            } else {
                assert_eq!(token.split(',').filter_map(|token| token.parse::<u64>().ok()).count(), tokens, "{out}");
            }
        }
    }
}

#[test]
fn readers_share_and_writers_do_not() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let _reader = Running::start(bowline(&server.url(), &["run", "a", "--shared", "--", "sh", "-c", &script]));
    traces.until("held");
    let run =
        |options: &[&str]| code(&output(&server.url(), &[&["run", "a", "--try"], options, &["--", "true"]].concat())).0;
    assert_eq!(run(&["--shared"]), 0);
    assert_eq!(run(&["--exclusive"]), 1);
    // Names of different kinds are different locks.
    assert_eq!(run(&[]), 0);
}
