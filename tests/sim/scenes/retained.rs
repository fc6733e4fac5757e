//! Scenes about locks that a process keeps idle.

use std::time::Duration;

use crate::executor::Process;
use crate::stage::{LONG, Played, Stage, must};
use crate::world::MS;

/// The process takes the lock and keeps it.
async fn keeps(stage: &Stage, process: Process) {
    let lock = stage.lock(process);
    let time = LONG / 3;
    stage.spawn(process, async move { lock.lock().retained(time).await.unwrap().release().await.unwrap() }).await;
}

/// Another process waits for it: a request, a message, a release, a message.
pub async fn asked_for_idle(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    keeps(&stage, process).await;
    let served =
        stage.within(4 * stage.hop + 2 * MS, "I3 an idle lock was not handed over", stage.acquires(other)).await?;
    served.release().await.map_err(|error| error.to_string())
}

/// A writer keeps the lock, and a reader of another process waits.
pub async fn idle_writer(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (lock, time) = (stage.rw_lock(process), LONG / 3);
    stage.spawn(process, async move { lock.write().retained(time).await.unwrap().release().await.unwrap() }).await;
    let lock = stage.rw_lock(other);
    let reads = stage.spawn(other, async move { lock.read().await.unwrap() });
    let served = stage.within(4 * stage.hop + 2 * MS, "I3 an idle writer's lock was not handed over", reads).await?;
    served.release().await.map_err(|error| error.to_string())
}

/// Its process closes its client. The next one does not ask it.
pub async fn closed_idle(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    keeps(&stage, process).await;
    let client = stage.client(process);
    stage.spawn(process, async move { client.close().await }).await;
    let lock = stage.lock(other);
    let free = stage.spawn(other, async move { lock.try_lock().for_retained(Duration::ZERO).await.unwrap() }).await;
    must(free.is_some(), "I8 a client that was closed has left an idle lock")
}

/// It comes back when another process has the lock.
pub async fn thawed_idle(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    keeps(&stage, process).await;
    let thaws = stage.machine.now() + LONG + LONG / 3;
    stage.machine.freeze(process, LONG + LONG / 3);
    let held = stage.acquires(other).await;
    let lock = stage.lock(process);
    let again = stage.spawn(process, async move { lock.lock().retained(LONG / 3).await.unwrap() });
    let after = stage.random.between(Duration::ZERO, 100 * MS);
    stage.sleep(thaws + after - stage.machine.now()).await;
    must(held.is_valid(), "the scene is not played: the other one has lost it")?;
    let token = held.token();
    held.release().await.map_err(|error| error.to_string())?;
    let again = stage.within(8 * stage.hop + 100 * MS, "I3 it is not served", again).await?;
    must(again.token() > token, "I2 an idle lock was given out after another process had it")
}
