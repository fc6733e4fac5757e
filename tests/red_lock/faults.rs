//! Masters that freeze, come back, or are too many to lose.

use bowline::{ErrorKind, Loss};

use crate::masters::{Masters, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    a_frozen_minority_costs_one_node_timeout_and_is_cleaned_up_when_it_thaws,
    a_frozen_first_master_costs_one_node_timeout,
    without_a_majority_an_acquisition_fails_and_leaves_nothing,
    a_hold_is_lost_at_its_deadline_without_a_majority,
    a_release_without_a_majority_goes_on_in_the_background,
    a_vote_that_is_gone_is_asked_for_again,
    a_master_that_is_back_votes_for_a_live_hold,
    a_turn_that_has_waited_proposes_no_old_token,
}

async fn a_frozen_minority_costs_one_node_timeout_and_is_cleaned_up_when_it_thaws(env: Env) {
    frozen(env, 2).await;
}

async fn a_frozen_first_master_costs_one_node_timeout(env: Env) {
    frozen(env, 0).await;
}

async fn frozen(env: Env, frozen: usize) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all[frozen].freeze();
    for n in 0..8 {
        let guard = program.locks.lock("a").await.unwrap();
        assert_eq!(program.locks.stats().masters_down, 1, "{n}");
        guard.release().await.unwrap();
    }
    // Only the first acquisition asked the frozen master. The other calls are probes and clean-ups in the background.
    let counts = &program.counts[frozen];
    let asked = counts.of("lock_vote") + counts.of("lock_acquire");
    assert_eq!(asked, 1, "{:?}", counts.all());
    masters.all[frozen].thaw();
    env.eventually("it is up", async || program.locks.stats().masters_down == 0).await;
    masters.nothing_is_left().await;
    let guard = program.locks.lock("a").await.unwrap();
    assert!(program.locks.inspect("a").await.unwrap().masters[frozen].vote.is_some());
    guard.release().await.unwrap();
}

async fn without_a_majority_an_acquisition_fails_and_leaves_nothing(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    for n in [0, 2] {
        masters.all[n].freeze();
    }
    let error = env.soon("the failure", program.locks.lock("a")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("2 do not answer"), "{error}");
    // The turn is released in the background.
    masters.nothing_is_left().await;
    let timed_out = program.locks.try_lock("a").timeout(ms(100)).await.map(drop).unwrap_err();
    assert_eq!(timed_out.kind(), ErrorKind::TimedOut);
    assert!(timed_out.to_string().contains("2 do not answer"), "{timed_out}");
    for n in [0, 2] {
        masters.all[n].thaw();
    }
    masters.nothing_is_left().await;
    env.soon("up again", program.locks.lock("a")).await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_hold_is_lost_at_its_deadline_without_a_majority(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").lease(ms(1000)).await.unwrap();
    masters.all[1].freeze();
    masters.all[2].freeze();
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Expired);
    assert!(!guard.is_valid());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    masters.all[1].thaw();
    masters.all[2].thaw();
    masters.nothing_is_left().await;
    env.eventually("no hold is kept", async || program.locks.stats().held == 0).await;
    assert_eq!(program.locks.stats().lost, 1);
}

async fn a_release_without_a_majority_goes_on_in_the_background(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    masters.all[1].freeze();
    masters.all[2].freeze();
    let error = env.soon("the release", guard.release()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(masters.all[0].keys().iter().all(|key| key.ends_with(":fence")), "{:?}", masters.all[0].keys());
    masters.all[1].thaw();
    masters.all[2].thaw();
    masters.nothing_is_left().await;
}

async fn a_vote_that_is_gone_is_asked_for_again(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").lease(ms(2400)).await.unwrap();
    for master in [1, 2] {
        masters.all[master].eval("return redis.call('DEL', 'bowline:vote:{a}')");
        let votes = u64::try_from(master).unwrap();
        env.eventually("the vote", async || program.locks.stats().votes_regained == votes).await;
    }
    env.sleep(ms(3600)).await;
    assert!(guard.is_valid());
    let state = program.locks.inspect("a").await.unwrap();
    assert!(state.masters.iter().all(|master| master.vote.as_ref().unwrap().token == guard.token()));
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_master_that_is_back_votes_for_a_live_hold(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all[1].freeze();
    let guard = program.locks.lock("a").lease(ms(2400)).await.unwrap();
    masters.all[1].thaw();
    env.eventually("its vote", async || program.locks.stats().votes_regained == 1).await;
    // Now another master may fail.
    masters.all[2].freeze();
    env.sleep(ms(3600)).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    masters.all[2].thaw();
    masters.nothing_is_left().await;
}

async fn a_turn_that_has_waited_proposes_no_old_token(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    // A hold of a program whose turn is on another master.
    for master in &masters.all[1..] {
        master.eval("redis.call('HSET', 'bowline:vote:{a}', 'x:1', '5') return redis.call('PEXPIRE', 'bowline:vote:{a}', 60000)");
    }
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    env.eventually("a round", async || program.locks.stats().contested_rounds > 0).await;
    env.sleep(ms(500)).await;
    let meanwhile = program.clients[1].lock("b").lock().await.unwrap().token();
    env.sleep(ms(500)).await;
    // The masters have lost the hold, and the counters of the tokens issued meanwhile.
    for master in &masters.all[1..] {
        master.eval("return redis.call('DEL', 'bowline:vote:{a}')");
    }
    let guard = env.soon("the lock", waiting).await;
    assert!(guard.token() > meanwhile);
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}
