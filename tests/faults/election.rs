//! Elections whose requests, answers and messages get lost or late, and a server that stands still.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::{Client, ElectionChange, ElectionChanges, ErrorKind};
use futures::StreamExt;

use crate::faulty::{Fault, Messages, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    what_a_leader_says_is_reported_once_whatever_is_lost,
    a_late_announcement_changes_nothing,
    a_campaign_fails_if_its_term_cannot_be_noted,
    a_loss_that_the_resignation_finds_is_an_error,
    a_watcher_whose_requests_are_lost_misses_nothing,
    a_watcher_whose_messages_are_lost_asks_by_itself,
    work_and_changes_go_on_after_the_server_stood_still,
}

const KEY: &str = "bowline:election:{a}";

async fn next(env: &Env, changes: &mut ElectionChanges) -> ElectionChange {
    env.soon("a change", changes.next()).await.unwrap().unwrap()
}

fn shown(change: &ElectionChange) -> String {
    match change {
        ElectionChange::Elected(leader) => format!("+ {:?}", leader.value),
        ElectionChange::Published(leader) => format!("= {:?}", leader.value),
        ElectionChange::Ended { .. } => "-".to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn term(client: &Client) {
    let led = client.election("a").campaign().await.unwrap();
    led.publish("x").await.unwrap();
    led.resign().await.unwrap();
}

async fn what_a_leader_says_is_reported_once_whatever_is_lost(env: Env) {
    let watcher = env.client().await;
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable] {
        let (client, faults) = faulty_client(&env, |config| config).await;
        let mut changes = watcher.election("a").changes();
        for script in ["lock_acquire", "election_announce", "election_release"] {
            faults.next(script, [fault.clone()]);
        }
        term(&client).await;
        faults.next("election_announce", [Fault::Pass, fault.clone()]);
        term(&client).await;
        let mut seen = Vec::new();
        // The first poll comes after both terms, so they are not reported.
        let led = client.election("a").campaign().await.unwrap();
        seen.push(shown(&next(&env, &mut changes).await));
        faults.next("election_announce", [fault.clone()]);
        led.publish("y").await.unwrap();
        faults.next("election_release", [fault.clone()]);
        led.resign().await.unwrap();
        for _ in 0..2 {
            seen.push(shown(&next(&env, &mut changes).await));
        }
        assert_eq!(seen, ["+ None", "= Some(\"y\")", "-"], "{fault:?}");
        assert_eq!(watcher.election("a").leader().await.unwrap(), None);
    }
}

async fn a_late_announcement_changes_nothing(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (watcher, election) = (env.client().await, client.election("a"));
    let led = election.campaign().await.unwrap();
    let mut changes = watcher.election("a").changes();
    assert_eq!(shown(&next(&env, &mut changes).await), "+ None");
    // The second copy of the first value is executed, then the second value, and then the first copy of the first.
    faults.next("election_announce", [Fault::Late]);
    led.publish("x").await.unwrap();
    led.publish("y").await.unwrap();
    assert_eq!(faults.send_late().await.len(), 1);
    assert_eq!(election.leader().await.unwrap().unwrap().value.as_deref(), Some("y"));
    faults.next("election_announce", [Fault::Late]);
    led.publish("z").await.unwrap();
    faults.next("election_release", [Fault::Late]);
    led.resign().await.unwrap();
    let next_led = watcher.election("a").campaign().await.unwrap();
    assert_eq!(faults.send_late().await.len(), 2);
    let leader = election.leader().await.unwrap().unwrap();
    assert_eq!((leader.term, leader.value), (next_led.token(), None));
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(shown(&next(&env, &mut changes).await));
    }
    assert_eq!(seen, ["= Some(\"x\")", "= Some(\"y\")", "= Some(\"z\")", "-", "+ None"]);
    next_led.resign().await.unwrap();
}

async fn a_campaign_fails_if_its_term_cannot_be_noted(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    faults.always("election_announce", Fault::LoseRequest);
    for tries in [false, true] {
        let election = client.election("a");
        let error = if tries { election.try_campaign().await.err() } else { election.campaign().await.err() }
            .expect("no answer");
        assert_eq!((error.kind(), error.name()), (ErrorKind::Unavailable, Some("a")));
        env.eventually("nobody leads", async || env.redis::<u64>(&["EXISTS", KEY]) == 0).await;
    }
    faults.heal();
    term(&client).await;
}

