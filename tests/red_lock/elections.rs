//! Elections over several masters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bowline::blocking::RedLock;
use bowline::{Election, ErrorKind, Holder, Leadership, MAX_LABEL};
use futures::StreamExt;
use futures::future::{BoxFuture, pending};

use crate::blocking::on_a_thread;
use crate::masters::{Masters, Program, ms};
use crate::on_masters;
use crate::support::env::Env;

on_masters! {
    candidates_lead_in_their_order,
    a_leader_is_known_as_long_as_a_majority_answers,
    a_leader_with_a_vote_less_is_not_taken_for_none,
    a_vote_without_a_majority_is_looked_at_twice,
    a_holder_leads_once,
    the_work_of_a_leader_without_a_majority_is_stopped_and_begins_anew,
    what_no_server_knows_alone_is_refused,
    bad_arguments_are_errors,
    blocking_code_leads,
}

fn campaigns(env: &Env, election: &Election) -> BoxFuture<'static, bowline::Result<Leadership>> {
    let election = election.clone();
    env.spawn(async move { election.campaign().timeout(ms(20_000)).await })
}

async fn labelled(masters: &Masters, label: &str) -> Program {
    masters.program_with(|config| config.label(label), |builder| builder.durable(true)).await
}

async fn candidates_lead_in_their_order(env: Env) {
    let masters = Masters::three(&env);
    let programs =
        [labelled(&masters, "one").await, labelled(&masters, "two").await, labelled(&masters, "three").await];
    let elections = programs.each_ref().map(|program| program.locks.election("a"));
    assert_eq!(elections[0].leader().await.unwrap(), None);
    let first = elections[0].try_campaign().await.unwrap().expect("nobody leads");
    let mut waiting = Vec::new();
    for (n, election) in elections.iter().enumerate().skip(1) {
        waiting.push(campaigns(&env, election));
        let queued = async || programs[0].locks.inspect("a").await.unwrap().masters[0].waiters == n as u64;
        env.eventually("it waits", queued).await;
    }
    assert!(elections[0].try_campaign().await.unwrap().is_none());
    let mut last = first.token();
    first.resign().await.unwrap();
    for (waiting, label) in waiting.into_iter().zip(["two", "three"]) {
        let led = env.soon("the next one leads", waiting).await.unwrap();
        assert!(led.token() > last && led.is_valid() && led.term().is_valid());
        last = led.token();
        let leader = elections[0].leader().await.unwrap().unwrap();
        assert_eq!((&*leader.label, leader.term, leader.value), (label, last, None));
        // The clocks of the masters are that of this machine, or begin with it.
        let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!(since(leader.since).abs_diff(since(SystemTime::now())) < 3600);
        led.resign().await.unwrap();
    }
    masters.nothing_is_left().await;
}

async fn a_leader_is_known_as_long_as_a_majority_answers(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (labelled(&masters, "one").await, masters.program().await);
    let led = one.locks.election("a").campaign().await.unwrap();
    let election = other.locks.election("a");
    for frozen in 0..3 {
        other.gates[frozen].freeze();
        let leader = election.leader().await.unwrap().unwrap();
        assert_eq!((&*leader.label, leader.term), ("one", led.token()));
        assert!(one.clients.iter().any(|client| Some(client.id()) == leader.client));
        other.gates[(frozen + 1) % 3].freeze();
        let error = election.leader().await.unwrap_err();
        assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Unavailable, "leader", Some("a")));
        other.gates.iter().for_each(|gate| gate.thaw());
    }
    led.resign().await.unwrap();
    env.eventually("nobody leads", async || election.leader().await.is_ok_and(|leader| leader.is_none())).await;
    masters.nothing_is_left().await;
}

/// A master that did not vote for the leader, and one that is not heard, do not say that nobody leads.
async fn a_leader_with_a_vote_less_is_not_taken_for_none(env: Env) {
    let masters = Masters::three(&env);
    let (one, other) = (masters.program().await, masters.program().await);
    one.gates[2].freeze();
    let led = one.locks.election("a").campaign().await.unwrap();
    let election = other.locks.election("a");
    assert_eq!(election.leader().await.unwrap().unwrap().term, led.token());
    other.gates[1].freeze();
    assert_eq!(election.leader().await.unwrap_err().kind(), ErrorKind::Unavailable);
    other.gates[1].thaw();
    assert_eq!(election.leader().await.unwrap().unwrap().term, led.token());
    one.gates[2].thaw();
    led.resign().await.unwrap();
    env.eventually("nobody leads", async || election.leader().await.is_ok_and(|leader| leader.is_none())).await;
    masters.nothing_is_left().await;
}

