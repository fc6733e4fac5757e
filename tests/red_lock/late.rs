//! Masters whose clients connect in the background, and later than others.

use std::sync::Arc;

use bowline::{Client, Config, ConfigBuilder, ErrorKind, RedLock, RedLockBuilder, Topology, embedded};

use crate::gate::{Gate, Gated};
use crate::masters::ms;
use crate::support::env::{Env, on_every_runtime, on_the_embedded_server};
use crate::support::server::Server;

on_every_runtime! {
    a_program_starts_without_one_master_and_uses_it_later,
    a_program_starts_without_the_first_master_and_uses_it_later,
    a_late_master_counts_when_it_has_been_up_for_the_longest_lease,
    without_a_majority_it_is_said_which_masters_are_missing,
    a_late_master_with_a_wrong_password_is_told,
    closing_a_client_that_has_not_connected_closes_the_red_lock,
}

on_the_embedded_server! {
    a_late_master_that_is_a_cluster_does_not_vote,
    a_late_master_that_is_the_same_server_is_refused,
}

/// Three servers, and the URLs of them.
fn three() -> ([Server; 3], [String; 3]) {
    let servers = [(); 3].map(|()| Server::start());
    let urls = servers.each_ref().map(Server::user_url);
    (servers, urls)
}

fn config(config: ConfigBuilder) -> ConfigBuilder {
    config.connect_in_background(true).lease(ms(3000)).command_timeout(ms(1000)).retry_timeout(ms(20_000))
}

async fn clients(env: &Env, urls: &[String; 3], configure: impl Fn(ConfigBuilder) -> ConfigBuilder) -> Vec<Client> {
    let mut clients = Vec::new();
    for url in urls {
        clients.push(env.client_at(url, &configure).await.unwrap().client);
    }
    clients
}

/// Its acquisitions wait for 2 s.
fn hasty(builder: ConfigBuilder) -> ConfigBuilder {
    config(builder).retry_timeout(ms(3000))
}

/// The masters have lost nothing, although they have just been started.
async fn durable(env: &Env, urls: &[String; 3], configure: fn(ConfigBuilder) -> ConfigBuilder) -> RedLock {
    RedLock::builder(clients(env, urls, configure).await).node_timeout(ms(700)).durable(true).build().unwrap()
}

async fn until_all_are_up(env: &Env, locks: &RedLock) {
    env.eventually("all are up", async || locks.stats().masters_down == 0).await;
}

async fn a_program_starts_without_one_master_and_uses_it_later(env: Env) {
    starts_without(env, 2).await;
}

async fn a_program_starts_without_the_first_master_and_uses_it_later(env: Env) {
    starts_without(env, 0).await;
}

async fn starts_without(env: Env, late: usize) {
    let (mut servers, urls) = three();
    servers[late].kill();
    let locks = durable(&env, &urls, config).await;
    let guard = env.soon("two are enough", locks.lock("a")).await.unwrap();
    assert_eq!(locks.stats().masters_down, 1);
    let state = locks.inspect("a").await.unwrap();
    assert_eq!(state.token(), Some(guard.token()));
    let error = state.masters[late].error.clone().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("not connected: "), "{error}");
    servers[late].restart();
    until_all_are_up(&env, &locks).await;
    env.eventually("it votes for the hold", async || locks.stats().votes_regained == 1).await;
    let state = locks.inspect("a").await.unwrap();
    assert!(state.masters.iter().all(|master| master.vote.is_some() && master.error.is_none()), "{state:?}");
    guard.release().await.unwrap();
    servers[1].kill();
    let guard = env.soon("the late one votes", locks.lock("a")).await.unwrap();
    guard.release().await.unwrap();
    env.eventually("the other is down", async || locks.stats().masters_down == 1).await;
}

async fn a_late_master_counts_when_it_has_been_up_for_the_longest_lease(env: Env) {
    let (mut servers, urls) = three();
    servers[2].kill();
    let clients = clients(&env, &urls, |builder| config(builder).lease(ms(1500))).await;
    let locks = RedLock::new(clients).unwrap();
    env.soon("the two are old enough", locks.lock("a")).await.unwrap().release().await.unwrap();
    let started = env.now();
    servers[2].restart();
    until_all_are_up(&env, &locks).await;
    servers[1].kill();
    let guard = env.soon("the late one is old enough", locks.lock("a")).await.unwrap();
    assert!(env.now() - started >= ms(1500), "a young master has voted after {:?}", env.now() - started);
    guard.release().await.unwrap();
}

async fn without_a_majority_it_is_said_which_masters_are_missing(env: Env) {
    let (mut servers, urls) = three();
    servers[0].kill();
    servers[1].kill();
    let locks = durable(&env, &urls, hasty).await;
    let error = env.soon("the failure", locks.lock("a")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let told = error.to_string();
    assert!(told.contains("of 3 masters, 2 do not answer"), "{told}");
    assert!(told.contains("master 1: not connected: ") && told.contains("master 2: not connected: "), "{told}");
    assert!(!told.contains("master 3"), "{told}");
    servers[1].restart();
    env.eventually("a majority", async || locks.lock("a").await.is_ok()).await;
}

async fn a_late_master_with_a_wrong_password_is_told(env: Env) {
    let (servers, mut urls) = three();
    urls[0] = urls[0].replace("secret", "0ther");
    let one = durable(&env, &urls, config).await;
    urls[1] = urls[1].replace("secret", "0ther");
    let two = durable(&env, &urls, config).await;
    env.soon("two are enough", one.lock("a")).await.unwrap().release().await.unwrap();
    let refusal = async |locks: &RedLock, n: usize| {
        let error = locks.inspect("a").await.unwrap().masters[n].error.clone();
        error.filter(|error| error.kind() == ErrorKind::Denied)
    };
    env.eventually("it is told", async || refusal(&one, 0).await.is_some()).await;
    assert!(refusal(&one, 0).await.unwrap().to_string().contains("password is wrong"));
    env.eventually("both are told", async || refusal(&two, 0).await.is_some() && refusal(&two, 1).await.is_some())
        .await;
    let error = two.lock("a").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("master 1: ") && error.to_string().contains("master 2: "), "{error}");
    for server in &servers[..2] {
        redis::cmd("ACL").arg(&["SETUSER", "bowline", ">0ther"]).exec(&mut server.client()).unwrap();
    }
    env.eventually("the passwords are right", async || two.lock("a").await.is_ok()).await;
    until_all_are_up(&env, &one).await;
}

