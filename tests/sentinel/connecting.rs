//! Connecting: who is asked, and what is said when it does not work.

use crate::scene::{all_on, client, is_held_at};
use crate::support::env::{Env, on_every_runtime};
use crate::support::sentinels::Sentinels;

on_every_runtime! { the_master_is_found }

async fn the_master_is_found(env: Env) {
    let servers = Sentinels::start();
    let client = client(&env, &servers).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(0), &guard));
    guard.release().await.unwrap();
    all_on(&env, &servers, 1, 0, &[1, 2]).await;
    let promoted = servers.fail_over();
    all_on(&env, &servers, 1, promoted, &[0]).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(promoted), &guard));
    guard.release().await.unwrap();
}
