//! What a hold is: token, votes, exclusion, re-entry, leases.

use std::future::pending;

use bowline::{ErrorKind, Holder, LockGuard, Loss, MultiLock, NameInUse, PrimitiveKind, RedLock};
use futures::FutureExt;

use crate::masters::{Masters, Program, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    two_red_locks_of_the_same_clients_are_one_to_a_holder,
    the_turn_lasts_as_long_as_a_fixed_lease_that_is_prolonged,
    a_majority_names_the_token_and_a_release_leaves_nothing,
    one_holds_at_a_time_and_tokens_grow,
    a_release_is_confirmed_by_a_majority,
    five_masters_work_like_three,
    a_dropped_guard_releases_in_the_background,
    a_holder_enters_again_at_once_and_the_last_guard_releases,
    a_fixed_lease_ends_and_can_be_extended,
    a_limited_hold_ends,
    a_renewed_hold_outlives_its_lease,
    work_is_run_and_the_lock_released,
    masters_that_have_seen_a_larger_token_get_a_larger_proposal,
    a_name_of_a_lock_is_another_one,
    a_lease_is_counted_from_before_the_votes_were_asked_for,
    it_is_acquired_together_with_others,
    closing_a_client_ends_the_hold,
    a_hold_cannot_be_kept_alone_or_with_others,
}

async fn a_majority_names_the_token_and_a_release_leaves_nothing(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard: LockGuard = program.locks.lock("a").await.unwrap();
    assert!(guard.is_valid() && guard.remaining() > ms(2000) && guard.name() == "a");
    let state = program.locks.inspect("a").await.unwrap();
    assert_eq!(state.token(), Some(guard.token()));
    for (master, client) in state.masters.iter().zip(&program.clients) {
        let vote = master.vote.as_ref().unwrap();
        assert_eq!((vote.client, vote.token), (Some(client.id()), guard.token()));
        assert!(master.counts && master.error.is_none() && master.waiters == 0);
    }
    assert!(state.masters[0].turn.is_some() && state.masters[1].turn.is_none());
    let name = NameInUse::new(PrimitiveKind::RedLock, "a");
    for client in &program.clients {
        let seen = client.look(std::slice::from_ref(&name)).await.pop().unwrap().unwrap();
        let holds: Vec<_> = seen.holds.iter().map(|hold| (hold.client, hold.token)).collect();
        assert_eq!(holds, [(Some(client.id()), Some(guard.token()))], "the vote, and not the turn as well");
    }
    assert_eq!((program.locks.stats().held, program.locks.stats().acquired), (1, 1));
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
    env.eventually("no hold is kept", async || program.locks.stats().held == 0).await;
}

/// Also one that follows the grant at once, when the task of the hold begins on another thread.
async fn a_release_is_confirmed_by_a_majority(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    for round in 0..200 {
        program.locks.lock("a").await.unwrap().release().await.unwrap();
        let votes = masters.keys().iter().filter(|key| key.ends_with(":vote:{a}")).count();
        assert!(votes <= 1, "round {round}: {votes} masters still have the vote");
    }
}

async fn one_holds_at_a_time_and_tokens_grow(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    let mut last = 0;
    for n in 0..6 {
        let [mine, theirs] = if n % 2 == 0 { [&one, &other] } else { [&other, &one] };
        let guard = mine.locks.lock("a").await.unwrap();
        assert!(guard.token().get() > last);
        last = guard.token().get();
        assert!(theirs.locks.try_lock("a").await.unwrap().is_none());
        let refused = theirs.locks.lock("a").timeout(ms(50)).await.map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert_eq!(theirs.locks.inspect("a").await.unwrap().token(), Some(guard.token()));
        guard.release().await.unwrap();
    }
    masters.nothing_is_left().await;
}

