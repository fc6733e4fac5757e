//! Who follows a hold that is not the one it queued up behind.

use bowline::Script;

use crate::scene::{acquiring, key, ms, until_waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! { a_short_lease_of_a_dead_holder_delays_nobody_for_longer }

/// A program that listens, waits with a lease of a second, and dies when it is granted the lock. Who stands behind it has a
/// lease of a minute, and would give the next sign of life after 20 s.
async fn a_short_lease_of_a_dead_holder_delays_nobody_for_longer(env: Env) {
    let client = env.client_with(|config| config.lease(ms(60_000))).await;
    let dying = "00000000-0000-0000-0000-000000000009";
    let mut inbox = env.server().client();
    let mut inbox = inbox.as_pubsub();
    inbox.subscribe(format!("bowline:inbox:{dying}")).unwrap();

    let held = client.lock("a").lock().await.unwrap();
    let script = Script::all().find(|script| script.name() == "lock_acquire").unwrap();
    let keys = ["", ":queue", ":tickets", ":fence"].map(|suffix| format!("{}{suffix}", key("a")));
    let id = format!("{dying}:1");
    let mut request = vec!["EVAL", script.source(), "4"];
    request.extend(keys.iter().map(String::as_str));
    request.extend([&*id, "wait", "1000", "1", "60000", "0", "0", "bowline:inbox:", "1"]);
    let queued: Vec<redis::Value> = env.redis(&request);
    assert_eq!(queued[0], redis::Value::BulkString(b"QUEUED".to_vec()));
    let other = env.client_with(|config| config.lease(ms(60_000))).await;
    let waiter = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 2).await;

    held.release().await.unwrap();
    let start = env.now();
    let granted: String = inbox.get_message().unwrap().get_payload().unwrap();
    assert!(granted.ends_with(&id), "{granted}");
    let next = env.soon("the one behind the dead", waiter).await.unwrap();
    let took = env.now() - start;
    assert!(took < ms(10_000), "{took:?}");
    next.release().await.unwrap();
}
