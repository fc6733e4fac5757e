//! Programs that know different sets of masters.

use bowline::{Error, ErrorKind};

use crate::masters::{Masters, Program, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    without_versions_two_sets_can_hold_at_a_time,
    one_master_of_both_sets_is_enough_to_tell_a_program,
    sets_two_steps_apart_are_told_apart_until_the_last_lease_is_over,
    programs_of_neighbouring_versions_exclude_each_other,
    sets_of_other_names_and_sizes_are_told_apart,
    another_set_is_told_although_the_turn_is_taken,
}

/// A program that knows these masters, as this version of a set.
async fn program(masters: &Masters, known: &[usize], version: u32) -> Program {
    let build = |builder: bowline::RedLockBuilder| builder.durable(true).masters_version("orders", version);
    masters.program_of(known.iter().copied(), |config| config, build).await
}

async fn refused(program: &Program) -> Error {
    let error = program.locks.lock("a").timeout(ms(20_000)).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherMasters, "{error:#}");
    error
}

/// Why there are versions. A roll-out replaces master 3 by master 4.
async fn without_versions_two_sets_can_hold_at_a_time(env: Env) {
    let masters = Masters::start(&env, 4);
    let old = masters.program_of([0, 1, 2], |config| config, |builder| builder.durable(true)).await;
    let new = masters.program_of([0, 1, 3], |config| config, |builder| builder.durable(true)).await;
    old.gates[1].freeze();
    let one = old.locks.lock("a").timeout(ms(20_000)).await.unwrap();
    // Each of them reaches a majority of its own masters, and no master of the other's majority.
    new.gates[0].freeze();
    let two = new.locks.lock("a").timeout(ms(20_000)).await.unwrap();
    assert!(one.is_valid() && two.is_valid());
    old.gates[1].thaw();
    new.gates[0].thaw();
    drop((one, two));
    masters.nothing_is_left().await;
}

async fn one_master_of_both_sets_is_enough_to_tell_a_program(env: Env) {
    let masters = Masters::start(&env, 4);
    let old = program(&masters, &[0, 1, 2], 1).await;
    // Its turn is on master 2, so it does not wait behind the other program. Version 2 has as many masters as
    // version 1.
    let new = program(&masters, &[1, 0, 3], 2).await;
    old.gates[1].freeze();
    let guard = old.locks.lock("a").timeout(ms(20_000)).await.unwrap();
    let error = refused(&new).await;
    let expected = "master 2 votes for programs with version 1 of \"orders\", 3 masters; \
                    this program has version 2 of \"orders\", 3 masters";
    assert!(format!("{error:#}").contains(expected), "{error:#}");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    old.gates[1].thaw();
    masters.nothing_is_left().await;
}

async fn sets_two_steps_apart_are_told_apart_until_the_last_lease_is_over(env: Env) {
    let masters = Masters::start(&env, 4);
    let first = program(&masters, &[0, 1, 2], 1).await;
    let third = program(&masters, &[0, 1, 3], 3).await;
    let old = first.locks.lock("a").timeout(ms(20_000)).await.unwrap().into_token_after_release().await;
    refused(&third).await;
    // `None`: the turn of the last attempt is still being released.
    env.eventually("the lease is over", async || matches!(third.locks.try_lock("a").await, Ok(Some(_)))).await;
    let new = third.locks.lock("a").timeout(ms(20_000)).await.unwrap();
    assert!(new.token() > old);
    // A program that was forgotten.
    let forgotten = program(&masters, &[1, 0, 2], 1).await;
    refused(&forgotten).await;
    assert!(new.is_valid());
    new.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn programs_of_neighbouring_versions_exclude_each_other(env: Env) {
    let masters = Masters::start(&env, 5);
    let mut last = None;
    let sets: [&[usize]; 4] = [&[0, 1, 2], &[0, 1, 2, 3], &[0, 1, 3], &[0, 1, 3, 4]];
    for (version, pair) in (1..).zip(sets.windows(2)) {
        let old = program(&masters, pair[0], version).await;
        let new = program(&masters, pair[1], version + 1).await;
        // The step before is complete when the longest lease has passed.
        env.eventually("the next step", async || matches!(new.locks.try_lock("a").await, Ok(Some(_)))).await;
        for (holding, waiting) in [(&old, &new), (&new, &old)] {
            let guard = holding.locks.lock("a").timeout(ms(20_000)).await.unwrap();
            assert!(waiting.locks.try_lock("a").await.unwrap().is_none());
            assert!(last.is_none_or(|last| last < guard.token()));
            last = Some(guard.token());
            let locks = waiting.locks.clone();
            let next = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
            guard.release().await.unwrap();
            let next = env.soon("the next hold", next).await;
            assert!(last.is_none_or(|last| last < next.token()));
            last = Some(next.token());
            next.release().await.unwrap();
        }
    }
    masters.nothing_is_left().await;
}

async fn sets_of_other_names_and_sizes_are_told_apart(env: Env) {
    let masters = Masters::start(&env, 5);
    let three = program(&masters, &[0, 1, 2], 1).await;
    let guard = three.locks.lock("a").timeout(ms(20_000)).await.unwrap();
    let five = program(&masters, &[1, 0, 2, 3, 4], 2).await;
    refused(&five).await;
    let build = |builder: bowline::RedLockBuilder| builder.durable(true).masters_version("others", 1);
    let other = masters.program_of([1, 0, 2], |config| config, build).await;
    refused(&other).await;
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

trait Released {
    /// Its token, after the release.
    async fn into_token_after_release(self) -> bowline::Token;
}

impl Released for bowline::LockGuard {
    async fn into_token_after_release(self) -> bowline::Token {
        let token = self.token();
        self.release().await.unwrap();
        token
    }
}

/// The first master has lost its vote, so it cannot tell of the other set. The turn is taken there.
async fn another_set_is_told_although_the_turn_is_taken(env: Env) {
    let masters = Masters::start(&env, 4);
    let first = program(&masters, &[0, 1, 2], 1).await;
    let third = program(&masters, &[0, 1, 3], 3).await;
    // So that it knows the clock of the master, and claims.
    third.locks.lock("heard of").await.unwrap().release().await.unwrap();
    let guard = first.locks.lock("a").await.unwrap();
    masters.all[0].eval("return redis.call('DEL', 'bowline:vote:{a}', 'bowline:vote:{a}:fence')");
    let error = third.locks.try_lock("a").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherMasters, "{error:#}");
    assert_eq!(third.counts[0].of("lock_vote_claim"), 1);
    drop(guard);
    masters.nothing_is_left().await;
}
