//! Masters that answer, and refuse: for all names or for one. Real servers, because the refusal comes from inside their
//! scripts.

use bowline::{ConfigBuilder, ErrorKind};

use crate::masters::{Masters, Program, ms};
use crate::support::env::Env;

crate::support::env::on_runtime! {
    run, tokio_multi, TokioMulti,
    a_first_master_that_refuses_writes_is_passed_over,
    a_first_master_that_denies_everything_is_passed_over,
    a_first_master_that_denies_a_name_is_passed_over_for_that_name,
    a_denied_vote_beside_a_master_that_is_down_is_waited_for,
    a_name_that_a_majority_denies_fails_at_once
}

async fn acquire(program: &Program, name: &str) {
    program.locks.lock(name).timeout(ms(20_000)).await.unwrap().release().await.unwrap();
}

/// What the first master was asked for, besides probes.
fn asked(program: &Program) -> u64 {
    let counts = &program.counts[0];
    counts.of("lock_acquire") + counts.of("lock_vote")
}

/// The masters have a program with a retry timeout that no test waits for.
async fn patient(masters: &Masters) -> Program {
    let configure = |config: ConfigBuilder| config.retry_timeout(ms(60_000));
    masters.program_with(configure, |builder| builder.durable(true)).await
}

async fn a_first_master_that_refuses_writes_is_passed_over(env: Env) {
    let full = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    let lonely = (["CONFIG", "SET", "min-replicas-to-write", "1"], ["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let demoted = (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]);
    let unsaved = (["CONFIG", "SET", "save", "3600 1000000"], ["CONFIG", "SET", "save", ""]);
    let cases =
        [(&full.0[..], &full.1[..]), (&lonely.0, &lonely.1), (&demoted.0, &demoted.1), (&unsaved.0, &unsaved.1)];
    for (refuse, again) in cases {
        let masters = Masters::three(&env);
        let program = patient(&masters).await;
        if refuse == unsaved.0 {
            // Refused as MISCONF once the server is to save.
            masters.all[0].fail_to_save();
        }
        masters.all[0].command(refuse);
        acquire(&program, "a").await;
        let before = asked(&program);
        for _ in 0..5 {
            acquire(&program, "a").await;
            acquire(&program, "b").await;
        }
        assert_eq!(program.locks.stats().masters_down, 1, "{refuse:?}");
        assert_eq!(asked(&program), before, "it is asked once: {refuse:?}");
        masters.all[0].command(again);
        env.eventually("it is up", async || program.locks.stats().masters_down == 0).await;
        acquire(&program, "a").await;
        assert!(asked(&program) > before);
        masters.nothing_is_left().await;
    }
}

/// The probe is denied as well, so the master is of no use for any name.
async fn a_first_master_that_denies_everything_is_passed_over(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    masters.all[0].command(&["ACL", "SETUSER", "bowline", "resetkeys"]);
    acquire(&program, "a").await;
    env.eventually("it is down", async || program.locks.stats().masters_down == 1).await;
    let before = asked(&program);
    for name in ["a", "b", "c"] {
        acquire(&program, name).await;
    }
    assert_eq!(asked(&program), before);
    masters.all[0].allow_all();
    env.eventually("it is up", async || program.locks.stats().masters_down == 0).await;
    // Not one of the names that it has denied a moment ago.
    acquire(&program, "d").await;
    assert!(asked(&program) > before);
    masters.nothing_is_left().await;
}

async fn a_first_master_that_denies_a_name_is_passed_over_for_that_name(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    masters.all[0].allow_only(&["a"]);
    for _ in 0..8 {
        let denied = program.locks.lock("b").timeout(ms(20_000)).await.unwrap();
        let allowed = program.locks.lock("a").timeout(ms(20_000)).await.unwrap();
        assert_eq!(program.locks.stats().masters_down, 0);
        let first = program.locks.inspect("a").await.unwrap().masters.remove(0);
        assert!(first.vote.is_some(), "it serves the other name");
        assert!(first.turn.is_some(), "the order of the other name is kept");
        denied.release().await.unwrap();
        allowed.release().await.unwrap();
    }
    masters.all[0].allow_all();
    env.eventually("its vote", async || {
        let guard = program.locks.lock("b").timeout(ms(20_000)).await.unwrap();
        let votes = program.locks.inspect("b").await.unwrap().masters[0].vote.is_some();
        guard.release().await.unwrap();
        votes
    })
    .await;
    masters.nothing_is_left().await;
}

async fn a_denied_vote_beside_a_master_that_is_down_is_waited_for(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    masters.all[2].allow_only(&["a"]);
    masters.all[1].freeze();
    let locks = program.locks.clone();
    let waiting = env.spawn(async move { locks.lock("b").timeout(ms(40_000)).await.unwrap() });
    env.eventually("a round", async || program.locks.stats().failed_rounds > 0).await;
    masters.all[1].thaw();
    env.soon("the lock", waiting).await.release().await.unwrap();
    masters.nothing_is_left().await;
}

async fn a_name_that_a_majority_denies_fails_at_once(env: Env) {
    let masters = Masters::three(&env);
    let program = patient(&masters).await;
    masters.all[0].allow_only(&["a"]);
    masters.all[2].allow_only(&["a"]);
    let error = env.soon("the denial", program.locks.lock("b")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(format!("{error:#}").contains("master 1") && format!("{error:#}").contains("master 3"), "{error:#}");
    acquire(&program, "a").await;
    assert_eq!(program.locks.stats().masters_down, 0);
    masters.nothing_is_left().await;
}
