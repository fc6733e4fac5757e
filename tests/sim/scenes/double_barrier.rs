//! A double barrier among programs that give up, are killed, cut off or frozen, and whose requests arrive twice.

use std::collections::BTreeMap;
use std::future::{IntoFuture, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{DoubleBarrier, ErrorKind};

use super::trouble::{LEASE, Troubled, trouble};
use crate::executor::{Machine, Process};
use crate::stage::{NAME, Played, Stage, must};
use crate::world::MS;

const PARTIES: u32 = 3;

/// A party, as its program knows it.
#[derive(Clone, Copy, Debug)]
struct Party {
    process: Process,
    came: Duration,
    /// When it was inside, of which generation, and where.
    inside: Option<(Duration, u64, u32)>,
    /// When it said that it was ready to leave.
    ready: Option<Duration>,
    /// `None`: its program was killed, or it is there still.
    ended: Option<(Duration, Result<(), ErrorKind>)>,
}

type Parties = Arc<Mutex<Vec<Party>>>;

pub async fn generations(mut stage: Stage) -> Played {
    let parties = Parties::default();
    let troubled = trouble(&mut stage, PARTIES as usize, |stage, process| {
        let barrier = stage.client(process).double_barrier(NAME, PARTIES);
        drop(stage.spawn(process, come_again(stage.machine.clone(), process, barrier, parties.clone())));
    });
    let Troubled { end, killed, .. } = troubled.await;
    let until = stage.machine.now() - 2 * stage.hop;
    let parties = std::mem::take(&mut *parties.lock().unwrap());
    check(&parties, &killed, until)?;
    let left = |from: Duration| {
        let after = |party: &&Party| matches!(party.ended, Some((at, Ok(()))) if at > from);
        parties.iter().filter(after).count()
    };
    must(left(Duration::ZERO) > 60, &format!("I21 only {} have left", left(Duration::ZERO)))?;
    must(left(end + 4 * LEASE) > 0, "I3 nobody enters and leaves any more")
}

/// One of two inside is killed. The other one finds out when the lease has ended.
pub async fn dead_inside(mut stage: Stage) -> Played {
    let mut parties = Vec::new();
    for _ in 0..2 {
        let process = stage.enter(LEASE).await;
        let barrier = stage.client(process).double_barrier(NAME, 2);
        parties.push(stage.spawn(process, async move { barrier.enter().await.unwrap() }));
    }
    let other = stage.within(LEASE, "I3 it does not enter", parties.remove(1)).await?;
    let inside = stage.within(LEASE, "I3 it does not enter", parties.remove(0)).await?;
    drop(stage.spawn(2, async move {
        let _inside = other;
        pending::<()>().await;
    }));
    let pause = stage.random.between(Duration::ZERO, LEASE);
    stage.sleep(pause).await;
    stage.kill(2);
    let leaves = stage.random.one_in(2);
    let told = stage.spawn(1, async move {
        if leaves { inside.leave().await.unwrap_err().kind() } else { inside.broken().await.kind() }
    });
    let told = stage.within(LEASE + LEASE / 3 + 2 * stage.hop, "I3 it still waits", told).await?;
    must(told == ErrorKind::Broken, &format!("I21 it is told {told:?}"))
}

/// Enters and leaves again and again, sometimes not for long.
async fn come_again(machine: Arc<Machine>, process: Process, barrier: DoubleBarrier, parties: Parties) {
    let executor = machine.process(process);
    let mut is_refused = false;
    loop {
        let (pause, work, timeout, drops) = machine.random(|random| {
            let timeout = random.one_in(5).then(|| random.between(MS, 400 * MS));
            // Who was refused leaves the barrier to those that are there.
            let longest = if is_refused { 2000 * MS } else { 300 * MS };
            let pause = random.between(Duration::ZERO, longest);
            (pause, random.between(Duration::ZERO, 50 * MS), timeout, random.one_in(20))
        });
        executor.sleep(pause).await;
        let place = {
            let mut parties = parties.lock().unwrap();
            parties.push(Party { process, came: machine.now(), inside: None, ready: None, ended: None });
            parties.len() - 1
        };
        let note = |change: &dyn Fn(&mut Party, Duration)| change(&mut parties.lock().unwrap()[place], machine.now());
        let enter = barrier.enter();
        let enter = if let Some(timeout) = timeout { enter.timeout(timeout) } else { enter };
        let left = match enter.into_future().await {
            Ok(inside) => {
                let (generation, index) = (inside.generation(), inside.index());
                note(&|party, now| party.inside = Some((now, generation, index)));
                executor.sleep(work).await;
                if drops {
                    drop(inside);
                    Err(ErrorKind::Broken)
                } else {
                    note(&|party, now| party.ready = Some(now));
                    inside.leave().await.map_err(|error| error.kind())
                }
            }
            Err(error) => Err(error.kind()),
        };
        is_refused = left == Err(ErrorKind::OtherParties);
        note(&|party, now| party.ended = Some((now, left)));
    }
}

/// `until`: later events are not checked, because some parties may not have heard of them.
fn check(parties: &[Party], killed: &BTreeMap<Process, Duration>, until: Duration) -> Played {
    let mut generations: BTreeMap<u64, Vec<(&Party, Duration, u32)>> = BTreeMap::new();
    for party in parties {
        if let Some((at, generation, index)) = party.inside {
            generations.entry(generation).or_default().push((party, at, index));
        }
    }
    for (generation, inside) in &generations {
        let shown = format!("{generation}: {inside:?}");
        must(inside.len() <= PARTIES as usize, &format!("I21 too many are inside: {shown}"))?;
        let indices = inside.iter().fold(0, |seen, (.., index)| seen | 1 << index);
        let distinct = inside.len() == u32::count_ones(indices) as usize && indices < 1 << PARTIES;
        must(distinct, &format!("I21 two have the same place: {shown}"))?;
        let first = inside.iter().map(|(_, at, _)| *at).min().unwrap_or_default();
        if first > until {
            continue;
        }
        let came = inside.iter().all(|(party, ..)| party.came <= first);
        must(came, &format!("I21 one is inside before another has come: {shown}"))?;
        // Those that do not know that they were inside: they gave up or were cut off before they learned it, or were
        // killed, and count until their leases end, which is later if the server's clock is set back.
        let unknown = |party: &&Party| {
            let until = match party.ended {
                Some((at, _)) => Some(at),
                None => killed.get(&party.process).copied(),
            };
            party.inside.is_none() && party.came <= first && until.is_some_and(|until| first <= until + 3 * LEASE)
        };
        let missing = PARTIES as usize - inside.len();
        let unknown = if missing > 0 { parties.iter().filter(unknown).count() } else { 0 };
        must(missing <= unknown, &format!("I21 {missing} of {PARTIES} have not come: {shown}"))?;
        let left = inside.iter().filter_map(|(party, ..)| party.ended.filter(|(_, how)| how.is_ok()));
        let Some(left) = left.map(|(at, _)| at).min() else { continue };
        let all = inside.iter().all(|(party, ..)| party.ready.is_some_and(|ready| ready <= left));
        must(missing == 0 && all, &format!("I21 one left at {left:?} before all were ready: {shown}"))?;
    }
    Ok(())
}
