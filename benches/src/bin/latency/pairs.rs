//! Acquire and release of what is free, by turns with the floor.

use std::sync::Arc;
use std::time::Instant;

use bowline::{Client, Config, Executor, Lock, RwLock, Semaphore};
use bowline_benches::alloc::allocations;
use bowline_benches::floor::Floor;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::{Executed, Probe};
use bowline_benches::watched::Recorded;
use bowline_benches::{Result, clients};

use crate::Metrics;

/// Pairs between two looks at the server's counts.
const BLOCK: u32 = 100;

#[derive(Clone, Copy)]
pub(crate) enum Primitive {
    Lock,
    Read,
    Write,
    Semaphore,
}

impl Primitive {
    pub(crate) const ALL: [Self; 4] = [Self::Lock, Self::Read, Self::Write, Self::Semaphore];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Read => "read",
            Self::Write => "write",
            Self::Semaphore => "semaphore",
        }
    }

    fn of(self, client: &Client) -> Free {
        match self {
            Self::Lock => Free::Lock(client.lock("bench:free")),
            Self::Read => Free::Read(client.rw_lock("bench:free")),
            Self::Write => Free::Write(client.rw_lock("bench:free")),
            Self::Semaphore => Free::Semaphore(client.semaphore("bench:free", 4)),
        }
    }
}

/// A primitive without contention.
enum Free {
    Lock(Lock),
    Read(RwLock),
    Write(RwLock),
    Semaphore(Semaphore),
}

impl Free {
    async fn pair(&self) -> Result<()> {
        match self {
            Self::Lock(lock) => lock.lock().await?.release().await?,
            Self::Read(lock) => lock.read().await?.release().await?,
            Self::Write(lock) => lock.write().await?.release().await?,
            Self::Semaphore(semaphore) => semaphore.acquire().await?.release().await?,
        }
        Ok(())
    }
}

pub(crate) async fn measure(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    primitive: Primitive,
    pairs: u32,
) -> Result<Metrics> {
    let (sent, mut metrics) = counts(runtime, &executor, &url, primitive).await?;
    let client = clients::plain(runtime, &executor, &url).await?;
    let free = primitive.of(&client);
    let mut floor = Floor::open(runtime, &executor, &url).await?;
    for _ in 0..BLOCK {
        free.pair().await?;
        floor.run(&sent).await?;
    }
    metrics.extend(times(&free, &mut floor, &sent, pairs).await?);
    metrics.extend(blocks(&free, &mut floor, &sent, pairs.div_ceil(BLOCK), &mut probe).await?);
    client.close().await;
    Ok(metrics)
}

/// What a pair has bowline do, and the commands of one, for the floor to repeat.
async fn counts(
    runtime: Runtime,
    executor: &Arc<dyn Executor>,
    url: &str,
    primitive: Primitive,
) -> Result<(Vec<Recorded>, Metrics)> {
    let (client, seen) = clients::watched(runtime, executor, url, Config::default()).await?;
    let free = primitive.of(&client);
    free.pair().await?;
    seen.record();
    free.pair().await?;
    let sent = seen.recorded();
    let look = || [seen.commands(), seen.spawned(), seen.timers()];
    let before = look();
    for _ in 0..BLOCK {
        free.pair().await?;
    }
    let after = look();
    client.close().await;
    let per_pair = |index: usize| (after[index] - before[index]) as f64 / f64::from(BLOCK);
    Ok((sent, vec![("commands", per_pair(0)), ("tasks_spawned", per_pair(1)), ("timers", per_pair(2))]))
}

async fn times(free: &Free, floor: &mut Floor, sent: &[Recorded], pairs: u32) -> Result<Metrics> {
    let (mut ours, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..pairs {
        let start = Instant::now();
        free.pair().await?;
        ours.add(start.elapsed());
        let start = Instant::now();
        floor.run(sent).await?;
        bare.add(start.elapsed());
    }
    Ok(vec![
        ("ratio_p50", ours.percentile(50.0) / bare.percentile(50.0)),
        ("p50_us", ours.percentile(50.0)),
        ("p90_us", ours.percentile(90.0)),
        ("p99_us", ours.percentile(99.0)),
        ("floor_p50_us", bare.percentile(50.0)),
        ("floor_p90_us", bare.percentile(90.0)),
        ("floor_p99_us", bare.percentile(99.0)),
    ])
}

/// What cannot be told apart pair by pair: the server's time, and the allocations of the whole process.
async fn blocks(free: &Free, floor: &mut Floor, sent: &[Recorded], blocks: u32, probe: &mut Probe) -> Result<Metrics> {
    let mut server = [Executed::default(); 2];
    let mut allocated = [0; 2];
    for _ in 0..blocks {
        for (index, ours) in [true, false].into_iter().enumerate() {
            let executed = probe.executed()?;
            let before = allocations();
            for _ in 0..BLOCK {
                if ours { free.pair().await? } else { floor.run(sent).await? }
            }
            allocated[index] += allocations() - before;
            server[index] += probe.executed()? - executed;
        }
    }
    let per_pair = |sum: u64| sum as f64 / f64::from(blocks * BLOCK);
    Ok(vec![
        ("server_commands", per_pair(server[0].scripts)),
        ("server_ratio", server[0].micros as f64 / server[1].micros as f64),
        ("server_us", per_pair(server[0].micros)),
        ("floor_server_us", per_pair(server[1].micros)),
        ("allocations", per_pair(allocated[0])),
        ("floor_allocations", per_pair(allocated[1])),
    ])
}
