//! The exit codes, each as README.md lists it.

use bowline_testkit::server::Server;
use rustix::process::Signal;

use crate::program::{Running, Traces, bowline, code, left, output, until, waiters};

#[test]
fn the_exit_code_of_a_command_is_its_own() {
    let server = Server::start();
    for (script, wanted) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill $$", 143)] {
        let (found, out, err) = code(&output(&server.url(), &["run", "a", "--", "sh", "-c", script]));
        assert_eq!((found, out.as_str(), err.as_str()), (wanted, "", ""), "{script}");
    }
    assert!(left(&server).is_empty(), "{:?}", left(&server));
}

#[test]
fn a_command_that_cannot_be_started_releases_at_once() {
    let server = Server::start();
    for (command, wanted) in [("no-such-command", 127), ("/etc/passwd", 126)] {
        let (found, out, err) = code(&output(&server.url(), &["run", "a", "--lease", "1h", "--", command]));
        assert_eq!((found, out.as_str()), (wanted, ""));
        assert!(err.contains(command), "{err}");
        assert!(left(&server).is_empty(), "{:?}", left(&server));
    }
}

#[test]
fn a_lock_that_is_not_granted_is_a_conflict() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let holder = Running::start(bowline(&server.url(), &["run", "a", "--label", "host-7", "--", "sh", "-c", &script]));
    traces.until("held");
    for (options, wanted, told) in [
        (&["--try"][..], 1, ""),
        (&["--timeout", "300ms"], 1, "timed out"),
        (&["--timeout", "300ms", "--quiet"], 1, ""),
        (&["--try", "-E", "75"], 75, ""),
        (&["--timeout", "10ms", "--conflict-exit-code", "0", "-q"], 0, ""),
    ] {
        let arguments = [&["run", "a"], options, &["--", "echo", "ran"]].concat();
        let (found, out, err) = code(&output(&server.url(), &arguments));
        assert_eq!((found, out.as_str(), err.contains(told)), (wanted, "", true), "{options:?}: {err}");
        assert!(!told.is_empty() || err.is_empty(), "{options:?}: {err}");
    }
    drop(holder);
}

#[test]
fn a_failed_release_is_told_to_those_who_want_it_quiet() {
    let (server, traces) = (Server::start(), Traces::new());
    let file = traces.word("bowline.toml");
    std::fs::write(&file, "command_timeout = '2s'\nretry_timeout = '2s'\n").unwrap();
    let script = format!("echo > {}; while [ ! -e {} ]; do sleep 0.01; done", traces.word("began"), traces.word("go"));
    let arguments = ["--config", &file, "run", "a", "--quiet", "--lease", "10m", "--", "sh", "-c", &script];
    let run = bowline(&server.url(), &arguments).spawn().unwrap();
    traces.until("began");
    server.pause();
    std::fs::write(traces.path("go"), "go").unwrap();
    let (found, _, err) = code(&run.wait_with_output().unwrap());
    server.resume();
    assert_eq!(found, 0, "{err}");
    assert!(err.contains("bowline: not released, and ends with its lease"), "{err}");
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let server = Server::start();
    let options = ["run", "a", "--at-most", "200ms", "--kill-after", "100ms", "--", "sh", "-c"];
    for script in ["sleep 100", "trap '' TERM; sleep 100; sleep 100"] {
        let (found, ..) = code(&output(&server.url(), &[&options[..], &[script]].concat()));
        assert_eq!(found, 124, "{script}");
        assert!(left(&server).is_empty(), "{:?}", left(&server));
    }
}

#[test]
fn what_bowline_itself_cannot_do_is_125() {
    let server = Server::start();
    for (url, arguments, told) in [
        ("redis://127.0.0.1:1/", &["run", "a", "--", "true"][..], "unavailable"),
        ("http://127.0.0.1/", &["run", "a", "--", "true"], "invalid input"),
        (&server.url(), &["run", "", "--", "true"], "the name is empty"),
        (&server.url(), &["run", "a", "--lease", "10ms", "--", "true"], "--lease is 1s to 24 h"),
        (&server.url(), &["run", "a", "--kill-after", "20s", "--", "true"], "a third of the lease"),
        (&server.url(), &["run", "a"], "COMMAND"),
        (&server.url(), &["run", "--", "true"], "NAME"),
        (&server.url(), &["run", "a", "--shared", "--elect", "--", "true"], "cannot be used with"),
        (&server.url(), &["run", "a", "--timeout", "soon", "--", "true"], "write it as 10s"),
        (&server.url(), &["run", "a", "--timeout", "0s", "--", "true"], "more than 0s"),
        (&server.url(), &["run", "a", "--at-most", "0s", "--", "true"], "more than 0s"),
        (&server.url(), &["latch", "wait", "a", "--timeout", "0s"], "more than 0s"),
        (&server.url(), &["run", "a", "--permits", "3", "--", "true"], "as 1/4"),
        (&server.url(), &["run", "a", "--permits", "5/4", "--", "true"], "more permits"),
        (&server.url(), &["top", "--every", "99ms"], "at least 100ms"),
        (&server.url(), &["fly"], "fly"),
    ] {
        let (found, out, err) = code(&output(url, arguments));
        assert_eq!((found, out.as_str()), (125, ""), "{arguments:?}: {err}");
        assert!(err.contains(told), "{arguments:?}: {err}");
    }
}

#[test]
fn a_signal_ends_the_wait() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let _holder = Running::start(bowline(&server.url(), &["run", "a", "--", "sh", "-c", &script]));
    traces.until("held");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1] {
        let mut waiter = Running::start(bowline(&server.url(), &["run", "a", "--", "true"]));
        until("it waits", || waiters(&server, "a") == 1);
        waiter.signal(signal);
        assert_eq!(waiter.ended().code(), Some(128 + signal.as_raw()));
        assert_eq!(waiters(&server, "a"), 0, "it has left the queue");
    }
}
