//! Users without a right, and servers with a bad setup: found out when connecting.

use std::collections::BTreeSet;
use std::error::Error as _;

use bowline::{ErrorKind, Script, Warning};

use futures::future::join_all;

use crate::scene::{ms, pass, until_free, until_waiting};
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::server;

/// What a client sends itself: the first three are needed, the others are not. It also sends what the scripts call:
/// `PUBSUB NUMSUB`.
const OWN: [&str; 6] = ["EVAL", "EVALSHA", "SUBSCRIBE", "INFO", "PING", "SELECT"];

/// What only sharded messages in a cluster need. Scripts also call `PUBSUB SHARDNUMSUB` then.
const SHARDED: [&str; 3] = ["SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE"];

/// The rule that docs/acl.md tells operators to set, and that almost every test of this project runs under.
#[test]
fn the_documented_rule_has_the_rights_that_are_needed_and_no_others() {
    let mut commands = commands();
    let sharded: Vec<String> = SHARDED.map(|command| format!("+{}", command.to_lowercase())).into();
    commands.retain(|command| !SHARDED.contains(&command.as_str()));
    let expected = format!("+pubsub|shardnumsub {}", sharded.join(" "));
    let documented = server::documented_rights_to_shard_channels().join(" ");
    assert_eq!(documented, expected, "docs/acl.md is not what sharded messages need");
    assert!(commands.remove("SCAN"));
    assert_eq!(server::documented_right_to_list(), ["+scan"], "docs/acl.md is not what lists of names need");
    assert_eq!(server::documented_right_to_watch(), ["+client|tracking"], "docs/acl.md is not what changes need");
    assert!(commands.remove("INCRBY"));
    assert_eq!(server::documented_right_to_count(), "+incrby", "docs/acl.md is not what locks of Redisson need");
    commands.extend(OWN.map(str::to_owned));
    let right = |command: &String| match command.as_str() {
        // All other subcommands would show who is connected.
        "PUBSUB" => "+pubsub|numsub".to_owned(),
        command => format!("+{}", command.to_lowercase()),
    };
    let rights: Vec<String> = commands.iter().map(right).collect();
    let rule = ["resetkeys", "~bowline:*", "resetchannels", "&bowline:inbox:*", "-@all"].join(" ");
    let expected = format!("{rule} {}", rights.join(" "));
    assert_eq!(server::documented_rights().join(" "), expected, "docs/acl.md is not what the scripts need");
}

on_every_runtime! {
    a_missing_command_is_found_when_connecting,
    a_missing_key_pattern_is_found_when_connecting,
    half_of_a_right_to_a_key_is_found_when_connecting,
    a_missing_channel_is_found_when_connecting,
    connecting_leaves_nothing,
    an_eviction_policy_is_a_warning,
    a_channel_taken_away_from_a_client_is_counted,
    a_missing_right_to_wait_is_found_by_those_who_need_it,
    a_password_that_changes_during_a_wait_is_told,
}

/// Every command that a script issues.
fn commands() -> BTreeSet<String> {
    let commands: BTreeSet<String> = Script::all().flat_map(Script::commands).map(str::to_owned).collect();
    assert!(commands.len() > 15 && commands.contains("PUBLISH"), "{commands:?}");
    let sources: Vec<String> = Script::all().map(|script| script.source().replace(' ', "")).collect();
    let times = |text| sources.iter().map(|source| source.matches(text).count()).sum::<usize>();
    let known = times("'PUBSUB','NUMSUB'") + times("'PUBSUB',shardedand'SHARDNUMSUB'or'NUMSUB'");
    assert_eq!(times("'PUBSUB'"), known, "another part of PUBSUB needs another right");
    assert!(commands.contains("SPUBLISH"), "{commands:?}");
    commands
}

/// Sets the rights of a user, and connects as that user.
async fn connect(env: &Env, user: &str, rights: &[&str]) -> bowline::Result<TestClient> {
    let rule = [&["ACL", "SETUSER", user, "reset", "on", ">secret"], rights].concat();
    env.redis::<()>(&rule);
    let url = env.url().replace("redis://", &format!("redis://{user}:secret@"));
    env.client_at(&url, |config| config).await
}

