//! Scenes about a failover behind one address, and about a server that a client's two connections see differently.

use std::time::Duration;

use crate::nodes::Failover;
use crate::stage::{LONG, Played, Stage, must};
use crate::world::MS;

/// Those who are connected stay at the demoted server; only the holder dials anew. It releases, the waiter is not
/// granted the lock by the new primary, where it does not listen, and hears what is published there all the same.
pub async fn demoted_listener(mut stage: Stage) -> Played {
    let (holder, waiter, next) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    stage.server.replicate(stage.hop);
    let guard = stage.lock(holder).lock().await.unwrap();
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(Failover::Orderly, 0);
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
    stage.server.fail_over(Failover::Orderly, 0);
    stage.link(holder).cut(true, true, MS);
    stage.link(waiter).cut(true, false, MS);
    stage.sleep(16 * stage.hop + 20 * MS).await;
    let _release = stage.spawn(holder, guard.release());
    drop(stage.within(4 * stage.hop + MS, "I3 the waiter hears nothing where it is granted the lock", waiting).await?);
    Ok(())
}

/// A server is demoted, and a connected client stays there: its commands are refused, until the client dials anew.
pub async fn demoted_server(mut stage: Stage) -> Played {
    let (holder, other) = (stage.enter(3000 * MS).await, stage.enter(LONG).await);
    stage.server.replicate(stage.hop);
    let guard = stage.lock(holder).lock().await.unwrap();
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(Failover::Orderly, 0);
    stage.sleep(10_000 * MS).await;
    must(guard.is_valid(), "a lease is lost although the new primary could be reached")?;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))?;
    drop(stage.within(2000 * MS, "I3 no client gets the free lock", stage.acquires(other)).await?);
    Ok(())
}

/// The last writes are lost with a primary, a hold among them: its client is told as soon as it is connected again.
pub async fn lost_writes(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    stage.server.replicate(1000 * MS);
    let guard = stage.lock(process).lock().await.unwrap();
    stage.sleep(4 * stage.hop).await;
    stage.server.fail_over(Failover::Lossy, 0);
    stage.link(process).cut(true, false, MS);
    let lost = std::pin::pin!(guard.lost());
    let late = "I1 a hold that the new primary does not have is valid";
    stage.within(16 * stage.hop + 30 * MS, late, lost).await?;
    Ok(())
}

/// A master is cut off from its replica, which is promoted, and goes on. The holder stays there, and its renewals do
/// not count.
pub async fn cut_off_master(mut stage: Stage) -> Played {
    stage.server.replicate(stage.hop);
    let lease = 3000 * MS;
    let (holder, other) = (stage.enter_acknowledged(lease, 1).await, stage.enter_acknowledged(LONG, 1).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    stage.server.fail_over(Failover::Split, 0);
    stage.server.replicate(stage.hop);
    stage.link(other).cut(true, true, MS);
    let waiting = stage.acquires(other);
    let late = "I3 no client gets a lock whose holder is cut off";
    let next = stage.within(2 * lease + 2000 * MS, late, waiting).await?;
    must(next.is_valid(), "I1 a grant is not valid")?;
    must(!guard.is_valid(), "I1 a holder counts on renewals that no replica has, and another holds")
}

/// A fixed lease is granted to a waiter, and the master dies at once. The replica has the grant.
pub async fn lost_grant(mut stage: Stage) -> Played {
    stage.server.replicate(10 * stage.hop + 50 * MS);
    let (first, holder) = (stage.enter(LONG).await, stage.enter_acknowledged(LONG, 1).await);
    let other = stage.enter(LONG).await;
    let short = stage.lock(first).lock().expires_after(1000 * MS).await.unwrap();
    let lock = stage.lock(holder);
    let guard = stage.spawn(holder, async move { lock.lock().expires_after(LONG).await.unwrap() }).await;
    drop(short);
    stage.server.fail_over(Failover::Lossy, 0);
    stage.link(holder).cut(true, true, MS);
    stage.link(other).cut(true, true, MS);
    let next = stage.lock(other);
    let next = stage.spawn(other, async move { next.try_lock().await.unwrap() }).await;
    must(next.is_none() || !guard.is_valid(), "I1 a grant that no replica had was given out, and another holds")
}

/// The clock of the replica that is promoted is a minute behind. The counter of tokens has come with the data.
pub async fn late_successor(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    stage.server.replicate(stage.hop);
    let guard = stage.lock(process).lock().expires_after(1000 * MS).await.unwrap();
    let token = guard.token();
    guard.release().await.map_err(|error| error.to_string())?;
    stage.sleep(2000 * MS).await;
    // The replica hears of what has expired with the next write.
    drop(stage.client(process).lock("other").lock().await.unwrap());
    stage.sleep(8 * stage.hop).await;
    stage.server.nodes.at(1).0.set_clock(stage.server.now() - Duration::from_secs(60));
    stage.server.fail_over(Failover::Orderly, 0);
    stage.link(process).cut(true, true, MS);
    let next = stage.acquires(process).await;
    must(next.token() > token, "I2 a token is smaller, as the clock of its server is behind")
}

/// The address leads to a replica for once, which does not know of the hold yet.
pub async fn asked_a_replica(mut stage: Stage) -> Played {
    let holder = stage.enter(LONG).await;
    stage.server.replicate(LONG);
    let guard = stage.lock(holder).lock().await.unwrap();
    stage.link(holder).lead_astray(1, MS);
    stage.sleep(1000 * MS).await;
    must(guard.is_valid(), "a lease is lost as a replica does not have it")?;
    guard.release().await.map_err(|error| format!("a lease is lost: {error}"))
}
