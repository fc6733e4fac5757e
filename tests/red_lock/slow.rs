//! Masters that are slower than a majority: no grant waits for them.

use bowline::Loss;
use futures::future::join_all;

use crate::masters::{FAR, Masters, Program, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    a_grant_does_not_wait_for_a_slow_master,
    a_vote_that_comes_after_the_release_is_released_with_the_others,
    a_vote_that_was_overtaken_by_its_release_is_cancelled,
    a_vote_of_the_second_round_that_was_overtaken_is_cancelled,
    a_late_vote_is_given_back_however_its_hold_ends,
    a_master_that_is_not_known_is_waited_for,
    programs_that_name_their_masters_wait_for_all,
    a_claim_waits_for_its_turn,
    an_extension_waits_for_all_votes,
    an_extension_waits_once_for_a_silent_master,
    an_extension_waits_for_silent_masters_that_it_needs,
    a_vote_is_asked_for_once_until_its_time_is_over,
    no_grant_waits_for_a_master_that_has_just_become_silent,
    a_claim_that_is_refused_queues_up_at_once,
}

/// A program whose requests have a time limit of 5 s, which a slow master does not reach. It has heard of all masters.
async fn patient(masters: &Masters) -> Program {
    let config =
        |config: bowline::ConfigBuilder| config.lease(ms(60_000)).command_timeout(ms(10_000)).retry_timeout(ms(60_000));
    let program = masters.program_with(config, |builder| builder.durable(true).node_timeout(ms(5_000))).await;
    hear(masters, &program).await;
    program
}

async fn hear(masters: &Masters, program: &Program) {
    program.locks.lock("heard of").await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
    program.counts.iter().for_each(|counts| counts.reset());
}

async fn a_grant_does_not_wait_for_a_slow_master(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    // The first master gives the turn.
    for slow in [1, 2] {
        program.gates[slow].freeze();
        let guard = env.soon("two are enough", program.locks.lock("a")).await.unwrap();
        let stats = program.locks.stats();
        assert_eq!((stats.masters_down, stats.failed_rounds), (0, 0), "it did not wait until the master was silent");
        let votes = masters.all.iter().map(|master| master.keys().iter().any(|key| key.ends_with(":vote:{a}")));
        let votes: Vec<_> = votes.collect();
        assert_eq!(votes, [0, 1, 2].map(|n| n != slow));
        program.gates[slow].thaw();
        masters.all_vote(&program, "a").await;
        assert_eq!(program.locks.stats().votes_regained, 0, "the first request has got it");
        guard.release().await.unwrap();
        masters.nothing_is_left().await;
    }
}

async fn a_vote_that_comes_after_the_release_is_released_with_the_others(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    program.gates[2].answer_after(ms(1_000));
    let guard = env.soon("two are enough", program.locks.lock("a")).await.unwrap();
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
    // Long after all answers.
    env.sleep(ms(2_500)).await;
    let (counts, third) = (&program.counts[2], program.counts[2].all());
    assert_eq!((counts.of("lock_vote"), counts.of("lock_release")), (1, 1), "{third:?}");
    assert_eq!(counts.of("lock_cancel"), 0, "the answer to the release is enough: {third:?}");
}

/// Each of the two calls waits for a connection, or the first one is lost and sent again.
async fn a_vote_that_was_overtaken_by_its_release_is_cancelled(env: Env) {
    overtaken(env, |_| {}, 0).await;
}

/// What is released is the vote of the first round, which has not accepted the token.
async fn a_vote_of_the_second_round_that_was_overtaken_is_cancelled(env: Env) {
    overtaken(env, |masters| masters.all.iter().for_each(|master| master.set_counter("a", FAR)), 1).await;
}

/// The third master gets the last of `earlier + 1` requests for its vote after the release.
async fn overtaken(env: Env, prepare: impl FnOnce(&Masters), earlier: u32) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    prepare(&masters);
    program.gates[2].hold_up("lock_vote", earlier);
    let guard = env.soon("two are enough", program.locks.lock("a")).await.unwrap();
    guard.release().await.unwrap();
    let third = &program.counts[2];
    env.eventually("the release has overtaken it", async || third.of("lock_release") == 1).await;
    // The release is executed, too: it is not held up.
    env.sleep(ms(100)).await;
    program.gates[2].thaw();
    env.eventually("it is cancelled", async || third.of("lock_cancel") == 1).await;
    masters.nothing_is_left().await;
    assert_eq!(third.of("lock_vote"), u64::from(earlier) + 1, "{:?}", third.all());
    assert_eq!(program.locks.stats().masters_down, 0);
}

/// Its answer could tell that it is one of the others.
async fn a_master_that_is_not_known_is_waited_for(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    waits_for_the_third(&env, &masters, &program).await;
}

/// Its answer could tell that it votes for programs with another set of masters.
async fn programs_that_name_their_masters_wait_for_all(env: Env) {
    let masters = Masters::three(&env);
    let named = |builder: bowline::RedLockBuilder| builder.durable(true).masters_version("masters", 1);
    let program = masters.program_with(|config| config, named).await;
    hear(&masters, &program).await;
    waits_for_the_third(&env, &masters, &program).await;
}

