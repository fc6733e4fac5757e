//! Masters that have restarted, and may have lost what they granted.

use bowline::{ConfigBuilder, ErrorKind, Loss, MasterState};

use crate::masters::{Masters, ms};
use crate::support::env::{Env, on_runtime, on_the_embedded_server};

on_the_embedded_server! {
    a_restarted_master_counts_when_it_has_been_up_for_the_longest_lease,
    a_hold_does_not_live_on_the_votes_of_restarted_masters,
    durable_masters_count_at_once,
    new_masters_count_at_once_until_they_restart,
    a_waiter_whose_masters_have_restarted_fails_when_its_time_is_over,
    an_extension_that_only_young_masters_complete_fails,
    a_vote_whose_extension_is_under_way_is_released_with_the_others,
}

on_runtime! {
    run, tokio_multi, TokioMulti,
    real_masters_that_have_just_started_count_after_the_longest_lease,
    a_hold_with_a_waiter_outlives_restarts_of_all_masters_without_data
}

async fn a_restarted_master_counts_when_it_has_been_up_for_the_longest_lease(env: Env) {
    let mut masters = Masters::three(&env);
    let (one, other) = (young_program(&masters).await, young_program(&masters).await);
    // One program knows the master's first process. The other one has never seen it.
    let guard = one.locks.lock("a").await.unwrap();
    masters.all[1].restart(false);
    masters.all[2].restart(false);
    let restarted = env.now();
    let second = env.soon("the second", other.locks.lock("a")).await.unwrap();
    assert!(env.now() - restarted >= ms(1500), "a young master has voted after {:?}", env.now() - restarted);
    assert!(!guard.is_valid(), "two hold");
    assert!(other.locks.stats().contested_rounds + other.locks.stats().failed_rounds > 0);
    assert!(second.token() > guard.token());
    second.release().await.unwrap();
    drop(guard);
    masters.nothing_is_left().await;
}

/// The longest lease is 1.5 s.
async fn young_program(masters: &Masters) -> crate::masters::Program {
    masters.program_with(|config| config.lease(ms(1500)).retry_timeout(ms(6000)), |builder| builder).await
}

async fn a_hold_does_not_live_on_the_votes_of_restarted_masters(env: Env) {
    let mut masters = Masters::three(&env);
    let program = young_program(&masters).await;
    let guard = program.locks.lock("a").lease(ms(800)).await.unwrap();
    masters.all[0].restart(false);
    masters.all[1].restart(false);
    // The votes come back at once, but are too young to keep the hold.
    env.eventually("votes", async || program.locks.stats().votes_regained == 2).await;
    let state = program.locks.inspect("a").await.unwrap();
    assert_eq!(state.masters.iter().map(|master| master.counts).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(state.token(), None);
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Expired);
    drop(guard);
    masters.nothing_is_left().await;
}

