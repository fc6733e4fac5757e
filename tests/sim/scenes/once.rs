//! Work that runs once in a period, in twenty programs with clocks of their own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Once;

use crate::executor::{Machine, Process};
use crate::stage::{Played, Stage, must};
use crate::world::MS;

const PROGRAMS: usize = 20;
const EVERY: Duration = Duration::from_secs(2);
const LEASE: Duration = Duration::from_secs(3);

/// All seeds together play for more than an hour.
const LENGTH: Duration = Duration::from_secs(240);

/// The longest work, longer than a period.
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
struct Ran {
    process: Process,
    tick: u64,
    token: u64,
    began: Duration,
    /// `None`: its program was killed or cut off, or lost its hold.
    ended: Option<Duration>,
}

type Runs = Arc<Mutex<Vec<Ran>>>;

/// The programs call by their own timers, several times in a period. Some are killed, and some are cut off.
pub async fn programs(mut stage: Stage) -> Played {
    let runs = Runs::default();
    let mut calls = Vec::new();
    for _ in 0..PROGRAMS {
        let process = stage.enter(LEASE).await;
        let rate = *stage.random.pick(&[-1000, -500, 0, 500, 1000]);
        stage.machine.set_rate(process, rate);
        let once = stage.client(process).once("job", EVERY);
        calls.push(stage.spawn(process, call(stage.machine.clone(), process, once, runs.clone())));
    }
    let end = stage.machine.now() + LENGTH;
    let (mut killed, mut disturbances) = (0, Vec::new());
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 6000 * MS);
        stage.sleep(pause).await;
        // The one that runs is the most interesting, and at least one lives.
        let last = runs.lock().unwrap().last().copied();
        let Some(Ran { process, ended: None, .. }) = last else { continue };
        let outage = stage.random.between(100 * MS, 2 * LEASE);
        if killed < PROGRAMS - 5 && stage.random.one_in(4) {
            killed += 1;
            stage.kill(process);
        } else if stage.random.one_in(3) {
            stage.link(process).cut(true, true, outage);
        } else {
            continue;
        }
        disturbances.push((stage.machine.now(), stage.machine.now() + outage));
    }
    let runs = std::mem::take(&mut *runs.lock().unwrap());
    check(&runs, &disturbances, 4 * stage.hop)
}

async fn call(machine: Arc<Machine>, process: Process, once: Once, runs: Runs) {
    let executor = machine.process(process);
    loop {
        let (pause, work) = machine.random(|random| {
            let longest = if random.one_in(5) { LONGEST } else { EVERY / 4 };
            (random.between(EVERY / 8, EVERY / 2), random.between(Duration::ZERO, longest))
        });
        executor.sleep(pause).await;
        let (machine, executor, runs) = (machine.clone(), executor.clone(), runs.clone());
        let ran = once.run(|run| async move {
            let (tick, token) = (run.tick(), run.token().get());
            let place = {
                let mut runs = runs.lock().unwrap();
                runs.push(Ran { process, tick, token, began: machine.now(), ended: None });
                runs.len() - 1
            };
            executor.sleep(work).await;
            if let Some(ran) = runs.lock().unwrap().get_mut(place) {
                ran.ended = Some(machine.now());
            }
        });
        // A program that is cut off gets an error, and calls again.
        let _ = ran.await;
    }
}

/// Each period has one run, unless another one is under way for as long. A program that is killed or cut off may have
/// begun a run without anyone's knowing, and holds until its lease ends.
fn check(runs: &[Ran], disturbances: &[(Duration, Duration)], hops: Duration) -> Played {
    must(runs.len() > 10, &format!("I16 there were {} runs only", runs.len()))?;
    for pair in runs.windows(2) {
        let [one, next] = [pair[0], pair[1]];
        let shown = format!("{one:?}, then {next:?}");
        must(one.tick < next.tick && one.token < next.token, &format!("I16 a period has two runs: {shown}"))?;
        must(one.ended.is_none_or(|ended| ended <= next.began), &format!("I1 two runs at once: {shown}"))?;
        let is_disturbed = disturbances.iter().any(|(from, to)| *from < next.began && one.began < *to + 2 * LEASE);
        let allowance = if is_disturbed { LONGEST + 2 * LEASE } else { Duration::ZERO };
        let busy = one.ended.unwrap_or(one.began) + allowance + hops - one.began;
        // By the server's clock, since the period of the first run began.
        let free = one.token / 1000 % millis(EVERY) + millis(busy);
        let (periods, since) = (free / millis(EVERY), free % millis(EVERY));
        // Each program calls at least every other half of a period.
        let is_enough = since * 5 < millis(EVERY) * 2;
        let periods = if is_enough { periods } else { periods + 1 }.max(1);
        must(next.tick - one.tick <= periods, &format!("I16 a period has no run: {shown}"))?;
    }
    Ok(())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
