//! A primary and its replica change places behind one address, and the two connections of a client do not notice at the
//! same time. Real servers only: what is published on one is heard on the other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bowline::{ErrorKind, Lock, LockGuard};
use futures::future::join_all;

use crate::scene::ms;
use crate::support::adapters::{field, ours};
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::proxy::Proxy;
use crate::support::server::Server;

on_every_runtime! {
    two_never_hold_while_only_the_commands_move_to_a_new_primary,
    a_client_whose_subscription_alone_has_moved_is_moved_as_a_whole,
    waiters_are_served_behind_a_balancer_between_a_primary_and_its_replica,
    a_client_follows_its_address_to_the_new_primary,
    what_the_new_primary_has_not_heard_of_is_released_again,
    a_busy_name_is_not_blocked_by_what_the_new_primary_has_not_heard_of,
    a_renewal_on_a_silent_connection_is_sent_again_on_a_new_one,
    a_password_changed_under_a_client_is_denied,
}

/// Two servers, and one address that leads to the first of them.
struct Pair {
    servers: [Server; 2],
    primary: usize,
    proxy: Proxy,
}

impl Pair {
    fn start() -> Self {
        let servers = Server::start_pair();
        let proxy = Proxy::start(servers[0].port());
        Self { servers, primary: 0, proxy }
    }

    async fn client(&self, env: &Env, lease: u64) -> TestClient {
        let url = self.proxy.url().replace("redis://", "redis://bowline:secret@");
        env.client_at(&url, |config| config.lease(ms(lease))).await.unwrap()
    }

    fn primary(&self) -> &Server {
        &self.servers[self.primary]
    }

    fn replica(&self) -> &Server {
        &self.servers[1 - self.primary]
    }

    /// The replica becomes the primary, and the address leads to it. No connection ends.
    fn change_places(&mut self) {
        self.primary().hand_over_to(self.replica());
        self.proxy.lead_to(self.replica().port());
        self.primary = 1 - self.primary;
    }

    /// Whether so many clients have both connections on the primary, and none on the replica.
    fn all_on_the_primary(&self, clients: usize) -> bool {
        let lines = ours(self.primary());
        let subscribed = lines.iter().filter(|line| is_subscription(line)).count();
        (lines.len(), subscribed) == (2 * clients, clients) && ours(self.replica()).is_empty()
    }
}

fn is_subscription(line: &str) -> bool {
    field(line, "sub") != "0"
}

/// Ends the connections that carry messages, or those that carry commands, and says how many there were.
fn kill(server: &Server, subscriptions: bool) -> usize {
    let lines = ours(server);
    let killed = lines.iter().filter(|line| is_subscription(line) == subscriptions);
    killed
        .map(|line| {
            drop(
                redis::cmd("CLIENT")
                    .arg(&["KILL", "ID", field(line, "id")])
                    .query::<redis::Value>(&mut server.client()),
            )
        })
        .count()
}

/// Acquires and releases until it is told to stop, and counts.
#[derive(Clone, Default)]
struct Contention {
    stop: Arc<AtomicBool>,
    inside: Arc<Mutex<Vec<Arc<LockGuard>>>>,
    overlaps: Arc<AtomicU64>,
}

impl Contention {
    async fn run(self, env: Env, lock: Lock, served: Arc<AtomicU64>) {
        while !self.stop.load(Ordering::SeqCst) {
            let guard = Arc::new(lock.lock().await.unwrap());
            {
                let mut inside = self.inside.lock().unwrap();
                if guard.is_valid() && inside.iter().any(|other| other.is_valid()) {
                    self.overlaps.fetch_add(1, Ordering::SeqCst);
                }
                inside.push(guard.clone());
            }
            served.fetch_add(1, Ordering::SeqCst);
            env.sleep(ms(2)).await;
            self.inside.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &guard));
            // The failover may have lost the hold, so the release may fail. That does not matter here.
            let _ = Arc::into_inner(guard).expect("no other task has it").release().await;
        }
    }
}

