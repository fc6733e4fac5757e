//! An election among programs that are killed, cut off, frozen, or resign, and programs that watch it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Config, Election, ElectionChange, Leadership, RedLock};
use futures::StreamExt;

use crate::executor::{Machine, Process};
use crate::nodes::Failover;
use crate::stage::{Played, Stage, must};
use crate::world::MS;

const CANDIDATES: usize = 8;
const WATCHERS: usize = 3;
const LEASE: Duration = Duration::from_secs(3);

/// All seeds together play for half an hour.
const LENGTH: Duration = Duration::from_secs(120);

/// A term, as its leader knows it.
#[derive(Clone, Debug)]
struct Led {
    process: Process,
    term: u64,
    /// Its leader knew of it.
    began: Duration,
    /// What was published, and when that was known. The last one may have had no answer.
    published: Vec<(String, Option<Duration>)>,
    /// The leader was about to resign, or knew of its loss. `None`: it was killed, or stood still.
    ended: Option<Duration>,
}

type Terms = Arc<Mutex<Vec<Led>>>;
type Seen = Arc<Mutex<Vec<(Duration, ElectionChange)>>>;

pub async fn on_one_server(stage: Stage) -> Played {
    programs(stage, None).await
}

/// A replica takes over now and then. It must acknowledge each term. In half of the seeds it does not have the last
/// changes, and what is lost is not known of by all who watch.
pub async fn in_failovers(mut stage: Stage) -> Played {
    let how = *stage.random.pick(&[Failover::Orderly, Failover::Lossy]);
    stage.server.replicate(stage.hop);
    programs(stage, Some(how)).await
}

/// The only candidate resigns, and nobody follows whose election would tell of the end.
pub async fn last_term(mut stage: Stage) -> Played {
    let (leader, watcher) = (stage.enter(LEASE).await, stage.enter(LEASE).await);
    let seen = Seen::default();
    let election = stage.client(watcher).election("job");
    drop(stage.spawn(watcher, watch(stage.machine.clone(), election, seen.clone())));
    let led = stage.client(leader).election("job").campaign().await.map_err(|error| error.to_string())?;
    stage.sleep(LEASE / 2).await;
    led.resign().await.map_err(|error| error.to_string())?;
    let resigned = stage.machine.now();
    stage.sleep(LEASE).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    check_order(&seen, false)?;
    let told = seen.iter().find(|(_, change)| matches!(change, ElectionChange::Ended { .. })).map(|(at, _)| *at);
    let is_soon = told.is_some_and(|at| at <= resigned + 6 * stage.hop);
    must(is_soon, &format!("I19 the end was known at {resigned:?}, and reported at {told:?}"))
}

/// Over three servers, which are cut off, restarted and slow.
pub async fn over_masters(mut stage: Stage) -> Played {
    let fleet = stage.fleet(3);
    let (terms, config) = (Terms::default(), Config::builder().lease(LEASE));
    for process in 1..=CANDIDATES {
        let clients = fleet.enter(process, &config, &mut stage.random).await;
        let rate = *stage.random.pick(&[-1000, -500, 0, 500, 1000]);
        stage.machine.set_rate(process, rate);
        let locks = RedLock::builder(clients).durable(true).build().unwrap();
        drop(stage.spawn(process, campaign(stage.machine.clone(), process, locks.election("job"), terms.clone())));
    }
    let observer = CANDIDATES + 1;
    let clients = fleet.enter(observer, &config, &mut stage.random).await;
    let locks = RedLock::builder(clients).durable(true).build().unwrap();
    let asked = Asked::default();
    drop(stage.spawn(observer, ask(stage.machine.clone(), observer, locks.election("job"), asked.clone())));
    let end = stage.machine.now() + LENGTH;
    let mut disturbances = Vec::new();
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 6000 * MS);
        stage.sleep(pause).await;
        let outage = stage.random.between(100 * MS, 2 * LEASE);
        let leader = terms.lock().unwrap().last().filter(|led| led.ended.is_none()).map(|led| led.process);
        let master = stage.random.below(3) as usize;
        match (stage.random.below(5), leader) {
            (0, _) => fleet.cut_off(master, outage),
            (1, _) => fleet.crash(master, outage, true),
            (2, _) => fleet.slow_down(master, stage.random.between(MS, LEASE / 4), outage),
            (_, Some(leader)) => stage.machine.freeze(leader, outage),
            _ => fleet.freeze(master, outage),
        }
        disturbances.push((stage.machine.now(), stage.machine.now() + outage + 4 * LEASE));
    }
    stage.sleep(6 * LEASE).await;
    let terms = std::mem::take(&mut *terms.lock().unwrap());
    must(terms.len() > 10, &format!("I19 there were {} terms only", terms.len()))?;
    check_terms(&terms, &disturbances, 30 * stage.hop)?;
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    must(asked.len() > 50, &format!("I19 {} answers only", asked.len()))?;
    asked.iter().try_for_each(|(from, to, told)| {
        let led = |led: &&Led| led.began <= *from && led.ended.is_some_and(|ended| *to <= ended);
        let leads = terms.iter().find(led).map(|led| led.term);
        must(
            leads.is_none_or(|leads| *told == Some(leads)),
            &format!("I19 {leads:?} led, not {told:?}: {from:?}, {to:?}"),
        )
    })
}