async fn waits_for_the_third(env: &Env, masters: &Masters, program: &Program) {
    program.gates[2].freeze();
    let guard = env.soon("its time is over", program.locks.lock("a")).await.unwrap();
    assert_eq!(program.locks.stats().masters_down, 1);
    program.gates[2].thaw();
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// The hold ends in each way before the third master has answered.
async fn a_late_vote_is_given_back_however_its_hold_ends(env: Env) {
    for end in ["dropped", "expired", "closed"] {
        let masters = Masters::three(&env);
        let program = patient(&masters).await;
        program.gates[2].answer_after(ms(1_500));
        let lock = program.locks.lock("a").expires_after(ms(800));
        let guard = env.soon("two are enough", lock).await.unwrap();
        if end == "closed" {
            join_all(program.clients.iter().map(|client| client.close())).await;
        }
        if end != "dropped" {
            let loss = if end == "closed" { Loss::Closed } else { Loss::Expired };
            assert_eq!(env.soon("the loss", guard.lost()).await, loss);
        }
        drop(guard);
        masters.nothing_is_left().await;
        env.eventually("it is held no more", async || program.locks.stats().held == 0).await;
        drop(program);
        // The servers end after the tasks, which still ask them.
        env.eventually("no task is left", async || env.live().0 == 0).await;
    }
}

async fn a_claim_waits_for_its_turn(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    program.gates[0].answer_after(ms(300));
    let guard = env.soon("the turn", program.locks.lock("a")).await.unwrap();
    let counts = &program.counts[0];
    assert_eq!((counts.of("lock_vote_claim"), counts.of("lock_acquire")), (1, 0), "{:?}", counts.all());
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn an_extension_waits_for_all_votes(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    program.gates[2].freeze();
    let guard = env.soon("two are enough", program.locks.lock("a").expires_after(ms(30_000))).await.unwrap();
    let (extended, ()) = futures::join!(guard.extend(ms(60_000)), async {
        env.sleep(ms(50)).await;
        program.gates[2].thaw();
    });
    extended.unwrap();
    let state = program.locks.inspect("a").await.unwrap();
    let left: Vec<_> = state.masters.iter().map(|master| master.vote.as_ref().unwrap().remaining).collect();
    assert!(left.iter().all(|left| *left > ms(30_000)), "{left:?}");
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn an_extension_waits_once_for_a_silent_master(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    let guard = program.locks.lock("a").expires_after(ms(30_000)).await.unwrap();
    masters.all_vote(&program, "a").await;
    program.gates[2].freeze();
    env.soon("its time is over", guard.extend(ms(30_000))).await.unwrap();
    assert_eq!(program.locks.stats().masters_down, 1);
    // Longer than it may take to wait for the master three times.
    let extensions = Box::pin(async {
        for _ in 0..3 {
            guard.extend(ms(30_000)).await.unwrap();
        }
    });
    env.soon("no time is lost", extensions).await;
    assert_eq!(program.locks.stats().masters_down, 1);
    // The master extends its vote as well, once it answers.
    program.gates[2].thaw();
    env.eventually("it is extended", async || {
        let state = program.locks.inspect("a").await.unwrap();
        state.masters[2].vote.as_ref().is_some_and(|vote| vote.remaining > ms(29_000))
    })
    .await;
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn an_extension_waits_for_silent_masters_that_it_needs(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    let guard = program.locks.lock("a").expires_after(ms(30_000)).await.unwrap();
    masters.all_vote(&program, "a").await;
    program.gates[1..].iter().for_each(|gate| gate.freeze());
    let error = env.soon("its time is over", guard.extend(ms(30_000))).await.unwrap_err();
    assert_eq!((error.kind(), program.locks.stats().masters_down), (bowline::ErrorKind::Unavailable, 2));
    let (extended, ()) = futures::join!(guard.extend(ms(30_000)), async {
        env.sleep(ms(50)).await;
        program.gates[1..].iter().for_each(|gate| gate.thaw());
    });
    extended.unwrap();
    env.eventually("they are up", async || program.locks.stats().masters_down == 0).await;
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// The hold counts its votes, and asks for missing ones, more often than a request takes to fail.
async fn a_vote_is_asked_for_once_until_its_time_is_over(env: Env) {
    let masters = Masters::three(&env);
    // Votes are counted after 500 ms, and the time limit is 700 ms.
    let program = masters.program().await;
    hear(&masters, &program).await;
    program.gates[2].freeze();
    let guard = env.soon("two are enough", program.locks.lock("a")).await.unwrap();
    env.eventually("it is silent", async || program.locks.stats().masters_down == 1).await;
    assert_eq!(program.counts[2].of("lock_vote"), 1, "{:?}", program.counts[2].all());
    program.gates[2].thaw();
    env.eventually("it votes again", async || program.locks.stats().votes_regained == 1).await;
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// More grants than may wait for late votes.
async fn no_grant_waits_for_a_master_that_has_just_become_silent(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    program.gates[2].freeze();
    let pairs = Box::pin(async {
        for n in 0..100 {
            program.locks.lock(&n.to_string()).await.unwrap().release().await.unwrap();
        }
    });
    env.soon("two are enough", pairs).await;
    // Each of those that waited for all would have waited until then.
    assert_eq!(program.locks.stats().masters_down, 0);
    program.gates[2].thaw();
    masters.nothing_is_left().await;
}

/// Another program has the lock. Its queue is reached before a slow master has answered.
async fn a_claim_that_is_refused_queues_up_at_once(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (patient(&masters).await, patient(&masters).await);
    let guard = one.locks.lock("a").await.unwrap();
    masters.all_vote(&one, "a").await;
    other.gates[2].freeze();
    let locks = other.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").await.unwrap() });
    env.eventually("it queues", async || masters.keys().iter().any(|key| key == "0 bowline:turn:{a}:queue")).await;
    assert_eq!((other.counts[0].of("lock_vote_claim"), other.locks.stats().masters_down), (1, 0));
    other.gates[2].thaw();
    guard.release().await.unwrap();
    env.soon("its turn", waiting).await.release().await.unwrap();
    masters.nothing_is_left().await;
}
