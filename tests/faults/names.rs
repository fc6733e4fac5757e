//! Lists of names and searches for deadlocks, with answers that get lost and servers that are replaced by others.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use bowline::{Client, ErrorKind, NameInUse, PrimitiveKind};

use crate::faulty::{Fault, faulty_client};
use crate::scene::{drop_when, ms, pass};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_page_whose_answer_is_lost_is_read_again,
    a_page_that_is_dropped_is_read_again,
    a_server_that_is_new_is_read_from_its_start,
    without_a_right_only_lists_fail,
    a_key_of_another_program_spoils_one_name,
    many_clients_have_labels,
    only_what_has_no_answer_is_looked_at_again,
    who_waits_for_nobody_is_looked_at_once,
    what_ends_between_two_looks_is_no_deadlock,
}

/// More than are on one page.
const MANY: usize = 2_500;

/// Stores as many names as if they were held.
fn store(env: &Env, names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let names: BTreeSet<String> = names.into_iter().collect();
    for name in &names {
        env.redis::<()>(&["SET", &format!("bowline:lock:{{{name}}}"), "1", "PX", "60000"]);
    }
    names
}

fn many() -> impl Iterator<Item = String> {
    (0..MANY).map(|n| n.to_string())
}

fn forget(env: &Env, names: &BTreeSet<String>) {
    for name in names {
        env.redis::<()>(&["DEL", &format!("bowline:lock:{{{name}}}")]);
    }
}

fn texts(names: Vec<NameInUse>) -> BTreeSet<String> {
    names.into_iter().map(|name| name.name).collect()
}

async fn a_page_whose_answer_is_lost_is_read_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let stored = store(&env, many());
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable] {
        let calls = faults.calls("names_page");
        faults.next("names_page", [fault.clone(), fault.clone()]);
        assert_eq!(texts(client.names().all().await.unwrap()), stored, "{fault:?}");
        let calls = faults.calls("names_page") - calls;
        assert!((12..=20).contains(&calls), "{fault:?}: {calls}");
    }
    faults.next("names_page", [Fault::Refuse("NOPERM this user has no permissions to run the 'scan' command")]);
    let error = client.names().all().await.unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::Denied, "names", None));
    forget(&env, &stored);
}

async fn a_page_that_is_dropped_is_read_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let stored = store(&env, many());
    let mut names = client.names();
    let mut seen = texts(names.next_page().await.unwrap().unwrap());
    assert!(seen.len() < MANY);
    faults.next("names_page", [Fault::Hang]);
    let calls = faults.calls("names_page");
    drop_when(&env, "it asks", names.next_page(), async || faults.calls("names_page") > calls).await;
    faults.release();
    while let Some(page) = names.next_page().await.unwrap() {
        seen.extend(texts(page));
    }
    assert_eq!(seen, stored);
    assert_eq!(names.next_page().await.unwrap(), None);
    forget(&env, &stored);
}

async fn a_server_that_is_new_is_read_from_its_start(env: Env) {
    let client = env.client().await;
    store(&env, many());
    let mut names = client.names();
    let first = names.next_page().await.unwrap().unwrap();
    assert!(first.len() < MANY);
    env.server().kill();
    env.server().restart();
    let stored = store(&env, (0..100).map(|n| format!("new {n}")));
    let mut seen = BTreeSet::new();
    while let Some(page) = names.next_page().await.unwrap() {
        seen.extend(texts(page));
    }
    assert_eq!(seen, stored);
    forget(&env, &stored);
}

async fn without_a_right_only_lists_fail(env: Env) {
    for missing in ["-scan", "-info"] {
        let rule = ["allkeys", "allchannels", "allcommands", missing];
        env.redis::<()>(&[&["ACL", "SETUSER", "poor", "reset", "on", ">secret"], &rule[..]].concat());
        let url = env.url().replace("redis://", "redis://poor:secret@");
        let client = env.client_at(&url, |config| config).await.unwrap();
        for error in [client.names().all().await.unwrap_err(), client.deadlocks().await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Denied, "{missing}");
            assert!(error.to_string().contains("+scan and +info"), "{error}");
        }
        pass(&env, &client, "a").await;
    }
}

/// More clients than one call may ask for.
async fn many_clients_have_labels(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.label("web-1")).await;
    let lock = client.lock("last");
    let guard = lock.lock().await.unwrap();
    let is_stored = async || lock.inspect().await.unwrap().holder.unwrap().label.is_some();
    env.eventually("the label", is_stored).await;
    let names: Vec<String> = (0..2001).map(|n| format!("{n:04}")).collect();
    for name in &names {
        let (key, id) = (format!("bowline:lock:{{{name}}}"), format!("00000000-0000-0000-0000-00000000{name}:1"));
        // Never seen without a TTL.
        env.redis::<()>(&["EVAL", SET_HASH, "1", &key, &id]);
    }
    let calls = faults.calls("client_labels");
    let listed: Vec<&str> = names.iter().map(|name| &**name).chain(["last"]).collect();
    let seen = client.look(&locks(&listed)).await;
    assert_eq!(faults.calls("client_labels"), calls + 2);
    let labels: Vec<_> =
        seen.into_iter().flat_map(|state| state.unwrap().holds).filter_map(|hold| hold.label).collect();
    assert_eq!(labels, ["web-1"]);
    forget(&env, &names.into_iter().collect());
    guard.release().await.unwrap();
}