/// From when until when somebody has asked, and the term that was told.
type Asked = Arc<Mutex<Vec<(Duration, Duration, Option<u64>)>>>;

async fn ask(machine: Arc<Machine>, process: Process, election: Election, asked: Asked) {
    let executor = machine.process(process);
    loop {
        executor.sleep(machine.random(|random| random.between(MS, 1000 * MS))).await;
        let from = machine.now();
        // Too few masters may have answered.
        if let Ok(leader) = election.leader().await {
            asked.lock().unwrap().push((from, machine.now(), leader.map(|leader| leader.term.get())));
        }
    }
}

async fn programs(mut stage: Stage, fails_over: Option<Failover>) -> Played {
    let (terms, mut seen) = (Terms::default(), Vec::new());
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let process = stage.enter(LEASE).await;
        watchers.push(process);
        let list = Seen::default();
        seen.push(list.clone());
        let (machine, election) = (stage.machine.clone(), stage.client(process).election("job"));
        drop(stage.spawn(process, watch(machine, election, list)));
    }
    for _ in 0..CANDIDATES {
        let process = stage.enter_acknowledged(LEASE, fails_over.is_some().into()).await;
        let rate = *stage.random.pick(&[-1000, -500, 0, 500, 1000]);
        stage.machine.set_rate(process, rate);
        stage.link(process).duplicate();
        let election = stage.client(process).election("job").label(process.to_string());
        drop(stage.spawn(process, campaign(stage.machine.clone(), process, election, terms.clone())));
    }
    let end = stage.machine.now() + LENGTH;
    let (mut killed, mut disturbances) = (0, Vec::new());
    while stage.machine.now() < end {
        let pause = stage.random.between(200 * MS, 6000 * MS);
        stage.sleep(pause).await;
        let outage = stage.random.between(100 * MS, 2 * LEASE);
        if let Some(how) = fails_over.filter(|_| stage.random.one_in(2)) {
            stage.server.fail_over(how, 0);
            // The others find out by an answer of what is a replica now.
            (1..=WATCHERS + CANDIDATES).filter(|at| at % 2 == 0).for_each(|at| stage.link(at).cut(true, true, MS));
            disturbances.push((stage.machine.now(), stage.machine.now() + 3 * LEASE));
            continue;
        }
        // The leader is the most interesting, and at least one candidate lives.
        let leader = terms.lock().unwrap().last().filter(|led| led.ended.is_none()).map(|led| led.process);
        let whom = match leader {
            Some(leader) if stage.random.one_in(2) => leader,
            _ => *stage.random.pick(&watchers),
        };
        if leader == Some(whom) && killed < CANDIDATES - 3 && stage.random.one_in(4) {
            killed += 1;
            stage.kill(whom);
        } else if stage.random.one_in(2) {
            stage.link(whom).cut(true, true, outage);
        } else {
            stage.machine.freeze(whom, outage);
        }
        disturbances.push((stage.machine.now(), stage.machine.now() + outage + 2 * LEASE));
    }
    // The watching programs learn the rest.
    let calm = terms.lock().unwrap().len();
    stage.sleep(6 * LEASE).await;
    let terms = std::mem::take(&mut *terms.lock().unwrap());
    must(calm > 10, &format!("I19 there were {calm} terms only"))?;
    check_terms(&terms, &disturbances, 6 * stage.hop)?;
    let seen: Vec<_> = seen.iter().map(|seen| std::mem::take(&mut *seen.lock().unwrap())).collect();
    if fails_over == Some(Failover::Lossy) {
        let last = terms.last().map(|led| led.began).unwrap_or_default();
        return seen.iter().try_for_each(|watcher| {
            let heard = watcher.last().map_or(Duration::ZERO, |(at, _)| *at);
            must(
                heard + 3 * LEASE > last,
                &format!("I19 a program has heard nothing since {heard:?}, and {last:?} is over"),
            )?;
            check_order(watcher, true)
        });
    }
    for watcher in &seen {
        check_seen(watcher, &terms[..calm], &disturbances, 6 * stage.hop)?;
    }
    // They report the same, but for the last changes, which some are yet to learn.
    let told: Vec<Vec<String>> =
        seen.iter().map(|seen| seen.iter().map(|(_, change)| shown(change)).collect()).collect();
    let common = told.iter().map(Vec::len).min().unwrap_or_default();
    let same = told.windows(2).all(|pair| pair[0][..common] == pair[1][..common]);
    must(same, &format!("I19 programs that watch report different changes: {told:?}"))
}