/// Clients contend while the commands of all of them move to the new primary, and their subscriptions hang on the old
/// one. Says what went wrong.
async fn only_commands_move(env: &Env) -> Result<(), String> {
    let mut pair = Pair::start();
    let clients = join_all((0..2).map(|_| pair.client(env, 6000))).await;
    let contention = Contention::default();
    let served: Vec<Arc<AtomicU64>> = (0..4).map(|_| Arc::default()).collect();
    let tasks: Vec<_> = (served.iter().enumerate())
        .map(|(n, served)| env.spawn(contention.clone().run(env.clone(), clients[n % 2].lock("a"), served.clone())))
        .collect();
    let mut wrong = Ok(());
    for round in 0..4 {
        pair.change_places();
        kill(pair.replica(), false);
        let before: Vec<u64> = served.iter().map(|served| served.load(Ordering::SeqCst)).collect();
        let start = env.now();
        // A waiter without a message asks after a third of its lease.
        while wrong.is_ok()
            && !(pair.all_on_the_primary(2)
                && served.iter().zip(&before).all(|(served, before)| served.load(Ordering::SeqCst) > before + 20))
        {
            env.sleep(ms(5)).await;
            if env.now() - start > ms(8000) {
                let lines = [ours(pair.primary()), ours(pair.replica())];
                wrong = Err(format!("round {round}: {served:?} were served after {before:?}, on {lines:#?}"));
            }
        }
    }
    contention.stop.store(true, Ordering::SeqCst);
    join_all(tasks).await;
    let overlaps = contention.overlaps.load(Ordering::SeqCst);
    if overlaps > 0 { Err(format!("{overlaps} overlaps")) } else { wrong }
}

async fn two_never_hold_while_only_the_commands_move_to_a_new_primary(env: Env) {
    only_commands_move(&env).await.unwrap();
}

/// The mistake is known to be seen.
#[cfg(all(feature = "_mutants", feature = "tokio"))]
#[test]
fn one_link_redialled() {
    use bowline::{Mutant, Switch};

    crate::support::env::run(crate::support::env::Runtime::TokioCurrent, |env| async move {
        let _mistake = Switch::on(Mutant::OneLinkRedialled);
        only_commands_move(&env).await.expect_err("nothing notices that the two are on different servers");
    });
}

/// No call is made, so no answer shows that the commands go to a replica.
async fn a_client_whose_subscription_alone_has_moved_is_moved_as_a_whole(env: Env) {
    let mut pair = Pair::start();
    let clients = join_all((0..2).map(|_| pair.client(&env, 1500))).await;
    for _ in 0..3 {
        assert!(pair.all_on_the_primary(2), "{:#?}", ours(pair.primary()));
        let (held, lock) = (clients[0].lock("a").lock().await.unwrap(), clients[1].lock("a"));
        let waiter = env.spawn(async move { lock.lock().await });
        env.eventually("it waits", async || clients[1].stats().waiting == 1).await;
        pair.change_places();
        assert_eq!(kill(pair.replica(), true), 2);
        env.eventually("both connections of both are on the new primary", async || pair.all_on_the_primary(2)).await;
        // Renewals that the old primary refused did not lose the hold.
        held.release().await.unwrap();
        env.soon("the waiter", waiter).await.unwrap().release().await.unwrap();
    }
}

/// Of three new connections one leads to the primary. A subscription that looks for it disturbs no commands.
async fn waiters_are_served_behind_a_balancer_between_a_primary_and_its_replica(env: Env) {
    let pair = Pair::start();
    let [primary, replica] = pair.servers.each_ref().map(Server::port);
    pair.proxy.take_turns([primary, replica, replica]);
    let clients = join_all((0..2).map(async |_| {
        // The first connection may lead to the replica, which refuses.
        loop {
            let url = pair.proxy.url().replace("redis://", "redis://bowline:secret@");
            if let Ok(client) = env.client_at(&url, |config| config).await {
                return client;
            }
        }
    }))
    .await;
    for round in 0..4 {
        let (held, lock) = (clients[0].lock("a").lock().await.unwrap(), clients[1].lock("a"));
        let waiter = env.spawn(async move { lock.lock().await });
        env.eventually("it waits", async || clients[1].stats().waiting == 1).await;
        let commands = || {
            let lines = ours(pair.primary()).into_iter().filter(|line| !is_subscription(line));
            lines.map(|line| field(&line, "id").to_owned()).collect::<BTreeSet<_>>()
        };
        let (before, subscriptions) = (commands(), round % 2 == 0);
        kill(pair.primary(), subscriptions);
        env.eventually("both connections of both are on the primary", async || pair.all_on_the_primary(2)).await;
        assert_eq!(commands() == before, subscriptions);
        held.release().await.unwrap();
        env.soon("the waiter", waiter).await.unwrap().release().await.unwrap();
    }
    // Clean-ups of requests that may have been sent twice run after the release. They need the servers, which end with
    // the test.
    join_all(clients.iter().map(|client| client.close())).await;
}

