//! A lock over three masters, by turns with the lock of one server, and with one master frozen.

use std::sync::Arc;
use std::time::Instant;

use bowline::{Client, Config, Executor, RedLock};
use bowline_benches::bare::{BareConnection, ScriptCall};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::watched::Recorded;
use bowline_benches::{Result, clients};
use futures::future::try_join_all;

use crate::Metrics;

const COUNTED: u32 = 100;

pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    masters: Vec<Server>,
    pairs: u32,
) -> Result<Metrics> {
    let (mut metrics, sent) = counts(runtime, &executor, &masters).await?;
    let mut bare = Vec::new();
    for (master, sent) in masters.iter().zip(&sent) {
        let connection = BareConnection::open(runtime, &executor, &master.url).await?;
        let calls = connection.floor_of(sent);
        bare.push((connection, calls));
    }
    let mut all = Vec::new();
    for master in &masters {
        all.push(clients::plain(runtime, &executor, &master.url).await?);
    }
    let locks = over(&all)?;
    let single = all[0].lock("bench:red");
    let [mut one, mut three, mut frozen, mut floors] = std::array::from_fn(|_| Samples::default());
    for n in 0..pairs + pairs / 10 {
        let start = Instant::now();
        single.lock().await?.release().await?;
        let between = Instant::now();
        pair(&locks).await?;
        if n >= pairs / 10 {
            one.add(between - start);
            three.add(between.elapsed());
        }
        let start = Instant::now();
        floor(&mut bare).await?;
        if n >= pairs / 10 {
            floors.add(start.elapsed());
        }
    }
    drop(bare);
    // The last master is frozen, because the first one has the turn.
    let Some(last) = masters.last() else { return Ok(metrics) };
    last.freeze()?;
    let start = Instant::now();
    pair(&locks).await?;
    let first = start.elapsed();
    for _ in 0..pairs {
        let start = Instant::now();
        pair(&locks).await?;
        frozen.add(start.elapsed());
    }
    last.thaw()?;
    metrics.extend([
        ("ratio_p50", three.percentile(50.0) / one.percentile(50.0)),
        ("to_floor_p50", three.percentile(50.0) / floors.percentile(50.0)),
        ("p50_us", three.percentile(50.0)),
        ("p99_us", three.percentile(99.0)),
        ("lock_p50_us", one.percentile(50.0)),
        ("lock_p99_us", one.percentile(99.0)),
        ("first_frozen_us", first.as_secs_f64() * 1e6),
        ("frozen_ratio_p50", frozen.percentile(50.0) / three.percentile(50.0)),
        ("frozen_p99_us", frozen.percentile(99.0)),
    ]);
    for client in all {
        client.close().await;
    }
    Ok(metrics)
}

pub(crate) fn over(clients: &[Client]) -> Result<RedLock> {
    // The servers were just started, so they have lost nothing.
    Ok(RedLock::builder(clients.to_vec()).durable(true).build()?)
}

async fn pair(locks: &RedLock) -> Result<()> {
    locks.lock("bench:red").await?.release().await?;
    Ok(())
}

/// The floor of a pair: a script that does nothing in place of each that the pair sends, to all masters at once.
async fn floor(bare: &mut [(BareConnection, Vec<ScriptCall>)]) -> Result<()> {
    let most = bare.iter().map(|(_, calls)| calls.len()).max().unwrap_or_default();
    for n in 0..most {
        try_join_all(bare.iter_mut().map(|(connection, calls)| connection.run(calls.get(n..=n).unwrap_or_default())))
            .await?;
    }
    Ok(())
}

/// What a pair sends to the first master and to another one, and each of its calls by master.
async fn counts(
    runtime: Runtime,
    executor: &Arc<dyn Executor>,
    masters: &[Server],
) -> Result<(Metrics, Vec<Vec<Recorded>>)> {
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    for master in masters {
        let (client, watched) = clients::watched(runtime, executor, &master.url, Config::default()).await?;
        all.push(client);
        seen.push(watched);
    }
    let locks = over(&all)?;
    pair(&locks).await?;
    let before: Vec<u64> = seen.iter().map(|seen| seen.commands()).collect();
    for _ in 0..COUNTED {
        pair(&locks).await?;
    }
    let per_pair = |n: usize| (seen[n].commands() - before[n]) as f64 / f64::from(COUNTED);
    seen.iter().for_each(|seen| seen.record());
    pair(&locks).await?;
    let sent = seen.iter().map(|seen| seen.recorded()).collect();
    let metrics = vec![("first_master_commands", per_pair(0)), ("other_master_commands", per_pair(1))];
    for client in all {
        client.close().await;
    }
    Ok((metrics, sent))
}
