//! Work that leads, futures that are dropped, leaders that lose their lease, messages that are lost.

use std::future::{IntoFuture, pending};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use bowline::{ElectionChange, ErrorKind};
use futures::{FutureExt, StreamExt};

use crate::support::env::{Env, on_every_server};
use crate::support::polled::polled;

on_every_server! {
    work_leads_until_it_returns,
    a_panic_resigns_and_goes_on,
    a_campaign_dropped_after_any_number_of_polls_leaves_nothing,
    a_resignation_dropped_after_any_number_of_polls_ends_the_term,
    what_is_published_last_stays,
    who_stops_watching_leaves_nothing,
    who_watches_before_the_first_term_learns_that_changes_were_missed;
    work_is_called_anew_after_a_loss,
    a_leader_is_renewed_and_stays_known,
    a_server_that_has_lost_everything_ends_the_term,
    a_server_that_has_lost_the_last_change_ends_the_term,
}

const MS: Duration = Duration::from_millis(1);

async fn work_leads_until_it_returns(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let election = client.election("a").label("one");
    let led = election.lead(|term| {
        let other = other.election("a");
        async move {
            term.publish("x").await.unwrap();
            let leader = other.leader().await.unwrap().unwrap();
            assert_eq!((leader.term, leader.value.as_deref()), (term.token(), Some("x")));
            assert!(other.try_campaign().await.unwrap().is_none());
            term
        }
    });
    let term = led.await.unwrap();
    assert!(!term.is_valid() && !term.lost_signal().is_lost());
    assert!(other.election("a").try_campaign().await.unwrap().is_some());
    let bad = client.election("").lead(async |_| ()).await.unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::InvalidInput);
}

async fn work_is_called_anew_after_a_loss(env: Env) {
    let client = env.client_with(|config| config.lease(300 * MS)).await;
    let operator = env.client().await;
    let (calls, terms) = (Arc::new(AtomicU32::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let leading = env.spawn({
        let (election, calls, terms) = (client.election("a"), calls.clone(), terms.clone());
        async move {
            election
                .lead(|term| {
                    let call = calls.fetch_add(1, Ordering::SeqCst);
                    terms.lock().unwrap().push(term.token());
                    async move {
                        if call < 2 {
                            pending::<()>().await;
                        }
                        call
                    }
                })
                .await
        }
    });
    for call in 1..=2 {
        env.eventually("it leads", async || calls.load(Ordering::SeqCst) == call).await;
        // The hold is gone, as after a failover.
        env.eventually("it is noted", async || operator.election("a").leader().await.unwrap().is_some()).await;
        assert_eq!(env.redis::<u32>(&["DEL", "bowline:election:{a}"]), 1, "no hold");
    }
    assert_eq!(env.soon("the third call", leading).await.unwrap(), 2);
    assert!(terms.lock().unwrap().is_sorted_by(|one, next| one < next));
}

async fn a_panic_resigns_and_goes_on(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let election = client.election("a");
    for early in [true, false] {
        let work = |_| {
            assert!(!early, "before its future");
            async { panic!("in its future") }
        };
        let panicked = AssertUnwindSafe(election.lead::<_, _>(work)).catch_unwind().await;
        assert!(panicked.map(|output: bowline::Result<()>| drop(output)).is_err());
        other.election("a").try_campaign().await.unwrap().expect("nobody leads").resign().await.unwrap();
    }
}

async fn a_campaign_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let mut half_way = 0;
    for polls in 1.. {
        assert!(polls < 100, "it never ends");
        let election = client.election(&format!("a{polls}"));
        let led = polled(election.campaign().into_future(), polls, async || {}).await;
        half_way += u32::from(led.is_none());
        let is_over = led.is_some();
        drop(led);
        let fresh = other.election(&format!("a{polls}"));
        env.soon("nothing is in the way", fresh.campaign()).await.unwrap().resign().await.unwrap();
        if is_over {
            break;
        }
    }
    assert!(half_way > 0, "nothing was dropped half way");
}

async fn a_resignation_dropped_after_any_number_of_polls_ends_the_term(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for polls in 1.. {
        assert!(polls < 100, "it never ends");
        let led = client.election("a").campaign().await.unwrap();
        let term = led.term().clone();
        let resigned = polled(led.resign(), polls, async || {}).await;
        env.soon("the next one leads", other.election("a").campaign()).await.unwrap().resign().await.unwrap();
        assert!(!term.is_valid());
        if let Some(resigned) = resigned {
            resigned.unwrap();
            break;
        }
    }
}

async fn what_is_published_last_stays(env: Env) {
    let client = env.client().await;
    let election = client.election("a");
    let led = election.campaign().await.unwrap();
    for n in 0..20 {
        let (one, next) = (format!("{n} one"), format!("{n} next"));
        let (one, next) = futures::join!(led.publish(&one), led.publish(&next));
        one.and(next).unwrap();
        assert_eq!(election.leader().await.unwrap().unwrap().value, Some(format!("{n} next")));
    }
    led.resign().await.unwrap();
}

async fn who_stops_watching_leaves_nothing(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let led = client.election("a").campaign().await.unwrap();
    let mut changes = watcher.election("a").changes();
    changes.next().await.unwrap().unwrap();
    // A future that is dropped while it waits changes nothing.
    for _ in 0..3 {
        assert!(futures::poll!(changes.next()).is_pending());
        env.eventually("it waits", async || {
            assert!(futures::poll!(changes.next()).is_pending());
            watcher.stats().waiting == 1
        })
        .await;
    }
    led.publish("x").await.unwrap();
    let change = env.soon("the change", changes.next()).await.unwrap().unwrap();
    assert!(matches!(change, ElectionChange::Published(_)));
    assert!(futures::poll!(changes.next()).is_pending());
    env.eventually("it waits", async || {
        assert!(futures::poll!(changes.next()).is_pending());
        watcher.stats().waiting == 1
    })
    .await;
    drop(changes);
    led.resign().await.unwrap();
    env.eventually("nobody waits", async || env.keys().is_empty()).await;
}

async fn who_watches_before_the_first_term_learns_that_changes_were_missed(env: Env) {
    let (client, watcher) = (env.client().await, env.client().await);
    let mut changes = watcher.election("a").changes();
    env.eventually("it waits", async || {
        assert!(futures::poll!(changes.next()).is_pending());
        watcher.stats().waiting == 1
    })
    .await;
    let led = client.election("a").campaign().await.unwrap();
    for n in 0..65 {
        led.publish(&n.to_string()).await.unwrap();
    }
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, ElectionChange::Missed);
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    let ElectionChange::Elected(leader) = change else { panic!("{change:?}") };
    assert_eq!((leader.term, leader.value.as_deref()), (led.token(), Some("64")));
}

