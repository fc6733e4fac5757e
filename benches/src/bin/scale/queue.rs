//! The server's time per script by the length of the queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bowline::{Config, Connection, Executor};
use bowline_benches::measure::Samples;
use bowline_benches::raw::RawLock;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, raw};
use futures::future::try_join_all;

/// Calls between two looks at the server's counts. No more: they must not change the length of the shortest queue much.
const BLOCK: usize = 2;

/// Requests under way at a time while a queue is filled.
const AT_ONCE: usize = 500;

/// What is measured, as the names of the metrics.
pub(crate) const OPERATIONS: [&str; 5] =
    ["enqueue_us", "cancel_tail_us", "heartbeat_us", "cancel_middle_us", "handover_us"];

pub(crate) fn case(size: usize) -> String {
    format!("queue-{size}")
}

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    sizes: Vec<usize>,
    calls: usize,
) -> Result<Vec<(String, String, f64)>> {
    let config = Config::builder().command_timeout(Duration::from_secs(60)).build()?;
    let connection: Arc<dyn Connection> = Arc::new(Runtime::TokioMulti.open(executor, &url, &config).await?);
    // A ticket is granted only if its client listens.
    let _inbox = connection.subscribe(&raw::inbox()).await?;
    let mut queues = Vec::new();
    for size in sizes {
        queues.push((size, Queue::of(&*connection, size).await?, OPERATIONS.map(|_| Samples::default())));
    }
    for _ in 0..calls.div_ceil(BLOCK) {
        for (size, queue, samples) in &mut queues {
            for (operation, samples) in OPERATIONS.into_iter().zip(samples) {
                let before = probe.executed()?;
                for _ in 0..BLOCK {
                    queue.run(&*connection, operation).await?;
                }
                let executed = probe.executed()? - before;
                samples.add(Duration::from_micros(executed.micros) / u32::try_from(executed.scripts)?);
                queue.fill(&*connection, *size).await?;
            }
        }
    }
    let mut results = Vec::new();
    let mut shortest = None;
    for (size, _, samples) in &mut queues {
        let medians: Vec<f64> = samples.iter_mut().map(|samples| samples.percentile(50.0)).collect();
        let shortest = shortest.get_or_insert_with(|| medians.clone());
        results.extend(OPERATIONS.iter().zip(&medians).map(|(name, time)| (case(*size), (*name).to_owned(), *time)));
        let growth = OPERATIONS.iter().zip(medians.iter().zip(shortest));
        results
            .extend(growth.map(|(name, (time, first))| (case(*size), name.replace("_us", "_growth"), time / *first)));
    }
    for (_, queue, _) in &mut queues {
        queue.clear(&*connection).await?;
    }
    Ok(results)
}

/// A lock that is held, and its queue as the server has it.
struct Queue {
    lock: RawLock,
    holder: u64,
    waiting: VecDeque<u64>,
    last: u64,
}

impl Queue {
    async fn of(connection: &dyn Connection, size: usize) -> Result<Self> {
        let lock = RawLock::new(&format!("bench:queue:{size}"))?;
        if !lock.acquire(connection, 1).await? {
            return Err("the lock was not free".into());
        }
        let mut queue = Self { lock, holder: 1, waiting: VecDeque::new(), last: 1 };
        queue.fill(connection, size).await?;
        Ok(queue)
    }

    /// Queues up, or out, until there are so many.
    async fn fill(&mut self, connection: &dyn Connection, size: usize) -> Result<()> {
        while self.waiting.len() > size {
            self.cancel(connection, self.waiting.len() - 1).await?;
        }
        while self.waiting.len() < size {
            let first = self.last + 1;
            self.last += (size - self.waiting.len()).min(AT_ONCE) as u64;
            let granted = try_join_all((first..=self.last).map(|n| self.lock.acquire(connection, n))).await?;
            if granted.contains(&true) {
                return Err("the lock was free".into());
            }
            self.waiting.extend(first..=self.last);
        }
        Ok(())
    }

    async fn run(&mut self, connection: &dyn Connection, operation: &str) -> Result<()> {
        let length = self.waiting.len();
        match operation {
            "enqueue_us" => self.fill(connection, length + 1).await,
            "cancel_tail_us" => self.cancel(connection, length - 1).await,
            "heartbeat_us" => self.lock.heartbeat(connection, self.waiting[length / 2]).await,
            "cancel_middle_us" => self.cancel(connection, length / 2).await,
            "handover_us" => {
                self.lock.release(connection, self.holder).await?;
                self.holder = self.waiting.pop_front().ok_or("the queue is empty")?;
                Ok(())
            }
            other => Err(format!("no operation is called {other}").into()),
        }
    }

    async fn cancel(&mut self, connection: &dyn Connection, index: usize) -> Result<()> {
        let from_tail = index >= self.waiting.len() / 2;
        let n = self.waiting.remove(index).ok_or("no ticket has this index")?;
        self.lock.cancel(connection, n, from_tail).await
    }

    async fn clear(&mut self, connection: &dyn Connection) -> Result<()> {
        while !self.waiting.is_empty() {
            let last = self.waiting.len().min(AT_ONCE);
            let gone: Vec<u64> = self.waiting.drain(..last).collect();
            try_join_all(gone.into_iter().map(|n| self.lock.cancel(connection, n, false))).await?;
        }
        self.lock.release(connection, self.holder).await
    }
}
