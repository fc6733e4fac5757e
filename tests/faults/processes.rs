//! Locks and permits between real processes: one that sleeps through its lease, some that are killed, many that
//! compete.
//!
//! Each process is this test binary again, running only `child`, with its role in the environment. It is told what to
//! do by lines on its standard input, and says what it did on its standard output.

mod barriers;
mod handles;
mod history;
mod jobs;
mod killed;
mod leaders;
mod process;
mod registers;
mod roles;

use std::fs;
use std::time::Duration;

use crate::support::adapters::bounded;
use crate::support::server::Server;
use bowline::Config;
use history::check;
use process::{LEASE_MS, Process, ROLE, URL};
use roles::{compete, drop_later, holder, keeper, sleeper};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How many the semaphore `a` has: two processes cannot both have two.
const PERMITS: u32 = 3;

/// Not a test by itself: what the processes do.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = std::env::var(URL).unwrap();
    let lease = ms(std::env::var(LEASE_MS).unwrap().parse().unwrap());
    let config = Config::builder().lease(lease).build().unwrap();
    let client = runtime.block_on(bowline::tokio::connect_with(&url, config)).unwrap();
    match role.as_str() {
        "sleeper" => sleeper(&runtime, &client, &url, lease),
        "holder" => holder(&runtime, &client),
        "reader" => keeper(&runtime, &client, async { client.rw_lock("a").read().await.map(drop_later) }),
        "writer" => keeper(&runtime, &client, async { client.rw_lock("a").write().await.map(drop_later) }),
        "permits" => {
            keeper(&runtime, &client, async { client.semaphore("a", PERMITS).acquire_many(2).await.map(drop_later) })
        }
        "job" => runtime.block_on(jobs::call(&client)),
        "party" => runtime.block_on(barriers::pass(&client)),
        "candidate" => runtime.block_on(leaders::lead(&client)),
        "leaver" => runtime.block_on(handles::leave(&client)),
        "resumer" => runtime.block_on(handles::resume(&client)),
        "competitor" => runtime.block_on(compete(&client)),
        other => panic!("{other}"),
    }
}

#[test]
fn many_tasks_of_many_processes_never_hold_together_and_all_are_served() {
    bounded(|| {
        let server = Server::start();
        let files: Vec<_> = (0..4).map(|n| server.dir().join(format!("history-{n}"))).collect();
        let mut processes: Vec<Process> =
            files.iter().map(|file| Process::start(&server, "competitor", ms(30_000), file)).collect();
        for process in &processes {
            process.hear("ready");
        }
        for process in &mut processes {
            process.tell("go");
        }
        processes.into_iter().for_each(Process::finish);
        let histories: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let holds = check(&histories).unwrap();
        assert!(holds >= 100, "{holds}");
        assert_eq!(server.keys(), ["bowline:lock:{a}:fence"]);
    });
}
