//! A lock among programs that are killed, cut off and frozen, and observers that are cut off too.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{HoldChange, HoldState, Lock};
use futures::StreamExt;
use uuid::Uuid;

use crate::executor::{Machine, Process};
use crate::guard::What;
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

const PROGRAMS: usize = 6;
const OBSERVERS: usize = 2;
const LEASE: Duration = Duration::from_secs(3);
const LENGTH: Duration = Duration::from_secs(60);

/// A hold, as its holder knows it.
#[derive(Clone, Debug)]
struct Held {
    process: Process,
    token: u64,
    /// Its holder knew of it.
    began: Duration,
    /// When its holder was about to release it, and when it had done so. `None`: it did not release in time.
    released: Option<(Duration, Duration)>,
}

type Holds = Arc<Mutex<Vec<Held>>>;
type Seen = Arc<Mutex<Vec<(Duration, HoldChange)>>>;

/// From when until when something was wrong with whom.
type Disturbances = Vec<(Process, Duration, Duration)>;

pub async fn observed(mut stage: Stage) -> Played {
    let (holds, mut seen) = (Holds::default(), Vec::new());
    for _ in 0..OBSERVERS {
        // They look by themselves too seldom to find anything out.
        let process = stage.enter(LONG).await;
        let list = Seen::default();
        seen.push((process, list.clone()));
        drop(stage.spawn(process, observe(stage.machine.clone(), stage.lock(process), list)));
    }
    for _ in 0..PROGRAMS {
        let process = stage.enter(LEASE).await;
        drop(stage.spawn(process, work(stage.machine.clone(), process, stage.lock(process), holds.clone())));
    }
    let end = stage.machine.now() + LENGTH;
    let (mut killed, mut disturbances) = (0, Disturbances::new());
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 4000 * MS);
        stage.sleep(pause).await;
        let outage = stage.random.between(100 * MS, 2 * LEASE);
        let holder = holds.lock().unwrap().last().filter(|held| held.released.is_none()).map(|held| held.process);
        let whom = match holder {
            Some(holder) if stage.random.one_in(2) => holder,
            _ => 1 + stage.random.below(OBSERVERS as u64) as usize,
        };
        let until = if whom > OBSERVERS && killed < PROGRAMS - 3 && stage.random.one_in(4) {
            killed += 1;
            stage.kill(whom);
            Duration::MAX
        } else {
            if stage.random.one_in(2) {
                stage.link(whom).cut(true, true, outage);
            } else {
                stage.machine.freeze(whom, outage);
            }
            stage.machine.now() + outage
        };
        disturbances.push((whom, stage.machine.now(), until));
    }
    let last = stage.machine.now();
    // The observers learn the rest.
    stage.sleep(4 * LEASE).await;
    let holds: Vec<Held> = std::mem::take(&mut *holds.lock().unwrap());
    let holds: Vec<Held> = holds.into_iter().filter(|held| held.began < last).collect();
    must(holds.len() > 20, &format!("I22 there were {} holds only", holds.len()))?;
    for (observer, seen) in seen {
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        check_order(&seen)?;
        // It asks again 1 s after an error, and a call of a broken connection fails after a few hops.
        let own: Vec<_> = disturbances.iter().filter(|(whom, ..)| *whom == observer).collect();
        let is_deaf = |from: Duration, to: Duration| {
            own.iter().any(|(_, begin, end)| *begin < to && from < end.saturating_add(1500 * MS))
        };
        for held in &holds {
            let of_holder = |(whom, begin, end): &&(Process, Duration, Duration)| {
                *whom == held.process && *begin < held.end() && held.began < end.saturating_add(LEASE)
            };
            let fate = match disturbances.iter().rfind(of_holder) {
                None => Fate::Well,
                Some((_, at, Duration::MAX)) => Fate::Killed(*at),
                // It may have been told of its loss, and have cleared up before the lease was over.
                Some(_) => Fate::Disturbed,
            };
            check_seen(&seen, held, &fate, &is_deaf, 8 * stage.hop + 20 * MS)?;
        }
    }
    Ok(())
}

/// Nobody releases what a killed program holds, and the observer looks by itself too seldom to find out.
pub async fn observed_death(mut stage: Stage) -> Played {
    let (observer, holder) = (stage.enter(LONG).await, stage.enter(LEASE).await);
    let seen = Seen::default();
    drop(stage.spawn(observer, observe(stage.machine.clone(), stage.lock(observer), seen.clone())));
    let _guard = stage.acquires(holder).await;
    let pause = stage.random.between(100 * MS, 2 * LEASE);
    stage.sleep(pause).await;
    stage.kill(holder);
    stage.sleep(LEASE + 8 * stage.hop + 20 * MS).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let told: String = seen.iter().map(|(_, change)| shown(change).0).collect();
    must(told == "+!", &format!("I22 a hold whose holder was killed is reported as {told:?}: {seen:?}"))
}

/// Nothing else happens after what the observer missed.
pub async fn observed_gap(mut stage: Stage) -> Played {
    let (observer, holder) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let seen = Seen::default();
    drop(stage.spawn(observer, observe(stage.machine.clone(), stage.lock(observer), seen.clone())));
    let guard = stage.acquires(holder).await;
    stage.sleep(500 * MS).await;
    stage.link(observer).cut(false, true, 500 * MS);
    let pause = stage.random.between(Duration::ZERO, 400 * MS);
    stage.sleep(pause).await;
    guard.release().await.unwrap();
    stage.sleep(500 * MS + 8 * stage.hop).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let told: String = seen.iter().map(|(_, change)| shown(change).0).collect();
    must(
        told == "+-",
        &format!("I22 a hold that was released during an interruption is reported as {told:?}: {seen:?}"),
    )
}

