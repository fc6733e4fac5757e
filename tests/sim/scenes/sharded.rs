//! Scenes about a cluster that shards its messages.

use std::time::Duration;

use crate::judge::{OPENING, PAUSE};
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// How much longer than usual everything of the waiter takes while its inbox is opened.
const SLOW: Duration = Duration::from_millis(80);

/// Three masters, each with a replica.
fn spread(stage: &Stage) {
    stage.server.spread(3);
    stage.server.shard_messages();
    stage.server.replicate(stage.hop);
}

/// How many clients listen to what concerns the lock.
fn listeners(stage: &Stage) -> usize {
    stage.server.judge.listeners().iter().filter(|inbox| inbox.ends_with(NAME)).count()
}

/// The slot of the lock moves while a client waits, and its inbox goes with the slot.
pub async fn moved_inbox(mut stage: Stage) -> Played {
    spread(&stage);
    let (holder, waiter) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep((OPENING + 1) * stage.hop).await;
    let moves = (0..3).any(|to| stage.server.move_slot(NAME, to, MS));
    must(moves, "the slot does not move")?;
    while stage.server.nodes.settled().is_none() {
        stage.sleep(MS).await;
    }
    // The old master says so, the client asks the new one, and then for its ticket.
    stage.sleep(8 * stage.hop + 200 * MS).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(4 * stage.hop + 60 * MS, "I3 the waiter listens where its slot was", waiting).await?);
    Ok(())
}

/// The lock is released while the inbox of the waiter is being opened.
pub async fn opening_inbox(mut stage: Stage) -> Played {
    spread(&stage);
    let (holder, waiter) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    stage.cluster(waiter).slow_down(SLOW);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    let opening = stage.random.between(Duration::ZERO, OPENING * SLOW);
    stage.sleep(opening).await;
    let _release = stage.spawn(holder, guard.release());
    let late = "I3 the waiter was passed over while its inbox was not open";
    drop(stage.within((OPENING + 4) * (SLOW + stage.hop) + PAUSE + MS, late, waiting).await?);
    Ok(())
}

/// The inbox of a slot is closed a minute after the last wait there, and opened again by the next one.
pub async fn idle_inbox(mut stage: Stage) -> Played {
    spread(&stage);
    let (holder, waiter) = (stage.enter_cluster(LONG).await, stage.enter_cluster(LONG).await);
    for _ in 0..2 {
        must(listeners(&stage) == 0, "I7 an inbox is open in whose slot no client waits")?;
        let guard = stage.lock(holder).lock().await.unwrap();
        let waiting = stage.acquires(waiter);
        stage.until_waiting(1).await;
        stage.sleep((OPENING + 1) * stage.hop).await;
        must(listeners(&stage) == 1, "I3 no inbox is open in a slot in which a client waits")?;
        let _release = stage.spawn(holder, guard.release());
        drop(stage.within(4 * stage.hop + MS, "I3 the waiter is not granted the lock", waiting).await?);
        stage.sleep(Duration::from_secs(92)).await;
    }
    Ok(())
}
