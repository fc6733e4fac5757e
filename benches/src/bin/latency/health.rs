//! A lock over three masters of which one refuses, denies or gives no answer: the pair that finds out, and those after
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor, RedLock};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::{Result, clients};
use bowline_testkit::proxy::Proxy;

use crate::Metrics;
use crate::red_lock::over;

/// What is wrong with the first master.
enum Fault {
    /// The commands that begin and end it.
    Command(&'static [&'static str], &'static [&'static str]),
    /// The process stands still.
    Frozen,
    /// One program has no connection to it, and gets none. Another program reaches all masters, and acquires by turns
    /// with the first.
    CutOff,
}

struct Cause {
    first_us: &'static str,
    p99_ratio: &'static str,
    fault: Fault,
}

const CAUSES: [Cause; 6] = [
    Cause {
        first_us: "full_first_us",
        p99_ratio: "full_p99_ratio",
        fault: Fault::Command(&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
    },
    Cause {
        first_us: "no_replicas_first_us",
        p99_ratio: "no_replicas_p99_ratio",
        fault: Fault::Command(
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
    },
    // No server listens on port 1.
    Cause {
        first_us: "read_only_first_us",
        p99_ratio: "read_only_p99_ratio",
        fault: Fault::Command(&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
    },
    Cause {
        first_us: "denying_first_us",
        p99_ratio: "denying_p99_ratio",
        fault: Fault::Command(&["ACL", "SETUSER", "bench", "resetkeys"], &["ACL", "SETUSER", "bench", "~*"]),
    },
    Cause { first_us: "frozen_first_us", p99_ratio: "frozen_p99_ratio", fault: Fault::Frozen },
    Cause { first_us: "cut_off_first_us", p99_ratio: "cut_off_p99_ratio", fault: Fault::CutOff },
];

pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    masters: Vec<Server>,
    pairs: u32,
) -> Result<Metrics> {
    for master in &masters {
        master.probe()?.ask::<String>(&["ACL", "SETUSER", "bench", "on", ">bench", "~*", "&*", "+@all"])?;
    }
    let proxy = Proxy::start(masters[0].port()?);
    let mut urls: Vec<String> = masters.iter().map(|master| master.url.clone()).collect();
    let others = program(runtime, &executor, &urls).await?;
    urls[0] = proxy.url();
    let all = program(runtime, &executor, &urls).await?;
    let mut metrics = Vec::new();
    for Cause { first_us, p99_ratio, fault } in &CAUSES {
        // Each has masters of its own health: nothing is remembered of the one before.
        let locks = over(&all)?;
        let other = match fault {
            Fault::CutOff => Some(over(&others)?),
            Fault::Command(..) | Fault::Frozen => None,
        };
        let mut healthy = times(&locks, other.as_ref(), pairs).await?;
        change(&masters[0], &proxy, fault, true)?;
        let start = Instant::now();
        pair(&locks).await?;
        let first = start.elapsed();
        let mut after = times(&locks, other.as_ref(), pairs).await?;
        change(&masters[0], &proxy, fault, false)?;
        metrics.push((*first_us, first.as_secs_f64() * 1e6));
        metrics.push((*p99_ratio, after.percentile(99.0) / healthy.percentile(99.0)));
        while locks.stats().masters_down > 0 {
            executor.sleep(Duration::from_millis(10)).await;
        }
        pair(&over(&all)?).await?;
    }
    for client in all.into_iter().chain(others) {
        client.close().await;
    }
    Ok(metrics)
}

async fn program(runtime: Runtime, executor: &Arc<dyn Executor>, urls: &[String]) -> Result<Vec<Client>> {
    let mut all = Vec::new();
    for url in urls {
        let url = url.replace("redis://", "redis://bench:bench@");
        all.push(clients::plain_with(runtime, executor, &url, Config::default()).await?);
    }
    Ok(all)
}

fn change(master: &Server, proxy: &Proxy, fault: &Fault, begins: bool) -> Result<()> {
    match fault {
        Fault::Command(begin, end) => {
            master.probe()?.ask::<String>(if begins { begin } else { end })?;
        }
        Fault::Frozen if begins => master.freeze()?,
        Fault::Frozen => master.thaw()?,
        Fault::CutOff => {
            proxy.refuse(begins);
            if begins {
                proxy.cut();
            }
        }
    }
    Ok(())
}

async fn times(locks: &RedLock, other: Option<&RedLock>, pairs: u32) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..pairs {
        if let Some(other) = other {
            pair(other).await?;
        }
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
