//! Scenes about requests that are executed twice, late or at the wrong time.

use std::time::Duration;

use bowline::wire::{self, Attempt, PREFIX};
use bowline::{Reply, Upgrade};
use futures::future::select;

use crate::guard::What;
use crate::network::{Backend, Way};
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// The first copy of a request is queued and granted unnoticed, and the grant expires. The second has just queued up
/// behind another holder, when the message about the first grant arrives: it says the same attempt id.
pub async fn second_copy(mut stage: Stage) -> Played {
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
    must(!both, "I1 the waiter got a lock that another client holds")?;
    must(guard.is_valid(), "the other holder lost its lock")?;
    let token = guard.token();
    let _release = stage.spawn(other, guard.release());
    // The client has sent the request more than once, so it asks again.
    let guard = stage.within(4 * stage.hop + MS, "I3 the waiter does not get the lock", waiting).await?;
    must(guard.token() > token, "I2 the waiter got an old token")
}

/// The answer to a request is lost unnoticed. The grant comes as a message.
pub async fn lost_answer(mut stage: Stage) -> Played {
    let (other, waiter) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.lock(other).lock().await.unwrap();
    stage.link(waiter).silence();
    let waiting = stage.acquires(waiter);
    stage.until_waiting(1).await;
    guard.release().await.unwrap();
    stage.within(2 * stage.hop + MS, "I3 the waiter does not hear that it has the lock", waiting).await.map(drop)
}

/// The task that releases stops before the reply, which says that its own client is next; or the reply is lost.
pub async fn unread_reply(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let guard = stage.lock(process).lock().await.unwrap();
    let waiting = stage.acquires(process);
    stage.until_waiting(1).await;
    let (looks, cut) = (stage.random.between(Duration::ZERO, 2 * stage.hop), stage.random.one_in(2));
    let executor = stage.machine.process(process);
    let _released = stage.spawn(process, async move {
        let pause = executor.sleep(if cut { LONG } else { looks });
        select(Box::pin(guard.release()), pause).await;
    });
    stage.sleep(looks).await;
    if cut {
        stage.link(process).cut(true, false, MS);
    }
    // The longest pause before a second request, if the first copy was lost.
    let limit = 75 * MS + 8 * stage.hop;
    stage.within(limit, "I3 the waiter does not hear that it has the lock", waiting).await.map(drop)
}

/// The very same request is executed again, later than it was meant to be.
pub async fn late_copy(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let not_after = (stage.server.now() + 100 * MS).as_millis() as u64;
    let attempt = Attempt { not_after, ..Attempt::new(wire::client(1), 1, LONG) };
    let request = What::Lock.resource(NAME).acquire(attempt, true);
    let token = |reply: Result<_, _>| match reply.map(wire::in_full) {
        Ok(Reply::Array(parts)) => parts.get(1).cloned(),
        _ => None,
    };
    let execute = |late| {
        let way = Way { asking: false, late };
        request.with_call(|call| stage.server.execute(stage.server.primary(), process, call, way))
    };
    let first = token(execute(false));
    stage.sleep(500 * MS).await;
    let second = token(execute(true));
    must(first.is_some() && first == second, "I10 a hold's own request is refused")
}

/// All free permits are taken, and one of them is given back. Each request is executed twice.
pub async fn copied_permits(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let permits = wire::Resource::semaphore(PREFIX, NAME, 4).unwrap();
    let attempt = Attempt::new(wire::client(1), 1, LONG);
    let way = Way { asking: false, late: false };
    let execute = |request: &wire::Request| {
        request.with_call(|call| stage.server.execute(stage.server.primary(), process, call, way))
    };
    let number = |reply: Result<_, _>, at: usize| match reply {
        Ok(Reply::Array(parts)) => parts.get(at).cloned(),
        _ => None,
    };
    let drain = permits.drain(attempt);
    let taken = [execute(&drain), execute(&drain)].map(|reply| number(reply, 1));
    must(taken == [const { Some(Reply::Integer(4)) }; 2], "I10 a second copy is not told what the first one took")?;
    let part = permits.give_back(attempt, 3);
    let _copies = [execute(&part), execute(&part)];
    let used = number(execute(&permits.inspect_permits(0)), 1);
    must(used == Some(Reply::Integer(3)), "I10 a second copy gives back more")
}

/// A connection breaks, and what it carried is executed later, when the client has given up.
pub async fn late_request(mut stage: Stage) -> Played {
    let (holder, process) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let _guard = stage.lock(holder).lock().await.unwrap();
    let lock = stage.lock(process);
    let waiting = stage.spawn(process, async move { lock.lock().timeout(100 * MS).await.is_err() });
    // The request is sent but has not arrived.
    stage.sleep(MS / 20).await;
    stage.link(process).cut(true, false, 10 * MS);
    waiting.await;
    // The client's estimate of the server's clock may be wrong by a tenth of a second.
    stage.sleep(200 * MS + 2 * stage.hop).await;
    // Until then the request may still be executed, and its ticket stays for one lease.
    let known = stage.server.waiters(NAME);
    stage.sleep(7000 * MS).await;
    must(stage.server.waiters(NAME) <= known, "I7 a request was executed long after it was given up")
}

/// An upgrade is refused, but a copy of the request is still under way when those who were in its way have gone.
pub async fn refused_upgrade(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let guard = stage.rw_lock(process).read().await.unwrap();
    let in_the_way = stage.rw_lock(other).read().await.unwrap();
    let upgrading = stage.spawn(process, guard.try_upgrade());
    // The request is sent but has not arrived.
    stage.sleep(MS / 20).await;
    stage.link(process).cut(true, false, 10 * MS);
    let Upgrade::Shared(guard) = upgrading.await.unwrap() else {
        return Err("I6 it writes beside a reader".to_owned());
    };
    in_the_way.release().await.unwrap();
    // No copy arrives later than that.
    stage.sleep(7000 * MS).await;
    let reads = stage.rw_lock(other).try_read().await.unwrap().is_some();
    must(reads && guard.is_valid(), "I10 a refused upgrade took effect")
}

/// The server's clock is set forward: the next request seems to be too late.
pub async fn clock_forward(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    stage.server.step_clock(60_000 * MS, true);
    let acquired = stage.acquires(process);
    drop(stage.within(4 * stage.hop + MS, "I3 the client does not learn what time it is", acquired).await?);
    Ok(())
}
