//! Votes that a hold has lost, and waiters that look for free votes.

use bowline::{ErrorKind, MasterState};

use crate::masters::{FAR, Masters, ms, waiter};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    a_larger_token_of_no_hold_does_not_bar_a_hold,
    a_master_that_has_refused_the_proposal_votes_for_the_hold,
    a_contested_waiter_looks_and_changes_nothing,
    a_vote_without_an_end_is_no_reason_to_ask_again_at_once,
    a_lease_that_one_of_three_masters_has_prolonged_is_not_extended,
    a_release_that_finds_one_vote_gone_succeeds,
    a_release_tells_that_a_hold_with_a_bare_majority_has_lost_a_vote,
    the_second_round_asks_no_master_that_was_busy,
    an_acquisition_with_others_in_its_way_waits_for_longer_than_the_retry_timeout,
    a_turn_is_given_up_when_the_first_master_answers_again,
    a_turn_that_is_handed_off_proposes_no_old_token,
    the_label_of_the_holder_is_shown_by_each_master,
}

async fn a_larger_token_of_no_hold_does_not_bar_a_hold(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").lease(ms(1500)).await.unwrap();
    // Each master in turn loses the vote, and a proposal that finds no majority gets there first.
    for (n, votes) in [(0, 1), (1, 2), (2, 3)] {
        masters.all[n].set_counter("a", FAR);
        masters.all[n].eval("return redis.call('DEL', 'bowline:vote:{a}')");
        env.eventually("the vote", async || program.locks.stats().votes_regained == votes).await;
    }
    let state = program.locks.inspect("a").await.unwrap();
    assert!(state.masters.iter().all(|master| master.vote.as_ref().unwrap().token == guard.token()), "{state:?}");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    let next = program.locks.lock("a").await.unwrap();
    assert_eq!(next.token().get(), FAR + 1, "a vote that was given back has lowered a counter");
    next.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_master_that_has_refused_the_proposal_votes_for_the_hold(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all[2].set_counter("a", FAR);
    let guard = program.locks.lock("a").lease(ms(1500)).await.unwrap();
    assert!(guard.token().get() < FAR && program.locks.stats().second_rounds == 0);
    env.eventually("its vote", async || program.locks.stats().votes_regained == 1).await;
    // Now another master may fail.
    masters.all[0].freeze();
    env.sleep(ms(3000)).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    masters.all[0].thaw();
    masters.nothing_is_left().await;
}

/// A hold of another program on the first two masters, whose queue is elsewhere.
fn hold_of_another(masters: &Masters, end: &str) {
    for master in &masters.all[..2] {
        master.allow_forever("bowline:vote:{a}");
        master.eval(&format!("redis.call('HSET', 'bowline:vote:{{a}}', 'x:1', '5') return redis.call({end})"));
    }
}

async fn a_contested_waiter_looks_and_changes_nothing(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hold_of_another(&masters, "'PEXPIRE', 'bowline:vote:{a}', 60000");
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    env.eventually("looks", async || program.locks.stats().contested_rounds > 5).await;
    for counts in &program.counts {
        assert_eq!(counts.of("lock_vote"), 1, "{:?}", counts.all());
        assert!(counts.of("lock_view") >= 5, "{:?}", counts.all());
    }
    let cancelled = program.counts[2].of("lock_cancel");
    assert!(cancelled <= 1, "only the vote of the first round was in vain");
    // One of two is not enough, and is not asked either.
    masters.all[0].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    let guard = env.soon("a majority is free", waiting).await;
    assert_eq!(program.counts[0].of("lock_vote"), 2);
    guard.release().await.unwrap();
    masters.all[1].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    masters.nothing_is_left().await;
}

/// No script makes such a vote, but an operator's command can.
async fn a_vote_without_an_end_is_no_reason_to_ask_again_at_once(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hold_of_another(&masters, "'PTTL', 'bowline:vote:{a}'");
    let start = env.now();
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    env.eventually("looks", async || program.locks.stats().contested_rounds >= 5).await;
    // Each pause is at least 50 ms.
    assert!(env.now() - start >= ms(200), "it has asked five times within {:?}", env.now() - start);
    for master in &masters.all[..2] {
        master.eval("return redis.call('DEL', 'bowline:vote:{a}')");
    }
    env.soon("the votes are free", waiting).await.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_lease_that_one_of_three_masters_has_prolonged_is_not_extended(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").expires_after(ms(3000)).await.unwrap();
    masters.all[1].freeze();
    masters.all[2].freeze();
    let error = guard.extend(ms(3000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(guard.remaining() < ms(3000));
    masters.all[1].thaw();
    masters.all[2].thaw();
    drop(guard);
    masters.nothing_is_left().await;
}

async fn a_release_that_finds_one_vote_gone_succeeds(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    // Each of them is the one that a release hears of first at some time.
    for n in 0..3 {
        let guard = program.locks.lock("a").expires_after(ms(3000)).await.unwrap();
        // A hold begins with two votes, and an extension waits for the third.
        guard.extend(ms(3000)).await.unwrap();
        masters.all[n].eval("return redis.call('DEL', 'bowline:vote:{a}')");
        guard.release().await.unwrap();
        masters.nothing_is_left().await;
    }
}

async fn a_release_tells_that_a_hold_with_a_bare_majority_has_lost_a_vote(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all[2].set_busy("a");
    let guard = program.locks.lock("a").await.unwrap();
    masters.all[1].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(program.locks.stats().lost, 1);
    masters.all[2].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    masters.nothing_is_left().await;
}

async fn the_second_round_asks_no_master_that_was_busy(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all[0].set_counter("a", FAR);
    masters.all[1].set_counter("a", FAR);
    masters.all[2].set_busy("a");
    let guard = program.locks.lock("a").await.unwrap();
    let votes = program.counts.iter().map(|counts| counts.of("lock_vote")).collect::<Vec<_>>();
    assert_eq!((guard.token().get(), votes), (FAR + 1, vec![2, 2, 1]));
    guard.release().await.unwrap();
    masters.all[2].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    masters.nothing_is_left().await;
}

async fn an_acquisition_with_others_in_its_way_waits_for_longer_than_the_retry_timeout(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program_with(|config| config.retry_timeout(ms(700)), |builder| builder.durable(true)).await;
    hold_of_another(&masters, "'PEXPIRE', 'bowline:vote:{a}', 60000");
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    env.eventually("looks", async || program.locks.stats().contested_rounds > 0).await;
    let start = env.now();
    env.eventually("looks for longer", async || env.now() - start > ms(1400)).await;
    for master in &masters.all[..2] {
        master.eval("return redis.call('DEL', 'bowline:vote:{a}')");
    }
    env.soon("the votes are free", waiting).await.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_turn_is_given_up_when_the_first_master_answers_again(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    let first = one.locks.lock("a").await.unwrap();
    let waiting = waiter(&masters, &other).await;
    other.gates[0].freeze();
    env.eventually("rounds against the holder", async || other.locks.stats().contested_rounds > 0).await;
    other.gates[0].thaw();
    env.eventually("it queues at the first master", async || {
        let state = one.locks.inspect("a").await.unwrap();
        state.masters[0].waiters == 1 && state.masters[1].turn.is_none()
    })
    .await;
    first.release().await.unwrap();
    env.soon("the waiter", waiting).await.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// The members of a cohort share a turn. Its tokens are those of the time at which it was granted, and the first member
/// has waited since.
async fn a_turn_that_is_handed_off_proposes_no_old_token(env: Env) {
    for counters_are_lost in [false, true] {
        let masters = Masters::three(&env);
        let program = masters
            .program_with(|config| config.handoff_time(ms(10_000)).lease(ms(20_000)), |builder| builder.durable(true))
            .await;
        hold_of_another(&masters, "'PEXPIRE', 'bowline:vote:{a}', 60000");
        let stats = || program.locks.stats();
        let member = |timeout| {
            let locks = program.locks.clone();
            env.spawn(async move { locks.lock("a").non_fair().timeout(ms(timeout)).await })
        };
        // A cohort that is idle gets one token, and so has nothing to hand off. Its next members ask for more.
        let alone = member(2000);
        env.eventually("it waits for votes", async || stats().contested_rounds > 0).await;
        let first = member(20_000);
        assert_eq!(alone.await.map(drop).unwrap_err().kind(), ErrorKind::TimedOut);
        let before = stats().contested_rounds;
        env.eventually("the next waits for votes", async || stats().contested_rounds > before + 5).await;
        let second = member(20_000);
        env.eventually("it waits for the turn", async || program.clients[0].stats().waiting > 0).await;
        masters.all.iter().for_each(|master| master.eval("return redis.call('DEL', 'bowline:vote:{a}')"));
        let first = env.soon("the first", first).await.unwrap();
        if counters_are_lost {
            // As masters that have restarted without data, and long ago.
            masters.all.iter().for_each(|master| master.eval("return redis.call('DEL', 'bowline:vote:{a}:fence')"));
        }
        let (token, turns) = (first.token(), program.counts[0].of("lock_release"));
        first.release().await.unwrap();
        let second = env.soon("the second", second).await.unwrap();
        assert_eq!(
            program.counts[0].of("lock_release"),
            turns + 1,
            "only the vote is released, and the turn handed off"
        );
        assert!(second.token() > token, "{} after {token}", second.token());
        assert_eq!(stats().second_rounds, 0);
        second.release().await.unwrap();
        masters.nothing_is_left().await;
    }
}

async fn the_label_of_the_holder_is_shown_by_each_master(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program_with(|config| config.label("web-7"), |builder| builder.durable(true)).await;
    let other = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    let labels = async || {
        let state = other.locks.inspect("a").await.unwrap();
        assert_eq!(state.token(), Some(guard.token()));
        let label = |master: MasterState| master.vote.and_then(|vote| vote.label);
        state.masters.into_iter().map(label).collect::<Vec<_>>()
    };
    let all = vec![Some("web-7".to_owned()); 3];
    env.eventually("the labels", async || labels().await == all).await;
    // Without the labels, the vote of a master counts all the same.
    masters.all[1].eval(
        "redis.call('DEL', 'bowline:client:{labels}') return redis.call('DEL', 'bowline:client:{labels}:leases')",
    );
    assert_eq!(labels().await[1], None);
    guard.release().await.unwrap();
    for client in &program.clients {
        client.close().await;
    }
    masters.nothing_is_left().await;
}
