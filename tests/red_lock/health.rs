//! What one request says of a master, and what all that wait have in common.

use bowline::ErrorKind;

use crate::masters::{Masters, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    without_a_majority_all_who_wait_fail_together,
    a_short_lease_says_nothing_about_the_masters,
    a_waiter_of_another_program_learns_that_the_majority_has_gone,
}

/// One after the other has the turn, and none starts the time again.
async fn without_a_majority_all_who_wait_fail_together(env: Env) {
    const WAITERS: u32 = 24;
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    let waiting: Vec<_> = (0..WAITERS)
        .map(|n| {
            let lock = program.locks.lock("a");
            env.spawn(async move { if n % 2 == 0 { lock.await } else { lock.non_fair().await }.map(drop) })
        })
        .collect();
    env.eventually("they wait", async || program.locks.inspect("a").await.unwrap().masters[0].waiters >= 12).await;
    masters.all[1].freeze();
    masters.all[2].freeze();
    let gone = env.now();
    drop(guard);
    for failed in waiting {
        let error = env.soon("the failure", failed).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    // One after the other would take 2 s for each of the waiters, 48 s.
    assert!(env.now() - gone < ms(24_000), "{:?}", env.now() - gone);
    masters.all[1].thaw();
    masters.all[2].thaw();
    masters.nothing_is_left().await;
}

/// It has no turn, and so asks for no votes. It does not wait for what can never be granted.
async fn a_waiter_of_another_program_learns_that_the_majority_has_gone(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    masters.all[0].eval(
        "redis.call('HSET', 'bowline:turn:{a}', 'x:1', '5') return redis.call('PEXPIRE', 'bowline:turn:{a}', 60000)",
    );
    let locks = other.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").await.map(drop) });
    env.eventually("it waits", async || one.locks.inspect("a").await.unwrap().masters[0].waiters == 1).await;
    masters.all[1].freeze();
    masters.all[2].freeze();
    let error = env.soon("the failure", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    masters.all[1].thaw();
    masters.all[2].thaw();
    masters.all[0].eval("return redis.call('DEL', 'bowline:turn:{a}')");
    masters.nothing_is_left().await;
}

async fn a_short_lease_says_nothing_about_the_masters(env: Env) {
    let masters = Masters::three(&env);
    // So long that no busy machine makes a probe fail.
    let program = masters.program_with(|config| config, |builder| builder.node_timeout(ms(60_000)).durable(true)).await;
    program.locks.lock("b").await.unwrap().release().await.unwrap();
    masters.all.iter().for_each(|master| master.freeze());
    let short = program.locks.lock("a").lease(ms(100)).timeout(ms(300)).await.map(drop);
    assert!(short.is_err());
    // The probes of the frozen masters have as long as any other request.
    assert_eq!(program.locks.stats().masters_down, 0);
    masters.all.iter().for_each(|master| master.thaw());
    program.locks.lock("b").await.unwrap().release().await.unwrap();
    let stats = program.locks.stats();
    assert_eq!((stats.masters_down, stats.failed_rounds), (0, 0), "{stats:?}");
    masters.nothing_is_left().await;
}
