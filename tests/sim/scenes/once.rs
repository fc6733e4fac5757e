//! Work that runs once in a period, in twenty programs with clocks of their own.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bowline::{Once, Schedule};

use crate::executor::{Machine, Process};
use crate::nodes::Failover;
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
    /// When its period began, in milliseconds.
    since: u64,
    token: u64,
    began: Duration,
    /// `None`: its program was killed or cut off, or lost its hold.
    ended: Option<Duration>,
}

type Runs = Arc<Mutex<Vec<Ran>>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Nothing,
    /// The requests of one program take so long that its period is over.
    OneIsSlow,
    /// A replica takes over, without the last writes, such as the end of a run. It must acknowledge each beginning.
    FailsOver,
}

pub async fn in_a_period(stage: Stage) -> Played {
    programs(stage, EVERY.into(), |time| time / millis(EVERY), What::Nothing).await
}

pub async fn in_failovers(stage: Stage) -> Played {
    programs(stage, EVERY.into(), |time| time / millis(EVERY), What::FailsOver).await
}

/// Periods of one and of three seconds by turns.
pub async fn by_cron(stage: Stage) -> Played {
    let schedule = Schedule::cron("*/4,1-59/4 * * * * *").unwrap();
    programs(stage, schedule, |time| time / 4000 * 2 + u64::from(time % 4000 >= 1000), What::OneIsSlow).await
}

/// The programs call by their own timers, several times in a period. Some are killed, and some are cut off.
/// `period_of`: the number of the period, by a time of the server in milliseconds.
async fn programs(mut stage: Stage, schedule: Schedule, period_of: fn(u64) -> u64, what: What) -> Played {
    let fails_over = what == What::FailsOver;
    if fails_over {
        stage.server.replicate(stage.hop);
    }
    let runs = Runs::default();
    let mut calls = Vec::new();
    for _ in 0..PROGRAMS {
        let process = stage.enter_acknowledged(LEASE, fails_over.into()).await;
        let rate = *stage.random.pick(&[-1000, -500, 0, 500, 1000]);
        stage.machine.set_rate(process, rate);
        let once = stage.client(process).once("job", schedule.clone());
        calls.push(stage.spawn(process, call(stage.machine.clone(), process, once, runs.clone())));
    }
    let end = stage.machine.now() + LENGTH;
    let (mut living, mut disturbances): (Vec<_>, _) = ((1..=PROGRAMS).collect(), Vec::new());
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 6000 * MS);
        stage.sleep(pause).await;
        if what == What::OneIsSlow && stage.random.one_in(2) {
            let (whom, by) = (*stage.random.pick(&living), stage.random.between(500 * MS, 1400 * MS));
            stage.link(whom).slow_down(by, 4 * EVERY);
            disturbances.push((stage.machine.now(), stage.machine.now() + 4 * EVERY + 2 * by));
            continue;
        }
        // The one that runs is the most interesting, and at least one lives.
        let last = runs.lock().unwrap().last().copied();
        let Some(Ran { process, ended: None, .. }) = last else { continue };
        let outage = stage.random.between(100 * MS, 2 * LEASE);
        if fails_over && stage.random.one_in(2) {
            let how = *stage.random.pick(&[Failover::Orderly, Failover::Lossy]);
            stage.server.fail_over(how, 0);
            // The others find out by an answer of what is a replica now.
            (1..=PROGRAMS).filter(|at| at % 2 == 0).for_each(|at| stage.link(at).cut(true, true, MS));
            disturbances.push((stage.machine.now(), stage.machine.now() + outage));
            continue;
        }
        if living.len() > 5 && stage.random.one_in(4) {
            living.retain(|other| *other != process);
            stage.kill(process);
        } else if stage.random.one_in(3) {
            stage.link(process).cut(true, true, outage);
        } else {
            continue;
        }
        disturbances.push((stage.machine.now(), stage.machine.now() + outage));
    }
    // The last period has a run, too.
    stage.sleep(2 * (LONGEST + 2 * LEASE)).await;
    let runs = std::mem::take(&mut *runs.lock().unwrap());
    let last = runs.last().map_or(Duration::ZERO, |run| run.began);
    must(last > end, &format!("I16 no run begins after {last:?}"))?;
    check(&runs, period_of, &disturbances, 4 * stage.hop)
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
            let since = run.period_began().duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis);
            let place = {
                let mut runs = runs.lock().unwrap();
                runs.push(Ran { process, tick, since, token, began: machine.now(), ended: None });
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
fn check(runs: &[Ran], period_of: fn(u64) -> u64, disturbances: &[(Duration, Duration)], hops: Duration) -> Played {
    must(runs.len() > 10, &format!("I16 there were {} runs only", runs.len()))?;
    for pair in runs.windows(2) {
        let [one, next] = [pair[0], pair[1]];
        let shown = format!("{one:?}, then {next:?}");
        must(one.tick < next.tick && one.token < next.token, &format!("I16 a period has two runs: {shown}"))?;
        must(one.ended.is_none_or(|ended| ended <= next.began), &format!("I1 two runs at once: {shown}"))?;
        let is_disturbed = disturbances.iter().any(|(from, to)| *from < next.began && one.began < *to + 2 * LEASE);
        let allowance = if is_disturbed { LONGEST + 2 * LEASE } else { Duration::ZERO };
        let busy = one.ended.unwrap_or(one.began) + allowance + hops - one.began;
        // By the server's clock.
        let free = one.token / 1000 + millis(busy);
        // Each program calls at least every other half of a period.
        let latest = period_of(free + millis(EVERY) * 3 / 5).max(period_of(one.since) + 1);
        must(period_of(next.since) <= latest, &format!("I16 a period has no run: {shown}"))?;
    }
    for run in runs {
        let is_within =
            period_of(run.since) == period_of(run.token / 1000) && period_of(run.since - 1) < period_of(run.since);
        must(is_within, &format!("I16 the period of a run is wrong: {run:?}"))?;
    }
    Ok(())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
