//! Who a client is in Redis: its own, drawn when it connects, unless the user has set it.

use std::sync::Mutex;

use bowline::{Client, Config, ErrorKind, Result};
use uuid::Uuid;

use super::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    clients_of_one_config_exclude_each_other,
    a_client_of_a_config_that_served_before_is_another,
    an_identity_that_was_set_is_one_living_clients,
    of_two_that_connect_with_one_identity_at_once_one_at_most_does;
    a_client_whose_identity_was_set_comes_back_after_a_cut,
}

async fn connect(env: &Env, config: &Config) -> Result<Client> {
    Client::connect(env.executor(), env.connection(config).await, config.clone()).await
}

async fn clients_of_one_config_exclude_each_other(env: Env) {
    let config = Config::default();
    let (a, b) = (connect(&env, &config).await.unwrap(), connect(&env, &config).await.unwrap());
    assert_ne!(a.id(), b.id());
    // Each client counts its attempts from 1. With the same identity, the second client would be told that it holds.
    let held = a.lock("a").lock().await.unwrap();
    assert!(b.lock("a").try_lock().await.unwrap().is_none(), "two clients hold it, with token {}", held.token());
    let next = env.spawn({
        let lock = b.lock("a");
        async move { lock.lock().timeout(LONG).await.unwrap() }
    });
    env.eventually("it waits", async || a.lock("a").inspect().await.unwrap().waiters == 1).await;
    let token = held.token();
    held.release().await.unwrap();
    let next = env.soon("the hand-off reaches it", next).await;
    assert!(next.token() > token);
    next.release().await.unwrap();

    // Each client's call counts the latch down.
    let latch = (a.latch("l"), b.latch("l"));
    assert!(latch.0.try_set(2, LONG).await.unwrap());
    latch.0.count_down().await.unwrap();
    assert_eq!(latch.1.count_down().await.unwrap(), 0);
    latch.0.delete().await.unwrap();
    env.leaves_keys();
}

async fn a_client_of_a_config_that_served_before_is_another(env: Env) {
    let config = Config::default();
    let first = connect(&env, &config).await.unwrap();
    let latch = first.latch("l");
    assert!(latch.try_set(2, LONG).await.unwrap());
    assert_eq!(latch.count_down().await.unwrap(), 1);
    first.close().await;
    let second = connect(&env, &config).await.unwrap();
    assert_ne!(first.id(), second.id());
    assert_eq!(second.latch("l").count_down().await.unwrap(), 0, "taken for a copy of the first client's call");
    assert!(second.latch("l").delete().await.is_ok());
    env.leaves_keys();
}

async fn an_identity_that_was_set_is_one_living_clients(env: Env) {
    let id = Uuid::new_v4();
    let config = Config::builder().client_id(id).build().unwrap();
    let first = connect(&env, &config).await.unwrap();
    assert_eq!(first.id(), id);
    let held = first.lock("a").lock().await.unwrap();
    let error = connect(&env, &config).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::ClientIdInUse, "connect"));
    assert!(error.is_retryable());
    env.eventually("what was refused has left", async || env.listeners(&format!("bowline:inbox:{id}")) == 1).await;
    assert!(held.is_valid());
    // The same identity under another prefix is another client.
    let elsewhere = Config::builder().client_id(id).prefix("elsewhere").build().unwrap();
    connect(&env, &elsewhere).await.unwrap();
    held.release().await.unwrap();
    first.close().await;
    // The server may see the end of a connection after the next one has connected.
    let second = Mutex::new(None);
    env.eventually("the identity is free", async || {
        *second.lock().unwrap() = connect(&env, &config).await.ok();
        second.lock().unwrap().is_some()
    })
    .await;
    let second = second.into_inner().unwrap().unwrap();
    assert_eq!(second.id(), id);
    second.lock("a").lock().await.unwrap().release().await.unwrap();
    env.leaves_keys();
}

async fn of_two_that_connect_with_one_identity_at_once_one_at_most_does(env: Env) {
    for _ in 0..5 {
        let config = Config::builder().client_id(Uuid::new_v4()).build().unwrap();
        let (a, b) = futures::future::join(connect(&env, &config), connect(&env, &config)).await;
        assert!(a.is_err() || b.is_err(), "two living clients of one identity");
        for error in [a.err(), b.err()].into_iter().flatten() {
            assert_eq!(error.kind(), ErrorKind::ClientIdInUse);
        }
    }
    env.leaves_keys();
}

async fn a_client_whose_identity_was_set_comes_back_after_a_cut(env: Env) {
    let client = env.client_with(|config| config.client_id(Uuid::new_v4())).await;
    let inbox = format!("bowline:inbox:{}", client.id());
    for _ in 0..3 {
        for kind in ["pubsub", "normal"] {
            let killed: u64 = env.redis(&["CLIENT", "KILL", "TYPE", kind]);
            assert!(killed > 0, "{kind}");
        }
        env.eventually("it listens again", async || env.listeners(&inbox) == 1).await;
        client.lock("a").lock().await.unwrap().release().await.unwrap();
    }
}
