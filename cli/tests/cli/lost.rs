//! What becomes of a command whose hold is lost.

use std::io::{BufRead, BufReader};

use bowline_testkit::proxy::Proxy;
use bowline_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{
    BOWLINE, Running, Traces, bowline, code, kill_session, left, output, processes, started_by, until, waiters,
};

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
    // One in the background, and one with a session of its own, which no signal to a group reaches. Their arguments
    // name the traces of this test.
    let began = traces.word("began");
    let script = format!("{} setsid {} wait; : {began}", job(&traces, "group"), job(&traces, "session"));
    let mut holder = Running::start(bowline(&server.url(), &["run", "a", "--lease", "6s", "--", "sh", "-c", &script]));
    traces.until("group");
    traces.until("session");
    assert!(!processes(&traces.word("")).is_empty());
    let _: u32 = redis::cmd("DEL").arg("bowline:lock:{a}").query(&mut server.client()).unwrap();
    assert_eq!(holder.ended().code(), Some(123));
    assert!(processes(&traces.word("")).is_empty());
    // Both were asked before they were killed.
    for name in ["group", "session"] {
        assert_eq!(traces.lines(name), ["began", "asked"], "{name}");
    }
}

#[test]
fn what_a_terminated_command_has_left_ends_before_the_release() {
    let (server, traces) = (Server::start(), Traces::new());
    let (began, slow) = (traces.word("began"), traces.word("slow"));
    // This one takes its time to end.
    let slow = format!(
        "sh -c 'trap \"echo asked >> {slow}; n=1\" TERM; echo began >> {slow}; until [ $n ]; do sleep 0.01; done; sleep 0.5' &"
    );
    let script = format!("{} setsid {} {slow} wait; : {began}", job(&traces, "group"), job(&traces, "session"));
    let mut holder = Running::start(bowline(&server.url(), &["run", "a", "--", "sh", "-c", &script]));
    traces.until("group");
    traces.until("session");
    traces.until("slow");
    holder.signal(Signal::TERM);
    assert_eq!(holder.ended().code(), Some(143));
    assert!(processes(&traces.word("")).is_empty() && left(&server).is_empty());
    // Each was asked once.
    for name in ["group", "session", "slow"] {
        assert_eq!(traces.lines(name), ["began", "asked"], "{name}");
    }
}

#[test]
fn what_a_command_starts_after_its_sigterm_is_asked_to_end_too() {
    let (server, traces) = (Server::start(), Traces::new());
    let (began, late) = (traces.word("began"), traces.word("late"));
    let script = format!(
        "trap : TERM; sleep 100 & echo > {began}; wait; {} until [ -s {late} ]; do sleep 0.01; done",
        job(&traces, "late")
    );
    let mut holder = Running::start(bowline(&server.url(), &["run", "a", "--", "sh", "-c", &script]));
    traces.until("began");
    holder.signal(Signal::TERM);
    assert_eq!(holder.ended().code(), Some(0));
    assert_eq!(traces.lines("late"), ["began", "asked"]);
    assert!(processes(&traces.word("")).is_empty() && left(&server).is_empty());
}

/// bowline stands still until the lease is over, and learns of the loss and of the command's end at once.
#[test]
fn what_a_terminated_command_has_left_ends_although_the_hold_was_lost_meanwhile() {
    for once in [&[][..], &["--once", "1h"]] {
        let (server, traces) = (Server::start(), Traces::new());
        let [began, asked, go] = ["began", "asked", "go"].map(|name| traces.word(name));
        let script = format!(
            "trap 'echo > {asked}' TERM; echo > {began}; until [ -e {go} ]; do sleep 0.01; done; {{ {} }} > /dev/null 2>&1",
            job(&traces, "job"),
        );
        let arguments = [&["run", "a", "--lease", "2s"], once, &["--", "sh", "-c", &script]].concat();
        let mut holder = Running::start(bowline(&server.url(), &arguments));
        traces.until("began");
        holder.signal(Signal::TERM);
        traces.until("asked");
        holder.signal(Signal::STOP);
        std::fs::write(&go, "go").unwrap();
        traces.until("job");
        until("the lease is over", || left(&server).is_empty());
        holder.signal(Signal::CONT);
        assert_eq!(holder.ended().code(), Some(123), "{once:?}");
        assert!(processes(&traces.word("")).is_empty(), "{once:?}");
    }
}

