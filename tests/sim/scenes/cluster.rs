//! Scenes about a cluster.

use std::time::Duration;

use bowline::LockGuard;
use futures::future::BoxFuture;

use crate::executor::Process;
use crate::guard::What;
use crate::nodes::{Failover, Node};
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// Three masters, each with a replica.
fn spread(stage: &Stage) {
    stage.server.spread(3);
    stage.server.replicate(stage.hop);
}

/// The master that serves the lock of the scene.
fn owner(stage: &Stage) -> Node {
    stage.server.nodes.map().owner(NAME)
}

/// The reply to a release is lost with the connection. Sent once more by the library, "not held" is no loss.
pub async fn lost_reply(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(LONG).await;
    let guard = stage.lock(process).lock().await.unwrap();
    let (cluster, owner) = (stage.cluster(process).clone(), owner(&stage));
    cluster.silence(owner);
    let released = stage.spawn(process, guard.release());
    stage.until_locked(false).await;
    cluster.cut(owner, MS, false);
    released.await.map_err(|error| format!("a lease is lost as its release was executed twice: {error}"))
}

/// A client that listens at a node that does not serve the lock.
async fn enter_elsewhere(stage: &mut Stage) -> Process {
    loop {
        let process = stage.enter_cluster(LONG).await;
        if stage.cluster(process).socket() != Some(owner(stage)) {
            return process;
        }
    }
}

/// A holder, and a waiter.
struct Waits {
    holder: Process,
    guard: LockGuard,
    waiter: Process,
    waiting: BoxFuture<'static, LockGuard>,
}

/// The waiter listens at a node that does not serve the lock.
async fn waits_elsewhere(stage: &mut Stage) -> Waits {
    spread(stage);
    let holder = stage.enter_cluster(LONG).await;
    let waiter = enter_elsewhere(stage).await;
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(4 * stage.hop).await;
    Waits { holder, guard, waiter, waiting }
}

/// The waiter listens at a node that does not serve the lock.
pub async fn heard_elsewhere(mut stage: Stage) -> Played {
    let Waits { holder, guard, waiting, .. } = waits_elsewhere(&mut stage).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(4 * stage.hop + MS, "I3 the waiter is not granted the lock", waiting).await?);
    Ok(())
}

/// The node at which the waiter listens is cut off from the others, which replace it. The lock is served by another
/// one.
pub async fn cut_off_listener(mut stage: Stage) -> Played {
    let Waits { holder, guard, waiter, waiting } = waits_elsewhere(&mut stage).await;
    let socket = stage.cluster(waiter).socket();
    let shard = stage.server.nodes.map().masters.iter().position(|master| Some(*master) == socket);
    stage.server.fail_over(Failover::Split, 8 * shard.unwrap_or(0) as u64);
    // The subscription checks its node every two seconds.
    stage.sleep(2500 * MS + 8 * stage.hop).await;
    let _release = stage.spawn(holder, guard.release());
    let late = "I3 the waiter listens at a node that is cut off";
    drop(stage.within(4 * stage.hop + 2 * MS, late, waiting).await?);
    Ok(())
}

