//! Scenes about clients that hold or wait for much. The judge rests, as it looks at all there is after every script.

use std::time::Duration;

use bowline::LockGuard;
use futures::future::{BoxFuture, join_all};
use futures::stream::{FuturesUnordered, StreamExt};

use crate::executor::Process;
use crate::stage::{LONG, Played, Stage, must};
use crate::world::MS;

/// As many heartbeats, or acquisitions here, are under way at a time.
const AT_ONCE: usize = 256;

async fn holds(stage: &Stage, process: Process, count: usize) -> Vec<LockGuard> {
    let client = stage.client(process);
    let acquired = stage.spawn(process, async move {
        let mut guards = Vec::new();
        for first in (0..count).step_by(AT_ONCE) {
            let locks = (first..count.min(first + AT_ONCE)).map(|n| client.lock(&format!("hold {n}")));
            guards.extend(join_all(locks.map(|lock| async move { lock.lock().await.unwrap() })).await);
        }
        guards
    });
    acquired.await
}

fn all_are_valid(guards: &[LockGuard]) -> Played {
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    must(lost == 0, &format!("a lease is lost although a burst would have renewed it: {lost} of {}", guards.len()))
}

/// A client has more holds than one renewal takes, and its subscription is interrupted all the time.
pub async fn flapping(mut stage: Stage) -> Played {
    stage.server.unwatched();
    let process = stage.enter(LONG).await;
    let guards = holds(&stage, process, 600).await;
    let most = *stage.random.pick(&[500 * MS, 1500 * MS, 4000 * MS]);
    let end = stage.machine.now() + 2 * LONG;
    while stage.machine.now() < end {
        stage.link(process).cut(false, true, MS);
        stage.sleep(most).await;
    }
    all_are_valid(&guards)
}

/// A client that holds much can be reached again a few seconds before the deadlines.
pub async fn late_outage(mut stage: Stage) -> Played {
    stage.server.unwatched();
    let process = stage.enter(LONG).await;
    let guards = holds(&stage, process, 5000).await;
    let first = guards.iter().map(LockGuard::remaining).min().unwrap_or_default();
    let left = stage.random.between(3500 * MS, 5000 * MS);
    stage.link(process).cut(true, true, first - left);
    stage.sleep(first + LONG / 2).await;
    all_are_valid(&guards)
}

/// A client waits for many names, and its connections are interrupted.
pub async fn many_names(mut stage: Stage) -> Played {
    const NAMES: usize = 20_000;
    stage.server.unwatched();
    stage.server.occupy(NAMES, 10 * LONG);
    let process = stage.enter(LONG).await;
    let client = stage.client(process);
    let executor = stage.machine.process(process);
    let ended = stage.spawn(process, async move {
        let mut waiting: FuturesUnordered<BoxFuture<'static, String>> = FuturesUnordered::new();
        for n in 0..NAMES {
            let lock = client.lock(&format!("held {n}"));
            waiting.push(Box::pin(async move { format!("{:?}", lock.lock().await) }));
            if n % AT_ONCE == 0 {
                // Polls all of them until these are known to wait.
                let pause = executor.sleep(50 * MS);
                if let Some(ended) = waiting.by_ref().take_until(pause).next().await {
                    return ended;
                }
            }
        }
        waiting.next().await.unwrap_or_default()
    });
    let mut ended = ended;
    stage.within(Duration::from_secs(8), "", &mut ended).await.map_or(Ok(()), |ended| Err(format!("I3 {ended}")))?;
    let link = stage.link(process).clone();
    link.forget_most();
    link.cut(true, true, 500 * MS);
    stage.within(Duration::from_secs(20), "", &mut ended).await.map_or(Ok(()), |ended| Err(format!("I3 {ended}")))?;
    let (calls, most) = link.calls();
    must(calls >= NAMES, &format!("I3 {calls} of {NAMES} names were asked about after the interruption"))?;
    must(most <= AT_ONCE + 8, &format!("{most} calls are under way at a time"))?;
    stage.kill(process);
    Ok(())
}
