//! Rate limiters of programs with clocks of their own, while the server freezes and sets its clock back, and calls get
//! lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Quota, RateLimiter};

use crate::executor::{Machine, Process};
use crate::stage::{LONG, Played, Stage, must};
use crate::world::MS;

const PROGRAMS: usize = 8;
const INTERVAL: Duration = Duration::from_millis(100);
const BURST: u32 = 2;
const LENGTH: Duration = Duration::from_secs(60);

/// A permit that a program got between two moments. It was used at the second one at the earliest if the program waited
/// for it, and otherwise at any time in between.
#[derive(Clone, Copy, Debug)]
struct Used {
    asked: Duration,
    got: Duration,
}

type Log = Arc<Mutex<Vec<Used>>>;

/// In any window of time, at most the burst and what comes back in it is used. No program waits for longer than its
/// turn takes, whatever the clock of the server shows.
pub async fn rate(mut stage: Stage) -> Played {
    let (checks, waits) = (Log::default(), Log::default());
    for n in 0..PROGRAMS {
        let process = stage.enter(LONG).await;
        let rate = *stage.random.pick(&[-1000, 0, 1000]);
        stage.machine.set_rate(process, rate);
        let quota = Quota::per(10, 10 * INTERVAL).burst(BURST);
        let limiter = stage.client(process).rate_limiter("rate", quota);
        let (machine, log) = (stage.machine.clone(), if n % 2 == 0 { &checks } else { &waits }.clone());
        drop(stage.spawn(process, use_permits(machine, process, limiter, n % 2 == 1, log)));
    }
    let end = stage.machine.now() + LENGTH;
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 4000 * MS);
        stage.sleep(pause).await;
        let time = stage.random.between(100 * MS, 2500 * MS);
        match stage.random.below(4) {
            0 => stage.server.freeze(time),
            1 => {
                let process = 1 + stage.random.below(PROGRAMS as u64) as usize;
                stage.link(process).cut(true, true, time);
            }
            2 => stage.server.step_clock(Duration::from_secs(3600), false),
            _ => {}
        }
    }
    // Each waiter has its next turn soon, and so has every other one before it.
    let soon = INTERVAL * (2 * PROGRAMS as u32 + BURST) + Duration::from_secs(16);
    let seen = waits.lock().unwrap().len();
    stage.sleep(soon).await;
    let (checks, mut used) = (checks.lock().unwrap().clone(), waits.lock().unwrap().clone());
    must(used.len() >= seen + PROGRAMS, "I17 waiters wait for longer than their turns take")?;
    must(checks.len() > 20 && used.len() > 20, &format!("I17 {} checks, {} waits", checks.len(), used.len()))?;
    in_turn(&used, stage.hop)?;
    used.extend(checks);
    within_the_rate(&used)
}

async fn use_permits(machine: Arc<Machine>, process: Process, limiter: RateLimiter, waits: bool, log: Log) {
    let executor = machine.process(process);
    loop {
        // All together ask for more than there is.
        let pause = machine.random(|random| {
            let longest = if random.one_in(2) { 2 * INTERVAL } else { 20 * INTERVAL };
            random.between(Duration::ZERO, longest)
        });
        executor.sleep(pause).await;
        let asked = machine.now();
        let is_allowed = if waits {
            limiter.until_ready().await.is_ok()
        } else {
            limiter.check().await.is_ok_and(|decision| decision.is_allowed())
        };
        if is_allowed {
            log.lock().unwrap().push(Used { asked, got: machine.now() });
        }
    }
}

/// A waiter is late by as much as its answer took. A clock that goes wrong by a thousandth ends a wait early by as
/// much.
fn in_turn(waits: &[Used], hop: Duration) -> Played {
    let mut turns: Vec<_> = waits.iter().map(|used| used.got).collect();
    turns.sort_unstable();
    for (from, turn) in turns.iter().enumerate() {
        for (n, end) in (1..).zip(&turns[from..]) {
            let window = *end - *turn + hop + 5 * MS;
            let most = BURST + (window.as_micros() / INTERVAL.as_micros()) as u32;
            must(n <= most, &format!("I17 {n} waiters had their turns in {window:?}, and not {most} at most"))?;
        }
    }
    Ok(())
}

fn within_the_rate(used: &[Used]) -> Played {
    for from in used.iter().map(|used| used.asked) {
        let mut ends: Vec<_> = used.iter().filter(|used| used.asked >= from).map(|used| used.got).collect();
        ends.sort_unstable();
        for (n, end) in (1..).zip(ends) {
            let window = (end - from).mul_f64(1.001);
            let most = BURST + (window.as_micros() / INTERVAL.as_micros()) as u32;
            must(n <= most, &format!("I17 {n} permits were used in {window:?}, and not {most} at most"))?;
        }
    }
    Ok(())
}

/// A call takes its permit once, or not at all if it fails, however its requests and answers get lost.
pub async fn lost_checks(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let hour = Duration::from_secs(3600);
    let limiter = stage.client(process).rate_limiter("rate", Quota::per(1, hour).burst(500));
    let (mut sure, mut unsure) = (0, 0);
    for _ in 0..40 {
        let calling = stage.spawn(process, {
            let limiter = limiter.clone();
            async move { limiter.check().await }
        });
        let (pause, outage) = (stage.random.between(Duration::ZERO, 3 * stage.hop), stage.random.between(MS, 200 * MS));
        stage.sleep(pause).await;
        match stage.random.below(3) {
            0 => stage.link(process).cut(true, false, outage),
            1 => stage.link(process).silence(),
            _ => {}
        }
        match calling.await {
            Ok(_) => sure += 1,
            Err(_) => unsure += 1,
        }
    }
    let taken = limiter.inspect().await.map_err(|error| error.to_string())?.reset_after;
    let taken = taken.as_secs().div_ceil(hour.as_secs());
    let shown = format!("{taken} permits are taken by {sure} calls and {unsure} that may have been executed");
    must((sure..=sure + unsure).contains(&taken), &format!("I18 {shown}"))?;
    must(sure > 0 && unsure > 0, &shown)
}
