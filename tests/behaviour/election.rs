//! What is true of elections, with futures and through the blocking facade (`lab`).

// Tests that need futures: work that leads, what is dropped half-way.
mod work;

use std::time::{Duration, SystemTime};

use bowline::{
    ElectionChange, ElectionChanges, ErrorKind, Leader, MAX_LABEL, MAX_LEADER_VALUE, NameInUse, PrimitiveKind, Token,
};
use futures::future::join_all;

use crate::lab::{Changes, Env, TestClient, on_every_server};

on_every_server! {
    the_first_candidate_leads_and_the_others_follow_in_order,
    a_leader_is_known_by_label_term_value_and_client,
    every_change_is_reported_in_order,
    who_begins_to_watch_learns_who_leads,
    what_was_not_seen_is_read_later,
    changes_that_are_no_longer_known_are_reported_as_missed,
    a_leader_that_is_gone_is_noticed,
    who_has_resigned_publishes_no_more,
    what_is_too_long_is_refused,
    an_election_is_no_lock,
    a_closed_client_ends_its_term_and_its_changes,
    a_term_costs_three_commands,
}

const MS: Duration = Duration::from_millis(1);

/// What a change says: `+` a term has begun, `=` a value was published, `-` a term has ended.
#[track_caller]
fn shown(change: ElectionChange) -> (String, Token) {
    match change {
        ElectionChange::Elected(leader) => (format!("+{}", leader.label), leader.term),
        ElectionChange::Published(leader) => (format!("={}", leader.value.unwrap()), leader.term),
        ElectionChange::Ended { term } => ("-".to_owned(), term),
        other => panic!("{other:?}"),
    }
}

async fn next(env: &Env, changes: &mut Changes<ElectionChanges>) -> (String, Token) {
    shown(env.soon("a change", changes.next()).await.unwrap().unwrap())
}

/// How many campaign in the queue.
async fn waiters(client: &TestClient) -> u64 {
    let name = NameInUse::new(PrimitiveKind::Election, "a");
    client.look(vec![name]).await.pop().unwrap().unwrap().waiters
}

async fn the_first_candidate_leads_and_the_others_follow_in_order(env: Env) {
    let clients = join_all((0..4).map(|_| env.client())).await;
    let first = clients[0].election("a").campaign(None).await.unwrap();
    let mut waiting = Vec::new();
    for (n, client) in clients.iter().enumerate().skip(1) {
        waiting.push(env.spawn(client.election("a").campaign(None)));
        // In the queue, where the order is that of their requests.
        env.eventually("it waits", async || waiters(client).await == n as u64).await;
    }
    assert!(clients[0].election("a").try_campaign().await.unwrap().is_none());
    let mut last = first.token();
    first.resign().await.unwrap();
    for waiting in waiting {
        let led = env.soon("the next one leads", waiting).await.unwrap();
        assert!(led.token() > last && led.term().is_valid());
        last = led.token();
        led.resign().await.unwrap();
    }
    let led = clients[0].election("a").try_campaign().await.unwrap().expect("nobody leads");
    let error = clients[1].election("a").campaign(Some(50 * MS)).await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::TimedOut, "campaign", Some("a")));
    led.resign().await.unwrap();
}

async fn a_leader_is_known_by_label_term_value_and_client(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let election = client.election("a").label("web 7: ä");
    assert_eq!(election.leader().await.unwrap(), None);
    let led = election.campaign(None).await.unwrap();
    let leader = other.election("a").leader().await.unwrap().unwrap();
    let Leader { label, term, since, value, client: id, .. } = leader.clone();
    assert_eq!((&*label, term, value, id), ("web 7: ä", led.token(), None, Some(client.id())));
    // The server's clock is that of this machine, or the embedded one's, which begins with it.
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    assert!(since.abs_diff(u128::from(term.get())) < 5_000_000);
    for value in ["http://a:1/ b", "", "c"] {
        led.publish(value).await.unwrap();
        let mut expected = leader.clone();
        expected.value = Some(value.to_owned());
        assert_eq!(election.leader().await.unwrap(), Some(expected));
    }
    led.resign().await.unwrap();
    assert_eq!(election.leader().await.unwrap(), None);
}

