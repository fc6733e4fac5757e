//! A pool of workers in any number of programs, of which at most three work at the same time. A job whose permit is
//! lost goes back to the queue. A program that is told to stop finishes the jobs that run.
//!
//! `cargo run --example worker_pool`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

#[path = "support/client.rs"]
mod support;

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::{ErrorKind, Semaphore};

/// What the workers of this program share. In a real program, the queue would be one that all programs share.
#[derive(Default)]
struct Pool {
    jobs: Mutex<VecDeque<u32>>,
    stops: AtomicBool,
    /// Each job has a clone while it runs, also one that is stopped.
    running: Arc<()>,
}

impl Pool {
    fn jobs<T>(&self, change: impl FnOnce(&mut VecDeque<u32>) -> T) -> T {
        change(&mut self.jobs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn work(pool: Arc<Pool>, permits: Semaphore) -> bowline::Result<()> {
    loop {
        // A worker waits here for its turn among those of all programs. The time limit lets it see that it has to stop.
        let permit = match permits.acquire().timeout(Duration::from_millis(500)).await {
            Ok(permit) => permit,
            Err(error) if error.kind() == ErrorKind::TimedOut && !pool.stops.load(Ordering::SeqCst) => continue,
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(()),
            Err(error) => return Err(error),
        };
        let stops = pool.stops.load(Ordering::SeqCst);
        let Some(job) = pool.jobs(|jobs| if stops { None } else { jobs.pop_front() }) else {
            return permit.release().await;
        };
        // If the lease is lost, another program may have the permit already, so the job is stopped.
        match permit.protect(run(&pool, job)).await {
            Ok(()) => permit.release().await?,
            Err(_) => pool.jobs(|jobs| jobs.push_back(job)),
        }
    }
}

async fn run(pool: &Pool, job: u32) {
    let own = pool.running.clone();
    let running = Arc::strong_count(&own) - 1;
    assert!(running <= 3, "more workers than permits");
    tokio::time::sleep(Duration::from_millis(20)).await;
    println!("job {job} is done, one of {running} at its start");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = support::connect().await?;
    let pool = Arc::new(Pool { jobs: Mutex::new((1..=12).collect()), ..Pool::default() });
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(work(pool.clone(), client.semaphore("jobs", 3)))).collect();
    // A program would wait for a signal here.
    while pool.jobs(|jobs| jobs.len()) > 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    pool.stops.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await??;
    }
    println!("stopped: {} jobs are left for other programs", pool.jobs(|jobs| jobs.len()));
    client.close().await;
    Ok(())
}
