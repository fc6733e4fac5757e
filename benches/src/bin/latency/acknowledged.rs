//! Grants that a replica has acknowledged, by turns with plain ones, and many of them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::{join, try_join_all};

use crate::Metrics;

const TASKS: usize = 256;
/// How long the tasks run, after as long for warming up.
const RATED: Duration = Duration::from_secs(1);

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String, pairs: u32) -> Result<Metrics> {
    let client = clients::plain(runtime, &executor, &url).await?;
    let mut metrics = times(&client, pairs).await?;
    for (metric, replicas) in [("grants_per_second", 1), ("plain_grants_per_second", 0)] {
        metrics.push((metric, rate(&client, &executor, replicas).await?));
    }
    client.close().await;
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    pair(&client, 1).await?;
    let before = seen.commands();
    pair(&client, 1).await?;
    metrics.push(("commands", (seen.commands() - before) as f64));
    client.close().await;
    Ok(metrics)
}

async fn pair(client: &Client, replicas: u32) -> Result<()> {
    client.lock("bench:acknowledged").lock().acknowledged_by(replicas).await?.release().await?;
    Ok(())
}

async fn times(client: &Client, pairs: u32) -> Result<Metrics> {
    let [mut plain, mut acknowledged] = [Samples::default(), Samples::default()];
    for n in 0..pairs + pairs / 10 {
        for (replicas, samples) in [(0, &mut plain), (1, &mut acknowledged)] {
            let start = Instant::now();
            pair(client, replicas).await?;
            if n >= pairs / 10 {
                samples.add(start.elapsed());
            }
        }
    }
    Ok(vec![
        ("ratio_p50", acknowledged.percentile(50.0) / plain.percentile(50.0)),
        ("p50_us", acknowledged.percentile(50.0)),
        ("p99_us", acknowledged.percentile(99.0)),
        ("plain_p50_us", plain.percentile(50.0)),
        ("plain_p99_us", plain.percentile(99.0)),
    ])
}

/// Why a task ends early.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Grants per second with many tasks, each with a name of its own.
async fn rate(client: &Client, executor: &Arc<dyn Executor>, replicas: u32) -> Result<f64> {
    let granted = AtomicU64::new(0);
    let start = Instant::now();
    let (granted, names) = (&granted, 0..TASKS);
    let tasks = names.map(|n| async move {
        let lock = client.lock(&format!("bench:acknowledged:{n}"));
        while start.elapsed() < 2 * RATED {
            let guard = lock.lock().acknowledged_by(replicas).await?;
            granted.fetch_add(1, Ordering::Relaxed);
            guard.release().await?;
        }
        Ok::<(), Failure>(())
    });
    let counted = async {
        executor.sleep(RATED).await;
        let (from, before) = (Instant::now(), granted.load(Ordering::Relaxed));
        executor.sleep(RATED.saturating_sub(Duration::from_millis(100))).await;
        (granted.load(Ordering::Relaxed) - before) as f64 / from.elapsed().as_secs_f64()
    };
    let (done, rate) = join(try_join_all(tasks), counted).await;
    done?;
    Ok(rate)
}
