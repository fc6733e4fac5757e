//! What `inspect` shows of those who hold and wait, and what the error of a timeout says of them.

use std::time::Duration;

use bowline::{Access, ConfigBuilder, ErrorKind, WaiterState};

use crate::lab::{Env, TestClient, on_every_server};
use crate::lock::LONG;

on_every_server! {
    a_lock_shows_the_labels_of_its_holder_and_of_its_queue,
    other_primitives_show_them_too,
    the_label_of_a_closed_client_is_gone,
    a_timeout_says_who_holds_and_who_is_before,
    without_a_label_a_timeout_asks_nothing,
    the_label_is_that_of_a_candidate,
}

const MS: Duration = Duration::from_millis(1);

fn labelled(label: &str) -> impl FnOnce(ConfigBuilder) -> ConfigBuilder + '_ {
    move |config| config.label(label)
}

/// A client whose label is stored.
async fn client(env: &Env, label: &str) -> TestClient {
    let client = env.client_with(labelled(label)).await;
    let lock = client.lock("label");
    let guard = lock.lock().await.unwrap();
    let is_stored = async || lock.inspect().await.unwrap().holder.unwrap().label.as_deref() == Some(label);
    env.eventually("the label", is_stored).await;
    guard.release().await.unwrap();
    client
}

fn shown(queue: &[WaiterState]) -> Vec<(Option<&str>, Access)> {
    queue.iter().map(|waiter| (waiter.label.as_deref(), waiter.waits_for)).collect()
}

async fn a_lock_shows_the_labels_of_its_holder_and_of_its_queue(env: Env) {
    let (holder, waiter, other) = (client(&env, "web-7").await, client(&env, "web 8 ü").await, env.client().await);
    let lock = other.lock("a");
    assert!(lock.inspect().await.unwrap().queue.is_empty());
    let guard = holder.lock("a").lock().await.unwrap();
    let mut waiters = Vec::new();
    for client in [&waiter, &other] {
        waiters.push(crate::lock::waiter(&env, &client.lock("a")).await);
    }
    let state = lock.inspect().await.unwrap();
    let held = state.holder.unwrap();
    assert_eq!((held.client, held.label.as_deref()), (Some(holder.id()), Some("web-7")));
    assert_eq!(shown(&state.queue), [(Some("web 8 ü"), Access::Lock), (None, Access::Lock)]);
    assert_eq!(state.queue.iter().map(|waiter| waiter.client).collect::<Vec<_>>(), [waiter.id(), other.id()]);
    guard.release().await.unwrap();
    for waiter in waiters {
        waiter.await.release().await.unwrap();
    }
}

