//! Users that lose their rights on some of the masters while a program runs.

use bowline::{ErrorKind, RedLock};

use crate::late::{config, durable, three, until_all_are_up};
use crate::masters::ms;
use crate::support::env::{Env, on_runtime};
use crate::support::server::Server;

// The embedded server denies nobody.
on_runtime! {
    run, tokio_multi, TokioMulti,
    a_first_master_that_denies_the_turn_is_passed_over,
    a_waiter_leaves_a_master_that_denies,
    a_hold_lasts_beside_a_master_that_denies,
    a_majority_that_denies_is_told_at_once,
    a_name_that_all_masters_deny_fails_alone
}

const NO_SCRIPTS: &[&str] = &["-eval", "-evalsha"];
const SCRIPTS: &[&str] = &["+eval", "+evalsha"];

fn set_rights(server: &Server, rights: &[&str]) {
    redis::cmd("ACL").arg(&["SETUSER", "bowline"]).arg(rights).exec(&mut server.client()).unwrap();
}

/// Three servers, and a `RedLock` over all of them. Its acquisitions wait for a majority for 20 s.
async fn over_three(env: &Env) -> ([Server; 3], RedLock) {
    let (servers, urls) = three();
    let locks = durable(env, &urls, config).await;
    env.soon("a majority", locks.lock("a")).await.unwrap().release().await.unwrap();
    until_all_are_up(env, &locks).await;
    (servers, locks)
}

async fn nothing_is_left(env: &Env, servers: &[Server; 3]) {
    let keys = |server: &Server| redis::cmd("KEYS").arg("*").query::<Vec<String>>(&mut server.client()).unwrap();
    let is_left = |key: &String| !key.ends_with(":fence");
    env.eventually("nothing is left", async || !servers.iter().flat_map(keys).any(|key| is_left(&key))).await;
}

async fn a_first_master_that_denies_the_turn_is_passed_over(env: Env) {
    let (servers, locks) = over_three(&env).await;
    set_rights(&servers[0], NO_SCRIPTS);
    for n in 0..3 {
        let guard = env.soon("two are enough", locks.lock("a")).await.unwrap();
        assert_eq!(locks.stats().masters_down, 1, "{n}");
        let state = locks.inspect("a").await.unwrap();
        assert_eq!(state.masters[0].error.as_ref().unwrap().kind(), ErrorKind::Denied);
        assert!(state.masters[1].turn.is_some(), "{state:?}");
        guard.release().await.unwrap();
    }
    set_rights(&servers[0], SCRIPTS);
    until_all_are_up(&env, &locks).await;
    let guard = locks.lock("a").await.unwrap();
    assert!(locks.inspect("a").await.unwrap().masters[0].turn.is_some());
    guard.release().await.unwrap();
    nothing_is_left(&env, &servers).await;
}

async fn a_waiter_leaves_a_master_that_denies(env: Env) {
    let (servers, locks) = over_three(&env).await;
    let guard = locks.lock("a").await.unwrap();
    let waiter = env.spawn({
        let locks = locks.clone();
        async move { locks.lock("a").await }
    });
    env.eventually("it waits", async || locks.inspect("a").await.unwrap().masters[0].waiters == 1).await;
    set_rights(&servers[0], NO_SCRIPTS);
    guard.release().await.unwrap();
    env.soon("two are enough", waiter).await.unwrap().release().await.unwrap();
    set_rights(&servers[0], SCRIPTS);
    until_all_are_up(&env, &locks).await;
    // Nothing can be cancelled without the right. The next acquisition passes over the waiter's ticket and removes it.
    env.soon("the lease of the turn", locks.lock("a")).await.unwrap().release().await.unwrap();
    nothing_is_left(&env, &servers).await;
}

async fn a_hold_lasts_beside_a_master_that_denies(env: Env) {
    let (servers, locks) = over_three(&env).await;
    let guard = locks.lock("a").await.unwrap();
    set_rights(&servers[0], NO_SCRIPTS);
    // Longer than the lease, so the vote and the turn of that master have ended.
    env.sleep(ms(4000)).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    nothing_is_left(&env, &servers).await;
}

async fn a_majority_that_denies_is_told_at_once(env: Env) {
    let (servers, locks) = over_three(&env).await;
    servers[..2].iter().for_each(|server| set_rights(server, NO_SCRIPTS));
    for n in 0..3 {
        let error = env.soon("the error", locks.lock("a")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{n}: {error}");
        let told = error.to_string();
        assert!(told.contains("master 1: ") && told.contains("master 2: ") && told.contains("evalsha"), "{told}");
    }
    servers[..2].iter().for_each(|server| set_rights(server, SCRIPTS));
    env.eventually("the rights are back", async || locks.lock("a").await.is_ok()).await;
    nothing_is_left(&env, &servers).await;
}

async fn a_name_that_all_masters_deny_fails_alone(env: Env) {
    let (servers, locks) = over_three(&env).await;
    let rights = ["resetkeys", "~bowline:*{b}*", "~bowline:*{bowline-check}*"];
    servers.iter().for_each(|server| set_rights(server, &rights));
    for n in 0..3 {
        let error = env.soon("the error", locks.lock("a")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{n}: {error}");
        env.soon("the other name", locks.lock("b")).await.unwrap().release().await.unwrap();
    }
    servers.iter().for_each(|server| set_rights(server, &["~bowline:*"]));
    env.eventually("the rights are back", async || locks.lock("a").await.is_ok()).await;
    nothing_is_left(&env, &servers).await;
}
