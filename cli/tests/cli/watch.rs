//! `watch`: changes as they happen, and readers that go.

use std::io::{BufRead, BufReader};

use bowline_testkit::server::Server;
use rustix::process::Signal;

use crate::look::is_documented;
use crate::program::{Running, Traces, bowline, code, output, until};

/// One that holds already, its end, and one that comes.
#[test]
fn changes_are_shown_as_they_happen() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = |trace: &str| format!("echo > {}; sleep 100", traces.word(trace));
    let hold = |trace: &str| {
        let running = Running::start(bowline(
            &server.url(),
            &["run", "backup", "--label", "web-7", "--", "sh", "-c", &script(trace)],
        ));
        traces.until(trace);
        running
    };
    let mut first = hold("first");
    let watching = std::thread::spawn({
        let url = server.url();
        move || code(&output(&url, &["watch", "backup", "--count", "3", "--json"]))
    });
    // Until somebody watches the key.
    let is_watched = || {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.client()).unwrap();
        list.lines().any(|line| line.split(' ').any(|field| field.starts_with("flags=") && field.contains('t')))
    };
    until("it is watched", is_watched);
    first.signal(Signal::TERM);
    first.ended();
    let second = hold("second");
    let (found, out, _) = watching.join().unwrap();
    let changes: Vec<serde_json::Value> = out.lines().map(|line| is_documented("watch", line)).collect();
    let told: Vec<&str> = changes.iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!((found, &*told), (0, &["granted", "released", "granted"][..]), "{out}");
    assert_eq!(changes[0]["hold"]["token"], changes[1]["hold"]["token"]);
    assert_ne!(changes[0]["hold"]["token"], changes[2]["hold"]["token"]);
    let (found, out, _) = code(&output(&server.url(), &["watch", "backup", "--count", "1"]));
    assert_eq!(found, 0);
    assert!(out.contains("granted   web-7  lock  token "), "{out}");
    // A reader that goes after the first line, as `head -1` does.
    let mut third = Running::start(bowline(&server.url(), &["watch", "backup"]));
    let mut line = String::new();
    BufReader::new(third.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("granted"), "{line}");
    second.signal(Signal::TERM);
    assert_eq!(third.ended().code(), Some(0), "nobody reads the next change");
    let (found, _, told) = code(&output(&server.url(), &["watch", "backup", "--kind", "latch"]));
    assert!(found != 0 && told.contains("nobody can hold it"), "{found} {told}");
}

/// As `watch NAME | head -1` has it, and as one that reads nothing.
#[test]
fn a_watch_of_a_quiet_name_ends_when_nobody_reads_it() {
    let (server, traces) = (Server::start(), Traces::new());
    let script = format!("echo > {}; sleep 100", traces.word("held"));
    let mut holder = Running::start(bowline(&server.url(), &["run", "backup", "--", "sh", "-c", &script]));
    traces.until("held");
    let mut watch = Running::start(bowline(&server.url(), &["watch", "backup"]));
    let mut line = String::new();
    BufReader::new(watch.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("granted"), "{line}");
    assert_eq!(watch.ended().code(), Some(0), "nobody reads, and nothing changes");
    assert!(holder.0.try_wait().unwrap().is_none(), "it holds all the time");
    let mut watch = Running::start(bowline(&server.url(), &["watch", "other"]));
    drop(watch.0.stdout.take());
    assert_eq!(watch.ended().code(), Some(0), "nobody has ever read");
}
