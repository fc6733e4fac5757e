//! Processes pass a barrier again and again, while some are killed and some stand still.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use bowline::Client;
use rustix::process::Signal;

use super::ms;
use super::process::Process;
use super::roles::say;
use crate::support::adapters::bounded;
use crate::support::server::Server;

const LEASE: Duration = ms(1000);
const PROCESSES: usize = 4;
/// All of them.
const PARTIES: u32 = 4;
const ROUNDS: usize = 10;

/// Works and passes without end, and says so.
pub(crate) async fn pass(client: &Client) {
    let barrier = client.barrier("a", PARTIES);
    for step in u64::from(std::process::id()).. {
        tokio::time::sleep(ms(step * 7 % 23)).await;
        match barrier.wait().await {
            Ok(passed) => say(&format!("passed {} {}", passed.generation(), passed.index())),
            Err(error) => {
                // One that stood still for longer than its end is remembered does not know how it ended.
                assert!(matches!(error.kind(), bowline::ErrorKind::Broken | bowline::ErrorKind::Lost), "{error:#}");
                say("broken");
            }
        }
    }
}

#[derive(Default)]
struct Heard {
    /// The places of those that have passed, by generation.
    passed: BTreeMap<u64, Vec<u32>>,
    broken: usize,
}

impl Heard {
    fn read(&mut self, process: &Process) {
        while let Ok(line) = process.lines.try_recv() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["passed", generation, place] => {
                    self.passed.entry(generation.parse().unwrap()).or_default().push(place.parse().unwrap());
                }
                ["broken"] => self.broken += 1,
                _ => panic!("{line:?}"),
            }
        }
    }
}

#[test]
fn parties_are_killed_and_stand_still_and_a_generation_passes_as_a_whole() {
    bounded(|| {
        let server = Server::start();
        let start = || Process::with(&server, "party", LEASE);
        let mut processes: Vec<Process> = (0..PROCESSES).map(|_| start()).collect();
        let (mut heard, mut killed) = (Heard::default(), 0);
        for round in 0..ROUNDS {
            let (before, since) = (heard.passed.len(), Instant::now());
            while heard.passed.len() < before + 5 {
                assert!(since.elapsed() < ms(60_000), "nobody passes any more, round {round}");
                processes.iter().for_each(|process| heard.read(process));
                thread::sleep(ms(5));
            }
            // If one of the two had arrived, the others wait with it until its lease ends.
            let disturbed = [round % PROCESSES, (round + 1) % PROCESSES];
            for n in disturbed {
                if round % 2 == 0 {
                    processes[n].kill();
                    killed += 1;
                } else {
                    processes[n].signal(Signal::STOP);
                }
            }
            thread::sleep(LEASE * 2);
            for n in disturbed {
                if round % 2 == 0 {
                    // What it has said last comes through a pipe.
                    heard.read(&processes[n]);
                    processes[n] = start();
                } else {
                    processes[n].signal(Signal::CONT);
                }
            }
        }
        // What those have passed that stood still is said later.
        thread::sleep(LEASE);
        processes.iter().for_each(|process| heard.read(process));
        let Heard { passed, broken } = heard;
        println!("{} generations have passed, {broken} waits were broken", passed.len());
        assert!(broken > 0, "no lease has ended while others waited");
        let mut missing = 0;
        let latest = passed.keys().next_back().copied();
        for (generation, places) in &passed {
            let mut distinct = places.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert!(distinct.len() == places.len() && places.iter().all(|place| *place < PARTIES), "{places:?}");
            // Not all may have said yet that the last ones have passed.
            if latest.is_some_and(|latest| *generation + 500 < latest) {
                missing += PARTIES as usize - places.len();
            }
        }
        // A process that was killed may have passed without having said so.
        assert!(missing <= killed, "{missing} of {passed:?}");
    });
}
