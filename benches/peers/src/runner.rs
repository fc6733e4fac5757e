//! What runs the pairs and turns of a peer: tasks of this process, or a child process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bowline_benches::Result;
use bowline_benches::measure::Samples;
use futures::future::try_join_all;

use crate::peer::Taker;
use crate::redisson::Redisson;

/// Waits that a task keeps per slice. Later ones are only counted, so that the length of a slice does not decide the
/// memory.
const MOST_WAITS: u64 = 200_000;

/// A JVM compiles what it runs often. What it does in this time is not measured.
const WARM_UP: Duration = Duration::from_secs(5);

/// What runs the lock of one peer.
pub(crate) enum Runner {
    Tasks(Taker),
    Redisson(Box<Redisson>),
}

/// What the tasks of one peer did in one turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Acquisitions, by task.
    pub(crate) counts: Vec<u64>,
    /// Acquisitions by another task than the one before.
    pub(crate) hand_overs: u64,
    pub(crate) waits: Samples,
}

impl Runner {
    /// Does once what is not to be measured: connections are opened, and scripts sent whole.
    pub(crate) async fn warm_up(&mut self, tasks: usize) -> Result<()> {
        match self {
            Self::Tasks(taker) => taker.once(|| ()).await.map(drop),
            Self::Redisson(program) => program.turn(tasks, WARM_UP).await.map(drop),
        }
    }

    /// The times of that many pairs of acquire and release.
    pub(crate) async fn pairs(&mut self, count: u32) -> Result<Samples> {
        match self {
            Self::Tasks(taker) => pairs(taker, count).await,
            Self::Redisson(program) => program.pairs(count).await,
        }
    }

    /// That many tasks want the lock all the time.
    pub(crate) async fn turn(&mut self, tasks: usize, time: Duration) -> Result<Turn> {
        match self {
            Self::Tasks(taker) => turn(taker, tasks, time).await,
            Self::Redisson(program) => program.turn(tasks, time).await,
        }
    }
}

async fn pairs(taker: &Taker, count: u32) -> Result<Samples> {
    let mut waits = Samples::default();
    for _ in 0..count {
        let start = Instant::now();
        taker.once(|| ()).await?;
        waits.add(start.elapsed());
    }
    Ok(waits)
}

async fn turn(taker: &Taker, tasks: usize, time: Duration) -> Result<Turn> {
    let until = Instant::now() + time;
    let holders = Arc::new(Holders::default());
    let running = (0..tasks).map(|task| tokio::spawn(repeat(taker.clone(), until, task, holders.clone())));
    let (mut counts, mut waits) = (Vec::new(), Samples::default());
    for done in try_join_all(running.collect::<Vec<_>>()).await? {
        let (count, waited) = done?;
        counts.push(count);
        waits.extend(waited);
    }
    Ok(Turn { counts, hand_overs: holders.changes(), waits })
}

/// The last acquisition may end after the time is over. It counts too, in all that is reported.
async fn repeat(taker: Taker, until: Instant, task: usize, holders: Arc<Holders>) -> Result<(u64, Samples)> {
    let (mut count, mut waits) = (0, Samples::default());
    while Instant::now() < until {
        let wait = taker.once(|| holders.holds(task)).await?;
        if count < MOST_WAITS {
            waits.add(wait);
        }
        count += 1;
    }
    Ok((count, waits))
}

/// Counts how often the lock went from one task to another.
#[derive(Debug, Default)]
struct Holders {
    /// One more than its number.
    last: AtomicUsize,
    changes: AtomicU64,
}

impl Holders {
    fn holds(&self, task: usize) {
        if self.last.swap(task + 1, Ordering::Relaxed) != task + 1 {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}