async fn other_primitives_show_them_too(env: Env) {
    // An open latch lives until its time is over.
    env.leaves_keys();
    let (holder, waiter) = (client(&env, "web-7").await, client(&env, "web-8").await);

    let (lock, other) = (holder.rw_lock("a"), waiter.rw_lock("a"));
    let reader = lock.read().await.unwrap();
    let (writes, reads) = (other.clone(), other.clone());
    let writes = env.spawn(async move { writes.write().timeout(LONG).await.unwrap().release().await.unwrap() });
    env.eventually("it waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    let reads = env.spawn(async move { reads.read().timeout(LONG).await.unwrap().release().await.unwrap() });
    env.eventually("both wait", async || lock.inspect().await.unwrap().waiters == 2).await;
    let state = lock.inspect().await.unwrap();
    assert_eq!(state.readers[0].label.as_deref(), Some("web-7"));
    assert_eq!(shown(&state.queue), [(Some("web-8"), Access::Write), (Some("web-8"), Access::Read)]);
    reader.release().await.unwrap();
    writes.await;
    reads.await;

    let (semaphore, other) = (holder.semaphore("a", 3), waiter.semaphore("a", 3));
    let permit = semaphore.acquire_many(2).await.unwrap();
    let waits = env.spawn(async move { other.acquire_many(2).timeout(LONG).await.unwrap().release().await.unwrap() });
    env.eventually("it waits", async || semaphore.inspect().await.unwrap().waiters == 1).await;
    let state = semaphore.inspect().await.unwrap();
    assert_eq!(state.holders[0].label.as_deref(), Some("web-7"));
    assert_eq!(shown(&state.queue), [(Some("web-8"), Access::Permits(2))]);
    permit.release().await.unwrap();
    waits.await;

    let (latch, other) = (holder.latch("a"), waiter.latch("a"));
    assert!(latch.try_set(1, LONG).await.unwrap());
    let waits = env.spawn(async move { other.wait().timeout(LONG).await.unwrap() });
    env.eventually("it waits", async || latch.inspect().await.unwrap().waiters == 1).await;
    assert_eq!(shown(&latch.inspect().await.unwrap().queue), [(Some("web-8"), Access::Latch)]);
    latch.count_down().await.unwrap();
    waits.await;
}

async fn the_label_of_a_closed_client_is_gone(env: Env) {
    let closed = client(&env, "web-7").await;
    let other = env.client().await;
    assert_eq!(env.keys().len(), 2, "{:?}", env.keys());
    closed.close().await;
    assert_eq!(env.keys(), [""; 0]);
    // A client that is closed at once does not store its label afterwards.
    for _ in 0..20 {
        env.client_with(labelled("web-8")).await.close().await;
        assert_eq!(env.keys(), [""; 0]);
    }
    drop(other);
}

async fn a_timeout_says_who_holds_and_who_is_before(env: Env) {
    let (holder, waiter, other) = (client(&env, "web-7").await, client(&env, "web-8").await, env.client().await);
    let guard = holder.lock("a").lock().await.unwrap();
    let before = crate::lock::waiter(&env, &other.lock("a")).await;
    let error = waiter.lock("a").lock().timeout(600 * MS).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let text = error.to_string();
    assert!(text.contains("held by \"web-7\" (for ") && text.ends_with("; 1 before it in the queue"), "{text}");
    let error = waiter.lock("a").lock().non_fair().timeout(600 * MS).await.unwrap_err().to_string();
    assert!(error.contains("held by \"web-7\" (for "), "{error}");
    guard.release().await.unwrap();
    before.await.release().await.unwrap();

    let permits = [other.semaphore("a", 2).acquire().await.unwrap(), holder.semaphore("a", 2).acquire().await.unwrap()];
    let error = waiter.semaphore("a", 2).acquire().timeout(600 * MS).await.unwrap_err().to_string();
    let client = format!("client {} (for", other.id());
    assert!(error.contains("\"web-7\" (for") && error.contains(&client), "{error}");
    assert!(error.ends_with("; next in the queue"), "{error}");
    for permit in permits {
        permit.release().await.unwrap();
    }
}

async fn without_a_label_a_timeout_asks_nothing(env: Env) {
    let (holder, waiter) = (client(&env, "web-7").await, env.client().await);
    let guard = holder.lock("a").lock().await.unwrap();
    waiter.counts.reset();
    let error = waiter.lock("a").lock().timeout(300 * MS).await.unwrap_err();
    assert!(!error.to_string().contains("held by"), "{error}");
    assert_eq!(waiter.counts.of("lock_inspect") + waiter.counts.of("client_labels"), 0);
    guard.release().await.unwrap();
}

async fn the_label_is_that_of_a_candidate(env: Env) {
    let leads = client(&env, "web-7").await;
    let election = leads.election("a");
    let led = election.campaign(None).await.unwrap();
    assert_eq!(election.leader().await.unwrap().unwrap().label, "web-7");
    led.resign().await.unwrap();
    let led = election.label("other").campaign(None).await.unwrap();
    assert_eq!(leads.election("a").leader().await.unwrap().unwrap().label, "other");
    led.resign().await.unwrap();
}
