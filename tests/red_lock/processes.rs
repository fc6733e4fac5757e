//! Several processes over five real masters. Either the masters are killed, restarted and frozen while the processes
//! work, or the processes are.
//!
//! Each process is this test binary again, running only `child`. Its workers increment a counter through a register
//! that checks tokens, and write down their holds, which stateright's checker looks at.
//! `BOWLINE_RED_LOCK_SECONDS` sets how long they are disturbed (12 by default).

mod register;
mod worker;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use bowline_model::history::Hold;
use rustix::process::{Pid, Signal, kill_process};

use crate::history::{self, assert_linearizable};
use crate::masters::ms;
use crate::support::server::Server;
use register::Register;
use worker::{JOURNAL, LEASE, MASTERS, REGISTER, Report, SECONDS, work};

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
    let report = run(&durable, Order::Same, ms(1000), |scene| {
        let first = scene.random(scene.masters.len());
        let second = (first + 1 + scene.random(scene.masters.len() - 1)) % scene.masters.len();
        for n in [first, second] {
            scene.masters[n].kill();
        }
        for n in [first, second] {
            scene.masters[n].restart();
        }
    });
    assert!(report.accepted > 100, "{report:?}");
}

#[test]
fn nothing_is_lost_while_one_of_five_masters_is_frozen_and_thawed() {
    let mut frozen = None;
    let report = run(&[], Order::Same, ms(1500), move |scene| {
        if let Some(n) = frozen.take() {
            scene.masters[n as usize].resume();
        } else {
            let n = scene.random(scene.masters.len());
            scene.masters[n].pause();
            frozen = Some(n as u64);
        }
    });
    assert!(report.accepted > 100, "{report:?}");
}

#[test]
fn nothing_is_lost_while_a_process_is_frozen_past_its_lease_or_killed() {
    let mut turns = 0..;
    let report = run(&[], Order::Different, LEASE + ms(500), |scene| {
        scene.processes.iter().for_each(Process::resume);
        if turns.next().is_some_and(|turn| turn % 2 == 1) {
            scene.replace_a_process();
        }
        let n = scene.random(PROCESSES);
        scene.processes[n].signal(Signal::STOP);
    });
    assert!(report.accepted > 20, "{report:?}");
}

/// The order in which the processes know the masters.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Same,
    /// Each process queues on another master, so that only the votes exclude. No program should do that.
    Different,
}

/// The masters and the processes, to be disturbed.
struct Scene {
    order: Order,
    masters: Vec<Server>,
    server: Server,
    processes: Vec<Process>,
    /// Those of processes that were killed, too.
    journals: Vec<PathBuf>,
    end: Instant,
    state: u64,
}

impl Scene {
    fn start(args: &[&str], order: Order) -> Self {
        let seconds: u64 = std::env::var("BOWLINE_RED_LOCK_SECONDS").map_or(12, |text| text.parse().unwrap());
        let masters: Vec<Server> = (0..5).map(|_| Server::start_with(args)).collect();
        let server = Server::start();
        Register::open(&server.url()).reset(&server);
        let seed = std::process::id();
        println!("seed {seed}");
        let (processes, journals, state) = (Vec::new(), Vec::new(), u64::from(seed) * 2_654_435_761 + 1);
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut scene = Self { order, masters, server, processes, journals, end, state };
        (0..PROCESSES).for_each(|_| scene.add_a_process());
        scene
    }

    fn add_a_process(&mut self) {
        let journal = self.server.dir().join(format!("journal-{}", self.journals.len()));
        let seconds = self.end.saturating_duration_since(Instant::now()).as_secs() + 1;
        let mut masters: Vec<String> = self.masters.iter().map(Server::url).collect();
        if self.order == Order::Different {
            masters.rotate_left(self.journals.len() % self.masters.len());
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture"])
            .env(MASTERS, masters.join(","))
            .env(REGISTER, self.server.url())
            .env(SECONDS, seconds.to_string())
            .env(JOURNAL, &journal)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        self.journals.push(journal);
        self.processes.push(Process(child));
    }

    fn replace_a_process(&mut self) {
        let n = self.random(self.processes.len());
        let Process(mut child) = self.processes.swap_remove(n);
        child.kill().unwrap();
        child.wait().unwrap();
        self.add_a_process();
    }

    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below as u64).unwrap()
    }
}

/// Has the processes work while they or the masters are disturbed at each interval, and checks what they did.
fn run(args: &[&str], order: Order, interval: Duration, mut disturb: impl FnMut(&mut Scene)) -> Report {
    if std::env::var_os("BOWLINE_CLUSTER").is_some() {
        return Report { accepted: u64::MAX, ..Report::default() };
    }
    let start = Instant::now();
    let mut scene = Scene::start(args, order);
    while Instant::now() < scene.end {
        let next = Instant::now() + interval;
        disturb(&mut scene);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    scene.masters.iter().for_each(Server::resume);
    scene.processes.iter().for_each(Process::resume);

    let report = scene.processes.into_iter().map(Process::finish).fold(Report::default(), Report::merge);
    let holds: Vec<Hold> = scene
        .journals
        .iter()
        .flat_map(|journal| history::holds(&fs::read_to_string(journal).unwrap_or_default()))
        .collect();
    println!(
        "in {:?}: {}; {} holds in {} journals",
        start.elapsed(),
        report.shown(),
        holds.len(),
        scene.journals.len()
    );
    let value = Register::open(&scene.server.url()).value();
    if scene.journals.len() == PROCESSES {
        assert_eq!(value, report.accepted, "an increment was lost: {report:?}");
    }
    // Processes that were killed report nothing.
    assert!(value >= report.accepted, "an increment was lost: {value}, {report:?}");
    let count = holds.len() as u64;
    assert_linearizable(holds);
    assert_eq!(report.refused_while_valid, 0, "two guards were valid at a time: {report:?}");
    assert_eq!(report.late_accepted, 0, "a late write was accepted: {report:?}");
    // A write after the end of a hold can be accepted as well, and a guard that came too late is no hold.
    assert!(count >= report.accepted / 2, "{count} holds, {report:?}");
    report
}

struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn resume(&self) {
        self.signal(Signal::CONT);
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
