//! A barrier among programs that give up, are killed, cut off or frozen, and whose requests arrive twice.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Barrier, BarrierPass, ErrorKind, Result};

use super::trouble::{LEASE, Troubled, trouble};
use crate::executor::{Machine, Process};
use crate::stage::{NAME, Played, Stage, must};
use crate::world::MS;

const PARTIES: u32 = 3;

/// A wait, as its program knows it.
#[derive(Clone, Copy, Debug)]
struct Wait {
    process: Process,
    from: Duration,
    /// `None`: its program was killed, or waits still.
    ended: Option<(Duration, Told)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Passed { generation: u64, index: u32 },
    Broken,
    Failed(ErrorKind),
}

impl From<Result<BarrierPass>> for Told {
    fn from(result: Result<BarrierPass>) -> Self {
        match result.map_err(|error| error.kind()) {
            Ok(pass) => Self::Passed { generation: pass.generation(), index: pass.index() },
            Err(ErrorKind::Broken) => Self::Broken,
            Err(kind) => Self::Failed(kind),
        }
    }
}

type Waits = Arc<Mutex<Vec<Wait>>>;

pub async fn generations(mut stage: Stage) -> Played {
    let waits = Waits::default();
    let troubled = trouble(&mut stage, PARTIES as usize, |stage, process| {
        let barrier = stage.client(process).barrier(NAME, PARTIES);
        drop(stage.spawn(process, pass(stage.machine.clone(), process, barrier, waits.clone())));
    });
    let Troubled { end, killed, disturbances } = troubled.await;
    let until = stage.machine.now() - 2 * stage.hop;
    let waits = std::mem::take(&mut *waits.lock().unwrap());
    check(&waits, &killed, &disturbances, 2 * stage.hop, until)?;
    let passed = |from: Duration| {
        let after = |wait: &&Wait| matches!(wait.ended, Some((at, Told::Passed { .. })) if at > from);
        waits.iter().filter(after).count()
    };
    must(passed(Duration::ZERO) > 100, &format!("I20 only {} have passed", passed(Duration::ZERO)))?;
    must(passed(end + 4 * LEASE) > 0, "I3 nobody passes any more")
}

/// One of two that wait is killed. The other one finds out when the lease has ended.
pub async fn dead_party(mut stage: Stage) -> Played {
    let mut parties = Vec::new();
    for _ in 0..2 {
        let process = stage.enter(LEASE).await;
        let barrier = stage.client(process).barrier(NAME, PARTIES);
        parties.push(stage.spawn(process, async move { Told::from(barrier.wait().await) }));
        stage.sleep(2 * stage.hop).await;
    }
    let pause = stage.random.between(Duration::ZERO, LEASE);
    stage.sleep(pause).await;
    stage.kill(2);
    let told = stage.within(LEASE + LEASE / 3 + 2 * stage.hop, "I3 it still waits", parties.remove(0)).await?;
    must(told == Told::Broken, &format!("I20 it is told {told:?}"))
}

/// Waits again and again, sometimes not for long.
async fn pass(machine: Arc<Machine>, process: Process, barrier: Barrier, waits: Waits) {
    let executor = machine.process(process);
    loop {
        let (pause, timeout) = machine.random(|random| {
            let timeout = random.one_in(5).then(|| random.between(MS, 400 * MS));
            let pause = if random.one_in(2) { Duration::ZERO } else { random.between(MS, 300 * MS) };
            (pause, timeout)
        });
        // Without a pause, it may come again before the server knows that it has left.
        if !pause.is_zero() {
            executor.sleep(pause).await;
        }
        let place = {
            let mut waits = waits.lock().unwrap();
            waits.push(Wait { process, from: machine.now(), ended: None });
            waits.len() - 1
        };
        let wait = barrier.wait();
        let wait = if let Some(timeout) = timeout { wait.timeout(timeout) } else { wait };
        let told = Told::from(wait.into_future().await);
        waits.lock().unwrap()[place].ended = Some((machine.now(), told));
    }
}

