//! Small situations that chance alone brings about too seldom, each a few lines; the seed decides every delay. Most are
//! there because of a mutant.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss};
use futures::future::BoxFuture;

use crate::scripts::Scripts;
use crate::stage::{LONG, Played, Stage, must, play};
use crate::world::MS;

pub type Scene = fn(Stage) -> BoxFuture<'static, Played>;

macro_rules! scenes {
    ($($name:ident)+) => {
        /// Every scene by its name.
        pub const SCENES: &[(&str, Scene)] = &[$((stringify!($name), |stage| Box::pin($name(stage)))),+];
    };
}

scenes! {
    missed_grant missed_revocation lost_data expired_reentry slow_answer swallowed_renewal frozen_work deaf_waiter
    crashed_crowd expired_crowd full_of_the_dead newcomers second_copy
}

/// A waiter's message is lost, and its subscription is back a moment later.
async fn missed_grant(mut stage: Stage) -> Played {
    let (holder, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    let outage = stage.random.between(MS, 300 * MS);
    let cut = stage.random.between(Duration::ZERO, stage.hop);
    let release = stage.spawn(holder, guard.release());
    stage.sleep(cut).await;
    stage.link(waiter).cut(false, true, outage);
    stage.within(outage + 6 * stage.hop + MS, "I3 the waiter knows nothing of its lock", waiting).await?;
    release.await.map_err(|error| error.to_string())
}

/// An operator takes the lock from a holder that does not listen for a moment.
async fn missed_revocation(mut stage: Stage) -> Played {
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

/// The server loses its data, and somebody else acquires: the old holder is told by its next renewal.
async fn lost_data(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (old, new) = (stage.enter(lease).await, stage.enter(lease).await);
    let guard = stage.lock(old).lock().await.unwrap();
    let held = stage.random.between(Duration::ZERO, 5000 * MS);
    stage.sleep(held).await;
    stage.server.flush();
    let _other = stage.lock(new).lock().await.unwrap();
    let lost = pin!(guard.lost());
    let loss = stage.within(lease / 3 + 2 * stage.hop, "I1 a hold that the server does not have is valid", lost).await?;
    must(loss == Loss::Gone, "I1 the hold is gone, and the client says that it expired")
}

/// A lease runs out while its guard is still there, and the holder asks for the lock again.
async fn expired_reentry(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let holder = Holder::new();
    let lock = stage.lock(process);
    let outer = lock.lock().holder(&holder).lease(500 * MS).await.unwrap();
    outer.lost().await;
    let inner = lock.lock().holder(&holder).await.unwrap();
    must(inner.is_valid(), "I1 a hold was over when it was entered")?;
    must(inner.token() > outer.token(), "I2 a new hold has the old token")
}

/// The answer takes longer than the lease it grants.
async fn slow_answer(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let freeze = stage.random.between(150 * MS, 500 * MS);
    stage.server.freeze(freeze);
    let guard = stage.lock(process).lock().lease(100 * MS).await.unwrap();
    must(guard.is_valid(), "I1 a hold was over when it was given out")
}

/// A renewal is swallowed by a connection that breaks soon after.
async fn swallowed_renewal(mut stage: Stage) -> Played {
    let process = stage.enter(3000 * MS).await;
    let guard = stage.lock(process).lock().await.unwrap();
    // The first renewal comes between 900 and 1000 ms after the grant.
    stage.sleep(850 * MS).await;
    stage.link(process).mute(200 * MS);
    stage.sleep(10_000 * MS).await;
    must(guard.is_valid(), "a lease is lost although the server could be reached for two thirds of it")
}

/// A process stands still past the end of its lease, and goes on: the work under the lock must not.
async fn frozen_work(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let guard = Arc::new(stage.lock(process).lock().lease(500 * MS).await.unwrap());
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

/// A waiter whose subscription is down for long asks for itself.
async fn deaf_waiter(mut stage: Stage) -> Played {
    let lease = 3000 * MS;
    let (holder, waiter) = (stage.enter(lease).await, stage.enter(lease).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.link(waiter).cut(false, true, 10 * lease);
    stage.sleep(4 * stage.hop).await;
    guard.release().await.unwrap();
    stage.within(lease / 3 + 2 * stage.hop + MS, "I3 the waiter does not get the free lock", waiting).await?;
    Ok(())
}

/// A process dies, and all its waiters stand before a living one.
async fn crashed_crowd(mut stage: Stage) -> Played {
    let (holder, crowd, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let _tasks: Vec<_> = (0..40).map(|_| stage.acquires(crowd)).collect();
    stage.until_waiting(40).await;
    let waiting = stage.acquires(waiter);
    stage.until_waiting(41).await;
    stage.kill(crowd);
    stage.sleep(4 * stage.hop).await;
    let _release = stage.spawn(holder, guard.release());
    stage.within(2 * stage.hop + MS, "I3 the living waiter does not get the lock", waiting).await?;
    Ok(())
}

/// The same, but their tickets have expired, and there are more of them than one script may drop.
async fn expired_crowd(mut stage: Stage) -> Played {
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
    stage.within(4 * stage.hop + MS, "I3 the living waiter does not get the lock", waiting).await?;
    Ok(())
}

/// As many have died in the queue as may wait in it.
async fn full_of_the_dead(mut stage: Stage) -> Played {
    let (holder, crowd, waiter) = (stage.enter(LONG).await, stage.enter(500 * MS).await, stage.enter(LONG).await);
    let guard = stage.lock(holder).lock().await.unwrap();
    let _tasks: Vec<_> = (0..3).map(|_| stage.acquires(crowd)).collect();
    stage.until_waiting(3).await;
    stage.kill(crowd);
    stage.sleep(600 * MS).await;
    let lock = stage.lock(waiter);
    let mut waiting = stage.spawn(waiter, async move { lock.lock().max_waiters(3).await });
    // Refused it would be by now.
    let refused = stage.within(4 * stage.hop, "", &mut waiting).await.is_ok_and(|acquired| {
        acquired.is_err_and(|error| error.kind() == ErrorKind::QueueFull)
    });
    must(!refused, "I3 the dead fill the queue")?;
    let _release = stage.spawn(holder, guard.release());
    stage.within(2 * stage.hop + MS, "I3 the waiter does not get the lock", waiting).await?.unwrap();
    Ok(())
}

/// A lease ends, and before the waiter can ask, others do who do not wait.
async fn newcomers(mut stage: Stage) -> Played {
    let (holder, waiter, other) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    let _guard = stage.lock(holder).lock().lease(500 * MS).await.unwrap();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.sleep(2 * stage.hop).await;
    stage.link(waiter).cut(true, false, 1500 * MS);
    let mut waiting = waiting;
    loop {
        match stage.within(MS, "", &mut waiting).await {
            Ok(_) => return Ok(()),
            Err(_) => {
                let barged = stage.lock(other).try_lock().await.unwrap();
                let has = stage.within(2 * stage.hop, "", &mut waiting).await.is_ok();
                must(barged.is_none() || has, "I4 who came last got the lock first")?;
                if has {
                    return Ok(());
                }
            }
        }
    }
}

/// The first copy of a request is queued and granted unnoticed, and the grant expires. The second has just queued up
/// behind another holder, when the message about the first grant arrives: it says the same wire id.
async fn second_copy(mut stage: Stage) -> Played {
    let lease = 1500 * MS;
    let (other, waiter) = (stage.enter(LONG).await, stage.enter(lease).await);
    let guard = stage.lock(other).lock().await.unwrap();
    stage.link(waiter).lag(2500 * MS, 3000 * MS);
    let mut waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    stage.link(waiter).cut(true, false, 1700 * MS);
    guard.release().await.unwrap();
    let guard = stage.lock(other).lock().await.unwrap();
    let both = stage.within(3000 * MS, "", &mut waiting).await.is_ok();
    must(!both, "I1 the waiter got a lock that somebody else holds")?;
    must(guard.is_valid(), "the other holder lost its lock")?;
    let token = guard.token();
    let _release = stage.spawn(other, guard.release());
    let guard = stage.within(2 * stage.hop + MS, "I3 the waiter does not get the lock", waiting).await?;
    must(guard.token() > token, "I2 the waiter got an old token")
}

/// Without a mutant, nothing is found: what a mutant is caught by is the mutant's.
#[test]
fn scenes() {
    let seeds = crate::number("BOWLINE_SIM_SEEDS").unwrap_or(if cfg!(debug_assertions) { 10 } else { 200 });
    for (name, scene) in SCENES {
        for seed in 0..seeds {
            assert_eq!(play(seed, *scene, Scripts::default()), Ok(()), "{name}, seed {seed}");
        }
    }
}