/// The words that start a background job, which lives for long, and says on SIGTERM that it was asked to end.
fn job(traces: &Traces, name: &str) -> String {
    let trace = traces.word(name);
    format!("sh -c 'trap \"echo asked >> {trace}; exit\" TERM; echo began >> {trace}; while :; do sleep 0.01; done' &")
}

#[test]
fn a_loss_that_is_found_at_the_release_tells_its_reason() {
    for (options, key) in [(&[][..], "bowline:lock:{a}"), (&["--once", "1h"], "bowline:once:{a}")] {
        let (server, traces) = (Server::start(), Traces::new());
        // What it leaves in the background must not hold the pipes of this test.
        let script = format!(
            "{{ {} }} > /dev/null 2>&1; echo > {}; until [ -e {} ]; do sleep 0.01; done",
            job(&traces, "job"),
            traces.word("began"),
            traces.word("go")
        );
        let arguments = [&["run", "a", "--lease", "10m"], options, &["--", "sh", "-c", &script]].concat();
        let holder = bowline(&server.url(), &arguments).spawn().unwrap();
        let session = Pid::from_child(&holder);
        traces.until("job");
        traces.until("began");
        let deleted: u32 = redis::cmd("DEL").arg(key).query(&mut server.client()).unwrap();
        assert_eq!(deleted, 1);
        std::fs::write(traces.path("go"), "go").unwrap();
        let (found, _, err) = code(&holder.wait_with_output().unwrap());
        assert_eq!(found, 123, "{err}");
        assert!(err.contains("a: the lock was lost: the server no longer has the hold"), "{err}");
        // The command has ended by itself, so what it has left behind goes on.
        let is_alive = !processes(&traces.word("job")).is_empty();
        kill_session(session);
        assert!(is_alive && traces.lines("job") == ["began"], "{options:?}: {:?}", traces.lines("job"));
    }
}

