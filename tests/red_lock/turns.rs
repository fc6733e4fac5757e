//! The queue: in order, and over to the next master if the first one is gone.

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::masters::{Masters, ms, waiter};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    a_waiter_goes_on_when_the_master_of_its_turn_is_frozen,
    a_try_takes_no_turn_from_a_waiter,
    non_fair_acquisitions_share_the_turn,
    acquisitions_that_share_a_turn_do_not_share_the_name_that_they_propose_by,
}

async fn a_waiter_goes_on_when_the_master_of_its_turn_is_frozen(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    let first = one.locks.lock("a").await.unwrap();
    let waiting = waiter(&masters, &other).await;
    masters.all[0].freeze();
    // The other program queues at the second master, and finds the votes taken.
    env.eventually("rounds against the holder", async || other.locks.stats().contested_rounds > 0).await;
    assert!(first.is_valid());
    let token = first.token();
    first.release().await.unwrap();
    let second = env.soon("the second", waiting).await;
    assert!(second.token() > token);
    assert_eq!(other.locks.inspect("a").await.unwrap().token(), Some(second.token()));
    second.release().await.unwrap();
    masters.all[0].thaw();
    masters.nothing_is_left().await;
}

async fn a_try_takes_no_turn_from_a_waiter(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let first = program.locks.lock("a").await.unwrap();
    let waiting = waiter(&masters, &program).await;
    assert!(program.locks.try_lock("a").await.unwrap().is_none());
    first.release().await.unwrap();
    let second = env.soon("the waiter", waiting).await;
    assert!(program.locks.try_lock("a").timeout(ms(500)).await.unwrap().is_none());
    second.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn non_fair_acquisitions_share_the_turn(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let locks = program.locks.clone();
            env.spawn(async move {
                for _ in 0..5 {
                    let guard = locks.lock("a").non_fair().await.unwrap();
                    assert!(guard.is_valid());
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        env.soon("all are served", task).await;
    }
    let stats = program.locks.stats();
    assert_eq!((stats.acquired, stats.contested_rounds), (40, 0), "{stats:?}");
    assert!(program.counts[0].of("lock_acquire") < 40, "{:?}", program.counts[0].all());
    masters.nothing_is_left().await;
}

/// A master accepts the same token twice from one hold only.
async fn acquisitions_that_share_a_turn_do_not_share_the_name_that_they_propose_by(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let first = program.locks.lock("a").non_fair().await.unwrap();
    let mut tasks = FuturesUnordered::new();
    for _ in 0..3 {
        let locks = program.locks.clone();
        tasks.push(env.spawn(async move { locks.lock("a").non_fair().timeout(ms(20_000)).await.unwrap() }));
    }
    env.eventually("they wait", async || program.clients[0].stats().waiting == 3).await;
    let mut owners = vec![masters.all[1].owner("a")];
    first.release().await.unwrap();
    while let Some(guard) = env.soon("the next", tasks.next()).await {
        owners.push(masters.all[1].owner("a"));
        guard.release().await.unwrap();
    }
    assert!(program.clients[0].stats().passed_on > 0, "no turn was handed off");
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners.len(), 4, "{owners:?}");
    masters.nothing_is_left().await;
}