/// `until`: later events are not checked, because some parties may not have heard of them.
fn check(
    waits: &[Wait],
    killed: &BTreeMap<Process, Duration>,
    disturbances: &[(Duration, Duration)],
    hops: Duration,
    until: Duration,
) -> Played {
    // One that comes again at once waits for a round trip, until the server knows that it has left.
    let arrives = |wait: &Wait| {
        let has_left = |other: &Wait| {
            let gave_up =
                matches!(other.ended, Some((at, Told::Failed(_))) if at <= wait.from && wait.from <= at + hops);
            gave_up && other.process == wait.process
        };
        wait.from + if waits.iter().any(has_left) { 2 * hops } else { hops }
    };
    let calm = |from, to| !disturbances.iter().any(|(begin, end)| *begin < to && from < *end);
    let mut generations: BTreeMap<u64, Vec<(&Wait, Duration, u32)>> = BTreeMap::new();
    for wait in waits {
        if let Some((at, Told::Passed { generation, index })) = wait.ended {
            generations.entry(generation).or_default().push((wait, at, index));
        }
    }
    let mut before = Duration::ZERO;
    for (generation, passed) in &generations {
        let shown = format!("{generation}: {passed:?}");
        let (arrived, first) = times(passed);
        let all_there = passed.iter().map(|(wait, ..)| arrives(wait)).max().unwrap_or_default();
        must(passed.len() <= PARTIES as usize, &format!("I20 too many pass: {shown}"))?;
        let indices = passed.iter().fold(0, |seen, (.., index)| seen | 1 << index);
        let distinct = passed.len() == u32::count_ones(indices) as usize && indices < 1 << PARTIES;
        must(distinct, &format!("I20 two have the same place: {shown}"))?;
        if first > until {
            continue;
        }
        must(arrived <= first, &format!("I20 one passes before another has arrived: {shown}"))?;
        // Those that do not know that they have passed. One that was killed, or gave up while it was cut off, counts
        // until its lease ends, which is later if the server's clock is set back. No program counts twice.
        let is_among = |process| passed.iter().any(|(wait, ..)| wait.process == process);
        let unknown = |wait: &&Wait| {
            !is_among(wait.process)
                && match wait.ended {
                    Some((at, Told::Failed(_))) => {
                        let late = if calm(wait.from, first) { hops } else { 3 * LEASE };
                        wait.from <= first && first <= at + late
                    }
                    None => killed.get(&wait.process).is_some_and(|at| wait.from <= first && first <= *at + 3 * LEASE),
                    Some(_) => false,
                }
        };
        let missing = PARTIES as usize - passed.len();
        let unknown = if missing > 0 { waits.iter().filter(unknown).count() } else { 0 };
        must(missing <= unknown, &format!("I20 {missing} of {PARTIES} did not arrive, or did not pass: {shown}"))?;
        // Generations are numbered in their order.
        must(before <= first + hops, &format!("I20 {before:?} passed before: {shown}"))?;
        before = first;
        for (wait, at, _) in passed {
            let soon = *at <= all_there || missing > 0 || !calm(wait.from, *at);
            must(soon, &format!("I3 all had arrived at {arrived:?}: {shown}"))?;
        }
    }
    let gave_up = |wait: &&Wait| matches!(wait.ended, Some((_, Told::Failed(ErrorKind::TimedOut))));
    for wait in waits {
        let Some((at, told)) = wait.ended.filter(|(at, _)| calm(wait.from, *at)) else { continue };
        // It waited with this one, which had arrived and did not pass meanwhile.
        let left = waits.iter().filter(gave_up).find(|other| {
            other.ended.is_some_and(|(left, _)| {
                arrives(wait).max(arrives(other)) < left && left + hops < at && calm(other.from, left)
            })
        });
        match told {
            Told::Passed { .. } => must(left.is_none(), &format!("I20 {wait:?} passed, although {left:?} left"))?,
            Told::Broken => {
                let any = waits.iter().filter(gave_up).any(|other| {
                    other.from <= at && other.ended.is_some_and(|(left, _)| wait.from <= left + hops && left <= at)
                });
                must(any, &format!("I20 {wait:?}, and nobody has left"))?;
            }
            Told::Failed(kind) => {
                must(kind == ErrorKind::TimedOut, &format!("I20 {wait:?} failed, and nothing was wrong"))?;
            }
        }
    }
    Ok(())
}

/// When the last of those that passed began to wait, and when the first of them passed.
fn times(passed: &[(&Wait, Duration, u32)]) -> (Duration, Duration) {
    let arrived = passed.iter().map(|(wait, ..)| wait.from).max().unwrap_or_default();
    (arrived, passed.iter().map(|(_, at, _)| *at).min().unwrap_or_default())
}