/// While the slot of the lock moves, key by key, its holder renews it, and it is released and granted when the slot has
/// moved.
pub async fn moving_slot(mut stage: Stage) -> Played {
    spread(&stage);
    let lease = 1500 * MS;
    let (holder, waiter) = (stage.enter_cluster(lease).await, stage.enter_cluster(lease).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    let from = owner(&stage);
    let to = stage.random.below(3) as usize;
    if !stage.server.move_slot(NAME, to, 2000 * MS) {
        return Ok(());
    }
    while stage.server.nodes.settled().is_none() {
        must(guard.is_valid(), "a lease is lost while its slot moves")?;
        stage.sleep(10 * MS).await;
    }
    must(owner(&stage) != from, "the slot has not moved")?;
    let released = stage.spawn(holder, guard.release());
    // Sent on by the old master, over a new connection.
    let late = "I3 a call does not find the new master";
    let released = stage.within(14 * stage.hop + 60 * MS, late, released).await?;
    released.map_err(|error| format!("a lease is lost: {error}"))?;
    drop(stage.within(2 * lease, "I3 no client gets a lock whose slot has moved", waiting).await?);
    Ok(())
}

/// A writer or a reader, and a permit, are renewed while their slot moves. Each holds alone, so it is stored in one
/// key, and the other keys of its name do not exist.
pub async fn lone_holds_in_a_moving_slot(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(1500 * MS).await;
    let lock = stage.rw_lock(process);
    let (mut reader, mut writer) = (None, None);
    if stage.random.one_in(2) {
        // Without a token of a writer, a reader is stored in all keys.
        lock.write().await.unwrap().release().await.unwrap();
        reader = Some(lock.read().await.unwrap());
    } else {
        writer = Some(lock.write().await.unwrap());
    }
    let permit = stage.semaphore(process, 3).acquire().await.unwrap();
    let from = owner(&stage);
    let to = stage.random.below(3) as usize;
    if !stage.server.move_slot(NAME, to, 2000 * MS) {
        return Ok(());
    }
    while stage.server.nodes.settled().is_none() {
        let read = reader.as_ref().is_none_or(|guard| guard.is_valid());
        let written = writer.as_ref().is_none_or(|guard| guard.is_valid());
        must(read && written && permit.is_valid(), "a lease is lost while its slot moves")?;
        stage.sleep(10 * MS).await;
    }
    must(owner(&stage) != from, "the slot has not moved")?;
    permit.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    drop((reader, writer));
    Ok(())
}

/// The slot has begun to move, and all keys of the lock are still there: the hand-over is whole.
pub async fn handed_over_in_a_moving_slot(mut stage: Stage) -> Played {
    spread(&stage);
    let (holder, waiter) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(4 * stage.hop).await;
    must((0..3).any(|to| stage.server.nodes.open(NAME, to)), "the slot does not move")?;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    let next = stage.within(4 * stage.hop + MS, "I3 no client gets a lock whose slot moves", waiting).await?;
    while stage.server.move_key(0) {}
    must(next.is_valid(), "I1 a grant is not valid")?;
    next.release().await.map_err(|error| format!("a lease is lost: {error}"))
}

/// The lease of the last reader ends while the slot moves and all keys exist. The script that grants the lock to the
/// writer is not refused half-way.
pub async fn expired_in_a_moving_slot(mut stage: Stage) -> Played {
    spread(&stage);
    let (readers, writer) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    let short = 500 * MS + 20 * stage.hop;
    let lock = stage.rw_lock(readers);
    let (long, _short) = (lock.read().await.unwrap(), lock.read().expires_after(short).await.unwrap());
    let write = stage.rw_lock(writer);
    let waiting = stage.spawn(writer, async move { write.write().await.unwrap() });
    while stage.server.queued(&What::Write.key(NAME)) == 0 {
        stage.sleep(MS).await;
    }
    // The keys have the TTL of this lease, and outlive the short one.
    long.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    must((0..3).any(|to| stage.server.nodes.open(NAME, to)), "the slot does not move")?;
    let next =
        stage.within(short + 4 * stage.hop + 20 * MS, "I3 no client gets a lock whose slot moves", waiting).await?;
    while stage.server.move_key(0) {}
    must(next.is_valid(), "I1 a grant is not valid")?;
    next.release().await.map_err(|error| format!("a lease is lost: {error}"))
}

/// The shard that serves the lock of the scene, as a draw of a failover.
fn shard(stage: &Stage) -> u64 {
    let masters = stage.server.nodes.map().masters;
    8 * masters.iter().position(|master| *master == owner(stage)).unwrap_or(0) as u64
}

/// The master of the lock stands still with a call in its buffer, is replaced, and goes on. The client stands still as
/// well, and finds both the answer of the old master and the news that it was replaced. A grant that the new master
/// does not have is soon known to be lost.
pub async fn thawed_master(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(LONG).await;
    drop(stage.lock(process).lock().await.unwrap());
    stage.until_locked(false).await;
    let (old, draw) = (owner(&stage), shard(&stage));
    let (replaced, stops) = (stage.random.between(500 * MS, 800 * MS), stage.random.between(Duration::ZERO, 250 * MS));
    // While the map is being read, which is most of the time.
    stage.cluster(process).slow_down(100 * MS);
    let thaws = replaced + stops + 8 * stage.hop;
    stage.server.freeze_node(old, thaws);
    let acquiring = stage.acquires(process);
    stage.sleep(replaced).await;
    stage.server.fail_over(Failover::Split, draw);
    stage.sleep(stops).await;
    stage.machine.freeze(process, 300 * MS + 16 * stage.hop);
    stage.sleep(300 * MS + 20 * stage.hop).await;
    stage.cluster(process).slow_down(Duration::ZERO);
    // The old master is told, and the client loses its connection to it.
    stage.server.heal_after(Duration::ZERO);
    stage.sleep(MS).await;
    stage.cluster(process).cut(old, MS, true);
    let guard = stage.within(3000 * MS, "I3 the client does not get the lock from the new master", acquiring).await?;
    stage.sleep(1000 * MS + 20 * stage.hop).await;
    let holds = stage.server.keys().contains(&What::Lock.key(NAME));
    must(holds || !guard.is_valid(), "I1 a grant is counted on that only a replaced master has given")
}

/// As [`thawed_master`], but nothing tells the client that the master was replaced: it has read the map a moment
/// before. The answer comes late, so the others are asked before it counts.
pub async fn thawed_answer(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(LONG).await;
    drop(stage.lock(process).lock().await.unwrap());
    stage.until_locked(false).await;
    let (old, draw) = (owner(&stage), shard(&stage));
    let (replaced, thaws) = (stage.random.between(200 * MS, 700 * MS), stage.random.between(Duration::ZERO, 40 * MS));
    stage.server.freeze_node(old, replaced + thaws);
    let acquiring = stage.acquires(process);
    stage.sleep(replaced).await;
    stage.server.fail_over(Failover::Split, draw);
    stage.server.heal_after(thaws + 200 * MS);
    let guard = stage.within(3000 * MS, "I3 the client does not get the lock from the new master", acquiring).await?;
    stage.sleep(2000 * MS).await;
    let holds = stage.server.keys().contains(&What::Lock.key(NAME));
    must(holds || !guard.is_valid(), "I1 a grant is counted on that only a replaced master has given")
}

/// A failover loses the grant. The client loses its connection to the old master, finds the new one in the map, and
/// looks at what it holds.
pub async fn lost_with_its_master(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(LONG).await;
    drop(stage.lock(process).lock().await.unwrap());
    stage.until_locked(false).await;
    stage.sleep(4 * stage.hop).await;
    let (old, draw) = (owner(&stage), shard(&stage));
    let acquiring = stage.acquires(process);
    stage.until_locked(true).await;
    stage.server.fail_over(Failover::Lossy, draw);
    let guard = stage.within(3000 * MS, "I3 the client does not get the lock", acquiring).await?;
    stage.cluster(process).cut(old, LONG, true);
    stage.sleep(1000 * MS + 20 * stage.hop).await;
    let holds = stage.server.keys().contains(&What::Lock.key(NAME));
    must(holds || !guard.is_valid(), "I1 a grant is counted on that a failover has lost")
}

/// Three masters, each with a replica that hears of each write that much later.
fn spread_behind(stage: &Stage) -> Duration {
    let lag = 40 * stage.hop + 100 * MS;
    stage.server.spread(3);
    stage.server.replicate(lag);
    lag
}

/// Acquires and releases a few times, so that the last release is not the one that a failover has lost.
async fn comes_and_goes(stage: &Stage, process: Process) -> Played {
    for _ in 0..3 {
        let guard = stage.acquires(process).await;
        guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    }
    Ok(())
}

/// The master of the lock is replaced, and the last writes are lost. These clients lose their connections to it.
async fn loses_last_writes(stage: &Stage, clients: &[Process]) {
    let (old, draw) = (owner(stage), shard(stage));
    stage.server.fail_over(Failover::Lossy, draw);
    clients.iter().for_each(|process| stage.cluster(*process).cut(old, LONG, true));
}

/// A failover loses the end of a hold, and all that the same client has held and released since.
pub async fn lost_releases(mut stage: Stage) -> Played {
    let lag = spread_behind(&stage);
    let (busy, other) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    let guard = stage.acquires(busy).await;
    let token = guard.token();
    stage.sleep(lag).await;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    comes_and_goes(&stage, busy).await?;
    loses_last_writes(&stage, &[busy]).await;
    must(stage.server.keys().contains(&What::Lock.key(NAME)), "the new master has no hold")?;
    let late = "I3 the new master has a hold that was released before it";
    let next = stage.within(3000 * MS, late, stage.acquires(other)).await?;
    must(next.is_valid() && next.token() > token, "I2 the tokens do not grow")
}

/// A failover loses a hand-over, and all that the waiter has held and released since. The new master hands over to its
/// ticket once more.
pub async fn lost_hand_over(mut stage: Stage) -> Played {
    let lag = spread_behind(&stage);
    let (holder, busy) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    let other = stage.enter_cluster(LONG).await;
    let guard = stage.acquires(holder).await;
    let token = guard.token();
    let waiting = stage.acquires(busy);
    stage.until_waiting(1).await;
    stage.sleep(lag).await;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    waiting.await.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    comes_and_goes(&stage, busy).await?;
    loses_last_writes(&stage, &[holder, busy]).await;
    must(stage.server.waiters(NAME) == 1, "the new master has no ticket")?;
    let late = "I3 the new master has handed over to a ticket whose hold was released before it";
    let next = stage.within(3000 * MS, late, stage.acquires(other)).await?;
    must(next.is_valid() && next.token() > token, "I2 the tokens do not grow")
}

/// A node has come back with an old map, which names a master that stands still. A client that knows better does not go
/// back to that one.
pub async fn old_map(mut stage: Stage) -> Played {
    spread(&stage);
    let process = stage.enter_cluster(LONG).await;
    drop(stage.lock(process).lock().await.unwrap());
    stage.until_locked(false).await;
    let (old, draw) = (owner(&stage), shard(&stage));
    let neighbours: Vec<Node> = stage.server.nodes.map().masters.into_iter().filter(|node| *node != old).collect();
    stage.server.fail_over(Failover::Orderly, draw);
    stage.sleep(MS).await;
    // Sent to the new master by the old one, the client reads the map.
    drop(stage.lock(process).lock().await.unwrap());
    stage.sleep(500 * MS + 20 * stage.hop).await;
    let forgetful = *stage.random.pick(&neighbours);
    stage.server.nodes.forgets(forgetful);
    stage.server.freeze_node(old, 10 * LONG);
    for _ in 0..3 {
        let new = owner(&stage);
        stage.cluster(process).cut(new, MS, true);
        stage.sleep(300 * MS + 20 * stage.hop).await;
        let acquiring = stage.acquires(process);
        let late = "I3 the client has gone back to a master that was replaced";
        let guard = stage.within(300 * MS + 20 * stage.hop, late, acquiring).await?;
        guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
        stage.sleep(1500 * MS).await;
    }
    Ok(())
}
