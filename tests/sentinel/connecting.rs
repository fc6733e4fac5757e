//! Connecting: which sentinels are asked, and the errors when that fails.

use std::net::TcpListener;

use bowline::{Config, ConnectOptions, Connection, ErrorKind, SentinelUrl};

use crate::scene::{all_on, client, client_at, is_held_at, ms, url};
use crate::support::adapters::{Keys, acquire, ours, word};
use crate::support::closed::ClosedPort;
use crate::support::env::{Env, on_every_runtime, on_runtime};
use crate::support::sentinels::{MASTER_NAME, Sentinels};
use crate::support::server::Server;
use crate::support::server::sentinel::Watched;

on_every_runtime! { the_master_is_found, addresses_that_lead_to_no_sentinel }
on_runtime! { run, tokio_many, TokioMulti,
    sentinels_that_are_away_are_done_without,
    a_sentinel_that_another_one_names_is_asked_too,
    a_client_that_starts_in_a_failover_waits_for_its_end,
    a_client_that_connects_in_the_background_finds_the_master,
    announced_addresses_are_translated,
    the_sentinels_have_a_login_of_their_own,
    the_last_good_bye_finds_the_master
}

async fn the_master_is_found(env: Env) {
    let servers = Sentinels::start();
    let client = client(&env, &servers).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(0), &guard));
    guard.release().await.unwrap();
    all_on(&env, &servers, 1, 0, &[1, 2]).await;
    let promoted = servers.fail_over();
    all_on(&env, &servers, 1, promoted, &[0]).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(promoted), &guard));
    guard.release().await.unwrap();
    // Two connections to the server, and one to each sentinel.
    let shown = format!("{:?}", env.open(&servers.url(), &Config::default()).await.unwrap());
    assert!(shown.contains("master mymaster of the sentinels 127.0.0.1:"), "{shown}");
    client.close().await;
}

/// The sentinel names an address at which no one listens.
async fn announced_addresses_are_translated(env: Env) {
    let (server, closed) = (Server::start(), ClosedPort::new());
    let sentinel = Watched::alone(closed.port()).by_a_sentinel();
    let (announced, port) = (closed.port(), server.port());
    let options =
        ConnectOptions::new(url(&[&format!("127.0.0.1:{}", sentinel.port())])).addresses(move |host, named| {
            assert_eq!((host, named), ("127.0.0.1", announced));
            ("localhost".to_owned(), port)
        });
    let client = env.client_at(options, |config| config).await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(&server, &guard));
    guard.release().await.unwrap();
    client.close().await;
}

async fn a_client_that_connects_in_the_background_finds_the_master(env: Env) {
    let servers = Sentinels::start();
    let client = env.client_at(&servers.user_url(), |config| config.connect_in_background(true)).await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(0), &guard));
    guard.release().await.unwrap();
}

async fn addresses_that_lead_to_no_sentinel(env: Env) {
    let server = Server::start();
    let closed = ClosedPort::new();
    let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let ports = [closed.port(), mute.local_addr().unwrap().port(), server.port()];
    let [closed, mute, plain] = ports.map(|port| format!("127.0.0.1:{port}"));
    for (sentinels, kind, says) in [
        (&[&*closed][..], ErrorKind::Unavailable, "no sentinel answers"),
        (&[&*closed], ErrorKind::Unavailable, "connection refused"),
        (&[&*mute], ErrorKind::Unavailable, "use sentinel_tls=true"),
        (&[&*closed, &*plain], ErrorKind::Unsupported, "is a server and not a sentinel"),
        (&["sentinel.invalid:1"], ErrorKind::Unavailable, "not resolved"),
    ] {
        let config = Config::builder().command_timeout(ms(300)).build().unwrap();
        let error = env.open(&url(sentinels), &config).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{sentinels:?}: {error}");
        assert!(error.to_string().contains(says), "{sentinels:?}: {error}");
        assert!(!format!("{error:#} {error:?}").contains("secret"), "{error:?}");
    }
}

async fn sentinels_that_are_away_are_done_without(env: Env) {
    let mut servers = Sentinels::start();
    servers.kill_sentinel(0);
    servers.freeze_sentinel(1);
    let client = client(&env, &servers).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(is_held_at(servers.server(0), &guard));
    guard.release().await.unwrap();
    // Two of three sentinels are a majority.
    servers.thaw_sentinel(1);
    let promoted = servers.fail_over();
    all_on(&env, &servers, 1, promoted, &[0]).await;
    // Repeats its last release at the promoted server.
    client.close().await;
    let unknown = servers.url().replace("master=mymaster", "master=yours");
    let error = env.open(&unknown, &Config::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains("know no master of the name \"yours\""), "{error}");
    // A sentinel is not a server for data.
    let sentinel = format!("redis://127.0.0.1:{}/", servers.sentinel_port(2));
    let error = env.open(&sentinel, &Config::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("redis-sentinel://"), "{error}");
}