async fn watch(machine: Arc<Machine>, election: Election, seen: Seen) {
    let mut changes = election.changes();
    while let Some(change) = changes.next().await {
        // A program that is cut off gets an error, and goes on.
        if let Ok(change) = change {
            seen.lock().unwrap().push((machine.now(), change));
        }
    }
}

async fn campaign(machine: Arc<Machine>, process: Process, election: Election, terms: Terms) {
    let executor = machine.process(process);
    loop {
        let pause = machine.random(|random| random.between(MS, 500 * MS));
        executor.sleep(pause).await;
        let Ok(led) = election.campaign().await else { continue };
        let place = {
            let mut terms = terms.lock().unwrap();
            let (term, began) = (led.token().get(), machine.now());
            terms.push(Led { process, term, began, published: Vec::new(), ended: None });
            terms.len() - 1
        };
        let note = |change: &dyn Fn(&mut Led)| change(&mut terms.lock().unwrap()[place]);
        let work = lead(&machine, process, &led, &note);
        let survived = led.protect(work).await.is_ok();
        // A leader that stood still until now did nothing since then, and perhaps ended long ago.
        if survived || machine.awake_since(process) != Some(machine.now()) {
            note(&|led| led.ended = Some(machine.now()));
        }
        if survived && machine.random(|random| random.one_in(4)) {
            drop(led);
        } else {
            let _ = led.resign().await;
        }
    }
}

/// Publishes a few values.
async fn lead(machine: &Arc<Machine>, process: Process, led: &Leadership, note: impl Fn(&dyn Fn(&mut Led)) + Sync) {
    let executor = machine.process(process);
    for n in 0..machine.random(|random| random.between(Duration::ZERO, 5 * MS)).as_millis() {
        let pause = machine.random(|random| random.between(MS, 800 * MS));
        executor.sleep(pause).await;
        let value = n.to_string();
        note(&|led| led.published.push((value.clone(), None)));
        if led.publish(&value).await.is_ok() {
            note(&|led| led.published.last_mut().unwrap().1 = Some(machine.now()));
        }
    }
    executor.sleep(machine.random(|random| random.between(Duration::ZERO, 1000 * MS))).await;
}

