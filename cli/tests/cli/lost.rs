//! What becomes of a command whose hold is lost.

use bowline_testkit::proxy::Proxy;
use bowline_testkit::server::Server;

use crate::program::{Running, Traces, bowline, code, processes, until, waiters};

/// A command that ignores SIGTERM, as do its children, and holds a file while any of them lives.
fn stubborn(traces: &Traces) -> String {
    let (file, log) = (traces.word("file"), traces.word("log"));
    format!("flock -n -E 99 {file} sh -c 'trap \"\" TERM; echo began >> {log}; sleep 100 & sleep 100; sleep 100'")
}

#[test]
fn a_command_that_ignores_sigterm_is_dead_before_anybody_else_is_granted() {
    let (server, traces) = (Server::start(), Traces::new());
    let proxy = Proxy::start(server.port());
    let script = stubborn(&traces);
    let options = ["--lease", "6s", "--kill-after", "500ms", "--", "sh", "-c"];
    let mut holder = Running::start(bowline(&proxy.url(), &[&["run", "a"], &options[..], &[&script]].concat()));
    traces.until("log");
    let next = format!("flock -n {} sh -c 'echo next >> {}'", traces.word("file"), traces.word("log"));
    let mut next = Running::start(bowline(&server.url(), &[&["run", "a"], &options[..], &[&next]].concat()));
    until("it waits", || waiters(&server, "a") == 1);
    proxy.stall(true);
    // Without the hold's end at the server, this one would wait for ever.
    assert!(next.ended().success(), "{:?}", traces.lines("log"));
    assert_eq!(traces.lines("log"), ["began", "next"]);
    proxy.stall(false);
    assert_eq!(holder.ended().code(), Some(123));
    assert!(processes(&traces.word("log")).is_empty());
}

#[test]
fn a_hold_that_is_gone_ends_the_command_with_sigterm() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!(
        "trap 'echo term > {0}; exit 3' TERM; echo > {1}; for i in $(seq 3000); do sleep 0.01; done",
        traces.word("term"),
        traces.word("began")
    );
    let mut holder = bowline(&server.url(), &["run", "a", "--lease", "6s", "--", "sh", "-c", &script]);
    let holder = holder.spawn().unwrap();
    traces.until("began");
    let deleted: u32 = redis::cmd("DEL").arg("bowline:lock:{a}").query(&mut server.client()).unwrap();
    assert_eq!(deleted, 1);
    let (found, _, err) = code(&holder.wait_with_output().unwrap());
    assert_eq!(found, 123, "{err}");
    assert!(err.contains("a: the lock was lost: the server no longer has the hold"), "{err}");
    assert_eq!(traces.lines("term"), ["term"]);
}

#[test]
fn what_the_command_has_started_ends_with_it() {
    let (server, traces) = (Server::start(), Traces::new());
    // One in the background, and one with a session of its own, which no signal to a group reaches.
    let script = format!("sleep 1000 & setsid sh -c 'echo > {0}; exec sleep 1001' & wait; : {0}", traces.word("began"));
    let mut holder = Running::start(bowline(&server.url(), &["run", "a", "--lease", "6s", "--", "sh", "-c", &script]));
    traces.until("began");
    let _: u32 = redis::cmd("DEL").arg("bowline:lock:{a}").query(&mut server.client()).unwrap();
    assert_eq!(holder.ended().code(), Some(123));
    let orphans: Vec<i32> =
        processes("sleep").into_iter().filter(|pid| is_of(*pid, "1000") || is_of(*pid, "1001")).collect();
    assert!(orphans.is_empty(), "{orphans:?}");
}

fn is_of(pid: i32, argument: &str) -> bool {
    let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split('\0').any(|word| word == argument)
}

#[test]
fn a_run_of_a_period_that_is_lost_is_ended_too() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = stubborn(&traces);
    let options = ["--lease", "6s", "--kill-after", "100ms", "--once", "1h", "--", "sh", "-c", &script];
    let holder = bowline(&server.url(), &[&["run", "a"], &options[..]].concat()).spawn().unwrap();
    traces.until("log");
    let _: u32 = redis::cmd("DEL").arg("bowline:once:{a}").query(&mut server.client()).unwrap();
    let (found, _, err) = code(&holder.wait_with_output().unwrap());
    assert_eq!(found, 123, "{err}");
    assert!(err.contains("a: the lock was lost: the server no longer has the hold"), "{err}");
    assert!(processes(&traces.word("log")).is_empty());
}
