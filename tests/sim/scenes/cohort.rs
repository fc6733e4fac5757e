//! Scenes about the cohort of a client's non-fair acquisitions.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};

use bowline::{Held, LockGuard, Permit, Result};
use futures::future::{BoxFuture, Either, select, select_all};

use crate::executor::Process;
use crate::guard::What;
use crate::nodes::Failover;
use crate::stage::{LONG, NAME, Played, Stage, must};
use crate::world::MS;

/// That of the semaphore.
const LIMIT: u32 = 3;

/// Most guards of one grant.
const SPAN: usize = 32;

type Waiting = BoxFuture<'static, Result<LockGuard>>;

/// An acquisition that stands in the process's line.
fn stands(stage: &Stage, process: Process) -> Waiting {
    let lock = stage.lock(process);
    let mut waiting: Waiting = Box::pin(async move { lock.lock().non_fair().await });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    waiting
}

/// A hold with a span of tokens, and so many who wait for it.
async fn line(stage: &Stage, process: Process, waiters: usize) -> (LockGuard, Vec<Waiting>) {
    let first = stage.lock(process).lock().non_fair().await.unwrap();
    let mut waiting: Vec<_> = (0..=waiters).map(|_| stands(stage, process)).collect();
    first.release().await.unwrap();
    (waiting.remove(0).await.unwrap(), waiting)
}

/// The members of the cohort come and go, and another process waits.
pub async fn long_cohort(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (mut guard, waiting) = line(&stage, process, 3 * SPAN).await;
    let mut fair = pin!(stage.acquires(other));
    stage.until_waiting(1).await;
    let mut passed = 0;
    for next in waiting {
        guard.release().await.unwrap();
        guard = match select(next, &mut fair).await {
            Either::Left((next, _)) => next.unwrap(),
            Either::Right(_) => return Ok(()),
        };
        passed += 1;
        must(passed < SPAN, "I4 a waiter was passed by more than a span")?;
    }
    must(false, "I4 a waiter was passed by a whole line")
}

/// The members of the cohort come back again and again, so that it asks ahead, and another process comes at some time.
/// They take so long that no budget is used up before the next one is there, and so none is larger than the first.
pub async fn busy_cohort(stage: Stage) -> Played {
    busy(stage, |stage, process, fair| {
        let lock = stage.lock(process);
        Box::pin(async move { if fair { lock.lock().await } else { lock.lock().non_fair().await } })
    })
    .await
}

/// The same with writers.
pub async fn busy_writers(stage: Stage) -> Played {
    busy(stage, |stage, process, fair| {
        let lock = stage.rw_lock(process);
        Box::pin(async move { if fair { lock.write().await } else { lock.write().non_fair().await } })
    })
    .await
}

/// The same with all permits of a semaphore. The cohort has a ticket in the queue all the time, which may stand before
/// the other one's. Each member is a task, because it may have to queue this ticket.
pub async fn busy_permits(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (passed, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let section = stage.hop / 2;
    for _ in 0..4 {
        let (semaphore, executor) = (stage.semaphore(process, LIMIT), stage.client(process).executor().clone());
        let (passed, ended) = (passed.clone(), ended.clone());
        drop(stage.spawn(process, async move {
            while !ended.load(Ordering::Relaxed) {
                let permits = semaphore.acquire_many(LIMIT).non_fair().await.unwrap();
                passed.fetch_add(1, Ordering::Relaxed);
                executor.sleep(section).await;
                permits.release().await.unwrap();
            }
        }));
    }
    let before = 1 + stage.random.below(5 * SPAN as u64) as usize;
    while passed.load(Ordering::Relaxed) < before {
        stage.sleep(section).await;
    }
    let semaphore = stage.semaphore(other, LIMIT);
    let start = passed.load(Ordering::Relaxed);
    let mut fair = pin!(stage.spawn(other, async move { semaphore.acquire_many(LIMIT).await.unwrap() }));
    let fair = loop {
        match select(&mut fair, pin!(stage.sleep(section))).await {
            Either::Left((fair, _)) => break fair,
            // The last acquisitions happen before its ticket is queued, and before the grant is known.
            Either::Right(_) => must(
                passed.load(Ordering::Relaxed) - start <= 3 * SPAN + 8,
                "I4 a waiter was passed by more than three budgets",
            )?,
        }
    };
    ended.store(true, Ordering::Relaxed);
    fair.release().await.unwrap();
    Ok(())
}

async fn busy<G: Held>(
    mut stage: Stage,
    acquires: impl Fn(&Stage, Process, bool) -> BoxFuture<'static, Result<G>>,
) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let stands = |stage: &Stage| {
        let mut waiting = acquires(stage, process, false);
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting
    };
    let first = acquires(&stage, process, false).await.unwrap();
    let mut waiting: VecDeque<_> = (0..4).map(|_| stands(&stage)).collect();
    first.release().await.unwrap();
    let mut guard = waiting.pop_front().unwrap().await.unwrap();
    let (section, before) = (stage.hop / 2, stage.random.below(5 * SPAN as u64));
    for _ in 0..before {
        stage.sleep(section).await;
        guard.release().await.unwrap();
        waiting.push_back(stands(&stage));
        guard = waiting.pop_front().unwrap().await.unwrap();
    }
    let mut fair = pin!(stage.spawn(other, acquires(&stage, other, true)));
    let mut passed = 0;
    let fair = loop {
        stage.sleep(section).await;
        guard.release().await.unwrap();
        waiting.push_back(stands(&stage));
        guard = match select(waiting.pop_front().unwrap(), &mut fair).await {
            Either::Left((next, _)) => next.unwrap(),
            Either::Right((fair, next)) => {
                waiting.push_front(next);
                break fair.unwrap();
            }
        };
        // The last acquisitions happen before its ticket is queued, and before the grant is known.
        passed += 1;
        must(passed <= 2 * SPAN + 8, "I4 a waiter was passed by more than two budgets")?;
    };
    fair.release().await.unwrap();
    let next = waiting.pop_front().unwrap();
    let _guard = stage.within(4 * stage.hop + MS, "I3 the cohort waits for its turn", next).await?.unwrap();
    Ok(())
}