async fn five_masters_work_like_three(env: Env) {
    let masters = Masters::start(&env, 5);
    let program = masters.program().await;
    for n in [1, 3] {
        masters.all[n].freeze();
    }
    let guard = program.locks.lock("a").await.unwrap();
    assert_eq!(program.locks.inspect("a").await.unwrap().token(), Some(guard.token()));
    assert_eq!(program.locks.stats().masters_down, 2);
    guard.release().await.unwrap();
    masters.all.iter().for_each(crate::masters::Master::thaw);
    masters.nothing_is_left().await;
}

async fn a_dropped_guard_releases_in_the_background(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.try_lock("a").await.unwrap().unwrap();
    drop(guard);
    masters.nothing_is_left().await;
    program.locks.lock("a").await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_holder_enters_again_at_once_and_the_last_guard_releases(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let me = Holder::new();
    let outer = program.locks.lock("a").holder(&me).await.unwrap();
    program.counts.iter().for_each(|counts| counts.reset());
    let inner = program.locks.clone().lock("a").holder(&me).now_or_never_guard();
    assert_eq!(inner.token(), outer.token());
    assert_eq!((outer.guard_count(), inner.guard_count()), (2, 2));
    let denied = program.locks.lock("a").holder(&me).deny_reentry().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::WouldDeadlock);
    assert!(program.counts.iter().all(|counts| counts.total() == 0));
    outer.release().await.unwrap();
    assert!(inner.is_valid() && program.locks.try_lock("a").await.unwrap().is_none());
    inner.release().await.unwrap();
    masters.nothing_is_left().await;
}

trait AtOnce {
    fn now_or_never_guard(self) -> LockGuard;
}

impl AtOnce for bowline::Acquire {
    fn now_or_never_guard(self) -> LockGuard {
        self.into_future().now_or_never().expect("at once").unwrap()
    }
}