async fn a_loss_that_the_resignation_finds_is_an_error(env: Env) {
    let client = env.client().await;
    let work = async |_| assert_eq!(env.redis::<u64>(&["DEL", KEY]), 1);
    let error = client.election("a").lead(work).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("a")));
}

async fn a_watcher_whose_requests_are_lost_misses_nothing(env: Env) {
    let (watcher, faults) = faulty_client(&env, |config| config).await;
    let leader = env.client().await;
    let led = leader.election("a").campaign().await.unwrap();
    let mut changes = watcher.election("a").changes();
    assert_eq!(shown(&next(&env, &mut changes).await), "+ None");
    for (n, fault) in [Fault::LoseRequest, Fault::LoseReply, Fault::Late, Fault::Unreachable].into_iter().enumerate() {
        faults.next("election_watch", [fault.clone()]);
        faults.next("election_leader", [fault]);
        led.publish(&n.to_string()).await.unwrap();
        assert_eq!(shown(&next(&env, &mut changes).await), format!("= {:?}", Some(n.to_string())));
    }
    faults.send_late().await;
    led.resign().await.unwrap();
    assert_eq!(shown(&next(&env, &mut changes).await), "-");
    drop(changes);
}

async fn a_watcher_whose_messages_are_lost_asks_by_itself(env: Env) {
    let (watcher, faults) = faulty_client(&env, |config| config.lease(ms(900))).await;
    let leader = env.client().await;
    let led = leader.election("a").campaign().await.unwrap();
    let mut changes = watcher.election("a").changes();
    assert_eq!(shown(&next(&env, &mut changes).await), "+ None");
    faults.messages(Messages::Swallow);
    let seen = env.spawn(async move { changes.next().await });
    env.eventually("it waits", async || env.redis::<u64>(&["ZCARD", "bowline:election:{a}:watchers"]) == 1).await;
    led.publish("x").await.unwrap();
    let change = env.soon("a change", seen).await.unwrap().unwrap();
    assert_eq!(shown(&change), "= Some(\"x\")");
    assert!(faults.calls("election_heartbeat") > 0);
    led.resign().await.unwrap();
}

async fn work_and_changes_go_on_after_the_server_stood_still(env: Env) {
    // A ticket whose client could not remove it within its lease is forgotten by the server.
    env.leaves_keys();
    let settings =
        |config: bowline::ConfigBuilder| config.lease(ms(900)).command_timeout(ms(200)).retry_timeout(Duration::ZERO);
    let (client, watcher) = (env.client_with(settings).await, env.client_with(settings).await);
    let calls = Arc::new(AtomicU32::new(0));
    let leading = env.spawn({
        let (election, calls) = (client.election("a"), calls.clone());
        async move {
            let work = |term: bowline::Term| {
                let is_first = calls.fetch_add(1, Ordering::SeqCst) == 0;
                async move {
                    if is_first {
                        term.lost_signal().wait().await;
                        std::future::pending::<()>().await;
                    }
                }
            };
            election.lead(work).await
        }
    });
    let mut changes = watcher.election("a").changes();
    env.eventually("it leads", async || calls.load(Ordering::SeqCst) == 1).await;
    let ElectionChange::Elected(first) = next(&env, &mut changes).await else { panic!("nobody leads") };
    let seen = env.spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(changes.next().await.unwrap());
        }
        seen
    });
    env.server().pause();
    let mut fresh = watcher.election("a").changes();
    let error = env.soon("an error", fresh.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    env.eventually("the leader has lost its lease", async || client.stats().lost > 0).await;
    // Longer than the pause after the first error.
    env.sleep(ms(1500)).await;
    env.server().resume();
    env.soon("it leads again", leading).await.unwrap();
    let seen = env.soon("the changes", seen).await;
    assert_eq!(seen[0], ElectionChange::Ended { term: first.term });
    assert!(matches!(&seen[1], ElectionChange::Elected(leader) if leader.term > first.term), "{seen:?}");
    let fresh = env.spawn(async move { fresh.next().await });
    let led = env.soon("nobody leads", client.election("a").campaign()).await.unwrap();
    let change = env.soon("a change", fresh).await.unwrap().unwrap();
    assert!(matches!(&change, ElectionChange::Elected(leader) if leader.term == led.token()), "{change:?}");
}