/// A name that changes all the time is looked at once in 10 ms, and one that never ends is looked at when it changes.
pub async fn observed_often(mut stage: Stage) -> Played {
    const SET: &str = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])";
    stage.server.unwatched();
    let observer = stage.enter(LONG).await;
    let seen = Seen::default();
    drop(stage.spawn(observer, observe(stage.machine.clone(), stage.lock(observer), seen.clone())));
    stage.sleep(100 * MS).await;
    let (server, key) = (stage.server.nodes.server(), What::Lock.key(NAME));
    let id = format!("{}:1", Uuid::from_u128(7));
    let set = |token: u32| server.eval(SET, &[key.as_bytes()], &[id.as_bytes(), token.to_string().as_bytes()]).unwrap();
    stage.link(observer).forget_most();
    for token in 1..=500 {
        set(token);
        stage.sleep(MS).await;
    }
    // With the labels of each grant.
    let calls = stage.link(observer).calls().0;
    must((10..=2 * 52).contains(&calls), &format!("I22 {calls} calls in 500 ms"))?;
    stage.sleep(100 * MS + 8 * stage.hop).await;
    stage.link(observer).forget_most();
    stage.sleep(5 * LEASE).await;
    // The client's own label, and what it looks at by itself.
    let calls = stage.link(observer).calls().0;
    must(calls <= 4, &format!("I22 {calls} calls while nothing happens"))?;
    let last = seen.lock().unwrap().last().map(|(_, change)| (shown(change).0, token_of(shown(change).1)));
    must(last == Some(('+', 500)), &format!("I22 the last change is {last:?}"))
}

/// What became of the holder while it held.
enum Fate {
    Well,
    Killed(Duration),
    Disturbed,
}

impl Held {
    /// It has ended by then.
    fn end(&self) -> Duration {
        self.released.map_or(self.began + 3 * LEASE, |(_, released)| released)
    }
}

fn shown(change: &HoldChange) -> (char, &HoldState) {
    match change {
        HoldChange::Granted(hold) => ('+', hold),
        HoldChange::Released(hold) => ('-', hold),
        HoldChange::Lost(hold) => ('!', hold),
        other => panic!("{other:?}"),
    }
}

fn token_of(hold: &HoldState) -> u64 {
    hold.token.expect("a lock has tokens").get()
}

/// A hold begins, and ends before the next one begins.
fn check_order(seen: &[(Duration, HoldChange)]) -> Played {
    let (mut holds, mut last) = (None, 0);
    for (_, change) in seen {
        let (what, hold) = shown(change);
        let token = token_of(hold);
        let is_right = match what {
            '+' => holds.replace(token).is_none() && std::mem::replace(&mut last, token) < token,
            _ => holds.take() == Some(token),
        };
        must(is_right, &format!("I22 {what}{token} is not in order in {seen:?}"))?;
    }
    Ok(())
}

/// A hold that lasts is reported soon, and so is its end.
fn check_seen(
    seen: &[(Duration, HoldChange)],
    held: &Held,
    fate: &Fate,
    is_deaf: &dyn Fn(Duration, Duration) -> bool,
    soon: Duration,
) -> Played {
    let of_hold = |(_, change): &&(Duration, HoldChange)| token_of(shown(change).1) == held.token;
    let told: Vec<_> = seen.iter().filter(of_hold).map(|(at, change)| (*at, shown(change).0)).collect();
    let about = format!("{held:?} was reported as {told:?}");
    let lasted = held.released.is_none_or(|(from, _)| from > held.began + soon);
    let Some((granted, _)) = told.first() else {
        return must(!lasted || is_deaf(held.began, held.end()), &format!("I22 not at all: {about}"));
    };
    let is_late = *granted > held.began + soon && !is_deaf(held.began, *granted);
    must(!is_late, &format!("I22 the grant late: {about}"))?;
    let Some((ended, what)) = told.get(1) else { return Err(format!("I22 no end: {about}")) };
    let end = match fate {
        Fate::Killed(at) => *at + LEASE,
        _ => held.end(),
    };
    must(*ended <= end + soon || is_deaf(end, *ended), &format!("I22 the end late: {about}"))?;
    match (fate, held.released, what) {
        (Fate::Well, Some((from, _)), '!') => {
            must(is_deaf(from, *ended), &format!("I22 the release as a loss: {about}"))
        }
        (Fate::Killed(_), None, '-') => Err(format!("I22 the loss as a release: {about}")),
        _ => Ok(()),
    }
}

async fn observe(machine: Arc<Machine>, lock: Lock, seen: Seen) {
    let mut changes = lock.changes();
    while let Some(change) = changes.next().await {
        // An observer that is cut off gets an error, and goes on.
        if let Ok(change) = change {
            seen.lock().unwrap().push((machine.now(), change));
        }
    }
}

async fn work(machine: Arc<Machine>, process: Process, lock: Lock, holds: Holds) {
    let executor = machine.process(process);
    loop {
        let pause = machine.random(|random| random.between(MS, 400 * MS));
        executor.sleep(pause).await;
        let Ok(guard) = lock.lock().await else { continue };
        let place = {
            let mut holds = holds.lock().unwrap();
            holds.push(Held { process, token: guard.token().get(), began: machine.now(), released: None });
            holds.len() - 1
        };
        let longest = machine.random(|random| *random.pick(&[5 * MS, 500 * MS, 2 * LEASE]));
        executor.sleep(machine.random(|random| random.between(Duration::ZERO, longest))).await;
        let from = machine.now();
        if guard.release().await.is_ok() {
            holds.lock().unwrap()[place].released = Some((from, machine.now()));
        }
    }
}