async fn a_missing_command_is_found_when_connecting(env: Env) {
    let own = OWN[..3].iter().map(|command| (*command).to_owned());
    // All commands are tried, because the state that another check has left could hide a missing right. `INFO` and
    // `LASTSAVE` are called only by votes, `SCAN` only for lists, and `INCRBY` only for locks of Redisson, which most
    // programs do not use.
    let is_rare = |command: &str| ["INCRBY", "INFO", "LASTSAVE", "SCAN"].contains(&command);
    let is_checked = |command: &String| !is_rare(command) && !SHARDED.contains(&command.as_str());
    let called = commands().into_iter().filter(is_checked);
    join_all(called.chain(own).map(async |command| {
        let rights = ["allkeys", "allchannels", "allcommands", &format!("-{command}")];
        let connected = connect(&env, &format!("no-{}", command.to_lowercase()), &rights).await;
        let error = connected.map(drop).expect_err(&format!("{command} is needed, and was not missed"));
        assert_eq!(error.kind(), ErrorKind::Denied, "{command}: {error}");
        let named = error.to_string();
        assert!(named.contains("may not run ") && named.contains(&command), "{command} is not named: {error:#}");
        assert!(named.contains("docs/acl.md"), "{error:#}");
        assert!(error.source().is_some_and(|cause| cause.to_string().starts_with("NOPERM")), "{error:#}");
        assert!(!format!("{error:#} {error:?}").contains("secret"), "{error}");
    }))
    .await;
    assert!(env.server().keys().is_empty(), "{:?} stay", env.server().keys());
}

/// All keys that a lock needs, and those on which the rights are tried. Names end with a brace, and the scratch name
/// ends with a UUID.
const KEY_PATTERNS: [&str; 9] = [
    "~bowline:*[}]",
    "~bowline:lock:*-*-*-*-????????????",
    "~bowline:rw:*-*-*-*-????????????",
    "~bowline:latch:*-*-*-*-????????????",
    "~bowline:*:leases",
    "~bowline:*:calls",
    "~bowline:*:queue",
    "~bowline:*:tickets",
    "~bowline:*:fence",
];

