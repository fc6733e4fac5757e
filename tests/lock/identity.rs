//! Who a client is in Redis: its own, drawn when it connects, unless the user has set it.

use bowline::{Client, Config, Result};

use crate::LONG;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    clients_of_one_config_exclude_each_other,
    a_client_of_a_config_that_served_before_is_another,
}

async fn connect(env: &Env, config: &Config) -> Result<Client> {
    Client::new(env.executor(), env.connection(config).await, config.clone()).await
}

async fn clients_of_one_config_exclude_each_other(env: Env) {
    let config = Config::builder().build().unwrap();
    let (a, b) = (connect(&env, &config).await.unwrap(), connect(&env, &config).await.unwrap());
    assert_ne!(a.id(), b.id());
    // Each client numbers its attempts from 1: with one identity the second would be told that it holds.
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

    // A latch counts the call of each.
    let latch = (a.latch("l"), b.latch("l"));
    assert!(latch.0.try_set(2, LONG).await.unwrap());
    latch.0.count_down().await.unwrap();
    assert_eq!(latch.1.count_down().await.unwrap(), 0);
    latch.0.delete().await.unwrap();
    env.leaves_keys();
}

async fn a_client_of_a_config_that_served_before_is_another(env: Env) {
    let config = Config::builder().build().unwrap();
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