async fn every_change_is_reported_in_order(env: Env) {
    let (one, other, watcher) = (env.client().await, env.client().await, env.client().await);
    let mut changes = watcher.election("a").changes();
    let seen = env.spawn({
        let env = env.clone();
        async move {
            let mut seen = Vec::new();
            while seen.len() < 7 {
                seen.push(next(&env, &mut changes).await);
            }
            seen
        }
    });
    let led = one.election("a").label("one").campaign(None).await.unwrap();
    let waiting = env.spawn(other.election("a").label("other").campaign(None));
    env.eventually("it waits", async || other.stats().waiting == 1).await;
    let first = led.token();
    led.publish("x").await.unwrap();
    led.publish("y").await.unwrap();
    led.resign().await.unwrap();
    let led = env.soon("the other one leads", waiting).await.unwrap();
    let second = led.token();
    led.publish("z").await.unwrap();
    led.resign().await.unwrap();
    let seen = env.soon("all changes", seen).await;
    let of_first = ["+one", "=x", "=y", "-"].map(|text| (text.to_owned(), first));
    let of_second = ["+other", "=z", "-"].map(|text| (text.to_owned(), second));
    assert_eq!(seen, [&of_first[..], &of_second[..]].concat());
}

async fn who_begins_to_watch_learns_who_leads(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let election = client.election("a").label("one");
    election.campaign(None).await.unwrap().resign().await.unwrap();
    let led = election.campaign(None).await.unwrap();
    led.publish("x").await.unwrap();
    let mut changes = watcher.election("a").changes();
    let Some(Ok(ElectionChange::Elected(leader))) = env.soon("the leader", changes.next()).await else { panic!() };
    assert_eq!((leader.term, leader.value.as_deref()), (led.token(), Some("x")));
    let term = led.token();
    led.resign().await.unwrap();
    assert_eq!(next(&env, &mut changes).await, ("-".to_owned(), term));
    // The end of a term that began before is no news.
    let mut changes = watcher.election("a").changes();
    let seen = env.spawn(async move { changes.next().await });
    env.eventually("it watches", async || watcher.stats().waiting == 1).await;
    let led = election.campaign(None).await.unwrap();
    let Some(Ok(ElectionChange::Elected(leader))) = env.soon("the leader", seen).await else { panic!() };
    assert_eq!((leader.term, leader.value), (led.token(), None));
}

async fn what_was_not_seen_is_read_later(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let mut changes = watcher.election("a").changes();
    let led = client.election("a").campaign(None).await.unwrap();
    let term = led.token();
    assert_eq!(next(&env, &mut changes).await, ("+".to_owned(), term));
    // Nobody waits meanwhile.
    for n in 0..60 {
        led.publish(&n.to_string()).await.unwrap();
    }
    led.resign().await.unwrap();
    for n in 0..60 {
        assert_eq!(next(&env, &mut changes).await, (format!("={n}"), term));
    }
    assert_eq!(next(&env, &mut changes).await, ("-".to_owned(), term));
}

async fn changes_that_are_no_longer_known_are_reported_as_missed(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let mut changes = watcher.election("a").changes();
    let led = client.election("a").campaign(None).await.unwrap();
    next(&env, &mut changes).await;
    for n in 0..64 {
        led.publish(&n.to_string()).await.unwrap();
    }
    for n in 0..64 {
        assert_eq!(next(&env, &mut changes).await, (format!("={n}"), led.token()));
    }
    for n in 0..65 {
        led.publish(&n.to_string()).await.unwrap();
    }
    assert_eq!(missed(&env, &mut changes).await, led.token());
    // Another term has begun.
    let first = led.token();
    for n in 0..65 {
        led.publish(&n.to_string()).await.unwrap();
    }
    led.resign().await.unwrap();
    let led = client.election("a").campaign(None).await.unwrap();
    assert_eq!(env.soon("a change", changes.next()).await.unwrap().unwrap(), ElectionChange::Missed);
    assert_eq!(next(&env, &mut changes).await, ("-".to_owned(), first));
    assert_eq!(next(&env, &mut changes).await, ("+".to_owned(), led.token()));
    led.publish("x").await.unwrap();
    assert_eq!(next(&env, &mut changes).await, ("=x".to_owned(), led.token()));
}

