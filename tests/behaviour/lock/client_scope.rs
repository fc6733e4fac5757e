//! A client that is closed at the end of a scope, whatever becomes of the work.

use std::panic::AssertUnwindSafe;

use bowline::{Client, ErrorKind, Loss, Result};
use futures::FutureExt;

use crate::support::env::{Env, on_every_server};
use crate::support::polled::polled;

on_every_server! {
    a_client_is_closed_at_the_end_of_its_scope,
    a_client_is_closed_when_the_work_fails_or_panics,
    a_scope_that_is_dropped_closes_in_the_background,
}

async fn a_client_is_closed_at_the_end_of_its_scope(env: Env) {
    let client = env.client().await;
    let client = &client.client;
    let guard = client.scope(async |client: Client| client.lock("a").lock().await.unwrap()).await;
    assert!(env.keys().is_empty(), "closed before it is done: {:?}", env.keys());
    assert_eq!(guard.lost().await, Loss::Closed);
    assert_eq!(client.lock("a").lock().await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn a_client_is_closed_when_the_work_fails_or_panics(env: Env) {
    let client = env.client().await;
    let failed: Result<()> = client
        .client
        .scope(async |client: Client| {
            let _guard = client.lock("a").lock().await?;
            client.lock("").lock().await.map(drop)
        })
        .await;
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(env.keys().is_empty(), "{:?}", env.keys());
    assert_eq!(client.lock("a").inspect().await.unwrap_err().kind(), ErrorKind::Closed);

    for at_once in [false, true] {
        let client = env.client().await;
        let scope = client.client.scope(|client| {
            assert!(!at_once, "on purpose");
            async move {
                let _guard = client.lock("a").lock().await.unwrap();
                panic!("on purpose")
            }
        });
        let panic: Result<(), _> = AssertUnwindSafe(scope).catch_unwind().await;
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"on purpose"));
        assert!(env.keys().is_empty(), "{:?}", env.keys());
        assert_eq!(client.lock("a").inspect().await.unwrap_err().kind(), ErrorKind::Closed);
    }
}

async fn a_scope_that_is_dropped_closes_in_the_background(env: Env) {
    let mut done = false;
    for polls in 0..100 {
        let client = env.client().await;
        let scope = client.client.scope(async |client: Client| {
            let _guard = client.lock("a").lock().await.unwrap();
            env.yield_now().await;
        });
        done = polled(scope, polls, async || {}).await.is_some();
        // A future that was never polled has done nothing.
        if polls > 0 {
            assert_eq!(client.lock("a").inspect().await.unwrap_err().kind(), ErrorKind::Closed, "after {polls} polls");
        }
        drop(client);
        env.eventually("it is cleaned up", async || env.keys().is_empty() && env.live() == (0, 0)).await;
        if done {
            break;
        }
    }
    assert!(done);
}