async fn closing_a_client_that_has_not_connected_closes_the_red_lock(env: Env) {
    let (mut servers, urls) = three();
    servers[2].kill();
    let clients = clients(&env, &urls, config).await;
    let locks = RedLock::builder(clients.clone()).durable(true).build().unwrap();
    let guard = env.soon("two are enough", locks.lock("a")).await.unwrap();
    clients[2].close().await;
    assert_eq!(locks.lock("b").await.map(drop).unwrap_err().kind(), ErrorKind::Closed);
    guard.release().await.unwrap();
}

/// A client of that server, which connects when the gate thaws.
async fn gated(env: &Env, server: &embedded::Server, gate: &Arc<Gate>, topology: Topology, prefix: &str) -> Client {
    let inner = server.connect(env.executor());
    let connection = Gated { inner, gate: gate.clone(), topology, executor: env.executor() };
    let config = hasty(Config::builder()).prefix(prefix).build().unwrap();
    Client::connect(env.executor(), Arc::new(connection), config).await.unwrap()
}

/// Three masters, of which the second and the third connect later.
async fn two_late(env: &Env, late: [(usize, Topology); 2]) -> (RedLock, [Arc<Gate>; 2]) {
    let servers: Vec<_> = (0..3).map(|_| embedded::Server::new()).collect();
    let gates = [Arc::new(Gate::default()), Arc::new(Gate::default())];
    gates.iter().for_each(|gate| gate.freeze());
    let mut clients = vec![gated(env, &servers[0], &Arc::default(), Topology::single_server(), "bowline").await];
    for ((n, (server, topology)), gate) in late.into_iter().enumerate().zip(&gates) {
        // With a prefix of its own, a server that is asked twice would vote twice.
        clients.push(gated(env, &servers[server], gate, topology, &format!("bowline:{n}")).await);
    }
    let build = |builder: RedLockBuilder| builder.node_timeout(ms(700)).durable(true).build().unwrap();
    (build(RedLock::builder(clients)), gates)
}

async fn a_late_master_that_is_a_cluster_does_not_vote(env: Env) {
    let mut behind_sentinels = Topology::single_server();
    behind_sentinels.fails_over = true;
    let (locks, gates) = two_late(&env, [(1, behind_sentinels), (2, Topology::cluster())]).await;
    // Also one that is asked, and then turns out to be a cluster.
    let error = env.soon("two are missing", locks.lock("a")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    gates.iter().for_each(|gate| gate.thaw());
    let refusal = async |n: usize| locks.inspect("a").await.unwrap().masters[n].error.clone().unwrap();
    for (n, says) in [(1, "behind a failover"), (2, "it is a cluster")] {
        env.eventually("it is refused", async || refusal(n).await.kind() == ErrorKind::InvalidInput).await;
        assert!(refusal(n).await.to_string().contains(says), "{}", refusal(n).await);
    }
    let error = locks.lock("a").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let told = error.to_string();
    assert!(told.contains("master 2: it is behind a failover") && told.contains("master 3: it is a cluster"), "{told}");
    assert_eq!((locks.stats().masters_down, locks.stats().acquired), (2, 0));

    let (locks, gates) = two_late(&env, [(1, Topology::single_server()), (2, Topology::cluster())]).await;
    gates.iter().for_each(|gate| gate.thaw());
    let guard = env.soon("two are enough", locks.lock("a")).await.unwrap();
    let state = locks.inspect("a").await.unwrap();
    assert!(state.masters[0].vote.is_some() && state.masters[1].vote.is_some() && state.masters[2].vote.is_none());
    guard.release().await.unwrap();
    assert_eq!(locks.stats().masters_down, 1);
}

async fn a_late_master_that_is_the_same_server_is_refused(env: Env) {
    let alone = Topology::single_server();
    let (locks, gates) = two_late(&env, [(1, alone), (0, alone)]).await;
    gates[0].thaw();
    let guard = env.soon("two are enough", locks.lock("a")).await.unwrap();
    gates[1].thaw();
    until_all_are_up(&env, &locks).await;
    env.eventually("it is found", async || locks.lock("b").await.is_err()).await;
    let error = locks.lock("b").await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("masters 1 and 3 of the RedLock are the same server"), "{error}");
    // Meanwhile the votes of the hold are counted, and missing ones asked for.
    env.sleep(ms(1500)).await;
    let state = locks.inspect("a").await.unwrap();
    assert_eq!(state.masters[2].error.as_ref().map(|error| error.kind()), Some(ErrorKind::InvalidInput));
    assert_eq!((state.token(), locks.stats().votes_regained), (Some(guard.token()), 0));
    guard.release().await.unwrap();
}