/// The term that is reported after `Missed`, with the last value.
async fn missed(env: &Env, changes: &mut Changes<ElectionChanges>) -> Token {
    assert_eq!(env.soon("a change", changes.next()).await.unwrap().unwrap(), ElectionChange::Missed);
    let present = env.soon("a change", changes.next()).await.unwrap().unwrap();
    let ElectionChange::Elected(leader) = present else { panic!("{present:?}") };
    assert_eq!(leader.value.as_deref(), Some("64"));
    leader.term
}

async fn a_leader_that_is_gone_is_noticed(env: Env) {
    let (one, other) = (env.client_with(|config| config.lease(600 * MS)).await, env.client().await);
    let watcher = env.client_with(|config| config.lease(600 * MS)).await;
    let mut changes = watcher.election("a").changes();
    let led = one.election("a").label("one").campaign(None).await.unwrap();
    let first = led.token();
    assert_eq!(next(&env, &mut changes).await, ("+one".to_owned(), first));
    // Without a word: the drop releases only.
    drop(led);
    assert_eq!(next(&env, &mut changes).await, ("-".to_owned(), first));
    let led = other.election("a").label("other").campaign(None).await.unwrap();
    assert_eq!(next(&env, &mut changes).await, ("+other".to_owned(), led.token()));
    led.resign().await.unwrap();
}

async fn who_has_resigned_publishes_no_more(env: Env) {
    let client = env.client().await;
    let election = client.election("a");
    let led = election.campaign(None).await.unwrap();
    let term = led.term();
    led.resign().await.unwrap();
    assert!(!term.is_valid());
    for _ in 0..2 {
        let error = term.publish("late").await.unwrap_err();
        assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Lost, "publish", Some("a")));
    }
    let led = election.campaign(None).await.unwrap();
    assert_eq!(term.publish("late").await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(election.leader().await.unwrap().unwrap().value, None);
    led.resign().await.unwrap();
}

async fn what_is_too_long_is_refused(env: Env) {
    let client = env.client().await;
    let long = "x".repeat(MAX_LABEL + 1);
    let bad = client.election("a").label(&long);
    for error in [bad.campaign(None).await.err(), bad.try_campaign().await.err()] {
        let error = error.unwrap();
        assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")));
    }
    let bad = client.election("");
    assert_eq!(bad.campaign(None).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(bad.leader().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut changes = bad.changes();
    assert_eq!(changes.next().await.unwrap().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(changes.next().await.is_none() && changes.next().await.is_none());
    let led = client.election("a").label(&long[1..]).campaign(None).await.unwrap();
    let long = "x".repeat(MAX_LEADER_VALUE + 1);
    let error = led.publish(&long).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "publish"));
    led.publish(&long[1..]).await.unwrap();
    let leader = client.election("a").leader().await.unwrap().unwrap();
    assert_eq!((leader.label.len(), leader.value.unwrap().len()), (MAX_LABEL, MAX_LEADER_VALUE));
}

async fn an_election_is_no_lock(env: Env) {
    let client = env.client().await;
    let _lock = client.lock("a").try_lock().await.unwrap().unwrap();
    let _led = client.election("a").try_campaign().await.unwrap().unwrap();
    let _other = client.election("b").try_campaign().await.unwrap().unwrap();
}

async fn a_closed_client_ends_its_term_and_its_changes(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let mut changes = client.election("a").changes();
    let led = client.election("a").campaign(None).await.unwrap();
    next(&env, &mut changes).await;
    client.close().await;
    assert!(!led.term().is_valid());
    assert_eq!(led.publish("x").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(changes.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(changes.next().await.is_none() && changes.next().await.is_none());
    assert!(other.election("a").try_campaign().await.unwrap().is_some());
}

async fn a_term_costs_three_commands(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let mut changes = watcher.election("a").changes();
    let seen = env.spawn(async move {
        changes.next().await;
        changes.next().await
    });
    env.eventually("it watches", async || watcher.stats().waiting == 1).await;
    client.counts.reset();
    watcher.counts.reset();
    client.election("a").campaign(None).await.unwrap().resign().await.unwrap();
    env.soon("two changes", seen).await.unwrap().unwrap();
    assert_eq!(client.counts.total(), 3, "acquire, announce; release: {:?}", client.counts.all());
    // A watcher reads and waits again, for each change or for both at once.
    assert!((1..=4).contains(&watcher.counts.total()), "{:?}", watcher.counts.all());
}
