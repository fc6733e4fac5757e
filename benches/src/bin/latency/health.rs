//! A lock over three masters of which one refuses, denies or gives no answer: the pair that finds out, and those after it.

use std::sync::Arc;
use std::time::Instant;

use bowline::{Config, Executor, RedLock};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::{Result, clients};

use crate::Metrics;
use crate::red_lock::over;

/// What is wrong with the first master, and the commands that begin and end it. A frozen process is told by a signal.
struct Cause {
    first_us: &'static str,
    p99_ratio: &'static str,
    begin: &'static [&'static str],
    end: &'static [&'static str],
}

const CAUSES: [Cause; 5] = [
    Cause {
        first_us: "full_first_us",
        p99_ratio: "full_p99_ratio",
        begin: &["CONFIG", "SET", "maxmemory", "1"],
        end: &["CONFIG", "SET", "maxmemory", "0"],
    },
    Cause {
        first_us: "no_replicas_first_us",
        p99_ratio: "no_replicas_p99_ratio",
        begin: &["CONFIG", "SET", "min-replicas-to-write", "1"],
        end: &["CONFIG", "SET", "min-replicas-to-write", "0"],
    },
    // No server listens on port 1.
    Cause {
        first_us: "read_only_first_us",
        p99_ratio: "read_only_p99_ratio",
        begin: &["REPLICAOF", "127.0.0.1", "1"],
        end: &["REPLICAOF", "NO", "ONE"],
    },
    Cause {
        first_us: "denying_first_us",
        p99_ratio: "denying_p99_ratio",
        begin: &["ACL", "SETUSER", "bench", "resetkeys"],
        end: &["ACL", "SETUSER", "bench", "~*"],
    },
    Cause { first_us: "frozen_first_us", p99_ratio: "frozen_p99_ratio", begin: &[], end: &[] },
];

pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    masters: Vec<Server>,
    pairs: u32,
) -> Result<Metrics> {
    let mut all = Vec::new();
    for master in &masters {
        master.probe()?.ask::<String>(&["ACL", "SETUSER", "bench", "on", ">bench", "~*", "&*", "+@all"])?;
        let url = master.url.replace("redis://", "redis://bench:bench@");
        all.push(clients::plain_with(runtime, &executor, &url, Config::default()).await?);
    }
    let mut metrics = Vec::new();
    for cause in &CAUSES {
        // Each has masters of its own health: nothing is remembered of the one before.
        let locks = over(&all)?;
        let mut healthy = times(&locks, pairs).await?;
        change(&masters[0], cause.begin, true)?;
        let start = Instant::now();
        pair(&locks).await?;
        let first = start.elapsed();
        let mut after = times(&locks, pairs).await?;
        change(&masters[0], cause.end, false)?;
        metrics.push((cause.first_us, first.as_secs_f64() * 1e6));
        metrics.push((cause.p99_ratio, after.percentile(99.0) / healthy.percentile(99.0)));
        while locks.stats().masters_down > 0 {
            executor.sleep(std::time::Duration::from_millis(10)).await;
        }
        pair(&over(&all)?).await?;
    }
    for client in all {
        client.close().await;
    }
    Ok(metrics)
}

fn change(master: &Server, command: &[&str], begins: bool) -> Result<()> {
    match (command, begins) {
        ([], true) => master.freeze(),
        ([], false) => master.thaw(),
        _ => master.probe()?.ask::<String>(command).map(drop),
    }
}

async fn times(locks: &RedLock, pairs: u32) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..pairs {
        let start = Instant::now();
        pair(locks).await?;
        samples.add(start.elapsed());
    }
    Ok(samples)
}

async fn pair(locks: &RedLock) -> Result<()> {
    locks.lock("bench:health").await?.release().await?;
    Ok(())
}