async fn new_masters_count_at_once_until_they_restart(env: Env) {
    let mut masters = Masters::three(&env);
    // Another process than the one that a program has heard of.
    masters.all.iter_mut().for_each(|master| master.restart(false));
    let program = masters.program_with(|config| config.lease(ms(1500)), |builder| builder.new_masters(true)).await;
    program.locks.try_lock("a").await.unwrap().expect("they count").release().await.unwrap();
    assert_eq!(program.locks.stats().failed_rounds, 0, "they count at once");
    masters.nothing_is_left().await;
    masters.all.iter_mut().for_each(|master| master.restart(false));
    let restarted = env.now();
    let guard = env.soon("they count again", program.locks.lock("a")).await.unwrap();
    assert!(env.now() - restarted >= ms(1500), "a master that has restarted votes after {:?}", env.now() - restarted);
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// The vote of the restarted master is extended, and counts a minute later.
async fn an_extension_that_only_young_masters_complete_fails(env: Env) {
    let mut masters = Masters::three(&env);
    let build = |builder: bowline::RedLockBuilder| builder.longest_lease(ms(60_000)).new_masters(true);
    let program = masters.program_with(|config| config, build).await;
    program.locks.lock("a").await.unwrap().release().await.unwrap();
    masters.all[2].restart(false);
    for is_known in [false, true] {
        let guard = program.locks.lock("a").expires_after(ms(20_000)).await.unwrap();
        masters.all_vote(&program, "a").await;
        program.gates[1].freeze();
        if is_known {
            env.eventually("it is known to be down", async || {
                let _ = program.locks.try_lock("b").await;
                program.locks.stats().masters_down == 1
            })
            .await;
        }
        let error = env.soon("the extension", guard.extend(ms(50_000))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:#}");
        assert!(guard.remaining() < ms(20_000));
        program.gates[1].thaw();
        env.soon("the extension", guard.extend(ms(50_000))).await.unwrap();
        assert!(guard.remaining() > ms(45_000));
        guard.release().await.unwrap();
    }
    masters.nothing_is_left().await;
}

/// The extension does not wait for the vote of the restarted master. The release needs it, because another master does
/// not answer.
async fn a_vote_whose_extension_is_under_way_is_released_with_the_others(env: Env) {
    let mut masters = Masters::three(&env);
    let build = |builder: bowline::RedLockBuilder| builder.longest_lease(ms(60_000)).new_masters(true);
    let program = masters.program_with(|config| config, build).await;
    program.locks.lock("a").await.unwrap().release().await.unwrap();
    masters.all[2].restart(false);
    let guard = program.locks.lock("a").expires_after(ms(20_000)).await.unwrap();
    masters.all_vote(&program, "a").await;
    program.gates[2].hold_up("lock_renew", 0);
    env.soon("the extension", guard.extend(ms(50_000))).await.unwrap();
    program.gates[1].freeze();
    env.soon("the release", guard.release()).await.unwrap();
    let vote = "bowline:vote:{a}".to_owned();
    assert!(!masters.all[2].keys().contains(&vote), "{:?}", masters.all[2].keys());
    assert!(masters.all[1].keys().contains(&vote), "{:?}", masters.all[1].keys());
    program.gates[1].thaw();
    program.gates[2].thaw();
    masters.nothing_is_left().await;
}

/// The masters answer all the time, so nothing but the turn tells the waiter that it waits no longer for another hold.
async fn a_waiter_whose_masters_have_restarted_fails_when_its_time_is_over(env: Env) {
    let mut masters = Masters::three(&env);
    let configure = |config: ConfigBuilder| config.lease(ms(3000)).retry_timeout(ms(2000));
    let build = |builder: bowline::RedLockBuilder| builder.longest_lease(ms(60_000)).new_masters(true);
    let [holder, other] = [masters.program_with(configure, build).await, masters.program_with(configure, build).await];
    // The other one hears of the processes that are to end.
    other.locks.lock("a").await.unwrap().release().await.unwrap();
    let guard = holder.locks.lock("a").await.unwrap();
    let locks = other.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").await.map(drop) });
    // The waiter has looked at the masters by then, and waits in a queue that is served.
    env.sleep(ms(1500)).await;
    masters.all[1].restart(false);
    masters.all[2].restart(false);
    guard.release().await.ok();
    let error = env.soon("the end", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("2 have restarted"), "{error}");
    masters.nothing_is_left().await;
}

async fn durable_masters_count_at_once(env: Env) {
    let mut masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    masters.all.iter_mut().for_each(|master| master.restart(true));
    assert!(program.locks.try_lock("a").await.unwrap().is_none());
    guard.release().await.unwrap();
    program.locks.try_lock("a").await.unwrap().expect("it is free").release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn real_masters_that_have_just_started_count_after_the_longest_lease(env: Env) {
    let masters = Masters::three(&env);
    let build = |builder: bowline::RedLockBuilder| builder.longest_lease(ms(30_000));
    // Long enough for all masters to answer, also on a busy machine.
    let program = masters.program_with(|config| config.retry_timeout(ms(4000)), build).await;
    let error = program.locks.lock("a").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("3 have restarted"), "{error}");
    let program = young_program(&masters).await;
    program.locks.lock("a").await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_hold_with_a_waiter_outlives_restarts_of_all_masters_without_data(env: Env) {
    let mut masters = Masters::three(&env);
    let configure = |config: ConfigBuilder| config.lease(ms(3000)).retry_timeout(ms(60_000));
    let holder = masters.program_with(configure, |builder| builder).await;
    let other = masters.program_with(configure, |builder| builder).await;
    let guard = env.soon("the masters are old enough", holder.locks.lock("a")).await.unwrap();
    let locks = other.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(120_000)).await.unwrap() });
    for n in 0..3 {
        let regained = holder.locks.stats().votes_regained;
        holder.gates[n].freeze();
        masters.all[n].restart(false);
        // A proposal that finds no majority is the first one there.
        masters.all[n].set_counter("a", 5_000_000_000_000_000);
        holder.gates[n].thaw();
        env.eventually("the vote", async || holder.locks.stats().votes_regained > regained).await;
        // It counts when the master has been up for the longest lease.
        env.eventually("the vote counts", async || {
            let state = holder.locks.inspect("a").await.unwrap();
            let votes = |master: &MasterState| master.vote.as_ref().map(|vote| vote.token) == Some(guard.token());
            state.masters.iter().all(|master| votes(master) && master.counts)
        })
        .await;
        assert!(guard.is_valid(), "master {n} has restarted: {:?}", holder.locks.stats());
    }
    let token = guard.token();
    guard.release().await.unwrap();
    let next = env.soon("the waiter", waiting).await;
    assert!(next.token() > token);
    next.release().await.unwrap();
    masters.nothing_is_left().await;
}
