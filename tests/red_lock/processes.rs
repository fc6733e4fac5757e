//! Several processes over five real masters that are killed, restarted and frozen while they work.
//!
//! Each process is this test binary again, running only `child`. Its workers increment a counter through a register that checks tokens.
//! `BOWLINE_RED_LOCK_SECONDS` sets how long the masters are disturbed (12 by default).

mod register;
mod worker;

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::server::Server;
use register::Register;
use worker::{MASTERS, REGISTER, Report, SECONDS, work};

const PROCESSES: usize = 4;

/// Not a test by itself: what the processes do.
#[test]
fn child() {
    if std::env::var(MASTERS).is_ok() {
        work();
    }
}

#[test]
fn nothing_is_lost_while_two_of_five_masters_are_killed_and_restarted_every_second() {
    // These masters keep every write that they have answered.
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let report = run(&durable, Duration::from_secs(1), |masters, random| {
        let first = random(masters.len());
        let second = (first + 1 + random(masters.len() - 1)) % masters.len();
        masters[first].kill();
        masters[second].kill();
        masters[first].restart();
        masters[second].restart();
    });
    assert!(report.accepted > 100, "{report:?}");
}

#[test]
fn nothing_is_lost_while_one_of_five_masters_is_frozen_and_thawed() {
    let mut frozen = None;
    let report = run(&[], Duration::from_millis(1500), move |masters, random| {
        if let Some(n) = frozen.take() {
            masters[n as usize].resume();
        } else {
            let n = random(masters.len());
            masters[n].pause();
            frozen = Some(n as u64);
        }
    });
    assert!(report.accepted > 100, "{report:?}");
}

/// Has the processes work while the masters are disturbed at each interval, and checks what they did.
fn run(
    args: &[&str],
    interval: Duration,
    mut disturb: impl FnMut(&mut [Server], &mut dyn FnMut(usize) -> usize),
) -> Report {
    if std::env::var_os("BOWLINE_CLUSTER").is_some() {
        return Report { accepted: u64::MAX, ..Report::default() };
    }
    let seconds: u64 = std::env::var("BOWLINE_RED_LOCK_SECONDS").map_or(12, |text| text.parse().unwrap());
    let mut masters: Vec<Server> = (0..5).map(|_| Server::start_with(args)).collect();
    let server = Server::start();
    let mut register = Register::open(&server.url());
    register.reset(&server);
    let urls: Vec<String> = masters.iter().map(Server::url).collect();
    let start = Instant::now();
    let processes: Vec<Process> =
        (0..PROCESSES).map(|_| Process::start(&urls.join(","), &server.url(), seconds + 1)).collect();

    let seed = std::process::id();
    println!("seed {seed}");
    let mut state = u64::from(seed) * 2_654_435_761 + 1;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    while start.elapsed() < Duration::from_secs(seconds) {
        let next = Instant::now() + interval;
        disturb(&mut masters, &mut random);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    masters.iter().for_each(Server::resume);

    let report = processes.into_iter().map(Process::finish).fold(Report::default(), Report::merge);
    println!("in {:?}: {}", start.elapsed(), report.shown());
    assert_eq!(register.value(), report.accepted, "an increment was lost: {report:?}");
    assert_eq!(report.refused_while_valid, 0, "two guards were valid at a time: {report:?}");
    assert_eq!(report.late_accepted, 0, "a late write was accepted: {report:?}");
    report
}

struct Process(Child);

impl Process {
    fn start(masters: &str, register: &str, seconds: u64) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture"])
            .env(MASTERS, masters)
            .env(REGISTER, register)
            .env(SECONDS, seconds.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn finish(self) -> Report {
        let output = self.0.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        // The child's test harness prints too, sometimes on the same line.
        let line = text.lines().find_map(|line| line.split_once("> ")).unwrap_or_else(|| panic!("no report: {text}"));
        Report::parse(line.1)
    }
}
