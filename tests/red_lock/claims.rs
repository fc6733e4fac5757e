//! Claims: the turn and the votes in one round trip, and what happens if another one is in the way.

use std::future::IntoFuture;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use crate::masters::{Masters, Program, ms, waiter};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    a_name_that_was_contended_is_not_claimed_for_a_second,
    a_name_that_the_program_has_is_not_claimed,
    a_program_that_has_not_heard_of_the_masters_for_long_waits_for_its_turn_first,
    a_claim_that_a_frozen_first_master_does_not_answer_goes_on_at_the_next_one,
    a_claim_that_the_first_master_cannot_serve_goes_on_at_the_next_one,
    a_claim_whose_votes_are_taken_keeps_the_turn,
    a_claim_with_a_short_lease_asks_a_silent_first_master_once,
    a_release_ends_after_that_of_the_turn,
    a_turn_that_is_being_released_is_not_renewed,
    a_try_is_served_although_a_waiter_that_is_gone_has_a_ticket,
    of_two_tries_at_the_same_time_one_is_served,
}

/// Acquires a name that nobody else wants, so that the program knows the clocks of the masters.
async fn hear(program: &Program) {
    program.locks.lock("heard of").await.unwrap().release().await.unwrap();
}

fn claims(program: &Program, master: usize) -> u64 {
    program.counts[master].of("lock_vote_claim")
}

async fn a_name_that_was_contended_is_not_claimed_for_a_second(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    hear(&other).await;
    let guard = one.locks.lock("a").await.unwrap();
    let began = env.now();
    let mut tries = 0;
    while claims(&other, 0) < 2 {
        assert!(other.locks.try_lock("a").await.unwrap().is_none());
        tries += 1;
        if claims(&other, 0) == 1 {
            assert_eq!(other.counts[0].of("lock_acquire"), tries + 1, "also after the claim, and 1 without one");
        }
        env.sleep(ms(20)).await;
        // The lease is renewed, so the turn stays taken.
        assert!(env.now() - began < Duration::from_secs(60), "it is never claimed again");
    }
    assert!(env.now() - began >= Duration::from_secs(1), "after {:?}", env.now() - began);
    // The votes that the refused claims got are cancelled.
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
    let guard = one.locks.lock("a").await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(one.locks.stats().second_rounds, 0);
}

async fn a_name_that_the_program_has_is_not_claimed(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hear(&program).await;
    let guard = program.locks.lock("a").await.unwrap();
    assert_eq!(claims(&program, 0), 1);
    assert!(program.locks.try_lock("a").await.unwrap().is_none());
    let waiting = waiter(&masters, &program).await;
    assert_eq!(claims(&program, 0), 1);
    guard.release().await.unwrap();
    env.soon("the turn is handed over", waiting).await.release().await.unwrap();
    assert_eq!(program.counts[0].of("lock_cancel"), 0, "by the release, and not in the background");
    let guard = program.locks.lock("a").await.unwrap();
    assert_eq!(claims(&program, 0), 2, "nobody has it any more");
    guard.release().await.unwrap();
    assert_eq!(program.locks.stats().contested_rounds, 0);
    masters.nothing_is_left().await;
}

/// Their clocks may have gone at another rate since.
async fn a_program_that_has_not_heard_of_the_masters_for_long_waits_for_its_turn_first(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program_with(|config| config.lease(ms(400)), |builder| builder.durable(true)).await;
    for asked in [0, 0, 1] {
        if asked == 1 {
            program.locks.lock("a").await.unwrap().release().await.unwrap();
        } else {
            env.sleep(ms(450)).await;
        }
        let before = claims(&program, 0);
        program.locks.lock("a").await.unwrap().release().await.unwrap();
        assert_eq!(claims(&program, 0) - before, asked);
    }
    masters.nothing_is_left().await;
}

async fn a_claim_that_a_frozen_first_master_does_not_answer_goes_on_at_the_next_one(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hear(&program).await;
    masters.all[0].freeze();
    for _ in 0..3 {
        let guard = program.locks.lock("a").await.unwrap();
        let state = program.locks.inspect("a").await.unwrap();
        assert!(state.masters[1].turn.is_some(), "{state:?}");
        guard.release().await.unwrap();
    }
    assert_eq!((claims(&program, 0), claims(&program, 1)), (1, 2));
    masters.all[0].thaw();
    env.eventually("it is up", async || program.locks.stats().masters_down == 0).await;
    masters.nothing_is_left().await;
}

/// It cannot serve the turn, and the claim does not tell that from the vote.
async fn a_claim_that_the_first_master_cannot_serve_goes_on_at_the_next_one(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hear(&program).await;
    masters.all[0].eval("redis.call('HSET', 'bowline:turn:{a}:queue', 'not', 'a list') return redis.call('PEXPIRE', 'bowline:turn:{a}:queue', 60000)");
    let guard = program.locks.lock("a").await.unwrap();
    let state = program.locks.inspect("a").await.unwrap();
    assert!(state.masters[1].turn.is_some(), "{state:?}");
    guard.release().await.unwrap();
    masters.all[0].eval("return redis.call('DEL', 'bowline:turn:{a}:queue')");
    masters.nothing_is_left().await;
}

async fn a_claim_whose_votes_are_taken_keeps_the_turn(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hear(&program).await;
    for master in &masters.all {
        master.eval("redis.call('HSET', 'bowline:vote:{a}', 'x:1', '5') return redis.call('PEXPIRE', 'bowline:vote:{a}', 60000)");
    }
    assert!(program.locks.try_lock("a").await.unwrap().is_none());
    let turn = async || program.locks.inspect("a").await.unwrap().masters[0].turn.is_some();
    env.eventually("the turn of the try is released", async || !turn().await).await;
    let contested = program.locks.stats().contested_rounds;
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    env.eventually("it asks", async || program.locks.stats().contested_rounds > contested + 2).await;
    assert!(turn().await);
    masters.all.iter().for_each(|master| master.eval("return redis.call('DEL', 'bowline:vote:{a}')"));
    env.soon("the votes are free", waiting).await.release().await.unwrap();
    assert!(program.counts[0].of("lock_acquire") == 1, "only the first one of all");
    masters.nothing_is_left().await;
}