/// No connection ends: the old primary says what it is, and is left.
async fn a_client_follows_its_address_to_the_new_primary(env: Env) {
    let mut pair = Pair::start();
    let client = pair.client(&env, 3000).await;
    let guard = client.lock("a").lock().await.unwrap();
    let reconnects = client.stats().reconnects;
    for n in 0..3 {
        pair.change_places();
        // A call that one server refused is tried again at the other one.
        let name = format!("b{n}");
        client.lock(&name).lock().await.unwrap().release().await.unwrap();
        client.rw_lock(&name).write().await.unwrap().release().await.unwrap();
        env.eventually("both connections are on the new primary", async || pair.all_on_the_primary(1)).await;
    }
    env.eventually("both have moved each time", async || client.stats().reconnects >= reconnects + 6).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    assert_eq!(client.stats().lost, 0);
}

/// The command timeout is longer than the lease: a renewal that waited for it would be the last.
async fn a_renewal_on_a_silent_connection_is_sent_again_on_a_new_one(env: Env) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let url = proxy.url().replace("redis://", "redis://bowline:secret@");
    let client = env.client_at(&url, |config| config.lease(ms(3000)).command_timeout(ms(600_000))).await.unwrap();
    let guard = client.lock("a").lock().await.unwrap();
    for reconnects in 1..=2 {
        proxy.silence();
        env.eventually("another connection", async || client.stats().reconnects >= reconnects).await;
        let renewals = client.stats().renewals;
        env.eventually("it is renewed there", async || client.stats().renewals > renewals).await;
    }
    assert!(guard.is_valid());
    assert_eq!(client.stats().lost, 0);
    guard.release().await.unwrap();
}

/// No retry can help, and the error says so.
async fn a_password_changed_under_a_client_is_denied(env: Env) {
    let server = Server::start();
    let rule = |password: &str| {
        let rule = ["SETUSER", "u", "on", "resetpass", password, "~bowline:*", "&bowline:inbox:*", "+@all"];
        redis::cmd("ACL").arg(&rule).exec(&mut server.client()).unwrap();
    };
    rule(">old");
    let url = server.url().replace("redis://", "redis://u:old@");
    let client = env
        .client_at(&url, |config| config.command_timeout(ms(400)).retry_timeout(ms(1000)).lease(ms(20_000)))
        .await
        .unwrap();
    let (held, released) = (client.lock("held").lock().await.unwrap(), client.lock("released").lock().await.unwrap());
    rule(">new");
    redis::cmd("CLIENT").arg(&["KILL", "USER", "u"]).exec(&mut server.client()).unwrap();
    let lock = client.lock("a");
    // During the first dial, nothing is known about the server.
    env.eventually(
        "it is denied",
        async || matches!(lock.inspect().await, Err(error) if error.kind() == ErrorKind::Denied),
    )
    .await;
    let (locked, tried, released) =
        futures::join!(lock.lock().into_future(), lock.try_lock().into_future(), released.release());
    for error in [locked.err(), tried.err(), released.err()] {
        let error = error.expect("denied");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Denied, false), "{error}");
        assert!(format!("{error:#}").contains("WRONGPASS"), "{error:#}");
    }
    // A hold is not lost by this. Only its lease decides.
    assert!(held.is_valid());
    rule(">old");
    env.eventually("it is let in again", async || lock.inspect().await.is_ok()).await;
    held.release().await.unwrap();
    // Waits for what is ended again because the subscription comes back meanwhile. The server of this test ends with
    // it.
    client.close().await;
}