/// The masters are not read at one moment, so one look is not enough to say that nobody leads.
async fn a_vote_without_a_majority_is_looked_at_twice(env: Env) {
    let masters = Masters::three(&env);
    let other = masters.program().await;
    let election = other.locks.election("a");
    let looks = || other.counts.iter().map(|counts| counts.of("lock_inspect")).sum::<u64>();
    // Each look reads the turn and the vote on each master.
    assert_eq!((election.leader().await.unwrap(), looks()), (None, 6));
    masters.all[0].eval(
        "redis.call('HSET', 'bowline:vote:{a}', 'x:1', '5') return redis.call('PEXPIRE', 'bowline:vote:{a}', 60000)",
    );
    assert_eq!((election.leader().await.unwrap(), looks()), (None, 6 + 12));
    masters.all[0].eval("return redis.call('DEL', 'bowline:vote:{a}')");
    let led = other.locks.election("a").campaign().await.unwrap();
    let before = looks();
    assert_eq!(election.leader().await.unwrap().map(|leader| leader.term), Some(led.token()));
    assert_eq!(looks() - before, 6, "a majority is believed at once");
    led.resign().await.unwrap();
    masters.nothing_is_left().await;
}

/// Neither a leader nor the holder of the lock of that name leads by another call of the same holder.
async fn a_holder_leads_once(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let (locks, election) = (program.locks.clone(), program.locks.election("a"));
    let holder = Holder::new();
    let scope = holder.scope(async move {
        let led = election.campaign().await.unwrap();
        assert!(election.try_campaign().await.unwrap().is_none());
        let error = election.campaign().timeout(ms(100)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        led.resign().await.unwrap();
        let guard = locks.lock("a").await.unwrap();
        assert!(election.try_campaign().await.unwrap().is_none());
        guard.release().await.unwrap();
    });
    env.soon("all of it", scope).await;
    masters.nothing_is_left().await;
}

async fn the_work_of_a_leader_without_a_majority_is_stopped_and_begins_anew(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let (election, terms) = (program.locks.election("a"), Arc::new(AtomicU64::new(0)));
    let led = env.spawn({
        let terms = terms.clone();
        async move {
            election
                .lead(|term| {
                    let before = terms.swap(term.token().get(), Ordering::SeqCst);
                    async move {
                        if before == 0 {
                            pending::<()>().await;
                        }
                        (before, term.token().get())
                    }
                })
                .await
        }
    });
    env.eventually("it leads", async || terms.load(Ordering::SeqCst) > 0).await;
    program.gates[..2].iter().for_each(|gate| gate.freeze());
    env.sleep(ms(4000)).await;
    program.gates.iter().for_each(|gate| gate.thaw());
    let (first, second) = env.soon("the second term", led).await.unwrap();
    assert!(0 < first && first < second);
    masters.nothing_is_left().await;
}

async fn what_no_server_knows_alone_is_refused(env: Env) {
    let masters = Masters::three(&env);
    let program = labelled(&masters, "one").await;
    let election = program.locks.election("a");
    let mut changes = election.changes();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Unsupported, "changes", Some("a")));
    assert!(changes.next().await.is_none());
    let other = election.clone().label("another one");
    assert_eq!(other.campaign().await.unwrap_err().kind(), ErrorKind::Unsupported);
    let error = other.try_campaign().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unsupported, "try_campaign"));
    assert_eq!(program.locks.stats().acquired, 0);
    let led = election.label("one").campaign().await.unwrap();
    let error = led.publish("x").await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Unsupported, "publish", Some("a")));
    assert!(led.is_valid());
    led.resign().await.unwrap();
    masters.nothing_is_left().await;
}

async fn bad_arguments_are_errors(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let election = program.locks.election("");
    assert_eq!(election.campaign().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(election.leader().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let label = "x".repeat(MAX_LABEL + 1);
    let election = program.locks.election("a").label(label);
    assert_eq!(election.campaign().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    // The lock of the name is what the leader holds.
    let led = program.locks.election("a").campaign().await.unwrap();
    assert!(program.locks.try_lock("a").await.unwrap().is_none());
    drop(led);
    program.clients[0].close().await;
    let error = program.locks.election("a").leader().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error:#}");
}

async fn blocking_code_leads(env: Env) {
    let masters = Masters::three(&env);
    let locks = RedLock::from(masters.program().await.locks);
    let led = on_a_thread(move || {
        let election = locks.election("a");
        let led = election.campaign().block().unwrap();
        assert!(election.try_campaign().unwrap().is_none());
        let term = election.leader().unwrap().unwrap().term;
        assert_eq!(led.token(), term);
        assert_eq!(election.changes().next().unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
        led.resign().unwrap();
        term
    });
    env.soon("it has led", led).await;
    masters.nothing_is_left().await;
}
