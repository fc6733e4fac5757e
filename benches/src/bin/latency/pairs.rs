//! Acquire and release of what is free, by turns with the floor.

use std::sync::Arc;

use bowline::{Client, Config, Executor, Lock, RwLock, Semaphore};
use bowline_benches::alloc::allocations;
use bowline_benches::bare::BareConnection;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::{Executed, Probe};
use bowline_benches::watched::Recorded;
use bowline_benches::{Result, clients};

use crate::Metrics;
use crate::redisson::Kind;
use crate::scripts::Peer;
use crate::sides::{Bare, take_turns};

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

    fn kind(self) -> Kind {
        match self {
            Self::Lock => Kind::Lock,
            Self::Read => Kind::Read { shared: false },
            Self::Write => Kind::Write,
            Self::Semaphore => Kind::Semaphore { shared: false },
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
pub(crate) enum Free {
    Lock(Lock),
    Read(RwLock),
    Write(RwLock),
    Semaphore(Semaphore),
}

impl Free {
    pub(crate) async fn pair(&self) -> Result<()> {
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
    let open = || BareConnection::open(runtime, &executor, &url);
    let (kind, word) = (primitive.kind(), primitive.name());
    let mut floor = Bare::floor(open().await?, &sent);
    let mut others = [
        ("again_ratio_p50", Bare::floor(open().await?, &sent)),
        ("scripts_ratio_p50", Bare::new(open().await?, Peer::bowline(&mut probe, kind, word)?)),
        ("redisson_ratio_p50", Bare::new(open().await?, Peer::redisson(&mut probe, kind, word)?)),
    ];
    let bare = [&mut floor].into_iter().chain(others.iter_mut().map(|(_, side)| side));
    let mut ours = take_turns(&free, bare, pairs).await?;
    let median = floor.percentile(50.0);
    metrics.push(("ratio_p50", ours.percentile(50.0) / median));
    metrics.extend(others.iter_mut().map(|(metric, side)| (*metric, side.percentile(50.0) / median)));
    let [p50, p90, p99] = [50.0, 90.0, 99.0].map(|percent| ours.percentile(percent));
    metrics.extend([("p50_us", p50), ("p90_us", p90), ("p99_us", p99)]);
    let [p50, p90, p99] = [50.0, 90.0, 99.0].map(|percent| floor.percentile(percent));
    metrics.extend([("floor_p50_us", p50), ("floor_p90_us", p90), ("floor_p99_us", p99)]);
    metrics.extend(blocks(&free, &mut floor, pairs.div_ceil(BLOCK), &mut probe).await?);
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

/// What cannot be told apart pair by pair: the server's time, and the allocations of the whole process.
async fn blocks(free: &Free, floor: &mut Bare, blocks: u32, probe: &mut Probe) -> Result<Metrics> {
    let mut server = [Executed::default(); 2];
    let mut allocated = [0; 2];
    for _ in 0..blocks {
        for (index, ours) in [true, false].into_iter().enumerate() {
            let executed = probe.executed()?;
            let before = allocations();
            for n in 0..BLOCK {
                if ours {
                    free.pair().await?;
                } else {
                    floor.pair(n.into()).await?;
                }
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
