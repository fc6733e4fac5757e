//! Scenes about who is next, and when.

use std::pin::pin;
use std::time::Duration;

use bowline::ErrorKind;

use crate::guard::What;
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// A waiter's message is lost, and its subscription is back a moment later.
pub async fn missed_grant(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    let outage = stage.random.between(MS, 300 * MS);
    let cut = stage.random.between(Duration::ZERO, stage.hop);
    let release = stage.spawn(holder, guard.release());
    stage.sleep(cut).await;
    stage.link(waiter).cut(false, true, outage);
    drop(stage.within(outage + 6 * stage.hop + MS, "I3 the waiter knows nothing of its lock", waiting).await?);
    release.await.map_err(|error| error.to_string())
}

/// The same, before the process knows that it waits: it stands still from before the answer until all is over.
pub async fn gap_before_answer(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.machine.freeze(waiter, 300 * MS);
    stage.link(waiter).cut(false, true, 50 * MS);
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(300 * MS + 4 * stage.hop + MS, "I3 the waiter knows nothing of its lock", waiting).await?);
    Ok(())
}

/// The same, while a heartbeat is under way: its answer was given before, and is read afterwards.
pub async fn gap_during_heartbeat(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(2 * stage.hop + 100 * MS).await;
    stage.link(waiter).cut(false, true, MS);
    let heartbeat_reply = stage.random.between(3 * stage.hop / 2, 6 * stage.hop);
    stage.sleep(MS + heartbeat_reply).await;
    stage.machine.freeze(waiter, 300 * MS);
    stage.sleep(stage.hop).await;
    stage.link(waiter).cut(false, true, 50 * MS);
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(400 * MS + 4 * stage.hop, "I3 the waiter knows nothing of its lock", waiting).await?);
    Ok(())
}

/// A waiter waits for many of its leases, and is granted the lock no later for it.
pub async fn long_wait(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, waiter) = (stage.enter(lease).await, stage.enter(lease).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    let wait = stage.random.between(10_000 * MS, 20_000 * MS);
    stage.sleep(wait).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(2 * stage.hop, "I3 the waiter asks again before it believes its grant", waiting).await?);
    Ok(())
}

/// A waiter whose subscription is down for long asks for itself.
pub async fn deaf_waiter(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, waiter) = (stage.enter(lease).await, stage.enter(lease).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.link(waiter).cut(false, true, 10 * lease);
    stage.sleep(4 * stage.hop).await;
    guard.release().await.unwrap();
    drop(stage.within(lease / 3 + 2 * stage.hop + MS, "I3 the waiter does not get the free lock", waiting).await?);
    Ok(())
}

/// A process dies, and all its waiters stand before a living one.
pub async fn crashed_crowd(mut stage: Stage) -> Played {
    let (holder, crowd, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let _tasks: Vec<_> = (0..40).map(|_| stage.acquires(crowd)).collect();
    stage.until_waiting(40).await;
    let waiting = stage.acquires(waiter);
    stage.until_waiting(41).await;
    stage.kill(crowd);
    stage.sleep(4 * stage.hop).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(2 * stage.hop + MS, "I3 the living waiter does not get the lock", waiting).await?);
    Ok(())
}

/// The same, but their tickets have expired, and there are more of them than one script may drop.
pub async fn expired_crowd(mut stage: Stage) -> Played {
    let (holder, crowd, waiter) = (stage.enter(LONG).await, stage.enter(500 * MS).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let _tasks: Vec<_> = (0..70).map(|_| stage.acquires(crowd)).collect();
    stage.until_waiting(70).await;
    stage.kill(crowd);
    stage.sleep(600 * MS).await;
    let waiting = stage.acquires(waiter);
    stage.until_waiting(71).await;
    stage.sleep(2 * stage.hop).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(4 * stage.hop + MS, "I3 the living waiter does not get the lock", waiting).await?);
    Ok(())
}

/// As many have died in the queue as may wait in it.
pub async fn full_of_the_dead(mut stage: Stage) -> Played {
    let (holder, crowd, waiter) = (stage.enter(LONG).await, stage.enter(500 * MS).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let _tasks: Vec<_> = (0..3).map(|_| stage.acquires(crowd)).collect();
    stage.until_waiting(3).await;
    stage.kill(crowd);
    stage.sleep(600 * MS).await;
    let lock = stage.lock(waiter);
    let mut waiting = stage.spawn(waiter, async move { lock.lock().max_waiters(3).await });
    // By now, the request would have been refused.
    let refused = stage
        .within(4 * stage.hop, "", &mut waiting)
        .await
        .is_ok_and(|acquired| acquired.is_err_and(|error| error.kind() == ErrorKind::QueueFull));
    must(!refused, "I3 the dead fill the queue")?;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(2 * stage.hop + MS, "I3 the waiter does not get the lock", waiting).await?.unwrap());
    Ok(())
}

/// The list of the waiters is evicted, and what else is known of them is not.
pub async fn half_a_queue(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, first, second) = (stage.enter(lease).await, stage.enter(lease).await, stage.enter(lease).await);
    let _guard = stage.lock(holder).lock().await.unwrap();
    let _first = stage.acquires(first);
    stage.until_waiting(1).await;
    let [_, queue, ..] = &What::Lock.resource(NAME).keys()[..] else { panic!("a lock has a queue") };
    let list = stage.server.keys().iter().position(|key| key == queue).unwrap();
    stage.server.evict(list as u64);
    let _second = stage.acquires(second);
    let both = pin!(stage.until_waiting(2));
    stage.within(lease / 3 + 6 * stage.hop + MS, "I3 a waiter is not in the queue, and does not know", both).await
}

/// A holder dies and its lease ends. Before the waiter can ask, `try_lock` of another process does.
pub async fn newcomers(mut stage: Stage) -> Played {
    let (holder, waiter, other) = (stage.enter(500 * MS).await, stage.enter(LONG).await, stage.enter(LONG).await);
    let _guard = stage.lock(holder).lock().await.unwrap();
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(2 * stage.hop).await;
    stage.kill(holder);
    stage.link(waiter).cut(true, false, 1500 * MS);
    loop {
        let barged = stage.lock(other).try_lock().await.unwrap().is_some();
        must(!barged, "I4 who came last got the lock first")?;
        if stage.within(MS, "", &mut waiting).await.is_ok() {
            return Ok(());
        }
    }
}
