//! Scenes about a failover behind one address, and about a server that a client's two connections see differently.

use crate::stage::{LONG, Played, Stage, must};
use crate::world::MS;

/// Those who are connected stay at the demoted server; only the holder dials anew. It releases, the waiter is not granted
/// the lock by the new primary, where it does not listen, and hears what is published there all the same.
pub async fn demoted_listener(mut stage: Stage) -> Played {
    let (holder, waiter, next) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    stage.server.replicate(stage.hop);
    let guard = stage.lock(holder).lock().await.unwrap();
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(false);
    stage.link(holder).cut(true, true, MS);
    stage.link(next).cut(true, true, MS);
    stage.sleep(8 * stage.hop + 2 * MS).await;
    guard.release().await.map_err(|error| error.to_string())?;
    let lock = stage.lock(next);
    let other = stage.spawn(next, async move { lock.try_lock().await.unwrap() });
    let other = other.await;
    let heard = stage.within(8 * stage.hop + 2 * MS, "", &mut waiting).await;
    let both = other.is_some_and(|guard| guard.is_valid()) && heard.is_ok_and(|guard| guard.is_valid());
    must(!both, "I1 a grant that was undone is believed, as its message was heard at a replica")
}

/// The connection for commands is dialled anew to the new primary, and nothing happens to the subscription.
pub async fn parted_links(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    stage.server.replicate(stage.hop);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(false);
    stage.link(holder).cut(true, true, MS);
    stage.link(waiter).cut(true, false, MS);
    stage.sleep(16 * stage.hop + 20 * MS).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(4 * stage.hop + MS, "I3 the waiter hears nothing where it is granted the lock", waiting).await?);
    Ok(())
}

/// A server is demoted, and whoever is connected stays there: its commands are refused, until the client dials anew.
pub async fn demoted_server(mut stage: Stage) -> Played {
    let (holder, other) = (stage.enter(3000 * MS).await, stage.enter(LONG).await);
    stage.server.replicate(stage.hop);
    let guard = stage.lock(holder).lock().await.unwrap();
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(false);
    stage.sleep(10_000 * MS).await;
    must(guard.is_valid(), "a lease is lost although the new primary could be reached")?;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    drop(stage.within(2000 * MS, "I3 nobody gets the free lock", stage.acquires(other)).await?);
    Ok(())
}

/// The last writes are lost with a primary, a hold among them: its client is told as soon as it is connected again.
pub async fn lost_writes(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    stage.server.replicate(1000 * MS);
    let guard = stage.lock(process).lock().await.unwrap();
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(true);
    stage.link(process).cut(true, false, MS);
    let lost = std::pin::pin!(guard.lost());
    let late = "I1 a hold that the new primary does not have is valid";
    stage.within(16 * stage.hop + 30 * MS, late, lost).await?;
    Ok(())
}
