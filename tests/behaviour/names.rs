//! The names in use, what is stored of them, and programs that wait for each other.

use std::time::Duration;

use bowline::{
    Access, ConfigBuilder, Deadlock, ErrorKind, Loss, NameInUse, NameState, PrimitiveKind as Kind, Quota, Whose,
};

use crate::lab::{Env, TestClient, on_every_server};
use crate::lock::LONG;

on_every_server! {
    names_in_use_are_listed_by_kind_and_beginning,
    a_name_is_looked_at_whatever_its_kind,
    whoever_keeps_a_period_is_shown_with_its_label,
    an_error_is_that_of_one_name,
    three_that_wait_for_each_other_are_found,
    readers_and_permits_are_in_deadlocks_too,
    who_gets_on_is_in_no_deadlock,
    nobody_can_take_a_leadership,
    a_closed_client_lists_nothing,
}

fn named(kind: Kind, names: &[&str]) -> Vec<NameInUse> {
    names.iter().map(|name| NameInUse::new(kind, *name)).collect()
}

async fn names_in_use_are_listed_by_kind_and_beginning(env: Env) {
    // The calls of a latch stay for a while.
    env.leaves_keys();
    let client = env.client().await;
    assert_eq!(client.names(None, "").await.unwrap(), []);
    let mut guards = Vec::new();
    for name in ["orders/1", "orders/2", "a{b}", "a*", "ü\n", "100%"] {
        guards.push(client.lock(name).lock().await.unwrap());
    }
    let permit = client.semaphore("orders/1", 2).acquire().await.unwrap();
    let reader = client.rw_lock("books").read().await.unwrap();
    client.latch("gate").try_set(1, LONG).await.unwrap();
    let slow = Quota::per(1, Duration::from_secs(30));
    let _ = client.rate_limiter("mail", slow).check().await.unwrap();
    let expected = named(Kind::Lock, &["100%", "a*", "a{b}", "orders/1", "orders/2", "ü\n"]);
    assert_eq!(client.names(Some(Kind::Lock), "").await.unwrap(), expected);
    assert_eq!(client.names(Some(Kind::Lock), "a*").await.unwrap(), named(Kind::Lock, &["a*"]));
    assert_eq!(client.names(None, "a{").await.unwrap(), named(Kind::Lock, &["a{b}"]));
    let orders = [named(Kind::Lock, &["orders/1", "orders/2"]), named(Kind::Semaphore, &["orders/1"])].concat();
    assert_eq!(client.names(None, "orders/").await.unwrap(), orders);
    assert_eq!(client.names(None, "orders/3").await.unwrap(), []);
    assert_eq!(client.names(Some(Kind::Once), "").await.unwrap(), []);
    assert_eq!(client.names(None, "").await.unwrap().len(), 10);
    let too_long = client.names(None, &"x".repeat(513)).await.unwrap_err();
    assert_eq!((too_long.kind(), too_long.name()), (ErrorKind::InvalidInput, None));
    for guard in guards {
        guard.release().await.unwrap();
    }
    permit.release().await.unwrap();
    reader.release().await.unwrap();
    client.latch("gate").delete().await.unwrap();
    client.rate_limiter("mail", slow).reset().await.unwrap();
    assert_eq!(client.names(None, "").await.unwrap(), []);
}

async fn look(client: &TestClient, kind: Kind, name: &str) -> NameState {
    let name = NameInUse::new(kind, name);
    let state = client.look(vec![name.clone()]).await.pop().unwrap().unwrap();
    assert_eq!(state.name, name);
    state
}

fn holds(state: &NameState) -> Vec<(Access, bool)> {
    let hold = |hold: &bowline::HoldState| {
        assert!(hold.client.is_some() && !hold.remaining.is_zero());
        (hold.access, hold.token.is_some())
    };
    state.holds.iter().map(hold).collect()
}