async fn a_missing_key_pattern_is_found_when_connecting(env: Env) {
    let rights = |patterns: &[&'static str]| [&["allchannels", "allcommands"], patterns].concat();
    for missing in &KEY_PATTERNS[1..] {
        let others: Vec<&str> = KEY_PATTERNS.into_iter().filter(|pattern| pattern != missing).collect();
        let error = connect(&env, "u", &rights(&others)).await.map(drop).expect_err(missing);
        assert_eq!(error.kind(), ErrorKind::Denied, "{missing}: {error}");
        let named = error.to_string();
        assert!(named.contains("use the key") && named.contains("docs/acl.md"), "{missing}: {error:#}");
    }
    let client = connect(&env, "u", &rights(&KEY_PATTERNS)).await.unwrap();
    pass(&env, &client, "a").await;
}

/// Redis 7.0 and newer tell the right to read a key from the right to write it.
async fn half_of_a_right_to_a_key_is_found_when_connecting(env: Env) {
    if env.server().version().starts_with("redis 6") {
        return;
    }
    for missing in &KEY_PATTERNS[1..] {
        for half in ["%R", "%W"] {
            let half = format!("{half}{missing}");
            let others = KEY_PATTERNS.iter().filter(|pattern| *pattern != missing).copied();
            let rights: Vec<&str> = ["allchannels", "allcommands", &half].into_iter().chain(others).collect();
            let error = connect(&env, "u", &rights).await.map(drop).expect_err(&half);
            assert_eq!(error.kind(), ErrorKind::Denied, "{half}: {error}");
            assert!(error.to_string().contains("use the key"), "{half}: {error:#}");
        }
    }
}

async fn a_missing_channel_is_found_when_connecting(env: Env) {
    let rights = |channel: &'static str| ["allkeys", "allcommands", "resetchannels", channel];
    for channel in ["&other", "&bowline:inbox", "&other:inbox:*"] {
        let error = connect(&env, "u", &rights(channel)).await.map(drop).expect_err(channel);
        assert_eq!(error.kind(), ErrorKind::Denied, "{channel}: {error}");
        let named = error.to_string();
        assert!(named.contains("use the channel") && named.contains("docs/acl.md"), "{channel}: {error:#}");
    }
    let client = connect(&env, "u", &rights("&bowline:inbox:*")).await.unwrap();
    pass(&env, &client, "a").await;
}

async fn connecting_leaves_nothing(env: Env) {
    let clients = join_all((0..8).map(|_| env.client())).await;
    assert!(env.server().keys().is_empty(), "{:?}", env.server().keys());
    drop(clients);
}

async fn an_eviction_policy_is_a_warning(env: Env) {
    let env = env.with_server_args(&["--maxmemory-policy", "allkeys-lru"]);
    let client = env.client().await;
    assert_eq!(client.warnings(), [Warning::Eviction { policy: "allkeys-lru".to_owned() }]);
    assert!(client.warnings()[0].to_string().contains("noeviction"));
    pass(&env, &client, "a").await;
    env.redis::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert_eq!(env.client().await.warnings(), []);
    // A user without the right to ask gets no warning, but can lock.
    env.redis::<()>(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let client = connect(&env, "u", &["allkeys", "allchannels", "allcommands", "-info"]).await.unwrap();
    assert_eq!(client.warnings(), []);
    pass(&env, &client, "a").await;
}

/// Its waiters learn of their grants by asking, until it has the channel again.
async fn a_channel_taken_away_from_a_client_is_counted(env: Env) {
    let channel = "&bowline:inbox:*";
    let client = connect(&env, "u", &["allkeys", "allcommands", "resetchannels", channel]).await.unwrap();
    for refused in 1..=2 {
        env.redis::<()>(&["ACL", "SETUSER", "u", "resetchannels"]);
        env.eventually("it is counted", async || client.stats().subscriptions_refused == refused).await;
        let reconnects = client.stats().reconnects;
        env.redis::<()>(&["ACL", "SETUSER", "u", channel]);
        env.eventually("it stands again", async || client.stats().reconnects > reconnects).await;
        assert_eq!(client.stats().subscriptions_refused, refused);
    }
    pass(&env, &client, "a").await;
}

/// The time of the caller is over before that of any request is.
async fn a_password_that_changes_during_a_wait_is_told(env: Env) {
    let rule = ["ACL", "SETUSER", "u", "reset", "on", ">secret", "allkeys", "allchannels", "allcommands"];
    env.redis::<()>(&rule);
    let url = env.url().replace("redis://", "redis://u:secret@");
    let long = ms(60_000);
    let client = env.client_at(&url, |config| config.command_timeout(long).retry_timeout(long)).await.unwrap();
    let other = env.client().await;
    let held = other.lock("a").lock().await.unwrap();
    let (lock, latch) = (client.lock("a"), client.latch("a"));
    assert!(other.latch("a").try_set(1, long).await.unwrap());
    let waits = [
        env.spawn(async move { lock.lock().timeout(ms(4_000)).await.map(drop) }),
        env.spawn(async move { latch.wait().timeout(ms(4_000)).await }),
    ];
    until_waiting(&env, "a", 1).await;
    env.redis::<()>(&["ACL", "SETUSER", "u", "resetpass", ">other"]);
    env.redis::<u64>(&["CLIENT", "KILL", "USER", "u"]);
    for failed in join_all(waits).await {
        let error = failed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error:#}");
        assert!(error.source().is_some_and(|cause| cause.to_string().contains("WRONGPASS")), "{error:#}");
    }
    env.redis::<()>(&rule);
    held.release().await.unwrap();
    assert!(other.latch("a").delete().await.unwrap());
    env.leaves_keys();
    pass(&env, &client, "a").await;
}

/// There is no replica, which only the grants notice.
async fn a_missing_right_to_wait_is_found_by_those_who_need_it(env: Env) {
    let url = env.server().user_url();
    let waits = async || {
        let connected =
            env.client_at(&url, |config| config.acknowledged_by(1).command_timeout(ms(1_000)).retry_timeout(ms(1_000)));
        connected.await
    };
    let error = waits().await.map(drop).expect_err("the user may not wait");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
    assert!(error.to_string().contains("may not run WAIT") && error.to_string().contains("docs/acl.md"), "{error:#}");

    let client = env.client().await;
    pass(&env, &client, "a").await;
    let error = client.lock("a").lock().acknowledged_by(1).await.map(drop).expect_err("the user may not wait");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
    until_free(&env, "a").await;

    env.server().allow_to_wait();
    let client = waits().await.unwrap();
    let error = client.lock("a").lock().await.map(drop).expect_err("there is no replica");
    assert_eq!(error.kind(), ErrorKind::Unacknowledged, "{error:#}");
    until_free(&env, "a").await;
}
