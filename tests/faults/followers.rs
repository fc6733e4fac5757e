//! Who follows a hold that is not the one it queued up behind.

use bowline::wire::{self, Attempt, PREFIX, Resource};

use crate::scene::{acquiring, ms, until_waiting};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! { a_short_lease_of_a_dead_holder_delays_waiters_no_longer }

/// A program that listens, waits with a lease of a second, and dies when it is granted the lock. Who stands behind it
/// has a lease of a minute, and would give the next sign of life after 20 s.
async fn a_short_lease_of_a_dead_holder_delays_waiters_no_longer(env: Env) {
    let client = env.client_with(|config| config.lease(ms(60_000))).await;
    let dying = Attempt { ticket_ttl: ms(60_000), ..Attempt::new(wire::client(9), 1, ms(1000)) };
    let mut inbox = env.server().client();
    let mut inbox = inbox.as_pubsub();
    inbox.subscribe(wire::inbox(PREFIX, dying.client)).unwrap();

    let held = client.lock("a").lock().await.unwrap();
    let request = Resource::lock(PREFIX, "a").unwrap().acquire(dying, true);
    let (keys, words) = (request.keys(), request.words());
    let count = keys.len().to_string();
    let mut command = vec!["EVAL", request.script.source(), &count];
    command.extend(keys);
    command.extend(words.iter().map(String::as_str));
    let queued: Vec<redis::Value> = env.redis(&command);
    assert_eq!(queued[0], redis::Value::BulkString(b"QUEUED".to_vec()));
    let other = env.client_with(|config| config.lease(ms(60_000))).await;
    let waiter = acquiring(&env, &other, "a");
    until_waiting(&env, "a", 2).await;

    held.release().await.unwrap();
    let start = env.now();
    let granted: String = inbox.get_message().unwrap().get_payload().unwrap();
    assert!(granted.ends_with(&dying.id()), "{granted}");
    let next = env.soon("the one behind the dead", waiter).await.unwrap();
    let took = env.now() - start;
    assert!(took < ms(10_000), "{took:?}");
    next.release().await.unwrap();
}
