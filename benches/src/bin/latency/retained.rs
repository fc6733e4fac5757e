//! A lock, or a writer's read-write lock, that a client keeps idle: taken again, taken by turns with another client,
//! and waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::try_join;

use crate::Metrics;
use crate::far::Far;

/// Longer than the bench waits between two acquisitions.
const TIME: Duration = Duration::from_secs(10);
const FAR_WAITS: u32 = 9;

#[derive(Clone, Copy)]
pub(crate) enum Kept {
    Lock,
    Writer,
}

impl Kept {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lock => "retained",
            Self::Writer => "retained-writer",
        }
    }

    /// Acquires and releases. Returns the time until the grant.
    async fn plain(self, client: &Client, name: &str) -> Result<Duration> {
        let start = Instant::now();
        Ok(match self {
            Self::Lock => {
                let guard = client.lock(name).lock().await?;
                let granted = start.elapsed();
                guard.release().await?;
                granted
            }
            Self::Writer => {
                let guard = client.rw_lock(name).write().await?;
                let granted = start.elapsed();
                guard.release().await?;
                granted
            }
        })
    }

    async fn retained(self, client: &Client, name: &str) -> Result<()> {
        match self {
            Self::Lock => client.lock(name).lock().retained(TIME).await?.release().await?,
            Self::Writer => client.rw_lock(name).write().retained(TIME).await?.release().await?,
        }
        Ok(())
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
    let waited = waits(kept, &client, &other, pairs).await?;
    metrics.push(("wait_p50_round_trips", waited.percentile(50.0) / (plain / 2.0)));
    metrics.extend(turns(kept, &client, &other, pairs).await?);
    client.close().await;
    other.close().await;
    let far = Far::from(&url)?;
    let client = clients::plain(runtime, &executor, &far.url()).await?;
    let other = clients::plain(runtime, &executor, &far.url()).await?;
    metrics.push(("wait_round_trips", far.round_trips(&waits(kept, &client, &other, FAR_WAITS).await?)));
    client.close().await;
    other.close().await;
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    kept.retained(&client, "bench:counted").await?;
    let before = seen.commands();
    for _ in 0..pairs {
        kept.retained(&client, "bench:counted").await?;
    }
    metrics.push(("commands", (seen.commands() - before) as f64 / f64::from(pairs)));
    client.close().await;
    Ok(metrics)
}

/// Pairs of the two kinds, in slices that take turns.
async fn again(kept: Kept, client: &Client, pairs: u32) -> Result<Metrics> {
    const SLICE: u32 = 50;
    let [mut plains, mut kepts] = [Samples::default(), Samples::default()];
    for n in 0..pairs.div_ceil(SLICE) + 1 {
        for is_kept in [false, true] {
            let samples = if is_kept { &mut kepts } else { &mut plains };
            for _ in 0..SLICE {
                let start = Instant::now();
                if is_kept {
                    kept.retained(client, "bench:retained").await?;
                } else {
                    kept.plain(client, "bench:plain").await?;
                }
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
    for n in 0..pairs + warm_up {
        kept.retained(client, "bench:waits").await?;
        let waited = kept.plain(other, "bench:waits").await?;
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
    for _ in 0..SLICES {
        let start = Instant::now();
        try_join(competes(kept, client, each), competes(kept, other, each)).await?;
        let between = Instant::now();
        for _ in 0..each {
            kept.retained(client, "bench:turns").await?;
            kept.retained(other, "bench:turns").await?;
        }
        fair += between - start;
        turns += between.elapsed();
    }
    Ok(vec![("turns_to_fair", turns.as_secs_f64() / fair.as_secs_f64())])
}

async fn competes(kept: Kept, client: &Client, pairs: u32) -> Result<()> {
    for _ in 0..pairs {
        kept.plain(client, "bench:fair").await?;
    }
    Ok(())
}
