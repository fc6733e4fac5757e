//! Signals to the program, which has no terminal.

use std::process::Command;

use bowline_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Running, Traces, bowline, code, started_by, until};

#[test]
fn signals_are_passed_on_to_the_group_of_the_command() {
    let (server, traces) = (Server::start(), Traces::new());
    for signal in ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH"] {
        let (began, got) = (traces.word(&format!("began-{signal}")), traces.word(&format!("got-{signal}")));
        // The inner shell is in the same group.
        let script = format!(
            "trap 'echo {signal} >> {got}; exit 5' {signal}; echo >> {began}; for i in \\$(seq 3000); do sleep 0.01; done"
        );
        let script = format!("trap : {signal}; sh -c \"{script}\"; exit $?");
        let mut run = Running::start(bowline(&server.url(), &["run", "a", "--", "bash", "-c", &script]));
        traces.until(&format!("began-{signal}"));
        run.signal(Signal::from_named_raw(number(signal)).unwrap());
        assert_eq!(run.ended().code(), Some(5), "{signal}");
        assert_eq!(traces.lines(&format!("got-{signal}")), [signal]);
    }
}

fn number(signal: &str) -> i32 {
    let all = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("USR1", 10), ("USR2", 12), ("TERM", 15), ("WINCH", 28)];
    all.into_iter().find(|(name, _)| *name == signal).unwrap().1
}

#[test]
fn a_signal_that_nohup_ignores_stays_ignored() {
    let (server, traces) = (Server::start(), Traces::new());
    let script =
        format!("echo > {}; while [ ! -e {} ]; do sleep 0.01; done; exit 6", traces.word("began"), traces.word("go"));
    let by_nohup = ["env", "--default-signal", "nohup", "setsid"];
    let mut run = Running::start(started_by(&by_nohup, &server.url(), &["run", "a", "--", "sh", "-c", &script]));
    traces.until("began");
    run.signal(Signal::HUP);
    std::fs::write(traces.path("go"), "go").unwrap();
    assert_eq!(run.ended().code(), Some(6));
}

/// The state of a process, as `ps` shows it.
pub(crate) fn state(pid: Pid) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").map_or_else(String::new, |(_, rest)| rest[..1].to_owned())
}

/// A program whose command has written its process id. dash starts `sleep` by vfork, and would not show as stopped
/// while that is under way.
fn with_command(server: &Server, traces: &Traces, lease: &str) -> (Running, Pid) {
    let script = format!(
        "echo $$ > {}; while [ ! -e {} ]; do sleep 0.01; done; echo > {}; exit 4",
        traces.word("pid"),
        traces.word("go"),
        traces.word("went")
    );
    let run = Running::start(bowline(&server.url(), &["run", "a", "--lease", lease, "--", "bash", "-c", &script]));
    traces.until("pid");
    let pid = Pid::from_raw(traces.lines("pid")[0].parse().unwrap()).unwrap();
    (run, pid)
}

#[test]
fn a_program_that_is_stopped_stops_its_command() {
    let (server, traces) = (Server::start(), Traces::new());
    let (mut run, command) = with_command(&server, &traces, "10m");
    run.signal(Signal::TSTP);
    until("both are stopped", || state(run.pid()) == "T" && state(command) == "T");
    run.signal(Signal::CONT);
    std::fs::write(traces.path("go"), "go").unwrap();
    assert_eq!(run.ended().code(), Some(4));
    assert_eq!(traces.lines("went").len(), 1);
}

#[test]
fn a_command_that_was_stopped_for_longer_than_its_lease_does_not_go_on() {
    let (server, traces) = (Server::start(), Traces::new());
    let (mut run, command) = with_command(&server, &traces, "3s");
    run.signal(Signal::TSTP);
    until("both are stopped", || state(run.pid()) == "T" && state(command) == "T");
    until("the lease has ended", || server.ttl_ms("bowline:lock:{a}") == -2);
    std::fs::write(traces.path("go"), "go").unwrap();
    run.signal(Signal::CONT);
    assert_eq!(run.ended().code(), Some(123));
    assert!(kill_process(command, Signal::CONT).is_err(), "the command has ended");
    assert!(traces.lines("went").is_empty(), "the command went on");
}

#[test]
fn a_second_signal_ends_a_release_that_hangs() {
    for options in [&[][..], &["--once", "1h"]] {
        let (server, traces) = (Server::start(), Traces::new());
        let script =
            format!("trap 'exit 7' TERM; echo > {}; for i in $(seq 3000); do sleep 0.01; done", traces.word("began"));
        // Otherwise the release gives up by itself.
        let file = traces.word("bowline.toml");
        std::fs::write(&file, "retry_timeout = '10m'\n").unwrap();
        let arguments = [&["--config", &file, "run", "a"], options, &["--", "bash", "-c", &script]].concat();
        let mut run = bowline(&server.url(), &arguments).spawn().unwrap();
        let pid = Pid::from_child(&run);
        traces.until("began");
        server.pause();
        // The first one ends the command, and one that follows ends bowline.
        until("the program ends", || {
            kill_process(pid, Signal::TERM).unwrap();
            run.try_wait().unwrap().is_some()
        });
        let (found, _, err) = code(&run.wait_with_output().unwrap());
        assert_eq!(found, 143, "{options:?}: {err}");
        assert!(err.contains("a: ended by a second signal; what is held ends with its lease"), "{err}");
        server.resume();
    }
}

/// A name lookup cannot be cancelled, and this one gets no answer.
#[test]
fn a_lookup_without_an_answer_delays_no_end() {
    let traces = Traces::new();
    let (source, library, looks) = (traces.word("slow.c"), traces.word("slow.so"), traces.word("looks"));
    let slow = format!(
        "#include <stdio.h>\n#include <unistd.h>\n\
         int getaddrinfo(void) {{ fclose(fopen(\"{looks}\", \"w\")); sleep(100); return -3; }}\n"
    );
    std::fs::write(&source, slow).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status().unwrap();
    assert!(made.success());
    let mut command = bowline("redis://slow.invalid/", &["run", "a", "--", "true"]);
    command.env("LD_PRELOAD", &library);
    let mut run = Running::start(command);
    until("it looks the name up", || traces.path("looks").exists());
    run.signal(Signal::TERM);
    assert_eq!(run.ended().code(), Some(143));
}
