//! Scenes of a `RedLock` over three servers.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bowline::embedded::{Content, Entry};
use bowline::wire::{PREFIX, Resource};
use bowline::{Config, LockGuard, RedLock};
use futures::future::{Either, select};

use crate::executor::Process;
use crate::fleet::Fleet;
use crate::server::SimServer;
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

const LEASE: Duration = Duration::from_secs(3);

/// How long a master is waited for.
const NODE_TIMEOUT: Duration = Duration::from_millis(750);

fn three(stage: &Stage) -> Arc<Fleet> {
    stage.fleet(3)
}

/// What a master has of the vote for the scenes' lock.
fn vote(server: &SimServer) -> Option<Entry> {
    server.entry(Resource::vote(PREFIX, NAME).unwrap().main())
}

async fn enter(stage: &mut Stage, fleet: &Fleet, process: Process) -> RedLock {
    enter_with(stage, fleet, process, LEASE).await
}

async fn enter_with(stage: &mut Stage, fleet: &Fleet, process: Process, lease: Duration) -> RedLock {
    let clients = fleet.enter(process, &Config::builder().lease(lease), &mut stage.random).await;
    RedLock::builder(clients).node_timeout(NODE_TIMEOUT).durable(true).build().unwrap()
}

/// Two masters have accepted a token that is far ahead. The turn of the first one proposes a smaller one.
pub async fn refused_proposal(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    fleet.servers()[1].step_clock(Duration::from_secs(600), true);
    let (one, other) = (enter(&mut stage, &fleet, 1).await, enter(&mut stage, &fleet, 2).await);
    fleet.cut_off(0, LEASE);
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    let ahead = guard.token();
    guard.release().await.map_err(|error| error.to_string())?;
    stage.sleep(3 * LEASE).await;
    let guard = other.lock(NAME).await.map_err(|error| error.to_string())?;
    must(guard.token() > ahead, "I2 the token is smaller than that of the hold before")
}

/// A waiter is given the turn when the votes are free.
pub async fn early_turn(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let (one, other) = (enter(&mut stage, &fleet, 1).await, enter(&mut stage, &fleet, 2).await);
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    let waiting = stage.spawn(2, other.lock(NAME).into_future());
    stage.sleep(LEASE / 2).await;
    guard.release().await.map_err(|error| error.to_string())?;
    let released = stage.machine.now();
    let _next = waiting.await.map_err(|error| error.to_string())?;
    must(stage.machine.now() - released < 20 * stage.hop, "I3 a release did not hand the turn over")?;
    must(other.stats().contested_rounds == 0, "I3 a turn was given while the votes were taken")
}

/// The holder stands still while another acquisition waits. When its lease ends, the turn is free until the waiter
/// asks. A newcomer claims it at about that time.
pub async fn claimed_turn(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let mut locks = Vec::new();
    for process in 1..4 {
        locks.push(enter(&mut stage, &fleet, process).await);
    }
    let _guard = locks[0].lock(NAME).await.map_err(|error| error.to_string())?;
    let mut waiting = stage.spawn(2, locks[1].lock(NAME).into_future());
    stage.sleep(LEASE / 2).await;
    stage.machine.freeze(1, 10 * LEASE);
    // From now on it knows the clocks of the masters, and claims.
    let known = locks[2].lock("another name").await.map_err(|error| error.to_string())?;
    let turn = || fleet.servers()[0].entry(Resource::turn(PREFIX, NAME).unwrap().main());
    let ends = turn().and_then(|entry| entry.expires).ok_or("the scene is not played: nobody has the turn")?;
    let early = stage.random.between(Duration::ZERO, 8 * stage.hop);
    stage.sleep((ends + 4 * stage.hop).saturating_sub(fleet.servers()[0].now() + early)).await;
    let mut newcomer = stage.spawn(3, locks[2].lock(NAME).into_future());
    let first = match select(&mut waiting, &mut newcomer).await {
        Either::Left((first, _)) => first,
        Either::Right(_) => return must(false, "I4 who came last got the lock first"),
    };
    first.map_err(|error| error.to_string())?.release().await.map_err(|error| error.to_string())?;
    let last = newcomer.await.map_err(|error| error.to_string())?;
    last.release().await.map_err(|error| error.to_string())?;
    known.release().await.map_err(|error| error.to_string())
}

/// A master loses its vote, and votes for the same hold again.
pub async fn regained_vote(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let one = enter(&mut stage, &fleet, 1).await;
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    fleet.servers()[2].flush();
    stage.sleep(2 * LEASE).await;
    must(
        guard.is_valid() && votes_for(&fleet.servers()[2], &guard),
        "I2 a master does not vote for the token of the guard",
    )
}