async fn a_name_is_looked_at_whatever_its_kind(env: Env) {
    env.leaves_keys();
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    let waiter = crate::lock::waiter(&env, &client.lock("a")).await;
    let state = look(&client, Kind::Lock, "a").await;
    assert_eq!((holds(&state), state.waiters), (vec![(Access::Lock, true)], 1));
    assert_eq!(state.holds[0].token, Some(guard.token()));
    assert_eq!((state.queue[0].client, state.queue[0].waits_for), (client.id(), Access::Lock));
    guard.release().await.unwrap();
    waiter.await.release().await.unwrap();

    let permit = client.semaphore("a", 3).acquire_many(2).await.unwrap();
    assert_eq!(holds(&look(&client, Kind::Semaphore, "a").await), [(Access::Permits(2), false)]);
    permit.release().await.unwrap();
    let writer = client.rw_lock("a").write().await.unwrap();
    assert_eq!(holds(&look(&client, Kind::RwLock, "a").await), [(Access::Write, true)]);
    let reader = writer.downgrade().await.unwrap();
    assert_eq!(holds(&look(&client, Kind::RwLock, "a").await), [(Access::Read, true)]);
    reader.release().await.unwrap();

    let latch = client.latch("a");
    latch.try_set(1, LONG).await.unwrap();
    let waits = latch.clone();
    let waits = env.spawn(async move { waits.wait().await.unwrap() });
    env.eventually("it waits", async || look(&client, Kind::Latch, "a").await.waiters == 1).await;
    let state = look(&client, Kind::Latch, "a").await;
    assert_eq!((holds(&state), state.queue[0].waits_for), (vec![], Access::Latch));
    latch.count_down().await.unwrap();
    waits.await;
    latch.delete().await.unwrap();

    let barrier = client.barrier("a", 2);
    let waits = barrier.clone();
    let waits = env.spawn(async move { waits.wait().await.unwrap() });
    env.eventually("it waits", async || look(&client, Kind::Barrier, "a").await.waiters == 1).await;
    let state = look(&client, Kind::Barrier, "a").await;
    assert_eq!((holds(&state), state.queue[0].waits_for), (vec![], Access::Barrier));
    assert_eq!(client.names(Some(Kind::Barrier), "").await.unwrap(), named(Kind::Barrier, &["a"]));
    barrier.wait().await.unwrap();
    waits.await;
    // Nobody waits any more.
    assert_eq!(client.names(Some(Kind::Barrier), "").await.unwrap(), []);

    let leads = client.election("a").try_campaign().await.unwrap().unwrap();
    assert_eq!(holds(&look(&client, Kind::Election, "a").await), [(Access::Lock, true)]);
    leads.resign().await.unwrap();
    for kind in [Kind::RateLimiter, Kind::RedLock, Kind::Once, Kind::Election, Kind::Lock] {
        let state = look(&client, kind, "a").await;
        assert_eq!((holds(&state), state.waiters, state.queue), (vec![], 0, vec![]), "{kind}");
    }
}

/// The run has ended, and its period is kept from others.
async fn whoever_keeps_a_period_is_shown_with_its_label(env: Env) {
    let (client, looker) = (env.client_with(|config| config.label("web-7")).await, env.client().await);
    env.leaves_keys();
    assert!(client.once("a", Duration::from_secs(1)).at_least(LONG).run(|_| ()).await.unwrap().is_some());
    env.eventually("the label", async || {
        let state = look(&looker, Kind::Once, "a").await;
        state.holds[0].client == Some(client.id()) && state.holds[0].label.as_deref() == Some("web-7")
    })
    .await;
}

async fn an_error_is_that_of_one_name(env: Env) {
    let client = env.client().await;
    let guard = client.lock("a").lock().await.unwrap();
    // More than are asked at once.
    let mut names = named(Kind::Lock, &["a"; 300]);
    names[1].name = String::new();
    names[299].name = "x".repeat(513);
    let seen = client.look(names).await;
    for (at, state) in seen.into_iter().enumerate() {
        match state {
            Ok(state) => assert_eq!(state.holds.len(), 1, "{at}"),
            Err(error) => assert!([1, 299].contains(&at) && error.kind() == ErrorKind::InvalidInput, "{at}: {error}"),
        }
    }
    guard.release().await.unwrap();
    assert_eq!(client.look(vec![]).await.len(), 0);
}

