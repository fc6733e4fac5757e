//! A holder that everything in a future acquires for.

use bowline::Holder;

use super::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    a_scope_makes_the_holder_ambient,
}

async fn a_scope_makes_the_holder_ambient(env: Env) {
    let client = env.client().await;
    let lock = client.rw_lock("a");
    Holder::new()
        .scope(async {
            let writing = lock.write().timeout(LONG).await.unwrap();
            let reading = lock.read().timeout(LONG).await.unwrap();
            assert_eq!(reading.token(), writing.token());
            writing.release().await.unwrap();
            reading.release().await.unwrap();
        })
        .await;
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}
