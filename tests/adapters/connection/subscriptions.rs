//! Subscriptions: messages, gaps, and their end.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::{Connection, Notice};
use futures::StreamExt;
use futures::future::{Either, select};

use super::code;
use crate::support::adapters::{Keys, Runtime, acquire, admin, field, ours, word};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

pub(crate) async fn messages_arrive_in_order_and_gaps_are_told(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let mut other = connection.subscribe("test:other").await.unwrap();
    let message = |text: &str| Some(Notice::Message(text.as_bytes().to_vec()));
    for text in ["one", "two"] {
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", text]), redis::Value::Int(1));
    }
    assert_eq!(notices.next().await, message("one"));
    assert_eq!(notices.next().await, message("two"));
    for round in 0..3 {
        admin(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_eq!(notices.next().await, Some(Notice::Gap));
        assert_eq!(notices.next().await, Some(Notice::Gap));
        // The second gap says that the subscription is restored, so no message is lost from here on.
        let text = format!("round {round}");
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", &text]), redis::Value::Int(1));
        assert_eq!(notices.next().await, message(&text));
        assert_eq!(other.next().await, Some(Notice::Gap));
        assert_eq!(other.next().await, Some(Notice::Gap));
    }
    admin(&server, &["PUBLISH", "test:other", "x"]);
    assert_eq!(other.next().await, message("x"));
}

/// The next connection for commands may lead to another server: until it has been asked, no message counts.
pub(crate) async fn a_gap_comes_after_every_reconnect_of_the_commands(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let subscriptions = || -> BTreeSet<String> {
        let lines = ours(&server);
        lines.iter().filter(|line| field(line, "sub") != "0").map(|line| field(line, "id").to_owned()).collect()
    };
    let before = subscriptions();
    for round in 0..3 {
        let commands = ours(&server).into_iter().find(|line| field(line, "sub") == "0").expect("it stands");
        admin(&server, &["CLIENT", "KILL", "ID", field(&commands, "id")]);
        assert_eq!(notices.next().await, Some(Notice::Gap));
        assert_eq!(connection.reconnects(), round + 1);
        let text = format!("round {round}");
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", &text]), redis::Value::Int(1));
        assert_eq!(notices.next().await, Some(Notice::Message(text.into_bytes())));
    }
    assert_eq!(subscriptions(), before, "its own socket stays");
}

/// While no connection carries commands, it is unknown whether the subscription is on the server that will get them.
pub(crate) async fn what_is_heard_without_a_proof_is_not_delivered(rt: Runtime) {
    let servers = [Server::start(), Server::start()];
    let proxy = Proxy::start(servers[0].port());
    let connection = rt.connect(&proxy.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let publish = |n: usize, text| admin(&servers[n], &["PUBLISH", "test:channel", text]);
    proxy.refuse(true);
    let commands = ours(&servers[0]).into_iter().find(|line| field(line, "sub") == "0").expect("it stands");
    admin(&servers[0], &["CLIENT", "KILL", "ID", field(&commands, "id")]);
    rt.eventually("the loss is noticed", || format!("{connection:?}").contains("down")).await;
    assert_eq!(publish(0, "stale"), redis::Value::Int(1), "its own socket stays");
    // The connection for commands moves to the other server, and the subscription must follow.
    proxy.lead_to(servers[1].port());
    proxy.refuse(false);
    assert_eq!(notices.next().await, Some(Notice::Gap));
    publish(0, "stale");
    assert_eq!(notices.next().await, Some(Notice::Gap));
    assert_eq!(publish(1, "fresh"), redis::Value::Int(1));
    assert_eq!(notices.next().await, Some(Notice::Message(b"fresh".to_vec())));
    rt.eventually("nothing is left on the other", || ours(&servers[0]).is_empty()).await;
}

/// Dials lead to two servers that know nothing of each other, by turns.
pub(crate) async fn a_subscription_ends_up_where_the_commands_are(rt: Runtime) {
    let servers = [Server::start(), Server::start()];
    let proxy = Proxy::start(servers[0].port());
    proxy.take_turns(servers.each_ref().map(Server::port));
    let connection = rt.connect(&proxy.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    for round in 0..3 {
        // Messages must come from the server to which the commands go.
        let heard = loop {
            for (server, name) in servers.iter().zip(["0", "1"]) {
                admin(server, &["PUBLISH", "test:channel", name]);
            }
            match select(notices.next(), rt.executor.sleep(Duration::from_millis(5))).await {
                Either::Left((Some(Notice::Message(name)), _)) => break usize::from(name == b"1"),
                Either::Left((notice, _)) => assert_eq!(notice, Some(Notice::Gap)),
                Either::Right(_) => {}
            }
        };
        let keys = Keys::of(&round.to_string());
        assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
        let stored = |server| admin(server, &["EXISTS", keys.lock()]);
        assert_eq!([heard, 1 - heard].map(|n| stored(&servers[n])), [redis::Value::Int(1), redis::Value::Int(0)]);
        let kind = if round % 2 == 0 { "pubsub" } else { "normal" };
        admin(&servers[heard], &["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        // Skips messages that were published before.
        while notices.next().await != Some(Notice::Gap) {}
    }
}

/// The old server still answers on the socket that the commands have, and no new socket leads there.
pub(crate) async fn commands_follow_a_subscription_that_finds_another_server_only(rt: Runtime) {
    let [old, new] = [Server::start(), Server::start()];
    let proxy = Proxy::start(old.port());
    let connection = rt.connect(&proxy.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    proxy.lead_to(new.port());
    admin(&old, &["CLIENT", "KILL", "TYPE", "pubsub"]);
    rt.eventually("both are on the new one", || (ours(&old).len(), ours(&new).len()) == (0, 2)).await;
    for _ in 0..2 {
        assert_eq!(notices.next().await, Some(Notice::Gap));
    }
    admin(&new, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
}

pub(crate) async fn subscriptions_survive_a_restart(rt: Runtime) {
    let mut server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    server.restart();
    assert_eq!(notices.next().await, Some(Notice::Gap));
    assert_eq!(notices.next().await, Some(Notice::Gap));
    admin(&server, &["PUBLISH", "test:channel", "x"]);
    assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
}

pub(crate) async fn a_dropped_subscription_closes_its_connection(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let notices = connection.subscribe("test:channel").await.unwrap();
    assert_eq!(ours(&server).len(), 2);
    drop(notices);
    rt.eventually("one connection is left", || ours(&server).len() == 1).await;
    let mut half = connection.subscribe("test:channel");
    let _ = futures::poll!(&mut half);
    drop(half);
    rt.eventually("no client is subscribed", || {
        ours(&server).len() == 1 && admin(&server, &["PUBLISH", "test:channel", "x"]) == redis::Value::Int(0)
    })
    .await;
}

/// The channel is refused, then the question that proves it.
pub(crate) async fn a_subscription_refused_later_is_told_once(rt: Runtime) {
    let server = Server::start();
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "+@all", "resetchannels", "&test:*"]);
    let connection = rt.connect(&server.url().replace("://", "://alice:s3cret@")).await;
    let mut notices = connection.subscribe("test:channel").await.unwrap();
    let received = || {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
        let rejected =
            |line: &str| line.split(',').find_map(|part| part.strip_prefix("rejected_calls=")?.parse::<u64>().ok());
        let of = |name| stats.lines().find_map(|line| line.strip_prefix(name));
        let counts = ["cmdstat_subscribe:", "cmdstat_pubsub:", "cmdstat_pubsub|numsub:"].map(of);
        counts.into_iter().flatten().filter_map(rejected).sum::<u64>()
    };
    for (taken, given, kind) in [("resetchannels", "&test:*", "pubsub"), ("-pubsub", "+pubsub", "normal")] {
        let before = received();
        admin(&server, &["ACL", "SETUSER", "alice", taken]);
        admin(&server, &["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        if kind == "pubsub" {
            assert_eq!(notices.next().await, Some(Notice::Gap));
        }
        let Some(Notice::Refused(refusal)) = notices.next().await else { panic!("not told") };
        assert_eq!(code(&refusal), "NOPERM");
        rt.eventually("it tries again", || received() >= before + 4).await;
        admin(&server, &["ACL", "SETUSER", "alice", given]);
        assert_eq!(notices.next().await, Some(Notice::Gap), "once is enough");
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", "x"]), redis::Value::Int(1));
        assert_eq!(notices.next().await, Some(Notice::Message(b"x".to_vec())));
    }
}

pub(crate) async fn a_subscription_without_the_right(rt: Runtime) {
    let server = Server::start();
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "+@all", "resetchannels", "&allowed*"]);
    let url = server.url().replace("://", "://alice:s3cret@");
    let connection = rt.connect(&url).await;
    assert_eq!(code(&connection.subscribe("test:channel").await.err().unwrap()), "NOPERM");
    // The user may use its own channel, but not the channel of the probe.
    admin(&server, &["ACL", "SETUSER", "alice", "resetchannels", "&allowed"]);
    assert_eq!(code(&connection.subscribe("allowed").await.err().unwrap()), "NOPERM");
    admin(&server, &["ACL", "SETUSER", "alice", "resetchannels", "&allowed*", "-pubsub"]);
    assert_eq!(code(&connection.subscribe("allowed").await.err().unwrap()), "NOPERM");
    admin(&server, &["ACL", "SETUSER", "alice", "+pubsub"]);
    drop(connection.subscribe("allowed").await.unwrap());
}
