//! Scenes about what a holder has, and when it has it no more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bowline::{Holder, Loss};

use crate::stage::{LONG, Played, Stage, must};
use crate::storm::REFUSALS;
use crate::world::MS;

/// An operator takes the lock from a holder that does not listen for a moment.
pub async fn missed_revocation(mut stage: Stage) -> Played {
    let (holder, operator) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let outage = stage.random.between(100 * MS, 300 * MS);
    stage.link(holder).cut(false, true, outage);
    stage.sleep(4 * stage.hop).await;
    stage.lock(operator).force_release().await.unwrap();
    let lost = pin!(guard.lost());
    stage.within(outage + 4 * stage.hop + MS, "I1 a hold that was taken is valid", lost).await?;
    Ok(())
}

/// An operator takes a hold that its client does not know of yet.
pub async fn revoked_grant(mut stage: Stage) -> Played {
    let (process, operator) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let acquired = stage.acquires(process);
    stage.until_locked(true).await;
    stage.machine.freeze(process, 300 * MS);
    let revoked = stage.lock(operator).force_release().await.unwrap();
    let guard = acquired.await;
    stage.sleep(2 * stage.hop).await;
    must(!guard.is_valid() || Some(guard.token()) > revoked, "I1 a hold that was taken is valid")
}

/// The server loses its data, and another client acquires: the old holder is told by its next renewal.
pub async fn lost_data(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (old, new) = (stage.enter(lease).await, stage.enter(lease).await);
    let guard = stage.lock(old).lock().await.unwrap();
    let held = stage.random.between(Duration::ZERO, 5000 * MS);
    stage.sleep(held).await;
    stage.server.flush();
    let _other = stage.lock(new).lock().await.unwrap();
    let lost = pin!(guard.lost());
    let loss =
        stage.within(lease / 3 + 2 * stage.hop, "I1 a hold that the server does not have is valid", lost).await?;
    must(loss == Loss::Gone, "I1 the hold is gone, and the client says that it expired")
}

/// A lease runs out while its guard is still there, and the holder asks for the lock again.
pub async fn expired_reentry(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let holder = Holder::new();
    let lock = stage.lock(process);
    let outer = lock.lock().holder(&holder).expires_after(500 * MS).await.unwrap();
    outer.lost().await;
    let inner = lock.lock().holder(&holder).await.unwrap();
    must(inner.is_valid(), "I1 a hold was over when it was entered")?;
    must(inner.token() > outer.token(), "I2 a new hold has the old token")
}

/// The answer takes longer than the lease it grants.
pub async fn slow_answer(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let freeze = stage.random.between(150 * MS, 500 * MS);
    stage.server.freeze(freeze);
    let guard = stage.lock(process).lock().expires_after(100 * MS).await.unwrap();
    must(guard.is_valid(), "I1 a hold was over when it was given out")
}

/// A grant's message takes so long that the waiter learns of it by its own heartbeat.
pub async fn late_message(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, waiter, next) = (stage.enter(LONG).await, stage.enter(lease).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let lock = stage.lock(waiter);
    let waiting = stage.spawn(waiter, async move { lock.lock().expires_after(lease).await.unwrap() });
    stage.until_waiting(1).await;
    stage.link(waiter).lag(60_000 * MS, 60_000 * MS);
    let _release = stage.spawn(holder, guard.release());
    let guard = stage.within(lease / 3 + 2 * stage.hop + MS, "I3 the waiter does not ask", waiting).await?;
    let _next = stage.lock(next).lock().await.unwrap();
    must(!guard.is_valid(), "I1 the lease is over in the server, and the holder counts on it")
}

