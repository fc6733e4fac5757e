//! A holder that everything in a future acquires for.

use bowline::Holder;

use crate::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    a_scope_makes_the_holder_ambient,
}

async fn a_scope_makes_the_holder_ambient(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let holder = Holder::new();
    let other = client.lock("other");
    holder
        .scope(async {
            let outer = lock.lock().await.unwrap();
            env.yield_now().await;
            let inner = lock.lock().timeout(LONG).await.unwrap();
            assert_eq!(inner.token(), outer.token());
            let tried = lock.try_lock().await.unwrap().expect("re-entered");
            assert_eq!(tried.token(), outer.token());
            assert!(other.lock().await.unwrap().token().get() > 0);
            // The named holder counts, not the ambient one.
            let stranger = Holder::new();
            assert!(lock.try_lock().holder(&stranger).await.unwrap().is_none());
            // A task is outside.
            let spawned = env.spawn({
                let lock = lock.clone();
                async move { lock.try_lock().await.unwrap().is_none() }
            });
            assert!(spawned.await);
        })
        .await;
    env.soon("all guards are gone", lock.lock()).await.unwrap().release().await.unwrap();
}
