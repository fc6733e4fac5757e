//! What each process does: eight workers increment the register under the lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::{Config, RedLock};

use super::register::Register;
use crate::history::{Journal, Watched, nanoseconds};
use crate::masters::ms;

pub(crate) const MASTERS: &str = "BOWLINE_TEST_MASTERS";
pub(crate) const REGISTER: &str = "BOWLINE_TEST_REGISTER";
pub(crate) const SECONDS: &str = "BOWLINE_TEST_SECONDS";
pub(crate) const JOURNAL: &str = "BOWLINE_TEST_JOURNAL";

/// How long a process may stand still before its hold is over.
pub(crate) const LEASE: Duration = ms(2000);
const WORKERS: usize = 8;
/// The workers sleep through a hold so often, to write too late.
const LATE: u64 = 16;

/// What workers did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Increments that the register has.
    pub(crate) accepted: u64,
    /// Writes that the register refused, and those of them whose guard was still valid.
    pub(crate) refused: u64,
    pub(crate) refused_while_valid: u64,
    /// Writes with a token of a hold before the last one: refused, and not.
    pub(crate) late_refused: u64,
    pub(crate) late_accepted: u64,
    pub(crate) failed: u64,
    /// In microseconds, for the grants.
    pub(crate) waits: Vec<u64>,
}

pub(crate) fn work() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let report = runtime.block_on(increment());
    println!("> {}", report.line());
}

async fn increment() -> Report {
    let config = Config::builder().lease(LEASE).command_timeout(ms(1000)).retry_timeout(ms(10_000)).build().unwrap();
    let mut clients = Vec::new();
    for url in std::env::var(MASTERS).unwrap().split(',') {
        clients.push(connect(url, &config).await);
    }
    let locks = RedLock::builder(clients).node_timeout(ms(300)).durable(true).build().unwrap();
    let end = Instant::now() + Duration::from_secs(std::env::var(SECONDS).unwrap().parse().unwrap());
    let register = Arc::new(Mutex::new(Register::open(&std::env::var(REGISTER).unwrap())));
    let journal = Arc::new(Journal::open(std::env::var(JOURNAL).unwrap().as_ref()));
    let work = |_| tokio::spawn(worker(locks.clone(), register.clone(), journal.clone(), end));
    let workers: Vec<_> = (0..WORKERS).map(work).collect();
    let mut report = Report::default();
    for worker in workers {
        report = report.merge(worker.await.unwrap());
    }
    eprintln!("{:?}", locks.stats());
    report
}

/// A master may have been killed already.
async fn connect(url: &str, config: &Config) -> bowline::Client {
    let start = Instant::now();
    loop {
        match bowline::tokio::connect_with(url, config.clone()).await {
            Ok(client) => return client,
            Err(error) => assert!(start.elapsed() < ms(20_000), "{error:#}"),
        }
        tokio::time::sleep(ms(50)).await;
    }
}

async fn worker(locks: RedLock, register: Arc<Mutex<Register>>, journal: Arc<Journal>, end: Instant) -> Report {
    let (mut report, mut failures) = (Report::default(), BTreeMap::new());
    let mut last = None;
    while Instant::now() < end {
        let (asked, invoked) = (Instant::now(), nanoseconds());
        let guard = match locks.lock("a").timeout(ms(20_000)).await {
            Ok(guard) => guard,
            Err(error) => {
                *failures.entry(error.to_string()).or_insert(0) += 1;
                report.failed += 1;
                continue;
            }
        };
        report.waits.push(u64::try_from(asked.elapsed().as_micros()).unwrap());
        let token = guard.token().get();
        let watched = Watched::granted(&guard, invoked);
        watched.iter().for_each(|watched| journal.granted(watched));
        let read = register.lock().unwrap().read(token);
        tokio::task::yield_now().await;
        let written = read.and_then(|value| register.lock().unwrap().write(token, value + 1));
        let is_valid = guard.is_valid();
        match written {
            Ok(_) => report.accepted += 1,
            Err(_) => {
                report.refused += 1;
                report.refused_while_valid += u64::from(is_valid);
            }
        }
        // A hold that ended before this one: its write comes too late, whatever happened to the lock.
        if let Some(late) = last.replace(token)
            && report.accepted % LATE == 0
        {
            match register.lock().unwrap().write(late, 0) {
                Ok(_) => report.late_accepted += 1,
                Err(_) => report.late_refused += 1,
            }
        }
        watched.into_iter().for_each(|watched| journal.ended(&watched.released(&guard)));
        let _ = guard.release().await;
    }
    if !failures.is_empty() {
        eprintln!("{failures:?}");
    }
    report
}

impl Report {
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.refused_while_valid += other.refused_while_valid;
        self.late_refused += other.late_refused;
        self.late_accepted += other.late_accepted;
        self.failed += other.failed;
        self.waits.extend(other.waits);
        self
    }

    fn line(&self) -> String {
        let Self { accepted, refused, refused_while_valid, late_refused, late_accepted, failed, waits } = self;
        let counts = [accepted, refused, refused_while_valid, late_refused, late_accepted, failed];
        counts.into_iter().chain(waits).map(u64::to_string).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn parse(line: &str) -> Self {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().unwrap());
        let mut next = || numbers.next().unwrap();
        let [accepted, refused, refused_while_valid] = [next(), next(), next()];
        let [late_refused, late_accepted, failed] = [next(), next(), next()];
        let waits = numbers.collect();
        Self { accepted, refused, refused_while_valid, late_refused, late_accepted, failed, waits }
    }

    pub(crate) fn shown(&self) -> String {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let wait = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or_default() as f64 / 1000.0;
        let longest = waits.last().copied().unwrap_or_default() as f64 / 1000.0;
        let Self { accepted, refused, late_refused, failed, .. } = self;
        format!(
            "{accepted} increments, {refused} refused, {late_refused} late ones refused, {failed} acquisitions failed; \
             waits: p50 {:.1} ms, p99 {:.1} ms, longest {longest:.1} ms",
            wait(50),
            wait(99)
        )
    }
}
