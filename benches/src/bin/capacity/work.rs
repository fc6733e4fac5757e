//! Acquisitions by many tasks, with and without a contender.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline::{Client, Executor};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::future::try_join_all;

use crate::Line;
use crate::look::Look;

/// Tasks that work at the same time, so that the server reads several calls at once, as under load.
const TASKS: usize = 64;

/// Of each metric, the lowest of so many measurements counts.
const SLICES: usize = 5;

/// Clients that compete: all hand-overs but one in so many are between two of them.
const CLIENTS: usize = 8;

/// What the tasks do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Each task locks a name of its own.
    FreeLock,
    /// The tasks of eight clients compete for eight names; each client has one task per name.
    ContendedLock,
    /// Each task takes a permit of a semaphore of its own.
    FreePermit,
    /// As `ContendedLock`, for semaphores with one permit.
    ContendedPermit,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::FreeLock, Self::ContendedLock, Self::FreePermit, Self::ContendedPermit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FreeLock => "free-lock",
            Self::ContendedLock => "contended-lock",
            Self::FreePermit => "free-permit",
            Self::ContendedPermit => "contended-permit",
        }
    }

    /// How many tasks share a name.
    fn contenders(self) -> usize {
        match self {
            Self::FreeLock | Self::FreePermit => 1,
            Self::ContendedLock | Self::ContendedPermit => CLIENTS,
        }
    }

    async fn once(self, client: &Client, name: &str) -> bowline::Result<()> {
        match self {
            Self::FreeLock | Self::ContendedLock => client.lock(name).lock().await?.release().await,
            Self::FreePermit | Self::ContendedPermit => client.semaphore(name, 1).acquire().await?.release().await,
        }
    }
}

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    kind: Kind,
    operations: u64,
) -> Result<Vec<Line>> {
    let mut all = Vec::new();
    for _ in 0..CLIENTS {
        all.push(clients::plain(Runtime::TokioMulti, &executor, &url).await?);
    }
    // Loads the scripts and warms up the connections.
    round(kind, &all, operations / 10).await?;
    let mut lines = Vec::new();
    for _ in 0..SLICES {
        let before = Look::now(&mut probe)?;
        round(kind, &all, operations).await?;
        let slice = Look::now(&mut probe)?.each_since(&before, kind.name(), operations);
        lines = if lines.is_empty() { slice } else { lowest(lines, slice) };
    }
    for client in all {
        client.close().await;
    }
    Ok(lines)
}

/// What other programs add to a time is left out as far as it can be.
fn lowest(one: Vec<Line>, other: Vec<Line>) -> Vec<Line> {
    one.into_iter().zip(other).map(|((case, metric, a), (_, _, b))| (case, metric, a.min(b))).collect()
}

/// All tasks together acquire so often.
async fn round(kind: Kind, clients: &[Client], operations: u64) -> Result<()> {
    let done = AtomicU64::new(0);
    let tasks = (0..TASKS).map(|task| {
        let (client, done) = (&clients[task % CLIENTS], &done);
        let name = format!("bench:{}:{}", kind.name(), task / kind.contenders());
        async move {
            while done.fetch_add(1, Ordering::Relaxed) < operations {
                kind.once(client, &name).await?;
            }
            Ok::<_, bowline::Error>(())
        }
    });
    try_join_all(tasks).await?;
    Ok(())
}