/// A grant's message comes when its waiter has learned of it by a heartbeat, and holds.
pub async fn known_grant(mut stage: Stage) -> Played {
    let (holder, waiter, next) = (stage.enter(LONG).await, stage.enter(3000 * MS).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.link(waiter).lag(2000 * MS, 2000 * MS);
    let _release = stage.spawn(holder, guard.release());
    let guard = stage.within(1000 * MS + 2 * stage.hop + MS, "I3 the waiter does not ask", waiting).await?;
    let both = stage.within(4000 * MS, "", stage.acquires(next)).await.is_ok();
    must(!both && guard.is_valid(), "I1 the holder is told late, and loses its lock by it")
}

/// A grant's message is read when its lease is over: the waiter has stood still.
pub async fn stale_message(mut stage: Stage) -> Played {
    let lease = 1500 * MS;
    let (holder, waiter, next) = (stage.enter(LONG).await, stage.enter(lease).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(2 * stage.hop).await;
    stage.machine.freeze(waiter, 2500 * MS);
    guard.release().await.map_err(|error| error.to_string())?;
    let guard = stage.lock(next).lock().await.unwrap();
    let both = stage.within(1500 * MS, "", &mut waiting).await.is_ok();
    must(!both, "I1 the lease was over, and counts from its message")?;
    // A heartbeat and the repeated request were sent when the process resumed, in any order.
    let _release = stage.spawn(next, guard.release());
    drop(stage.within(4 * stage.hop + MS, "I3 the waiter does not get the lock", waiting).await?);
    Ok(())
}

/// A holder is cut off until its lease is over by its own count, and not yet by the server's. A renewal waits for the
/// connection to come back.
pub async fn late_renewal(mut stage: Stage) -> Played {
    let lease = 100_000 * MS;
    let (holder, waiter) = (stage.enter(lease).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.link(holder).cut(true, false, lease - 150 * MS);
    guard.lost().await;
    let late = stage.within(150 * MS + 2 * stage.hop, "I3 a hold that was lost stays in the server", &mut waiting);
    drop(late.await?);
    Ok(())
}

/// A holder's clock is slow, and its lease runs out.
pub async fn slow_clock(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    stage.machine.set_rate(holder, -1000);
    let guard = stage.lock(holder).lock().expires_after(2 * LONG).await.unwrap();
    let waiting = stage.acquires(waiter);
    let _next = stage.within(3 * LONG, "I3 the waiter does not get the lock", waiting).await?;
    must(!guard.is_valid(), "I1 the lease is over in the server, and the holder counts on it")
}

/// A process stands still from before the answer to its request until after the lease that it grants.
pub async fn frozen_requester(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(500 * MS).await, stage.enter(LONG).await);
    let mut late = stage.acquires(process);
    stage.until_locked(true).await;
    stage.machine.freeze(process, 1000 * MS);
    let guard = stage.lock(other).lock().await.unwrap();
    let both = stage.within(1000 * MS, "", &mut late).await.is_ok();
    must(!both, "I1 the lease was over, and counts from when its grant was known")?;
    guard.release().await.map_err(|error| error.to_string())?;
    drop(stage.within(2 * stage.hop + MS, "I3 the waiter does not get the lock", late).await?);
    Ok(())
}

/// A process stands still past the end of its lease, and goes on: the work under the lock must not.
pub async fn frozen_work(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let guard = Arc::new(stage.lock(process).lock().expires_after(500 * MS).await.unwrap());
    let (holder, executor) = (guard.clone(), stage.machine.process(process));
    let worked = stage.spawn(process, async move {
        let mut over = false;
        let work = async {
            for _ in 0..200 {
                executor.sleep(7 * MS).await;
                over |= !holder.is_valid();
            }
        };
        let done = holder.protect(work).await;
        over || done.is_ok()
    });
    stage.sleep(100 * MS).await;
    stage.machine.freeze(process, 600 * MS);
    let over = worked.await;
    must(!over, "I1 the work went on after its lease was over")
}

/// Connections break while the first renewal is under way.
pub async fn broken_renewal(mut stage: Stage) -> Played {
    let process = stage.enter(3000 * MS).await;
    let guard = stage.lock(process).lock().await.unwrap();
    // The renewal is sent 900 to 1,000 ms after the request for the grant.
    stage.sleep(850 * MS).await;
    let calm = stage.machine.now() + 250 * MS;
    while stage.machine.now() < calm {
        stage.link(process).cut(true, false, MS / 10);
        stage.sleep(stage.hop / 2).await;
    }
    stage.sleep(10_000 * MS).await;
    must(guard.is_valid(), "a lease is lost although the server could be reached for most of it")
}

/// The server refuses writes when the first renewals come, and reads on.
pub async fn refused_renewal(mut stage: Stage) -> Played {
    let process = stage.enter(3000 * MS).await;
    let lock = stage.lock(process).lock().await.unwrap();
    let permit = stage.semaphore(process, 1).acquire().await.unwrap();
    stage.sleep(700 * MS).await;
    let (refusal, refused) = (*stage.random.pick(&REFUSALS), stage.random.between(400 * MS, 1200 * MS));
    stage.server.refuse(refusal, refused);
    stage.sleep(10_000 * MS).await;
    must(lock.is_valid() && permit.is_valid(), "a lease is lost that the server has had all the time")
}

/// The connection says nothing any more when the first renewal is due, and new ones work.
pub async fn silent_renewal(mut stage: Stage) -> Played {
    let process = stage.enter(4000 * MS).await;
    let guard = stage.lock(process).lock().await.unwrap();
    stage.sleep(700 * MS).await;
    stage.link(process).silence();
    stage.sleep(10_000 * MS).await;
    must(guard.is_valid(), "a lease is lost although a new connection would have renewed it")
}

/// The server's clock is set back by an hour, the holder renews, and dies.
pub async fn clock_set_back(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, other) = (stage.enter(lease).await, stage.enter(lease).await);
    let lock = stage.lock(holder).lock().await.unwrap();
    // Two of them, because a sole hold is stored and renewed like that of a lock.
    let semaphore = stage.semaphore(holder, 2);
    let permits = [semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap()];
    let held = stage.random.between(Duration::ZERO, 2 * lease);
    stage.sleep(held).await;
    stage.server.step_clock(Duration::from_secs(3600), false);
    stage.sleep(lease).await;
    let all_valid = lock.is_valid() && permits.iter().all(|permit| permit.is_valid());
    must(all_valid, "a lease is lost that the server has had all the time")?;
    stage.kill(holder);
    let semaphore = stage.semaphore(other, 2);
    let (next, granted) =
        (stage.acquires(other), stage.spawn(other, async move { semaphore.acquire().await.unwrap() }));
    let in_the_way = lease + lease / 2 + 8 * stage.hop;
    drop(stage.within(in_the_way, "I3 a dead holder is in the way for as long as the clock was set back", next).await?);
    drop(
        stage
            .within(in_the_way, "I3 a dead holder is in the way for as long as the clock was set back", granted)
            .await?,
    );
    Ok(())
}

/// The answer to a release is lost.
pub async fn resent_release(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let guard = stage.lock(process).lock().await.unwrap();
    let released = stage.spawn(process, guard.release());
    stage.until_locked(false).await;
    stage.link(process).cut(true, false, MS);
    must(released.await.is_ok(), "a lease is lost that was released in time")
}

/// A client is closed while a release tries again.
pub async fn closed_release(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(process).lock().await.unwrap();
    stage.link(process).cut(true, false, 300 * MS);
    let released = stage.spawn(process, guard.release());
    stage.sleep(MS).await;
    let client = stage.client(process);
    let closed = stage.spawn(process, async move { client.close().await });
    must(released.await.is_ok(), "a lease is lost because a release was given up")?;
    closed.await;
    drop(stage.within(4 * stage.hop + MS, "a lease is lost: its release was cut off", stage.acquires(other)).await?);
    Ok(())
}
