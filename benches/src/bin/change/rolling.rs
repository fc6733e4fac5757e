//! The masters of a `RedLock` are restarted without their data, one after another, while a hold is kept and tasks
//! compete.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor, RedLock};
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use bowline_testkit::server::Server;
use futures::channel::oneshot;

use crate::Line;

/// Short, because a master counts again when it has been up for as long.
const LEASE: Duration = Duration::from_secs(2);

/// Half of them wait for the hold, and half acquire another name all the time.
const TASKS: usize = 20;

/// What the tasks have seen.
struct Seen {
    began: Instant,
    grants: AtomicU64,
    failed: AtomicU64,
    /// When the last grant was, and the longest time between two grants, in milliseconds.
    last: AtomicU64,
    gap: AtomicU64,
    /// By how much a timer was late at most, in milliseconds: a hold ends when its program stands still for a lease.
    standstill: AtomicU64,
    over: AtomicBool,
}

impl Seen {
    fn new() -> Self {
        let [grants, failed, last, gap, standstill] = [0; 5].map(AtomicU64::new);
        Self { began: Instant::now(), grants, failed, last, gap, standstill, over: AtomicBool::new(false) }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn add_grant(&self) {
        let now = self.milliseconds();
        let last = self.last.swap(now, Ordering::Relaxed);
        self.gap.fetch_max(now.saturating_sub(last), Ordering::Relaxed);
        self.grants.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn measure(executor: Arc<dyn Executor>, masters: usize, rounds: u32) -> Result<Vec<Line>> {
    let servers: Vec<Arc<Mutex<Server>>> = (0..masters).map(|_| Arc::new(Mutex::new(Server::start()))).collect();
    let config = Config::builder().lease(LEASE).build()?;
    let holder = program(&executor, &servers, &config).await?;
    let others = program(&executor, &servers, &config).await?;
    // New servers count after the longest lease.
    let guard = holder.lock("bench:held").await?;
    let seen = Arc::new(Seen::new());
    for n in 0..TASKS {
        let (locks, seen, clock) = (others.clone(), Arc::clone(&seen), Arc::clone(&executor));
        executor.spawn(Box::pin(async move {
            if n % 2 == 0 {
                // Waits to the end.
                let waiting = locks.lock("bench:held").timeout(Duration::from_secs(3600)).await;
                seen.failed.fetch_add(u64::from(waiting.is_err()), Ordering::Relaxed);
            } else {
                compete(&locks, &seen, &*clock).await;
            }
        }));
    }
    let (watched, clock) = (Arc::clone(&seen), Arc::clone(&executor));
    executor.spawn(Box::pin(async move { watch_the_clock(&watched, &*clock).await }));
    let (signal, watched) = (guard.lost_signal(), Arc::clone(&seen));
    executor.spawn(Box::pin(async move {
        if let Some(loss) = signal.wait().await {
            let late = watched.standstill.load(Ordering::Relaxed);
            eprintln!("lost {} ms after the start: {loss}; a timer was {late} ms late", watched.milliseconds());
        }
    }));
    let mut lost = 0.0_f64;
    for round in 0..rounds {
        for (master, server) in servers.iter().enumerate() {
            restart(server).await;
            // It counts after the longest lease, and says its age in whole seconds.
            executor.sleep(LEASE + Duration::from_millis(1500)).await;
            if lost == 0.0 && !guard.is_valid() {
                eprintln!("lost in round {round}, after the restart of master {master}");
                lost = 1.0;
            }
        }
        if lost > 0.0 {
            break;
        }
    }
    seen.over.store(true, Ordering::Relaxed);
    let released = guard.release().await;
    executor.sleep(LEASE).await;
    let case = format!("rolling-{masters}");
    let count = |value: &AtomicU64| value.load(Ordering::Relaxed) as f64;
    Ok(vec![
        (case.clone(), "rounds", f64::from(rounds)),
        (case.clone(), "holds_lost", lost.max(f64::from(u8::from(released.is_err())))),
        (case.clone(), "acquisitions_failed", count(&seen.failed)),
        (case.clone(), "grants", count(&seen.grants)),
        (case.clone(), "longest_gap_in_leases", count(&seen.gap) / LEASE.as_millis() as f64),
        (case, "longest_standstill_in_leases", count(&seen.standstill) / LEASE.as_millis() as f64),
    ])
}

fn locked(server: &Mutex<Server>) -> MutexGuard<'_, Server> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On a thread of its own, because it blocks: a worker of the runtime would keep the tasks that it is about to run.
async fn restart(server: &Arc<Mutex<Server>>) {
    let (server, (done, is_done)) = (Arc::clone(server), oneshot::channel());
    std::thread::spawn(move || {
        locked(&server).restart();
        let _ = done.send(());
    });
    let _ = is_done.await;
}

async fn program(executor: &Arc<dyn Executor>, servers: &[Arc<Mutex<Server>>], config: &Config) -> Result<RedLock> {
    let mut all: Vec<Client> = Vec::new();
    for server in servers {
        let url = locked(server).url();
        all.push(clients::plain_with(Runtime::TokioMulti, executor, &url, config.clone()).await?);
    }
    Ok(RedLock::new(all)?)
}

async fn compete(locks: &RedLock, seen: &Seen, clock: &dyn Executor) {
    while !seen.over.load(Ordering::Relaxed) {
        match locks.lock("bench:wanted").await {
            Ok(guard) => {
                seen.add_grant();
                clock.sleep(Duration::from_millis(1)).await;
                drop(guard.release().await);
            }
            Err(_) => drop(seen.failed.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

async fn watch_the_clock(seen: &Seen, clock: &dyn Executor) {
    const PAUSE: Duration = Duration::from_millis(20);
    while !seen.over.load(Ordering::Relaxed) {
        let before = Instant::now();
        clock.sleep(PAUSE).await;
        let late = before.elapsed().saturating_sub(PAUSE);
        seen.standstill.fetch_max(u64::try_from(late.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