/// A writer becomes a reader after its hold was handed off, at a time when its cohort may have the next budget.
pub async fn downgraded_cohort(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let writes = || {
        let lock = stage.rw_lock(process);
        let mut waiting: BoxFuture<'static, _> = Box::pin(async move { lock.write().non_fair().await });
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting
    };
    let mut guard = stage.rw_lock(process).write().non_fair().await.unwrap();
    let waiting: Vec<_> = (0..=SPAN).map(|_| writes()).collect();
    // After half of the budget it asks for the next one.
    let turns = 1 + stage.random.below(SPAN as u64 - 1) as usize;
    for next in waiting.into_iter().take(turns) {
        guard.release().await.unwrap();
        guard = next.await.unwrap();
        stage.sleep(stage.hop / 2).await;
    }
    let token = guard.token();
    let reading = guard.downgrade().await.unwrap();
    must(reading.token() == token, "I2 a downgrade has changed the token")?;
    let seen = stage.rw_lock(process).inspect().await.unwrap();
    must(seen.readers.iter().any(|reader| reader.token == token), "I2 the server has another token")
}

/// The members of the cohort take their time, and another process waits.
pub async fn slow_cohort(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (mut guard, waiting) = line(&stage, process, SPAN - 1).await;
    let mut fair = pin!(stage.acquires(other));
    stage.until_waiting(1).await;
    let since = stage.machine.now();
    for next in waiting {
        stage.sleep(20 * MS).await;
        guard.release().await.unwrap();
        guard = match select(next, &mut fair).await {
            Either::Left((next, _)) => next.unwrap(),
            Either::Right(_) => return Ok(()),
        };
        must(stage.machine.now() - since <= 101 * MS, "I4 a waiter was passed for longer than a cohort may")?;
    }
    must(false, "I4 a waiter was passed by a whole line")
}

/// An operator takes the lock from the cohort, and another process gets it.
pub async fn robbed_cohort(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    // The first waiting member asks as soon as the hold is known.
    let (guard, waiting) = line(&stage, process, 2).await;
    let fair = stage.acquires(other);
    stage.until_waiting(1).await;
    stage.lock(other).force_release().await.unwrap();
    let fair = fair.await;
    guard.lost().await;
    drop(guard);
    let sleep = pin!(stage.sleep(200 * MS));
    match select(select_all(waiting), sleep).await {
        Either::Left(((next, ..), _)) => {
            must(!next.unwrap().is_valid() || !fair.is_valid(), "I1 a hold that was lost is passed on")
        }
        Either::Right(_) => Ok(()),
    }
}

/// The hold of a cohort that has asked ahead is evicted, and another process has the lock before its ticket is granted.
pub async fn lost_before_ahead(mut stage: Stage) -> Played {
    let (process, other, third) = (stage.enter(LONG).await, stage.enter(LONG).await, stage.enter(LONG).await);
    let (guard, mut waiting) = line(&stage, process, 2).await;
    let fair = stage.acquires(other);
    stage.until_waiting(1).await;
    // More than half of the time for which the cohort may hand the lock on.
    stage.sleep(60 * MS).await;
    guard.release().await.unwrap();
    let guard = waiting.remove(0).await.unwrap();
    stage.until_waiting(2).await;
    let lock = stage.server.keys().iter().position(|key| *key == What::Lock.key(NAME)).unwrap();
    stage.server.evict(lock as u64);
    must(stage.lock(third).try_lock().await.unwrap().is_none(), "I4 who came last got the lock first")?;
    fair.await.release().await.unwrap();
    let late = "I1 the ticket that was queued ahead is granted, and the guard before is valid";
    stage.within(3 * stage.hop + MS, late, pin!(guard.lost())).await?;
    let next = stage.within(stage.hop + MS, "I3 the cohort waits for its turn", waiting.remove(0)).await?.unwrap();
    must(next.is_valid() && next.token() > guard.token(), "I2 the tokens do not grow")
}

