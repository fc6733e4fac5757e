//! Sentinels that contradict each other, or are wrong.

use bowline::{Config, Connection, ConnectionError, ErrorKind};
use futures::FutureExt;

use crate::fake::Fake;
use crate::scene::{client_at, is_held_at, ms, url};
use crate::support::adapters::{Keys, acquire, ours, word};
use crate::support::env::{Env, on_every_runtime};
use crate::support::server::Server;

on_every_runtime! {
    the_answer_with_the_highest_epoch_wins,
    a_server_that_the_sentinels_name_no_more_is_left_at_once,
    an_answer_of_the_old_master_that_is_lost_does_not_count,
    a_replica_is_not_taken_for_the_master,
    without_a_runtime_a_sentinel_that_missed_a_failover_is_not_believed,
    without_a_runtime_the_highest_epoch_wins,
}

async fn the_answer_with_the_highest_epoch_wins(env: Env) {
    let [primary, replica] = Server::start_pair();
    let [late, right, lost] =
        [(&replica, 6), (&primary, 7), (&replica, 0)].map(|(server, epoch)| Fake::naming(server, epoch));
    let client = client_at(&env, &url(&[&late.address(), &right.address(), &lost.address()])).await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(&primary, &guard));
    // The sentinel with the right answer is gone. The others' answers are older than what the client knows.
    let connections = ours(&primary).len();
    drop(right);
    for n in 0..20 {
        client.lock(&format!("b{n}")).lock().await.unwrap().release().await.unwrap();
    }
    assert_eq!((connections, ours(&primary).len(), ours(&replica).len()), (2, 2, 0));
    guard.release().await.unwrap();
}

/// Both servers are primaries, and answer whatever is asked: only the sentinels say which is the right one.
async fn a_server_that_the_sentinels_name_no_more_is_left_at_once(env: Env) {
    let servers = [Server::start(), Server::start()];
    let sentinel = Fake::naming(&servers[0], 1);
    let client = client_at(&env, &url(&[&sentinel.address()])).await.unwrap();
    let held = client.lock("held").lock().await.unwrap();
    for epoch in 2..5 {
        let [old, new] = if epoch % 2 == 0 { [&servers[0], &servers[1]] } else { [&servers[1], &servers[0]] };
        sentinel.name(new, epoch);
        env.eventually("both connections move", async || (ours(old).len(), ours(new).len()) == (0, 2)).await;
        let guard = client.lock("a").lock().await.unwrap();
        assert!(is_held_at(new, &guard) && !is_held_at(old, &guard));
        guard.release().await.unwrap();
    }
    // The new master does not have the hold.
    env.soon("it is lost", held.lost()).await;
    // The clean-up of a lost hold must not meet servers that have ended.
    client.close().await;
}

async fn an_answer_of_the_old_master_that_is_lost_does_not_count(env: Env) {
    let [old, new] = [Server::start(), Server::start()];
    let sentinel = Fake::naming(&old, 1);
    let config = Config::default();
    let connection = env.open(&url(&[&sentinel.address()]).replace("bowline:secret@", ""), &config).await.unwrap();
    let locks: Vec<Keys> = (0..100).map(|n| Keys::of(&n.to_string())).collect();
    let mut called = None;
    for keys in &locks {
        let mut granted = acquire(&connection, keys, "c1:1").boxed();
        // With several threads, the answer may be there at the first poll.
        if futures::poll!(&mut granted).is_pending() {
            called = Some((keys, granted));
            break;
        }
    }
    let (keys, granted) = called.expect("a call that waits for its answer");
    env.eventually("the old master grants", async || old.keys().iter().any(|key| key == keys.lock())).await;
    sentinel.name(&new, 2);
    env.eventually("the connection moves", async || (ours(&old).len(), ours(&new).len()) == (0, 1)).await;
    assert!(matches!(granted.await, Err(ConnectionError::Unknown(_))));
    assert_eq!(word(&acquire(&connection, keys, "c1:2").await), "GRANTED");
    // Without a runtime, the client also asks the sentinel, and the server for its role.
    let replica = Server::start_with(&Server::FOLLOWS_AT_ONCE);
    replica.follow(&new);
    assert!(connection.without_runtime(ms(5000)).is_some());
    sentinel.name(&replica, 3);
    assert!(connection.without_runtime(ms(5000)).is_none());
}

async fn a_replica_is_not_taken_for_the_master(env: Env) {
    let [primary, replica] = Server::start_pair();
    let sentinel = Fake::naming(&replica, 1);
    let url = url(&[&sentinel.address()]);
    let error = env.client_at(&url, |config| config.command_timeout(ms(300))).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let named = format!("127.0.0.1:{}, which the sentinels name as the master, is a replica", replica.port());
    assert!(error.to_string().contains(&named), "{error}");
    assert!(format!("{error:#}").contains("READONLY"), "{error:#}");
    // A client that connects during a failover waits for its end.
    let connecting = env.spawn({
        let env = env.clone();
        async move { client_at(&env, &url).await }
    });
    let logins = logins(&replica);
    env.eventually("it looks", async || self::logins(&replica) > logins).await;
    replica.promote();
    let client = env.soon("it connects", connecting).await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(&replica, &guard) && !is_held_at(&primary, &guard));
    guard.release().await.unwrap();
}

/// The good-bye of a program would go to the old master, and the lock would stay for its lease.
async fn without_a_runtime_a_sentinel_that_missed_a_failover_is_not_believed(env: Env) {
    let [master, replica] = [Server::start(), Server::start_with(&Server::FOLLOWS_AT_ONCE)];
    replica.follow(&master);
    let [late, right] = [(&replica, 6), (&master, 7)].map(|(server, epoch)| Fake::naming(server, epoch));
    let url = url(&[&late.address(), &right.address()]).replace("bowline:secret@", "");
    let connection = env.open(&url, &Config::default()).await.unwrap();
    assert_eq!(word(&acquire(&connection, &Keys::of("a"), "c1:1").await), "GRANTED");
    // Only the one that is late takes new connections from now on. It names a replica, which would be of no use.
    drop(right);
    assert!(connection.without_runtime(ms(5000)).is_some());
    // One that knows of a later failover is believed.
    late.name(&replica, 8);
    assert!(connection.without_runtime(ms(5000)).is_none());
}

/// Whichever sentinel is asked first.
async fn without_a_runtime_the_highest_epoch_wins(env: Env) {
    let [master, replica] = [Server::start(), Server::start_with(&Server::FOLLOWS_AT_ONCE)];
    replica.follow(&master);
    for [first, second] in [[(&master, 9), (&replica, 8)], [(&replica, 8), (&master, 9)]] {
        let sentinels = [Fake::naming(&master, 7), Fake::naming(&master, 7)];
        let url = url(&sentinels.each_ref().map(|fake| fake.address()).each_ref().map(String::as_str));
        let url = url.replace("bowline:secret@", "");
        let connection = env.open(&url, &Config::default()).await.unwrap();
        sentinels[0].name(first.0, first.1);
        sentinels[1].name(second.0, second.1);
        assert!(connection.without_runtime(ms(5000)).is_some());
    }
}

/// How many connections have logged in that speak RESP3.
fn logins(server: &Server) -> u64 {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_hello:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}