/// A failover has lost the beginning of the term, and not its hold.
async fn a_server_that_has_lost_the_last_change_ends_the_term(env: Env) {
    let client = env.client_with(|config| config.lease(600 * MS)).await;
    let mut changes = client.election("a").changes();
    for what in ["resigned", "taken over"] {
        let first = client.election("a").campaign().await.unwrap();
        assert!(matches!(env.soon("it leads", changes.next()).await, Some(Ok(ElectionChange::Elected(_)))));
        first.resign().await.unwrap();
        assert!(matches!(env.soon("it ended", changes.next()).await, Some(Ok(ElectionChange::Ended { .. }))));
        let led = client.election("a").campaign().await.unwrap();
        assert!(matches!(env.soon("it leads", changes.next()).await, Some(Ok(ElectionChange::Elected(_)))));
        env.redis::<()>(&["RPOP", "bowline:election:{a}:changes"]);
        let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
        assert_eq!(change, ElectionChange::Missed, "{what}");
        let term = led.token();
        led.resign().await.unwrap();
        let next = if what == "resigned" { None } else { Some(client.election("a").campaign().await.unwrap()) };
        let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
        assert_eq!(change, ElectionChange::Ended { term }, "{what}");
        let Some(next) = next else { continue };
        let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
        assert!(matches!(&change, ElectionChange::Elected(leader) if leader.term == next.token()), "{change:?}");
    }
}

async fn a_server_that_has_lost_everything_ends_the_term(env: Env) {
    let client = env.client_with(|config| config.lease(600 * MS)).await;
    let mut changes = client.election("a").label("one").changes();
    let led = client.election("a").label("one").campaign().await.unwrap();
    changes.next().await.unwrap().unwrap();
    env.redis::<()>(&["DEL", "bowline:election:{a}", "bowline:election:{a}:changes"]);
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, ElectionChange::Missed);
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, ElectionChange::Ended { term: led.token() });
    drop(led);
    // The list alone: who leads is known by the hold, but for what was said.
    let led = env.soon("nobody leads", client.election("a").campaign()).await.unwrap();
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert!(matches!(&change, ElectionChange::Elected(leader) if leader.term == led.token()), "{change:?}");
    env.redis::<()>(&["DEL", "bowline:election:{a}:changes"]);
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, ElectionChange::Missed);
    let leader = client.election("a").leader().await.unwrap().unwrap();
    assert_eq!((&*leader.label, leader.term, leader.client), ("", led.token(), Some(client.id())));
    let micros = Duration::from_micros(led.token().get());
    assert_eq!(leader.since.duration_since(SystemTime::UNIX_EPOCH).unwrap(), micros);
    let term = led.token();
    led.resign().await.unwrap();
    let change = env.soon("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, ElectionChange::Ended { term });
}

async fn a_leader_is_renewed_and_stays_known(env: Env) {
    let (client, other) = (env.client_with(|config| config.lease(6000 * MS)).await, env.client().await);
    let led = client.election("a").label("one").campaign().await.unwrap();
    let (hold, changes) = ("bowline:election:{a}", "bowline:election:{a}:changes");
    assert_eq!(env.redis::<u32>(&["PEXPIRE", changes, "60000"]), 1);
    // It lives for an hour from the last renewal.
    env.eventually("it is renewed", async || env.ttl_ms(changes) > 3_000_000).await;
    assert!(led.is_valid() && env.ttl_ms(hold) > 0);
    assert_eq!(other.election("a").leader().await.unwrap().unwrap().label, "one");
    led.resign().await.unwrap();
}
