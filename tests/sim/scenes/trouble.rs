//! Programs that are killed, cut off and frozen, with clocks that differ, and requests that arrive twice.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::executor::Process;
use crate::stage::Stage;
use crate::world::MS;

const PROGRAMS: usize = 7;
pub const LEASE: Duration = Duration::from_secs(3);

/// All seeds together play for half an hour.
const LENGTH: Duration = Duration::from_secs(120);

/// What the programs went through.
pub struct Troubled {
    /// When the last trouble began.
    pub end: Duration,
    pub killed: BTreeMap<Process, Duration>,
    /// From when until when something may be wrong.
    pub disturbances: Vec<(Duration, Duration)>,
}

/// Lets the programs do what `start` starts in each of them. More than `least` of them live to the end.
pub async fn trouble(stage: &mut Stage, least: usize, start: impl Fn(&Stage, Process)) -> Troubled {
    for _ in 0..PROGRAMS {
        let lease = *stage.random.pick(&[LEASE / 3, LEASE]);
        let process = stage.enter(lease).await;
        let rate = *stage.random.pick(&[-1000, -500, 0, 500, 1000]);
        stage.machine.set_rate(process, rate);
        stage.link(process).duplicate();
        start(stage, process);
    }
    let end = stage.machine.now() + LENGTH;
    let (mut living, mut disturbances): (Vec<_>, _) = ((1..=PROGRAMS).collect(), Vec::new());
    let mut killed = BTreeMap::new();
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 8000 * MS);
        stage.sleep(pause).await;
        let (whom, outage) = (*stage.random.pick(&living), stage.random.between(100 * MS, 3 * LEASE));
        if living.len() > least + 1 && stage.random.one_in(6) {
            living.retain(|other| *other != whom);
            stage.kill(whom);
            killed.insert(whom, stage.machine.now());
        } else if stage.random.one_in(6) {
            stage.server.step_clock(stage.random.between(MS, LEASE), stage.random.one_in(2));
        } else if stage.random.one_in(2) {
            stage.link(whom).cut(true, true, outage);
        } else {
            stage.machine.freeze(whom, outage);
        }
        // A lease ends, those that wait with it find out, and what it left behind is over.
        disturbances.push((stage.machine.now(), stage.machine.now() + outage + 3 * LEASE));
    }
    stage.sleep(8 * LEASE).await;
    Troubled { end, killed, disturbances }
}