/// The URL names a single sentinel, which ends.
async fn a_sentinel_that_another_one_names_is_asked_too(env: Env) {
    let mut servers = Sentinels::start();
    let known = format!("127.0.0.1:{}", servers.sentinel_port(0));
    let client = client_at(&env, &url(&[&known])).await.unwrap();
    let resp3 = |sentinel| {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut servers.sentinel_client(sentinel)).unwrap();
        list.lines().filter(|line| line.contains(" resp=3")).count()
    };
    env.eventually("all are asked", async || (0..3).all(|sentinel| resp3(sentinel) == 1)).await;
    servers.kill_sentinel(0);
    let promoted = servers.fail_over();
    all_on(&env, &servers, 1, promoted, &[0]).await;
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    client.close().await;
}

async fn a_client_that_starts_in_a_failover_waits_for_its_end(env: Env) {
    let mut servers = Sentinels::start();
    servers.kill(0);
    let connected = env.client_at(&servers.user_url(), |config| config.command_timeout(ms(30_000))).await;
    let guard = connected.unwrap().lock("a").lock().await.unwrap();
    let promoted = servers.await_master(|server| server != 0);
    assert!(is_held_at(servers.server(promoted), &guard));
    guard.release().await.unwrap();
}

async fn the_sentinels_have_a_login_of_their_own(env: Env) {
    let servers = Sentinels::start();
    let says = |command: &[&str]| {
        for sentinel in 0..3 {
            redis::cmd("ACL").arg(command).exec(&mut servers.sentinel_client(sentinel)).unwrap();
        }
    };
    // The rights in docs/acl.md, and the smallest set of them that works.
    let page = include_str!("../../docs/acl.md");
    let rule = page.lines().filter_map(|line| line.strip_prefix("ACL SETUSER bowline on >PASSWORD ")).nth(1);
    let all: Vec<&str> = rule.expect("the command for sentinels").split(' ').collect();
    let needed: Vec<&str> =
        all.iter().copied().filter(|right| !matches!(*right, "+sentinel|sentinels" | "+sentinel|myid")).collect();
    for (user, rights) in [("watcher", &all[..]), ("short", &needed), ("powerless", &["allchannels", "-@all"])] {
        says(&[&["SETUSER", user, "on", ">p@ss/word"], rights].concat());
    }
    let with = |user: &str, password: &str| {
        let mut url = SentinelUrl::new(MASTER_NAME).user("bowline").password("secret");
        for sentinel in 0..3 {
            url = url.sentinel("127.0.0.1", servers.sentinel_port(sentinel));
        }
        url.sentinel_user(user).sentinel_password(password).build().unwrap()
    };
    for user in ["watcher", "short"] {
        let client = client_at(&env, &with(user, "p@ss/word")).await.unwrap();
        client.lock("a").lock().await.unwrap().release().await.unwrap();
    }
    let denied = |sentinel| -> Vec<Vec<redis::Value>> {
        redis::cmd("ACL").arg("LOG").query(&mut servers.sentinel_client(sentinel)).unwrap()
    };
    says(&["LOG", "RESET"]);
    drop(client_at(&env, &with("watcher", "p@ss/word")).await.unwrap());
    assert!((0..3).all(|sentinel| denied(sentinel).is_empty()), "{:?}", denied(0));
    // Each right of the short rule is needed.
    for right in needed.iter().filter(|right| right.starts_with('+')) {
        says(&["SETUSER", "short", &right.replacen('+', "-", 1)]);
        let error = env.open(&with("short", "p@ss/word"), &Config::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{right}: {error}");
        says(&["SETUSER", "short", right]);
    }
    for (user, password, says) in
        [("watcher", "bowline", "sentinel_user and sentinel_password"), ("powerless", "p@ss/word", "lacks a right")]
    {
        let error = env.open(&with(user, password), &Config::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error:#} {error:?}").contains("p@ss"), "{error:?}");
    }
    // The login of the servers is another one.
    let wrong = with("watcher", "p@ss/word").replace("bowline:secret", "bowline:wr0ng");
    let error = env.open(&wrong, &Config::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(!error.to_string().contains("sentinel_password"), "{error}");
    says(&["SETUSER", "default", "resetpass", ">0ther"]);
    let error = env.open(&servers.user_url(), &Config::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("add sentinel_password"), "{error}");
}

async fn the_last_good_bye_finds_the_master(env: Env) {
    let servers = Sentinels::start();
    let connection = env.open(&servers.user_url().replace("bowline:secret@", ""), &Config::default()).await.unwrap();
    let keys = Keys::of("a");
    for _ in 0..2 {
        let master = servers.master();
        connection.close();
        let blocking = connection.without_runtime(ms(20_000)).expect("the master is found");
        assert_eq!(word(&acquire(&*blocking, &keys, "c1:1").await), "GRANTED");
        assert_eq!(ours(servers.server(master)).len(), 1);
        drop(blocking);
        servers.fail_over();
        redis::cmd("DEL").arg(keys.all()).exec(&mut servers.server(servers.master()).client()).unwrap();
    }
}
