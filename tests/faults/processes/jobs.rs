//! Processes call a job by their own timers, and some are killed or stand still while they run it.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use bowline::{Client, ErrorKind, Run};
use rustix::process::Signal;

use super::ms;
use super::process::Process;
use super::roles::say;
use crate::support::server::Server;

/// Calls the job several times in each period, until it is killed.
pub(crate) async fn call(client: &Client) {
    let once = client.once("job", ms(1000));
    loop {
        // A process that stood still has lost its run, and goes on.
        let ran = once.run(work).await;
        assert!(ran.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Lost), "{ran:?}");
        tokio::time::sleep(ms(90)).await;
    }
}

async fn work(run: Run) {
    say(&format!("begins {} {}", run.tick(), run.token()));
    tokio::time::sleep(ms(100)).await;
}

/// `BOWLINE_RUNS=120` takes two minutes and more.
#[test]
fn a_period_has_one_run_while_processes_are_killed_in_it() {
    let wanted: usize = std::env::var("BOWLINE_RUNS").map_or(12, |runs| runs.parse().unwrap());
    // Not in `bounded`, which is for seconds: the loop has a bound of its own.
    let server = Server::start();
    let start = || Process::with(&server, "job", ms(1000));
    let mut processes: Vec<Process> = (0..4).map(|_| start()).collect();
    let (mut runs, mut killed, mut frozen) = (BTreeMap::new(), 0, None);
    let began = Instant::now();
    // On a machine that is too slow for one run in a period, it takes longer.
    while runs.len() < wanted || killed < wanted / 4 {
        assert!(began.elapsed() < ms(10_000) * wanted as u32, "{runs:?}");
        thread::sleep(ms(10));
        for at in 0..processes.len() {
            let process = &mut processes[at];
            let Ok(line) = process.lines.try_recv() else { continue };
            let numbers = line.strip_prefix("begins ").and_then(|numbers| numbers.split_once(' ')).unwrap();
            let [tick, token]: [u64; 2] = [numbers.0, numbers.1].map(|number| number.parse().unwrap());
            assert_eq!(runs.insert(tick, token), None, "period {tick} has two runs");
            match runs.len() % 4 {
                0 => {
                    process.kill();
                    *process = start();
                    killed += 1;
                }
                2 => {
                    process.signal(Signal::STOP);
                    frozen = Some(at);
                }
                // Its lease has ended, or this run would not have begun.
                _ => frozen.take().into_iter().for_each(|at| processes[at].signal(Signal::CONT)),
            }
        }
    }
    assert!(runs.values().is_sorted(), "{runs:?}");
    let ticks = runs.keys().max().unwrap() - runs.keys().min().unwrap() + 1;
    println!("{} runs in {ticks} periods, {killed} killed", runs.len());
    drop(processes);
    assert!(server.keys().iter().all(|key| key.starts_with("bowline:once:{job}")), "{:?}", server.keys());
}
