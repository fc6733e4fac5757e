//! A lock that a client keeps idle: taken again, taken by turns with another client, and waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::try_join;

use crate::Metrics;

/// Longer than the bench waits between two acquisitions.
const TIME: Duration = Duration::from_secs(10);

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String, pairs: u32) -> Result<Metrics> {
    let client = clients::plain(runtime, &executor, &url).await?;
    let other = clients::plain(runtime, &executor, &url).await?;
    let mut metrics = again(&client, pairs).await?;
    let (_, plain) = metrics[3];
    metrics.extend(waits(&client, &other, pairs, plain / 2.0).await?);
    metrics.extend(turns(&client, &other, pairs).await?);
    client.close().await;
    other.close().await;
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    retained(&client, "bench:counted").await?;
    let before = seen.commands();
    for _ in 0..pairs {
        retained(&client, "bench:counted").await?;
    }
    metrics.push(("commands", (seen.commands() - before) as f64 / f64::from(pairs)));
    client.close().await;
    Ok(metrics)
}

async fn retained(client: &Client, name: &str) -> Result<()> {
    client.lock(name).lock().retained(TIME).await?.release().await?;
    Ok(())
}

/// Pairs of the two kinds, in slices that take turns.
async fn again(client: &Client, pairs: u32) -> Result<Metrics> {
    const SLICE: u32 = 50;
    let [mut plains, mut kept] = [Samples::default(), Samples::default()];
    let (plain, retained) = (client.lock("bench:plain"), client.lock("bench:retained").retained(TIME));
    for n in 0..pairs.div_ceil(SLICE) + 1 {
        for (lock, samples) in [(&plain, &mut plains), (&retained, &mut kept)] {
            for _ in 0..SLICE {
                let start = Instant::now();
                lock.lock().await?.release().await?;
                if n > 0 {
                    samples.add(start.elapsed());
                }
            }
        }
    }
    Ok(vec![
        ("speedup_p50", plains.percentile(50.0) / kept.percentile(50.0)),
        ("p50_us", kept.percentile(50.0)),
        ("p99_us", kept.percentile(99.0)),
        ("plain_p50_us", plains.percentile(50.0)),
    ])
}

/// How long another client waits for an idle lock, in plain round trips.
async fn waits(client: &Client, other: &Client, pairs: u32, round_trip: f64) -> Result<Metrics> {
    let mut waits = Samples::default();
    for n in 0..pairs + pairs / 10 {
        retained(client, "bench:waits").await?;
        let start = Instant::now();
        let guard = other.lock("bench:waits").lock().await?;
        if n >= pairs / 10 {
            waits.add(start.elapsed());
        }
        guard.release().await?;
    }
    Ok(vec![("wait_p50_round_trips", waits.percentile(50.0) / round_trip)])
}

/// Two clients take a retained lock by turns, one after the other: the time of each, divided by that of a hand-over
/// between fair acquisitions that compete all the time.
async fn turns(client: &Client, other: &Client, pairs: u32) -> Result<Metrics> {
    const SLICES: u32 = 10;
    let (mut fair, mut kept) = (Duration::ZERO, Duration::ZERO);
    let each = pairs / SLICES;
    for _ in 0..SLICES {
        let start = Instant::now();
        try_join(competes(client, each), competes(other, each)).await?;
        let between = Instant::now();
        for _ in 0..each {
            retained(client, "bench:turns").await?;
            retained(other, "bench:turns").await?;
        }
        fair += between - start;
        kept += between.elapsed();
    }
    Ok(vec![("turns_to_fair", kept.as_secs_f64() / fair.as_secs_f64())])
}

async fn competes(client: &Client, pairs: u32) -> Result<()> {
    let lock = client.lock("bench:fair");
    for _ in 0..pairs {
        lock.lock().await?.release().await?;
    }
    Ok(())
}