const SET_HASH: &str = "redis.call('HSET', KEYS[1], ARGV[1], '7') redis.call('PEXPIRE', KEYS[1], 60000)";

fn locks(names: &[&str]) -> Vec<NameInUse> {
    names.iter().map(|name| NameInUse::new(PrimitiveKind::Lock, *name)).collect()
}

async fn a_key_of_another_program_spoils_one_name(env: Env) {
    let client = env.client().await;
    let guard = client.lock("good").lock().await.unwrap();
    for key in ["bowline:lock:{bad}", "bowline:lock:{bad}:queue"] {
        env.redis::<()>(&["SET", key, "1", "PX", "60000"]);
    }
    let mut seen = client.look(&locks(&["bad", "good", "bad"])).await.into_iter();
    for (name, expected) in [("bad", None), ("good", Some(1)), ("bad", None)] {
        match seen.next().unwrap() {
            Ok(state) => assert_eq!(Some(state.holds.len()), expected),
            Err(error) => assert_eq!((error.kind(), error.name()), (ErrorKind::WrongType, Some(name)), "{error:#}"),
        }
    }
    // Nor does it hide a deadlock of others.
    let (one, other) = (env.client().await, env.client().await);
    let (guards, waits) = crossed(&env, &one, &other).await;
    assert_eq!(client.deadlocks().await.unwrap().len(), 1);
    guards.0.release().await.unwrap();
    guards.1.release().await.unwrap();
    futures::future::join_all(waits).await;
    env.redis::<()>(&["DEL", "bowline:lock:{bad}", "bowline:lock:{bad}:queue"]);
    guard.release().await.unwrap();
}

async fn only_what_has_no_answer_is_looked_at_again(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let guard = client.lock("a").lock().await.unwrap();
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable] {
        let calls = faults.calls("lock_inspect");
        faults.next("lock_inspect", [fault.clone()]);
        let seen = client.look(&locks(&["a", "b", "a"])).await;
        let holds: Vec<usize> = seen.into_iter().map(|state| state.unwrap().holds.len()).collect();
        assert_eq!(holds, [1, 0, 1], "{fault:?}");
        assert_eq!(faults.calls("lock_inspect") - calls, 4, "{fault:?}");
    }
    guard.release().await.unwrap();
    // No time is left at all.
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(0))).await;
    faults.next("lock_inspect", [Fault::Unreachable]);
    let seen = client.look(&locks(&["a", "b"])).await;
    let kinds = seen.into_iter().map(|state| state.map(|state| state.holds.len()).map_err(|error| error.kind()));
    assert_eq!(kinds.collect::<Vec<_>>(), [Err(ErrorKind::Unavailable), Ok(0)]);
}

/// Two clients of which each holds what the other waits for, one and the other way round; and their waits.
async fn crossed(env: &Env, one: &Client, other: &Client) -> Crossed {
    let guards = (one.lock("x").lock().await.unwrap(), other.lock("y").lock().await.unwrap());
    let mut waits = Vec::new();
    for (client, name) in [(one, "y"), (other, "x")] {
        let lock = client.lock(name);
        waits.push(env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() }));
        let lock = client.lock(name);
        env.eventually("it waits", async || lock.inspect().await.unwrap().waiters == 1).await;
    }
    (guards, waits)
}

type Crossed = ((bowline::LockGuard, bowline::LockGuard), Vec<futures::future::BoxFuture<'static, ()>>);

async fn who_waits_for_nobody_is_looked_at_once(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (one, other) = (env.client().await, env.client().await);
    let looks = async |lasting| {
        let calls = faults.calls("lock_inspect");
        let found = client.deadlocks().lasting(lasting).await.unwrap().len();
        (found, faults.calls("lock_inspect") - calls)
    };
    let (guards, waits) = crossed(&env, &one, &other).await;
    assert_eq!(looks(ms(0)).await, (1, 4));
    guards.0.release().await.unwrap();
    assert_eq!(looks(ms(0)).await, (0, 1));
    guards.1.release().await.unwrap();
    futures::future::join_all(waits).await;
    // No wait between two looks if there is nothing to look at again.
    assert_eq!(looks(ms(3_600_000)).await, (0, 0));
}

async fn what_ends_between_two_looks_is_no_deadlock(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (one, other) = (env.client().await, env.client().await);
    let (guards, waits) = crossed(&env, &one, &other).await;
    // The answers of the second look get lost once.
    faults.next("client_labels", [Fault::LoseReply]);
    faults.next("names_page", [Fault::LoseReply]);
    assert_eq!(client.deadlocks().await.unwrap().len(), 1);
    let (search, calls) = (client.deadlocks().lasting(ms(500)), faults.calls("lock_inspect"));
    let search = env.spawn(search.into_future());
    env.eventually("the first look", async || faults.calls("lock_inspect") >= calls + 2).await;
    guards.0.release().await.unwrap();
    assert_eq!(search.await.unwrap(), []);
    guards.1.release().await.unwrap();
    futures::future::join_all(waits).await;
}