/// A failover loses the budget that the cohort has asked for ahead and uses, and not its hold.
pub async fn lost_budget(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    stage.server.replicate(50 * MS);
    let (mut guard, waiting) = line(&stage, process, 5).await;
    for (n, next) in waiting.into_iter().enumerate() {
        // More than half of the time for which the cohort may hand the lock on.
        stage.sleep(60 * MS).await;
        let token = guard.token();
        guard.release().await.unwrap();
        guard = stage.within(8 * stage.hop + 4 * MS, "I3 the cohort waits for its turn", next).await?.unwrap();
        must(guard.token() > token, "I2 the tokens do not grow")?;
        if n == 0 {
            stage.sleep(2 * stage.hop + 5 * MS).await;
            stage.server.fail_over(Failover::Lossy, 0);
            stage.link(process).cut(true, true, MS);
            stage.sleep(16 * stage.hop + 30 * MS).await;
            must(guard.is_valid(), "the new master has the hold")?;
        }
    }
    Ok(())
}

/// The next in the cohort goes as its turn comes.
pub async fn left_cohort(mut stage: Stage) -> Played {
    let process = stage.enter(LONG).await;
    let (guard, mut waiting) = line(&stage, process, 2).await;
    guard.release().await.unwrap();
    drop(waiting.remove(0));
    let next = stage.within(4 * stage.hop + MS, "I3 the next in the cohort waits", waiting.remove(0)).await?;
    must(next.unwrap().is_valid(), "I1 it was given what is lost")
}

/// An operator takes the lock from the cohort, and the member that had it keeps its guard.
pub async fn kept_guard(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let (guard, mut waiting) = line(&stage, process, 1).await;
    stage.lock(other).force_release().await.unwrap();
    let late = "I3 the next in the cohort waits for the member that has lost the lock";
    let next = stage.within(4 * stage.hop + MS, late, waiting.remove(0)).await?;
    must(next.unwrap().is_valid() && !guard.is_valid(), "I1 both hold the lock")
}

/// Many wait for permits, and one holder gives all of them back at once.
pub async fn shared_cohort(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let all = stage.semaphore(other, LIMIT).acquire_many(LIMIT).await.unwrap();
    let stands = || {
        let semaphore = stage.semaphore(process, LIMIT);
        stage.spawn(process, async move { semaphore.acquire().non_fair().await.unwrap() })
    };
    // The others arrive when the ticket of the first one is queued.
    let mut waiting = vec![stands()];
    stage.sleep(2 * stage.hop + MS).await;
    waiting.extend((0..LIMIT).map(|_| stands()));
    stage.sleep(MS).await;
    all.release().await.unwrap();
    // Each member asks when the one before it has its answer.
    let (mut permits, mut rest) = (Vec::new(), select_all(waiting));
    while permits.len() < LIMIT as usize {
        let late = "I3 permits are free, and a member of a cohort waits";
        let (permit, _, others) = stage.within(2 * stage.hop + MS, late, rest).await?;
        permits.push(permit);
        rest = select_all(others);
    }
    Ok(())
}

/// A part of permits is dropped, and the rest is released while a cohort waits for as many as there were.
pub async fn parted_permits(mut stage: Stage) -> Played {
    const LIMIT: u32 = 4;
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    let semaphore = stage.semaphore(process, LIMIT);
    let mut permit = semaphore.acquire_many(3).non_fair().await.unwrap();
    // Only the first of them has asked when the permits are released.
    let stands = |_| {
        let semaphore = semaphore.clone();
        let mut waiting: BoxFuture<'static, Result<Permit>> =
            Box::pin(async move { semaphore.acquire_many(3).non_fair().await });
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waiting
    };
    let waiting: Vec<_> = (0..3).map(stands).collect();
    drop(permit.split(1));
    permit.release().await.unwrap();
    let late = "I3 permits are free, and a cohort waits";
    let (next, _, rest) = stage.within(8 * stage.hop + MS, late, select_all(waiting)).await?;
    let next = next.unwrap();
    drop(rest);
    let semaphore = stage.semaphore(other, LIMIT);
    let all = loop {
        if let Some(all) = semaphore.try_acquire_all().await.unwrap() {
            break all;
        }
        stage.sleep(MS).await;
    };
    must(next.count() + all.count() <= LIMIT, "I5 more permits are held than the limit")
}

/// The server's clock stands before the tokens, so that they are counted, one by one.
pub async fn late_clock(mut stage: Stage) -> Played {
    let (process, other) = (stage.enter(LONG).await, stage.enter(LONG).await);
    stage.rw_lock(other).write().await.unwrap().release().await.unwrap();
    stage.server.step_clock(LONG, false);
    let (lock, next) = (stage.rw_lock(process), stage.rw_lock(process));
    let first = lock.write().non_fair().await.unwrap();
    let second = stage.spawn(process, async move { next.write().non_fair().await.unwrap() });
    stage.sleep(MS).await;
    first.release().await.unwrap();
    let second = second.await;
    let token = second.token();
    second.release().await.unwrap();
    let third = stage.rw_lock(other).write().await.unwrap();
    must(third.token() > token, "I2 a token that was passed on is granted once more")
}