fn is_disturbed(disturbances: &[(Duration, Duration)], from: Duration, to: Duration) -> bool {
    disturbances.iter().any(|(begin, end)| *begin < to && from < *end)
}

/// One leader at a time, the next one soon after it.
fn check_terms(terms: &[Led], disturbances: &[(Duration, Duration)], hops: Duration) -> Played {
    for pair in terms.windows(2) {
        let [one, next] = [&pair[0], &pair[1]];
        let shown = format!("{one:?}, then {next:?}");
        must(one.term < next.term, &format!("I2 terms do not grow: {shown}"))?;
        must(one.ended.is_none_or(|ended| ended <= next.began), &format!("I1 two lead at once: {shown}"))?;
        let ended = one.ended.unwrap_or(one.began);
        let calm = !is_disturbed(disturbances, one.began, next.began);
        let longest = if calm { 500 * MS + hops } else { 8 * LEASE };
        must(next.began <= ended + longest, &format!("I3 nobody leads: {shown}"))?;
    }
    Ok(())
}

/// A term begins, has values, and ends, unless changes were lost.
fn check_order(seen: &[(Duration, ElectionChange)], some_are_lost: bool) -> Played {
    let (mut leads, mut last) = (None, None);
    for (_, change) in seen {
        let broken = match change {
            ElectionChange::Elected(leader) => {
                leads.replace(leader.term).is_some() || last.replace(leader.term) >= Some(leader.term)
            }
            ElectionChange::Published(leader) => leads != Some(leader.term),
            ElectionChange::Ended { term } => leads.take() != Some(*term),
            ElectionChange::Missed if some_are_lost => {
                (leads, last) = (None, None);
                false
            }
            _ => true,
        };
        must(!broken, &format!("I19 not in order: {} in {seen:?}", shown(change)))?;
    }
    Ok(())
}

/// Every term and all its values are reported, in order, and soon.
fn check_seen(
    seen: &[(Duration, ElectionChange)],
    terms: &[Led],
    disturbances: &[(Duration, Duration)],
    hops: Duration,
) -> Played {
    check_order(seen, false)?;
    for Led { term, published, began, process, .. } in terms {
        let of_term = |change: &ElectionChange| match change {
            ElectionChange::Elected(leader) | ElectionChange::Published(leader) => leader.term.get() == *term,
            _ => false,
        };
        let mut reported = seen.iter().filter(|(_, change)| of_term(change));
        let elected = reported.next();
        let Some((at, ElectionChange::Elected(leader))) = elected else {
            return Err(format!("I19 no program has reported that {term} began: {elected:?}"));
        };
        must(leader.label == process.to_string(), &format!("I19 {leader:?} is {process}"))?;
        let soon = |at: Duration, known: Duration, what: &str| {
            let late = at > known + hops && !is_disturbed(disturbances, known.min(at), at);
            must(!late, &format!("I19 {what} of {term} was known at {known:?}, and reported at {at:?}"))
        };
        soon(*at, *began, "the beginning")?;
        let mut values = reported.filter_map(|(at, change)| match change {
            ElectionChange::Published(leader) => Some((*at, leader.value.clone().unwrap_or_default())),
            _ => None,
        });
        let mut next = values.next();
        for (value, known) in published {
            match (&next, known) {
                (Some((at, reported)), known) if reported == value => {
                    if let Some(known) = known {
                        soon(*at, *known, value)?;
                    }
                    next = values.next();
                }
                // It may have been replaced before it was stored, or not have been stored.
                (_, None) => {}
                (reported, Some(_)) => return Err(format!("I19 {term}: {reported:?} instead of {value}")),
            }
        }
        must(next.is_none(), &format!("I19 {term}: {next:?} was never published, or is reported twice"))?;
    }
    Ok(())
}

fn shown(change: &ElectionChange) -> String {
    match change {
        ElectionChange::Elected(leader) => format!("{} led by {}", leader.term, leader.label),
        ElectionChange::Published(leader) => format!("{} says {:?}", leader.term, leader.value),
        ElectionChange::Ended { term } => format!("{term} ended"),
        other => format!("{other:?}"),
    }
}
