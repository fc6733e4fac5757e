//! Processes campaign for one election; their leaders are killed, stand still, or resign.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bowline::{Client, ElectionChange, Term};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use rustix::process::Signal;

use super::ms;
use super::process::Process;
use super::roles::{listen, say};
use crate::support::adapters::bounded;
use crate::support::server::Server;

const LEASE: Duration = ms(1000);

/// Campaigns and leads again and again, and resigns when it is told to.
pub(crate) async fn lead(client: &Client) {
    let (told, resignations) = futures::channel::mpsc::unbounded();
    thread::spawn(move || {
        while listen() == "resign" {
            told.unbounded_send(()).unwrap();
        }
    });
    let resignations = Arc::new(tokio::sync::Mutex::new(resignations));
    let election = client.election("a").label(std::process::id().to_string());
    loop {
        let resignations = resignations.clone();
        let led = election.lead(|term| {
            let resignations = resignations.clone();
            async move { work(term, &mut *resignations.lock().await).await }
        });
        // A process that stood still when it was to resign has lost its leadership.
        let led = led.await;
        assert!(led.as_ref().err().is_none_or(|error| error.kind() == bowline::ErrorKind::Lost), "{led:?}");
    }
}

async fn work(term: Term, resignations: &mut UnboundedReceiver<()>) {
    say(&format!("leads {}", term.token()));
    // The leadership may be lost meanwhile.
    let _ = term.publish(&term.token().to_string()).await;
    resignations.next().await;
}

/// The changes that are reported.
type Seen = Arc<Mutex<Vec<ElectionChange>>>;

fn watch(url: &str) -> Seen {
    let (seen, url) = (Seen::default(), url.to_owned());
    let list = seen.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = bowline::tokio::connect(&url).await.unwrap();
            let mut changes = client.election("a").changes();
            // It ends with an error when the server does.
            while let Some(Ok(change)) = changes.next().await {
                list.lock().unwrap().push(change);
            }
        });
    });
    seen
}

#[test]
fn leaders_are_killed_stand_still_and_resign_and_one_leads_at_a_time() {
    bounded(|| {
        let server = Server::start();
        let seen = watch(&server.url());
        until_watched(&server);
        let start = || Process::with(&server, "candidate", LEASE);
        let mut processes: Vec<Process> = (0..4).map(|_| start()).collect();
        let (mut terms, mut waits) = (Vec::new(), Vec::new());
        for round in 0..12 {
            let since = Instant::now();
            let (leader, term) = next_leader(&processes, terms.last().copied());
            waits.push((round % 3, since.elapsed()));
            terms.push(term);
            match round % 3 {
                0 => processes[leader].tell("resign"),
                1 => {
                    processes[leader].kill();
                    processes[leader] = start();
                }
                _ => {
                    processes[leader].signal(Signal::STOP);
                    thread::sleep(LEASE * 2);
                    processes[leader].signal(Signal::CONT);
                }
            }
        }
        println!("after a resignation, a kill, a freeze (round % 3 = 1, 2, 0): {waits:?}");
        assert!(terms.is_sorted_by(|one, next| one < next), "{terms:?}");
        let (_, last) = next_leader(&processes, terms.last().copied());
        let ends = |seen: &[ElectionChange]| {
            seen.iter().any(|change| matches!(change, ElectionChange::Elected(leader) if leader.term.get() == last))
        };
        let began = Instant::now();
        while !ends(&seen.lock().unwrap()) {
            assert!(began.elapsed() < ms(30_000), "{:?}", seen.lock().unwrap());
            thread::sleep(ms(10));
        }
        check(&seen.lock().unwrap(), &terms);
    });
}

/// A program that begins to watch later does not see the first term.
fn until_watched(server: &Server) {
    let (mut client, began) = (server.client(), Instant::now());
    while redis::cmd("EXISTS").arg("bowline:election:{a}:watchers").query::<u64>(&mut client).unwrap() == 0 {
        assert!(began.elapsed() < ms(30_000), "nobody watches");
        thread::sleep(ms(5));
    }
}

/// The process that leads, and its term. Those of earlier terms may still speak.
fn next_leader(processes: &[Process], last: Option<u64>) -> (usize, u64) {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < ms(60_000), "nobody leads after {last:?}");
        for (n, process) in processes.iter().enumerate() {
            let Ok(line) = process.lines.try_recv() else { continue };
            let Some(term) = line.strip_prefix("leads ").and_then(|term| term.parse().ok()) else { continue };
            if Some(term) > last {
                return (n, term);
            }
        }
        thread::sleep(ms(5));
    }
}

/// Terms grow, each ends before the next one begins, and every term that a process had is among them.
fn check(seen: &[ElectionChange], terms: &[u64]) {
    let (mut leads, mut began) = (None, BTreeSet::new());
    for change in seen {
        match change {
            ElectionChange::Elected(leader) => {
                let term = leader.term.get();
                assert!(leads.replace(term).is_none() && began.last().is_none_or(|last| *last < term), "{seen:?}");
                began.insert(term);
            }
            ElectionChange::Published(leader) => {
                assert_eq!(leads, Some(leader.term.get()), "{seen:?}");
                assert_eq!(leader.value, Some(leader.term.to_string()));
            }
            ElectionChange::Ended { term } => assert_eq!(leads.take(), Some(term.get()), "{seen:?}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(terms.iter().all(|term| began.contains(term)), "{terms:?} {seen:?}");
}
