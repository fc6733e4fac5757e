//! A lock, or a writer's read-write lock, that a client keeps idle: taken again, taken by turns with another client,
//! and waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor, Lock, RwLock};
use bowline_benches::far::Far;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::try_join;

use crate::Metrics;

/// Longer than the bench waits between two acquisitions.
const TIME: Duration = Duration::from_secs(10);
const FAR_WAITS: u32 = 9;

#[derive(Clone, Copy)]
pub(crate) enum Kept {
    Lock,
    Writer,
}

enum Handle {
    Lock(Lock),
    Writer(RwLock),
}

impl Kept {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lock => "retained",
            Self::Writer => "retained-writer",
        }
    }

    fn plain(self, client: &Client, name: &str) -> Handle {
        match self {
            Self::Lock => Handle::Lock(client.lock(name)),
            Self::Writer => Handle::Writer(client.rw_lock(name)),
        }
    }

    fn retained(self, client: &Client, name: &str) -> Handle {
        match self.plain(client, name) {
            Handle::Lock(lock) => Handle::Lock(lock.retained(TIME)),
            Handle::Writer(lock) => Handle::Writer(lock.retained(TIME)),
        }
    }
}

impl Handle {
    /// Acquires and releases. Returns the time until the grant.
    async fn take(&self) -> Result<Duration> {
        let start = Instant::now();
        Ok(match self {
            Self::Lock(lock) => {
                let guard = lock.lock().await?;
                let granted = start.elapsed();
                guard.release().await?;
                granted
            }
            Self::Writer(lock) => {
                let guard = lock.write().await?;
                let granted = start.elapsed();
                guard.release().await?;
                granted
            }
        })
    }
}

pub(crate) async fn measure(
    kept: Kept,
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    (url, pairs): (String, u32),
) -> Result<Metrics> {
    let client = clients::plain(runtime, &executor, &url).await?;
    let other = clients::plain(runtime, &executor, &url).await?;
    let mut metrics = again(kept, &client, pairs).await?;
    let (_, plain) = metrics[3];
    let mut waited = waits(kept, &client, &other, pairs).await?;
    metrics.push(("wait_p50_round_trips", waited.percentile(50.0) / (plain / 2.0)));
    metrics.extend(turns(kept, &client, &other, pairs).await?);
    client.close().await;
    other.close().await;
    let far = Far::from(&url, crate::FAR)?;
    let client = clients::plain(runtime, &executor, &far.url()).await?;
    let other = clients::plain(runtime, &executor, &far.url()).await?;
    metrics.push(("wait_round_trips", far.round_trips(waits(kept, &client, &other, FAR_WAITS).await?)));
    client.close().await;
    other.close().await;
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    let counted = kept.retained(&client, "bench:counted");
    counted.take().await?;
    let before = seen.commands();
    for _ in 0..pairs {
        counted.take().await?;
    }
    metrics.push(("commands", (seen.commands() - before) as f64 / f64::from(pairs)));
    client.close().await;
    Ok(metrics)
}

/// Pairs of the two kinds, in slices that take turns.
async fn again(kept: Kept, client: &Client, pairs: u32) -> Result<Metrics> {
    const SLICE: u32 = 50;
    let [mut plains, mut kepts] = [Samples::default(), Samples::default()];
    let (plain, retained) = (kept.plain(client, "bench:plain"), kept.retained(client, "bench:retained"));
    for n in 0..pairs.div_ceil(SLICE) + 1 {
        for (handle, samples) in [(&plain, &mut plains), (&retained, &mut kepts)] {
            for _ in 0..SLICE {
                let start = Instant::now();
                handle.take().await?;
                if n > 0 {
                    samples.add(start.elapsed());
                }
            }
        }
    }
    Ok(vec![
        ("speedup_p50", plains.percentile(50.0) / kepts.percentile(50.0)),
        ("p50_us", kepts.percentile(50.0)),
        ("p99_us", kepts.percentile(99.0)),
        ("plain_p50_us", plains.percentile(50.0)),
    ])
}

/// How long another client waits for an idle lock.
async fn waits(kept: Kept, client: &Client, other: &Client, pairs: u32) -> Result<Samples> {
    let mut waits = Samples::default();
    // The waiter's inbox is open after the first wait.
    let warm_up = 1 + pairs / 10;
    let (retained, plain) = (kept.retained(client, "bench:waits"), kept.plain(other, "bench:waits"));
    for n in 0..pairs + warm_up {
        retained.take().await?;
        let waited = plain.take().await?;
        if n >= warm_up {
            waits.add(waited);
        }
    }
    Ok(waits)
}

/// Two clients take a retained lock by turns, one after the other: the time of each, divided by that of a hand-over
/// between fair acquisitions that compete all the time.
async fn turns(kept: Kept, client: &Client, other: &Client, pairs: u32) -> Result<Metrics> {
    const SLICES: u32 = 10;
    let (mut fair, mut turns) = (Duration::ZERO, Duration::ZERO);
    let each = pairs / SLICES;
    let [one, another] = [client, other].map(|client| kept.retained(client, "bench:turns"));
    for _ in 0..SLICES {
        let start = Instant::now();
        try_join(competes(kept, client, each), competes(kept, other, each)).await?;
        let between = Instant::now();
        for _ in 0..each {
            one.take().await?;
            another.take().await?;
        }
        fair += between - start;
        turns += between.elapsed();
    }
    Ok(vec![("turns_to_fair", turns.as_secs_f64() / fair.as_secs_f64())])
}

async fn competes(kept: Kept, client: &Client, pairs: u32) -> Result<()> {
    let lock = kept.plain(client, "bench:fair");
    for _ in 0..pairs {
        lock.take().await?;
    }
    Ok(())
}