/// The lease leaves the master less than the node timeout, so what it does not answer says nothing about other names.
async fn a_claim_with_a_short_lease_asks_a_silent_first_master_once(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    hear(&program).await;
    let asked = || program.counts[0].of("lock_acquire") + claims(&program, 0);
    let before = asked();
    program.gates[0].freeze();
    let guard = program.locks.lock("a").lease(ms(1200)).await.unwrap();
    assert!(program.locks.inspect("a").await.unwrap().masters[1].turn.is_some());
    assert_eq!(asked() - before, 1, "neither the turn nor the vote is asked for again");
    guard.release().await.unwrap();
    program.gates[0].thaw();
    masters.nothing_is_left().await;
}

/// Otherwise the program itself might find the turn taken.
async fn a_release_ends_after_that_of_the_turn(env: Env) {
    let masters = Masters::three(&env);
    let long =
        |config: bowline::ConfigBuilder| config.lease(ms(60_000)).retry_timeout(ms(60_000)).command_timeout(ms(20_000));
    let program = masters.program_with(long, |builder| builder.durable(true).node_timeout(ms(15_000))).await;
    hear(&program).await;
    let guard = program.locks.lock("a").await.unwrap();
    program.gates[0].freeze();
    let mut release = env.spawn(async move { guard.release().await.unwrap() });
    // The other two have released their votes, which is a majority.
    let is_left = async || masters.keys().iter().all(|key| key.starts_with("0 "));
    env.eventually("a majority", is_left).await;
    let pause = env.sleep(ms(50));
    match select(&mut release, Box::pin(pause)).await {
        Either::Left(_) => panic!("the turn is still there"),
        Either::Right(_) => program.gates[0].thaw(),
    }
    env.soon("the release", release).await;
    assert_eq!(masters.keys(), [""; 0]);
}

/// The renewal would find it gone, and count a loss.
async fn a_turn_that_is_being_released_is_not_renewed(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    for _ in 0..5 {
        let guard = program.locks.lock("a").await.unwrap();
        program.gates[0].answer_after(ms(600));
        guard.release().await.unwrap();
        program.gates[0].answer_after(ms(0));
        env.eventually("it is up", async || program.locks.stats().masters_down == 0).await;
    }
    assert_eq!(program.clients[0].stats().lost, 0);
    masters.nothing_is_left().await;
}

/// The program of the waiter was killed. A claim sees only that there is a ticket.
async fn a_try_is_served_although_a_waiter_that_is_gone_has_a_ticket(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    hear(&other).await;
    let guard = one.locks.lock("a").await.unwrap();
    let waiting = Box::pin(other.locks.lock("a").into_future());
    let waits = async || other.locks.inspect("a").await.unwrap().masters[0].waiters == 1;
    let is_waiting = pin!(env.eventually("it waits", waits));
    let Either::Right((_, waiting)) = select(waiting, is_waiting).await else { panic!("it has a guard") };
    masters.all[0].eval(
        "local queue, tickets = 'bowline:turn:{a}:queue', 'bowline:turn:{a}:tickets' \
         local ticket = redis.call('LINDEX', queue, 0) \
         local lasts = redis.call('ZSCORE', tickets, ticket) \
         local ghost = string.gsub(ticket, '%x+%-%x+%-%x+%-%x+%-%x+', '00000000-0000-0000-0000-000000000000', 1) \
         redis.call('RPUSH', queue, ghost) \
         redis.call('LREM', queue, 1, ticket) \
         redis.call('ZADD', tickets, lasts, ghost) \
         return redis.call('ZREM', tickets, ticket)",
    );
    drop(waiting);
    guard.release().await.unwrap();
    let is_left = || masters.keys().iter().any(|key| key.ends_with(":queue"));
    assert!(is_left(), "{:?}", masters.keys());
    let claimed = claims(&one, 0);
    let guard = env.soon("nobody else wants it", one.locks.try_lock("a")).await.unwrap();
    assert_eq!(claims(&one, 0), claimed + 1);
    guard.expect("nobody has it").release().await.unwrap();
}

/// One try has the turn, and the other has two of the three votes.
async fn of_two_tries_at_the_same_time_one_is_served(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    hear(&one).await;
    hear(&other).await;
    masters.nothing_is_left().await;
    let tries = |program: &Program| {
        let locks = program.locks.clone();
        env.spawn(async move { locks.try_lock("a").await.unwrap() })
    };
    let has = async |what: &str, master: usize| {
        let key = format!("bowline:{what}:{{a}}");
        env.eventually("it is taken", async || masters.all[master].keys().contains(&key)).await;
    };
    one.gates[1..].iter().for_each(|gate| gate.freeze());
    let first = tries(&one);
    has("turn", 0).await;
    other.gates[0].freeze();
    let second = tries(&other);
    has("vote", 1).await;
    has("vote", 2).await;
    // The first try learns that these votes are taken only after the second try has given them back.
    one.gates[1..].iter().for_each(|gate| gate.answer_after(ms(200)));
    one.gates[1..].iter().for_each(|gate| gate.thaw());
    env.sleep(ms(50)).await;
    other.gates[0].thaw();
    let (first, second) = (env.soon("the first", first).await, env.soon("the second", second).await);
    assert!(first.is_some() || second.is_some());
    drop((first, second));
    masters.nothing_is_left().await;
}