async fn a_fixed_lease_ends_and_can_be_extended(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").expires_after(ms(600)).await.unwrap();
    assert!(guard.remaining() <= ms(600));
    guard.extend(ms(2000)).await.unwrap();
    assert!(guard.remaining() > ms(600));
    let too_long = guard.extend(ms(4000)).await.unwrap_err();
    assert_eq!(too_long.kind(), ErrorKind::InvalidInput);
    guard.release().await.unwrap();

    let guard = program.locks.lock("a").expires_after(ms(600)).await.unwrap();
    assert_eq!(guard.lost().await, Loss::Expired);
    assert!(!guard.is_valid());
    assert_eq!(guard.extend(ms(600)).await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    masters.nothing_is_left().await;
    assert_eq!(program.locks.stats().lost, 1);
}

async fn a_limited_hold_ends(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let start = env.now();
    let guard = program.locks.lock("a").lease(ms(400)).hold_at_most(ms(1000)).await.unwrap();
    assert_eq!(guard.lost().await, Loss::Expired);
    assert!(env.now() - start >= ms(700), "it was renewed");
    masters.nothing_is_left().await;
    drop(guard);
}

async fn a_renewed_hold_outlives_its_lease(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").lease(ms(1500)).await.unwrap();
    env.sleep(ms(2500)).await;
    assert!(guard.is_valid());
    assert_eq!(program.locks.inspect("a").await.unwrap().token(), Some(guard.token()));
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn work_is_run_and_the_lock_released(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let token = program.locks.lock("a").run(|guard| async move { guard.token() }).await.unwrap();
    masters.nothing_is_left().await;
    assert!(token.get() > 0);
    let lost = program.locks.lock("a").expires_after(ms(300)).run(|_| pending::<()>()).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Lost);
    masters.nothing_is_left().await;
}

async fn masters_that_have_seen_a_larger_token_get_a_larger_proposal(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    // A token in the year 2128.
    let seen = 5_000_000_000_000_000;
    masters.all[2].set_counter("a", seen);
    let guard = program.locks.lock("a").await.unwrap();
    assert!(guard.token().get() < seen, "a majority has not seen it");
    assert_eq!(program.locks.stats().second_rounds, 0);
    guard.release().await.unwrap();

    masters.all[1].set_counter("a", seen + 7);
    let guard = program.locks.lock("a").await.unwrap();
    assert_eq!(guard.token().get(), seen + 8);
    assert_eq!(program.locks.stats().second_rounds, 1);
    assert_eq!(program.locks.inspect("a").await.unwrap().token(), Some(guard.token()));
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_lease_is_counted_from_before_the_votes_were_asked_for(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    masters.all.iter().for_each(|master| master.answer_after(ms(200)));
    let guard = program.locks.lock("a").await.unwrap();
    assert!(guard.remaining() <= ms(2800), "{:?}", guard.remaining());
    masters.all.iter().for_each(|master| master.answer_after(ms(0)));
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_name_of_a_lock_is_another_one(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    for client in &program.clients {
        client.lock("a").try_lock().await.unwrap().expect("it is free").release().await.unwrap();
    }
    guard.release().await.unwrap();
}

async fn closing_a_client_ends_the_hold(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").await.unwrap();
    program.clients[0].close().await;
    assert!(guard.is_valid(), "a majority is there");
    program.clients[2].close().await;
    assert_eq!(env.soon("the loss", guard.lost()).await, Loss::Closed);
    assert_eq!(program.locks.lock("a").await.unwrap_err().kind(), ErrorKind::Closed);
    drop(guard);
    masters.nothing_is_left().await;
}

async fn it_is_acquired_together_with_others(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    let all = |program: &Program| {
        let several = MultiLock::new().red_lock(&program.locks, "a").lock(&program.clients[0].lock("a"));
        several.red_lock(&program.locks, "b").red_lock(&program.locks.clone(), "a")
    };
    let guard = all(&one).acquire().await.unwrap();
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "a", "b"]);
    assert_eq!(guard.token("b"), one.locks.inspect("b").await.unwrap().token());
    assert!(other.locks.try_lock("b").await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(masters.keys().is_empty(), "{:?}", masters.keys());
    let held = one.locks.lock("b").await.unwrap();
    assert!(all(&other).try_acquire().await.unwrap().is_none());
    masters.env.eventually("one is left", async || one.locks.stats().held == 1 && other.locks.stats().held == 0).await;
    held.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn two_red_locks_of_the_same_clients_are_one_to_a_holder(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let other = RedLock::builder(program.clients.iter().rev().cloned()).durable(true).build().unwrap();
    let holder = Holder::new();
    let first = program.locks.lock("a").holder(&holder).await.unwrap();
    let second = env.soon("re-entry", other.lock("a").holder(&holder)).await.unwrap();
    assert_eq!(first.token(), second.token());
    first.release().await.unwrap();
    assert!(second.is_valid() && program.locks.try_lock("a").await.unwrap().is_none());
    second.release().await.unwrap();
    // One hold, however it is named.
    let both = MultiLock::new().red_lock(&program.locks, "a").red_lock(&other, "a").red_lock(&other, "b");
    let guard = env.soon("both", both.acquire()).await.unwrap();
    assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b"]);
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

/// The turn is renewed although the hold is not: a waiter would ask for votes in vain.
async fn the_turn_lasts_as_long_as_a_fixed_lease_that_is_prolonged(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let guard = program.locks.lock("a").expires_after(ms(2000)).await.unwrap();
    for _ in 0..2 {
        guard.extend(ms(3000)).await.unwrap();
        env.sleep(ms(1200)).await;
    }
    assert!(program.locks.inspect("a").await.unwrap().masters[0].turn.is_some());
    guard.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_hold_cannot_be_kept_alone_or_with_others(env: Env) {
    let masters = Masters::three(&env);
    let program =
        masters.program_with(|config| config, |builder| builder.durable(true).longest_lease(ms(20_000))).await;
    let error = program.locks.lock("a").await.unwrap().keep().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")));
    let several = || MultiLock::new().lock(&program.clients[0].lock("b")).red_lock(&program.locks, "a");
    let error = several().acquire().expires_after(ms(20_000)).await.unwrap().keep().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")));
    // Both are released.
    several().acquire().timeout(ms(5000)).await.unwrap().release().await.unwrap();
    masters.nothing_is_left().await;
}