fn labelled(label: &str) -> impl FnOnce(ConfigBuilder) -> ConfigBuilder + '_ {
    move |config| config.label(label)
}

/// Each client with what it waits for, and whether the next one holds that.
fn shown(deadlock: &Deadlock) -> Vec<(uuid::Uuid, &str, Access, bool)> {
    let wait = |wait: &'_ bowline::DeadlockedWait| (wait.client, wait.waits_for, wait.is_held);
    let waits = deadlock.waits.iter().map(|each| (wait(each), &*each.name.name));
    waits.map(|((client, access, is_held), name)| (client, name, access, is_held)).collect()
}

async fn three_that_wait_for_each_other_are_found(env: Env) {
    let mut clients = Vec::new();
    for label in ["web-1", "web-2", "web-3"] {
        clients.push(env.client_with(labelled(label)).await);
    }
    let operator = env.client().await;
    let names = ["jobs/a", "jobs/b", "jobs/c"];
    let mut guards = Vec::new();
    for (client, name) in clients.iter().zip(names) {
        guards.push(client.lock(name).lock().await.unwrap());
    }
    assert_eq!(operator.deadlocks("", Duration::ZERO).await.unwrap(), []);
    let mut waits = Vec::new();
    for (client, name) in clients.iter().zip(["jobs/b", "jobs/c", "jobs/a"]) {
        waits.push(crate::lock::waiter(&env, &client.lock(name)).await);
    }
    // One who waits behind them is no part of it.
    let behind = crate::lock::waiter(&env, &operator.lock("jobs/a")).await;
    let is_labelled = async || {
        let found = operator.deadlocks("jobs/", Duration::ZERO).await.unwrap();
        found[0].waits.iter().all(|wait| wait.label.is_some())
    };
    env.eventually("the labels", is_labelled).await;
    let found = operator.deadlocks("jobs/", Duration::from_millis(20)).await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let mut waiting = shown(&found[0]);
    waiting.sort_by_key(|(_, name, ..)| *name);
    let id = |n: usize| clients[n].id();
    let lock = Access::Lock;
    let expected = [(id(2), "jobs/a", lock, true), (id(0), "jobs/b", lock, true), (id(1), "jobs/c", lock, true)];
    assert_eq!(waiting, expected);
    let text = found[0].to_string();
    for part in
        [r#""web-1" waits for lock "jobs/b", which "web-2" holds; "#, r#"; it ends if "web-3" loses lock "jobs/c""#]
    {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(operator.deadlocks("other", Duration::ZERO).await.unwrap(), []);
    // The last hold that was granted ends it.
    let way_out = found[0].way_out.as_ref().unwrap();
    assert_eq!((way_out.client, &*way_out.name.name), (id(2), "jobs/c"));
    assert_eq!(way_out.token, Some(guards[2].token()));
    operator.lock("jobs/c").force_release().await.unwrap();
    assert_eq!(env.soon("it is told", guards.pop().unwrap().lost()).await, Loss::Revoked);
    let (c, b) = (waits.remove(1), guards.pop().unwrap());
    c.await.release().await.unwrap();
    b.release().await.unwrap();
    waits.remove(0).await.release().await.unwrap();
    guards.pop().unwrap().release().await.unwrap();
    waits.remove(0).await.release().await.unwrap();
    behind.await.release().await.unwrap();
    assert_eq!(operator.deadlocks("", Duration::ZERO).await.unwrap(), []);
}

async fn readers_and_permits_are_in_deadlocks_too(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let reads = a.rw_lock("books").read().await.unwrap();
    let permit = b.semaphore("pool", 2).acquire_many(2).await.unwrap();
    let (pool, books) = (a.semaphore("pool", 2), b.rw_lock("books"));
    let takes = env.spawn(async move { pool.acquire().timeout(LONG).await.unwrap() });
    let writes = env.spawn(async move { books.write().timeout(LONG).await.unwrap() });
    env.eventually("one is found", async || b.deadlocks("", Duration::ZERO).await.unwrap().len() == 1).await;
    let found = a.deadlocks("", Duration::ZERO).await.unwrap();
    let mut waiting = shown(&found[0]);
    waiting.sort_by_key(|(_, name, ..)| *name);
    assert_eq!(waiting, [(b.id(), "books", Access::Write, true), (a.id(), "pool", Access::Permits(1), true)]);
    // Only the reader has a token.
    let way_out = found[0].way_out.as_ref().unwrap();
    assert_eq!((way_out.client, &*way_out.name.name), (a.id(), "books"));
    assert_eq!(a.rw_lock("books").force_release(Whose::Client(a.id())).await.unwrap().holds, 1);
    assert_eq!(env.soon("it is told", reads.lost()).await, Loss::Revoked);
    env.soon("the writer", writes).await.release().await.unwrap();
    permit.release().await.unwrap();
    env.soon("the permit", takes).await.release().await.unwrap();
}

/// Contended names, cohorts that ask ahead, and a queue whose first one waits for nothing else.
async fn who_gets_on_is_in_no_deadlock(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let guard = a.lock("a").lock().await.unwrap();
    let permit = b.semaphore("a", 1).acquire().await.unwrap();
    let mut waits = Vec::new();
    for client in [&b, &a, &b] {
        waits.push(crate::lock::waiter(&env, &client.lock("a")).await);
    }
    let semaphore = b.semaphore("a", 1);
    let takes = env.spawn(async move { semaphore.acquire().timeout(LONG).await.unwrap() });
    env.eventually("it waits", async || look(&a, Kind::Semaphore, "a").await.waiters == 1).await;
    assert_eq!(a.deadlocks("", Duration::ZERO).await.unwrap(), []);
    permit.release().await.unwrap();
    takes.await.release().await.unwrap();
    guard.release().await.unwrap();
    for wait in waits {
        wait.await.release().await.unwrap();
    }
}

async fn nobody_can_take_a_leadership(env: Env) {
    // The changes of an election stay for a while.
    env.leaves_keys();
    let (a, b) = (env.client().await, env.client().await);
    let [one, other] = [&a, &b].map(|client| (client.election("x"), client.election("y")));
    let leads = (one.0.try_campaign().await.unwrap().unwrap(), other.1.try_campaign().await.unwrap().unwrap());
    let campaigns = [(a.clone(), one.1), (b.clone(), other.0)].map(|(client, election)| {
        env.spawn(async move {
            let _client = client;
            election.campaign(Some(LONG)).await.unwrap().resign().await.unwrap();
        })
    });
    env.eventually("one is found", async || a.deadlocks("", Duration::ZERO).await.unwrap().len() == 1).await;
    let found = b.deadlocks("", Duration::ZERO).await.unwrap();
    assert_eq!((found[0].waits.len(), &found[0].way_out), (2, &None));
    leads.0.resign().await.unwrap();
    leads.1.resign().await.unwrap();
    for campaign in campaigns {
        env.soon("it leads", campaign).await;
    }
}

async fn a_closed_client_lists_nothing(env: Env) {
    let client = env.client().await;
    client.close().await;
    let errors = [
        client.names(None, "").await.unwrap_err(),
        client.look(named(Kind::Lock, &["a"])).await.pop().unwrap().unwrap_err(),
        client.deadlocks("", Duration::ZERO).await.unwrap_err(),
    ];
    assert_eq!(errors.map(|error| error.kind()), [ErrorKind::Closed; 3]);
}
