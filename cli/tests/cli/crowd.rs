//! Many programs at once, in order, and killed.

use std::time::Duration;

use bowline_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Running, Traces, bowline, code, left, output, processes, until, waiters};

/// A command that writes to `log`, and tells if another one runs. `flock` holds a file for as long as any process lives
/// that was started under it.
fn alone(traces: &Traces, script: &str) -> String {
    let (file, log) = (traces.word("file"), traces.word("log"));
    format!("exec flock -n -E 99 {file} sh -c 'echo began >> {log}; {script}' || echo overlap >> {log}")
}

#[test]
fn fifty_programs_never_run_their_commands_at_once() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = alone(&traces, "sleep 0.01");
    let arguments = ["run", "crowd", "--", "sh", "-c", &script];
    let mut all: Vec<_> = (0..50).map(|_| Running::start(bowline(&server.url(), &arguments))).collect();
    for one in &mut all {
        assert!(one.ended().success());
    }
    assert_eq!(traces.lines("log"), ["began"; 50]);
    assert!(left(&server).is_empty(), "{:?}", left(&server));
}

#[test]
fn the_order_of_the_queue_is_the_order_of_the_commands() {
    let (server, traces) = (Server::start(), Traces::new());
    let gate = format!("echo > {}; while [ ! -e {} ]; do sleep 0.01; done", traces.word("held"), traces.word("go"));
    let mut all = vec![Running::start(bowline(&server.url(), &["run", "q", "--", "sh", "-c", &gate]))];
    traces.until("held");
    for n in 0..10 {
        let script = format!("echo {n} >> {}", traces.word("order"));
        all.push(Running::start(bowline(&server.url(), &["run", "q", "--", "sh", "-c", &script])));
        until("it waits", || waiters(&server, "q") == n + 1);
    }
    std::fs::write(traces.path("go"), "go").unwrap();
    for one in &mut all {
        assert!(one.ended().success());
    }
    assert_eq!(traces.lines("order"), (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_of_programs_and_commands_that_are_killed() {
    let (server, traces) = (Server::start(), Traces::new());
    let (log, pids) = (traces.word("log"), traces.word("pids"));
    // A third is killed with the program first, a third with the command first, and of a third both at once.
    for round in 0..6 {
        let script = format!("echo $PPID $$ > {pids}; echo began >> {log}; sleep 100");
        let arguments = ["run", "k", "--lease", "3s", "--", "sh", "-c", &script];
        let _ = std::fs::remove_file(traces.path("pids"));
        let mut holder = Running::start(bowline(&server.url(), &arguments));
        traces.until("pids");
        let follower = alone(&traces, ":");
        let mut follower =
            Running::start(bowline(&server.url(), &["run", "k", "--lease", "3s", "--", "sh", "-c", &follower]));
        until("it waits", || waiters(&server, "k") == 1);
        let pids = traces.lines("pids").join(" ");
        let pids: Vec<Pid> = pids.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
        assert_eq!(pids[0], holder.pid());
        match round % 3 {
            0 => kill_process(pids[0], Signal::KILL).unwrap(),
            1 => kill_process(pids[1], Signal::KILL).unwrap(),
            _ => pids.iter().for_each(|pid| kill_process(*pid, Signal::KILL).unwrap()),
        }
        holder.ended();
        let ended = follower.ended();
        assert!(ended.success(), "round {round}: {ended}");
        // The shell is gone when the next one may run, even if bowline could not end it.
        until("the command has ended", || processes(&log).is_empty());
    }
    assert_eq!(traces.lines("log"), ["began"; 12]);
    until("all leases have ended", || left(&server).is_empty());
}

#[test]
fn a_crowd_that_is_killed_at_random_goes_on() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = alone(&traces, "sleep 0.02");
    let arguments = ["run", "crowd", "--lease", "3s", "--", "sh", "-c", &script];
    let mut all: Vec<_> = (0..30).map(|_| Running::start(bowline(&server.url(), &arguments))).collect();
    // Some hold, some wait, and some have ended.
    for n in [3, 11, 17, 26] {
        std::thread::sleep(Duration::from_millis(40));
        all[n].0.kill().unwrap();
    }
    let ended = all.iter_mut().filter_map(|one| one.ended().code()).collect::<Vec<_>>();
    assert!(ended.len() >= 26 && ended.iter().all(|code| *code == 0), "{ended:?}");
    let log = traces.lines("log");
    assert!(log.len() >= 26 && log.iter().all(|line| line == "began"), "{log:?}");
    // The tickets of those that were killed while they waited end with their leases, and whoever comes next removes
    // them.
    until("nothing is left", || {
        assert_eq!(code(&output(&server.url(), &["run", "crowd", "--", "true"])).0, 0);
        left(&server).is_empty()
    });
}