/// The replica is promoted while it has holds whose releases it never gets.
async fn what_the_new_primary_has_not_heard_of_is_released_again(env: Env) {
    let mut pair = Pair::start();
    let client = pair.client(&env, 60_000).await;
    let (lock, semaphore) = (client.lock("a"), client.semaphore("a", 2));
    let [released, dropped] = [lock.lock().await.unwrap(), client.lock("b").lock().await.unwrap()];
    let permits = semaphore.acquire_many(2).await.unwrap();
    let held = client.lock("held").lock().await.unwrap();
    let holds = |server: &Server| {
        let mut keys = server.keys();
        keys.retain(|key| !key.ends_with(":fence"));
        keys
    };
    let (all, one) = (holds(pair.primary()), ["bowline:lock:{held}"]);
    assert!(all.len() > 3, "{all:?}");
    env.eventually("the replica has them", async || holds(pair.replica()) == all).await;
    pair.replica().promote();
    released.release().await.unwrap();
    permits.release().await.unwrap();
    drop(dropped);
    env.eventually("they are released", async || holds(pair.primary()) == one).await;
    assert_eq!(holds(pair.replica()), all);
    pair.proxy.lead_to(pair.replica().port());
    pair.primary().demote(pair.replica());
    pair.primary = 1 - pair.primary;
    for subscriptions in [true, false] {
        kill(pair.replica(), subscriptions);
    }
    env.eventually("they are released again", async || holds(pair.primary()) == one).await;
    assert!(held.is_valid());
    held.release().await.unwrap();
    // As above: a connection that comes back has the last release repeated.
    client.close().await;
}

/// The replica is promoted while it has a hold and tickets of two clients. The old primary serves all of them and more,
/// so the clients remember later releases of the same names.
async fn a_busy_name_is_not_blocked_by_what_the_new_primary_has_not_heard_of(env: Env) {
    let mut pair = Pair::start();
    let clients = [pair.client(&env, 60_000).await, pair.client(&env, 60_000).await];
    let [one, other] = clients.each_ref();
    let held = one.lock("a").lock().await.unwrap();
    let (permits, write) =
        (one.semaphore("a", 2).acquire_many(2).await.unwrap(), one.rw_lock("a").write().await.unwrap());
    let mut waiting = Vec::new();
    for n in 0..4 {
        let lock = clients[usize::from(n % 2 == 1)].lock("a");
        waiting.push(env.spawn(async move { lock.lock().await.unwrap().release().await.unwrap() }));
        env.eventually("it waits", async || clients.iter().map(|client| client.stats().waiting).sum::<u64>() == n + 1)
            .await;
    }
    let keys = |server: &Server| {
        let mut keys = server.keys();
        keys.retain(|key| !key.ends_with(":fence"));
        keys
    };
    let length = |server: &Server| -> usize {
        redis::cmd("LLEN").arg("bowline:lock:{a}:queue").query(&mut server.client()).unwrap()
    };
    let all = keys(pair.primary());
    env.eventually("the replica has them", async || keys(pair.replica()) == all && length(pair.replica()) == 4).await;
    pair.replica().promote();
    held.release().await.unwrap();
    permits.release().await.unwrap();
    write.release().await.unwrap();
    join_all(waiting).await;
    for client in [other, one] {
        client.lock("a").lock().await.unwrap().release().await.unwrap();
        client.semaphore("a", 2).acquire().await.unwrap().release().await.unwrap();
        client.rw_lock("a").read().await.unwrap().release().await.unwrap();
    }
    assert_eq!((keys(pair.primary()), keys(pair.replica())), (Vec::new(), all));
    pair.proxy.lead_to(pair.replica().port());
    pair.primary().demote(pair.replica());
    pair.primary = 1 - pair.primary;
    for subscriptions in [true, false] {
        kill(pair.replica(), subscriptions);
    }
    env.eventually("nothing is held there", async || keys(pair.primary()).is_empty()).await;
    for client in clients {
        client.close().await;
    }
}