/// Two masters restart without their data while the holder stands still and cannot ask for its votes again.
pub async fn young_votes(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    stage.sleep(2 * LEASE).await;
    let mut locks = Vec::new();
    for process in [1, 2] {
        let clients = fleet.enter(process, &Config::builder().lease(LEASE), &mut stage.random).await;
        locks.push(RedLock::builder(clients).node_timeout(NODE_TIMEOUT).build().unwrap());
    }
    let guard = locks[0].lock(NAME).await.map_err(|error| error.to_string())?;
    stage.machine.freeze(1, 2 * LEASE);
    (1..3).for_each(|master| fleet.crash(master, MS, false));
    // The queue of the other one is at the second master then.
    fleet.cut_off(0, 2 * LEASE);
    let next = stage.spawn(2, locks[1].lock(NAME).into_future()).await.map_err(|error| error.to_string())?;
    must(!guard.is_valid(), "I1 the votes of masters that have forgotten a hold are counted")?;
    next.release().await.map_err(|error| error.to_string())
}

fn votes_for(server: &SimServer, guard: &LockGuard) -> bool {
    let token = guard.token().to_string().into_bytes();
    let has = |content| matches!(content, Content::Hash(fields) if fields.iter().any(|(_, vote)| *vote == token));
    vote(server).is_some_and(|entry| has(entry.content))
}

/// A master loses its data, and an acquisition that finds no majority is the first one there. Its token is larger.
pub async fn barred_vote(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let one = enter_with(&mut stage, &fleet, 1, LONG).await;
    let other = enter_with(&mut stage, &fleet, 2, LONG).await;
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    fleet.servers()[2].flush();
    // The queue of the other one is at the second master then.
    fleet.cut_off(0, 2 * LEASE);
    let waiting = stage.spawn(2, other.lock(NAME).into_future());
    stage.sleep(2 * LONG).await;
    must(other.stats().contested_rounds > 0, "the scene is not played: the other one has not asked")?;
    must(guard.is_valid() && votes_for(&fleet.servers()[2], &guard), "I3 a master has no vote for a hold any more")?;
    guard.release().await.map_err(|error| error.to_string())?;
    waiting.await.map(drop).map_err(|error| error.to_string())
}

/// The answers to the votes take long: the guard ends no later than they do.
pub async fn slow_votes(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let one = enter(&mut stage, &fleet, 1).await;
    (0..3).for_each(|master| fleet.slow_down(master, 200 * MS, LEASE));
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    let remaining = guard.remaining();
    let lasts = fleet.servers().iter().filter(|server| {
        let expires = vote(server).and_then(|entry| entry.expires);
        expires.is_some_and(|expires| expires >= server.now() + remaining)
    });
    must(lasts.count() >= 2, "I1 the guard outlives its votes")
}

/// A slow master votes just after its caller has given it up. The majority of the next hold needs that master.
pub async fn late_vote(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let one = enter_with(&mut stage, &fleet, 1, LONG).await;
    let other = enter_with(&mut stage, &fleet, 2, LONG).await;
    fleet.slow_down(2, NODE_TIMEOUT + 30 * MS, LEASE);
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    // Less than the time until the hold asks for the vote again.
    stage.sleep(LONG / 8).await;
    guard.release().await.map_err(|error| error.to_string())?;
    fleet.cut_off(1, LONG);
    let waiting = stage.spawn(2, other.lock(NAME).into_future());
    let next = stage.within(LONG / 3, "I3 a vote that was given up is in the way", waiting).await?;
    next.map(drop).map_err(|error| error.to_string())
}

/// A hold is released before a slow master has voted for it. The majority of the next hold needs that master.
pub async fn vote_after_release(mut stage: Stage) -> Played {
    let fleet = three(&stage);
    let one = enter_with(&mut stage, &fleet, 1, LONG).await;
    let other = enter_with(&mut stage, &fleet, 2, LONG).await;
    // A grant waits for masters that have never answered.
    let heard = one.lock("heard of").await.map_err(|error| error.to_string())?;
    heard.release().await.map_err(|error| error.to_string())?;
    fleet.slow_down(2, NODE_TIMEOUT / 4, LEASE);
    let asked = stage.machine.now();
    let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
    must(stage.machine.now() - asked < NODE_TIMEOUT / 2, "a grant waits for a slow master")?;
    guard.release().await.map_err(|error| error.to_string())?;
    fleet.cut_off(1, LONG);
    let waiting = stage.spawn(2, other.lock(NAME).into_future());
    let next = stage.within(LONG / 3, "I3 a vote for a hold that is over is in the way", waiting).await?;
    next.map(drop).map_err(|error| error.to_string())
}

/// A hold loses its majority, now and then while it asks a slow master for a vote.
pub async fn late_loss(mut stage: Stage) -> Played {
    let (fleet, lease) = (three(&stage), 2 * LEASE / 3);
    let one = enter_with(&mut stage, &fleet, 1, lease).await;
    // It answers too late to vote, and soon enough to be asked again.
    fleet.slow_down(2, 300 * MS, 100 * LEASE);
    for _ in 0..4 {
        let guard = one.lock(NAME).await.map_err(|error| error.to_string())?;
        let held = stage.random.between(MS, lease);
        stage.sleep(held).await;
        (0..2).for_each(|master| fleet.cut_off(master, 2 * lease));
        while guard.is_valid() {
            stage.sleep(MS).await;
        }
        let lost = pin!(guard.lost());
        stage.within(2 * MS, "I1 a loss is not signalled at the deadline", lost).await?;
        stage.sleep(3 * lease).await;
    }
    Ok(())
}