#[test]
fn a_loss_counts_more_than_the_end_of_the_time() {
    let (server, traces) = (Server::start(), Traces::new());
    let (term, go) = (traces.word("term"), traces.word("go"));
    let script = format!("trap 'echo > {term}' TERM; until [ -e {go} ]; do sleep 0.01; done");
    let options = ["--at-most", "500ms", "--kill-after", "10s", "--", "bash", "-c", &script];
    let holder = bowline(&server.url(), &[&["run", "a"], &options[..]].concat()).spawn().unwrap();
    traces.until("term");
    let (found, ..) = code(&output(&server.url(), &["release", "--force", "a"]));
    assert_eq!(found, 0);
    std::fs::write(&go, "go").unwrap();
    let (found, _, err) = code(&holder.wait_with_output().unwrap());
    assert_eq!(found, 123, "{err}");
    assert!(err.contains("a: the lock was lost: the hold was taken by force_release"), "{err}");
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

#[test]
fn what_a_shell_had_started_before_it_became_bowline_goes_on() {
    let (server, traces) = (Server::start(), Traces::new());
    // One job, and what another one leaves behind when it ends, which bowline adopts.
    let (began, adopted) = (traces.word("began"), traces.word("adopted"));
    let (first, own) = (traces.word("first"), traces.word("own"));
    let jobs = format!(
        "sleep 1000 & echo $! > {first}; sh -c 'sleep 1000 & echo $! > {adopted}; until [ -s {began} ]; do sleep 0.01; done' &"
    );
    let script = format!(
        "{jobs} until [ -s {adopted} ]; do sleep 0.01; done; exec {BOWLINE} run a --lease 6s -- sh -c '{}'",
        format_args!("sleep 1000 & echo $! > {own}; echo > {began}; wait")
    );
    let mut shell = std::process::Command::new("setsid");
    let shell = crate::program::clean(&mut shell).env("BOWLINE_URL", server.url());
    let shell = shell.args(["env", "--default-signal", "sh", "-c", &script]).stdout(std::process::Stdio::null());
    let mut holder = Running(shell.spawn().unwrap());
    traces.until("began");
    let parent = format!("PPid:\t{}", holder.pid().as_raw_nonzero());
    let status = format!("/proc/{}/status", traces.lines("adopted")[0]);
    until("it is adopted", || std::fs::read_to_string(&status).unwrap().lines().any(|line| line == parent));
    let _: u32 = redis::cmd("DEL").arg("bowline:lock:{a}").query(&mut server.client()).unwrap();
    assert_eq!(holder.ended().code(), Some(123));
    let lives = |name: &str| std::fs::exists(format!("/proc/{}", traces.lines(name)[0])).unwrap();
    assert_eq!((lives("first"), lives("adopted"), lives("own")), (true, true, false));
}

/// The words that start a command as another user whom the starter may not signal, and those that start the starter.
/// `None`: this machine gives the tests no such user.
fn as_another_user(traces: &Traces) -> Option<(Vec<String>, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    if !rustix::process::geteuid().is_root() {
        let can =
            std::process::Command::new("sudo").args(["-n", "true"]).output().is_ok_and(|ran| ran.status.success());
        if !can {
            eprintln!("not checked: needs root or sudo without a password");
        }
        return can.then(|| (words(&["sudo", "-n"]), words(&["env"])));
    }
    // As sudo: a program that is root, whoever starts it, and becomes root for good.
    let become_root = traces.path("become-root");
    std::fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    for path in [&become_root, become_root.parent().unwrap()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    }
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    Some((words(&[become_root.to_str().unwrap(), "--reuid", "0", "--clear-groups"]), words(&nobody)))
}

/// Starts bowline by the words of [`as_another_user`].
fn start(starter: &[String], server: &Server, arguments: &[&str]) -> std::process::Child {
    let session = ["setsid", "env", "--default-signal"].into_iter();
    let starter: Vec<&str> = session.chain(starter.iter().map(String::as_str)).collect();
    started_by(&starter, &server.url(), arguments).spawn().unwrap()
}

/// Nobody else can end what it has left.
#[test]
fn a_second_signal_ends_the_wait_for_what_a_command_has_left() {
    let (server, traces) = (Server::start(), Traces::new());
    let Some((elevated, starter)) = as_another_user(&traces) else { return };
    let (began, go) = (traces.word("began"), traces.word("go"));
    let lasting = format!("echo > {began}; for i in $(seq 3000); do [ -e {go} ] && break; sleep 0.01; done");
    let script = format!("{} sh -c '{lasting}' 2>&- & wait", elevated.join(" "));
    let arguments = ["run", "a", "--kill-after", "100ms", "--", "sh", "-c", &script];
    let mut run = start(&starter, &server, &arguments);
    traces.until("began");
    let bowline = Pid::from_child(&run);
    kill_process(bowline, Signal::TERM).unwrap();
    let mut err = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("a: what the command has left cannot be ended: Operation not permitted"), "{line}");
    assert!(run.try_wait().unwrap().is_none() && server.ttl_ms("bowline:lock:{a}") > 0);
    kill_process(bowline, Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(143));
    assert!(!processes(&began).is_empty() && left(&server).is_empty());
    std::fs::write(&go, "go").unwrap();
    until("it has ended", || processes(&began).is_empty());
}

#[test]
fn a_lock_is_held_while_a_command_lives_that_cannot_be_ended() {
    let (server, traces) = (Server::start(), Traces::new());
    let Some((elevated, starter)) = as_another_user(&traces) else { return };
    let (began, go) = (traces.word("began"), traces.word("go"));
    // Nobody else can end it, and it must not keep the messages' reader waiting.
    let script = format!(
        "exec 2>&-; echo > {began}; for i in $(seq 3000); do [ -e {go} ] && break; sleep 0.01; done; echo ended >> {began}"
    );
    let options = ["run", "a", "--at-most", "100ms", "--kill-after", "100ms", "--lease", "6s", "--"];
    let command: Vec<&str> = elevated.iter().map(String::as_str).chain(["sh", "-c", &script]).collect();
    let mut run = start(&starter, &server, &[&options[..], &command].concat());
    traces.until("began");
    // It says so, and then waits.
    let mut err = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("a: the command cannot be ended: Operation not permitted"), "{line}");
    assert!(line.contains("the lock is held"), "{line}");
    // Longer than a lease.
    let fresh = || server.ttl_ms("bowline:lock:{a}");
    for _ in 0..3 {
        until("the lease is used", || fresh() < 4500);
        until("the lease is renewed", || fresh() > 5000);
    }
    assert!(run.try_wait().unwrap().is_none());
    std::fs::write(&go, "go").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(124));
    assert_eq!(traces.lines("began"), ["", "ended"]);
    line.clear();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "", "it is said once");
    assert!(left(&server).is_empty(), "{:?}", left(&server));
}
