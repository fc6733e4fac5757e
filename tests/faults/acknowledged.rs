//! Grants and renewals that wait for replicas, with a replica that is frozen, a primary that is killed, and callers
//! that leave.

use bowline::{ConfigBuilder, Error, ErrorKind, Holder, Loss, Upgrade};
use futures::future::{join, join_all};

use crate::scene::{Waiting, ms};
use crate::support::env::{Env, TestClient, on_every_runtime};
use crate::support::polled::{poll_once, polled};
use crate::support::server::Server;

on_every_runtime! {
    a_grant_waits_for_its_replica,
    what_no_replica_acknowledges_fails_and_leaves_nothing,
    two_replicas_where_there_is_one,
    a_lease_grows_only_with_renewals_that_are_acknowledged,
    an_acquisition_chooses_its_replicas,
    a_first_request_waits_for_the_replica_unless_others_are_held_up,
    what_follows_a_dropped_request_does_not_overtake_it,
    re_entry_and_hand_off_wait_for_nothing,
    members_behind_one_that_fails_do_not_wait_as_long_again,
    changes_and_extensions_wait_for_the_replica,
    changes_that_no_replica_acknowledges,
    dropped_at_each_poll_it_leaves_nothing,
    a_hold_that_is_gone_before_it_is_acknowledged_is_acquired_anew,
    closing_ends_the_wait,
    a_wait_for_more_replicas_holds_up_no_other_renewal,
    what_was_acknowledged_survives_its_primary,
}

struct Pair {
    primary: Server,
    replica: Server,
}

impl Pair {
    fn start() -> Self {
        let [primary, replica] = Server::start_acknowledging_pair();
        Self { primary, replica }
    }

    async fn client(
        &self,
        env: &Env,
        replicas: u32,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> TestClient {
        let url = self.primary.user_url();
        env.client_at(&url, |config| configure(config.acknowledged_by(replicas))).await.unwrap()
    }

    /// A client that waits for one replica, but not for long.
    async fn hasty(&self, env: &Env) -> TestClient {
        self.client(env, 1, |config| config.command_timeout(ms(1_000)).retry_timeout(ms(2_000))).await
    }

    /// A replica that has just synchronised may take a second for its first acknowledgement. The first grant may then
    /// be confirmed by a separate call.
    async fn first_acknowledgement(&self, client: &TestClient) {
        client.lock("before").lock().await.unwrap().release().await.unwrap();
    }

    async fn nothing_is_left(&self, env: &Env) {
        env.eventually("nothing is left", async || holds(&self.primary).is_empty()).await;
    }
}

/// All keys but the counters of the tokens.
fn holds(server: &Server) -> Vec<String> {
    let mut keys = server.keys();
    keys.retain(|key| !key.ends_with(":fence"));
    keys
}

fn assert_unacknowledged(error: &Error, replicas: &str) {
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unacknowledged, true), "{error:#}");
    assert!(error.to_string().contains(replicas), "{error:#}");
}

/// An acquisition of the lock `a` that the primary has granted, and that waits for the frozen replica.
async fn unacknowledged(env: &Env, pair: &Pair, client: &TestClient) -> Waiting {
    pair.replica.pause();
    let lock = client.lock("a");
    let mut waiting: Waiting = env.spawn(async move { lock.lock().await });
    env.eventually("it is granted", async || !holds(&pair.primary).is_empty()).await;
    env.eventually("it is sent", async || client.counts.acknowledged() > 0).await;
    assert!(poll_once(&mut waiting).await.is_none(), "a guard without its replica");
    waiting
}

async fn a_grant_waits_for_its_replica(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config).await;
    client.counts.reset();
    let waiting = unacknowledged(&env, &pair, &client).await;
    assert_eq!(client.stats().acquired, 0);
    pair.replica.resume();
    let guard = env.soon("the replica is there", waiting).await.unwrap();
    assert_eq!(client.stats().acquired, 1);
    assert_eq!(holds(&pair.replica), holds(&pair.primary));
    guard.release().await.unwrap();
    // One acquisition in one round trip, and one by a message.
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    let (guard, waiting) = (client.lock("a").lock().await.unwrap(), client.lock("a"));
    let waiting: Waiting = env.spawn(async move { waiting.lock().fair().await });
    env.eventually("it waits", async || client.stats().waiting == 1).await;
    guard.release().await.unwrap();
    env.soon("its turn", waiting).await.unwrap().release().await.unwrap();
    assert_eq!(client.stats().acquired, 4);
}

/// Behind a wait for the replicas, also the answer that others hold the lock would be late.
async fn a_first_request_waits_for_the_replica_unless_others_are_held_up(env: Env) {
    let pair = Pair::start();
    let client = pair.hasty(&env).await;
    let held = client.lock("held").lock().await.unwrap();
    let is_busy = async |waits| {
        client.counts.reset();
        assert!(client.lock("held").try_lock().await.unwrap().is_none());
        assert_eq!((client.counts.total(), client.counts.acknowledged()), (1, waits), "{:?}", client.counts.all());
    };
    is_busy(1).await;
    pair.replica.pause();
    let waiting = client.lock("a");
    let waiting: Waiting = env.spawn(async move { waiting.lock().await });
    env.eventually("it is granted", async || holds(&pair.primary).len() == 2).await;
    is_busy(0).await;
    assert_unacknowledged(&waiting.await.map(drop).unwrap_err(), "0 of 1 replicas");
    env.eventually("it is cancelled", async || holds(&pair.primary).len() == 1).await;
    // No wait is under way, and the last one failed.
    is_busy(0).await;
    pair.replica.resume();
    env.eventually("the replica is back", async || match client.lock("a").lock().await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(_) => false,
    })
    .await;
    is_busy(1).await;
    held.release().await.unwrap();
}

/// Over the connection for commands it might arrive first, and the late request would block the name for one lease.
async fn what_follows_a_dropped_request_does_not_overtake_it(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.command_timeout(ms(20_000))).await;
    client.lock("a").lock().await.unwrap().release().await.unwrap();
    client.counts.reset();
    pair.primary.pause();
    let lock = client.lock("a");
    let mut dropped = Box::pin(lock.lock().fair().into_future());
    assert!(poll_once(&mut dropped).await.is_none());
    assert_eq!((client.counts.of("lock_acquire"), client.counts.acknowledged()), (1, 1));
    drop(dropped);
    env.eventually("it is cancelled", async || client.counts.of("lock_cancel") == 1).await;
    assert_eq!(client.counts.acknowledged(), 2, "behind the request");
    pair.primary.resume();
    pair.nothing_is_left(&env).await;

    // The next member of the cohort continues the attempt.
    pair.primary.pause();
    client.counts.reset();
    let mut dropped = Box::pin(lock.lock().non_fair().into_future());
    assert!(poll_once(&mut dropped).await.is_none());
    let mut next = Box::pin(lock.lock().non_fair().into_future());
    assert!(poll_once(&mut next).await.is_none());
    drop(dropped);
    assert!(poll_once(&mut next).await.is_none());
    assert_eq!((client.counts.of("lock_acquire"), client.counts.acknowledged()), (2, 2), "behind the request");
    pair.primary.resume();
    env.soon("the next member", next).await.unwrap().release().await.unwrap();
    // The second request has written nothing for a replica to acknowledge.
    assert_eq!(client.counts.acknowledged(), 3, "{:?}", client.counts.all());
}

async fn what_no_replica_acknowledges_fails_and_leaves_nothing(env: Env) {
    let pair = Pair::start();
    let client = pair.hasty(&env).await;
    pair.replica.pause();
    let (rw, semaphore) = (client.rw_lock("a"), client.semaphore("a", 3));
    let (fixed, short) = (client.lock("fixed"), client.lock("short"));
    let all = [
        client.lock("a").lock().await.map(drop),
        client.lock("tried").try_lock().await.map(drop),
        fixed.lock().expires_after(ms(300)).await.map(drop),
        short.lock().lease(ms(300)).await.map(drop),
        rw.read().await.map(drop),
        rw.write().await.map(drop),
        semaphore.acquire_many(2).await.map(drop),
    ];
    for failed in all {
        assert_unacknowledged(&failed.unwrap_err(), "0 of 1 replicas");
    }
    pair.nothing_is_left(&env).await;
    let stats = client.stats();
    assert_eq!((stats.held, stats.acquired), (0, 0), "{stats:?}");
    pair.replica.resume();
    // A replica that comes back first has to catch up.
    env.eventually("it goes on", async || client.lock("a").lock().await.is_ok()).await;
    rw.read().await.unwrap().release().await.unwrap();
    semaphore.acquire_many(2).await.unwrap().release().await.unwrap();
}

async fn two_replicas_where_there_is_one(env: Env) {
    let pair = Pair::start();
    let client = pair.hasty(&env).await;
    let error = client.lock("a").lock().acknowledged_by(2).await.unwrap_err();
    assert_unacknowledged(&error, "1 of 2 replicas");
    pair.nothing_is_left(&env).await;
}

async fn a_lease_grows_only_with_renewals_that_are_acknowledged(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.lease(ms(2000))).await;
    let acknowledged = client.lock("a").lock().await.unwrap();
    let semaphore = client.semaphore("a", 3);
    let permit = semaphore.acquire().await.unwrap();
    let plain = client.lock("b").lock().acknowledged_by(0).await.unwrap();
    let renewals = client.stats().renewals;
    env.eventually("all are renewed", async || client.stats().renewals >= renewals + 6).await;
    pair.replica.pause();
    let (lost, permit_lost) = join(env.soon("the lease ends", acknowledged.lost()), permit.lost()).await;
    assert_eq!((lost, permit_lost), (Loss::Expired, Loss::Expired));
    assert!(plain.is_valid());
    pair.replica.resume();
    plain.release().await.unwrap();
    drop((acknowledged, permit));
    pair.nothing_is_left(&env).await;
}

async fn an_acquisition_chooses_its_replicas(env: Env) {
    let pair = Pair::start();
    let (all, none) = (pair.client(&env, 1, |config| config).await, pair.client(&env, 0, |config| config).await);
    pair.first_acknowledgement(&all).await;
    for (client, replicas) in [(&all, None), (&none, Some(1)), (&all, Some(0)), (&none, None)] {
        let waits = replicas == Some(1) || (replicas.is_none() && client.id() == all.id());
        let expected = (2, u64::from(waits));
        let lock = client.lock("a");
        for tries in [true, false] {
            client.counts.reset();
            let guard = match (tries, replicas) {
                (true, Some(replicas)) => lock.try_lock().acknowledged_by(replicas).await.unwrap().unwrap(),
                (true, None) => lock.try_lock().await.unwrap().unwrap(),
                (false, Some(replicas)) => lock.lock().acknowledged_by(replicas).await.unwrap(),
                (false, None) => lock.lock().await.unwrap(),
            };
            guard.release().await.unwrap();
            assert_eq!((client.counts.total(), client.counts.acknowledged()), expected, "{:?}", client.counts.all());
        }
    }
    let error = none.lock("a").lock().acknowledged_by(101).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

async fn re_entry_and_hand_off_wait_for_nothing(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.handoff_time(ms(10_000))).await;
    pair.first_acknowledgement(&client).await;
    client.counts.reset();
    let (holder, lock) = (Holder::new(), client.lock("a"));
    let outer = lock.lock().holder(&holder).await.unwrap();
    let inner = lock.lock().holder(&holder).await.unwrap();
    assert_eq!((client.counts.total(), client.counts.acknowledged()), (1, 1));
    drop(inner);
    outer.release().await.unwrap();

    client.counts.reset();
    let first = lock.lock().non_fair().await.unwrap();
    let others = (0..3).map(|_| {
        let lock = client.lock("a");
        env.spawn(async move { lock.lock().non_fair().await.unwrap().release().await.unwrap() })
    });
    let others: Vec<_> = others.collect();
    env.eventually("they wait", async || client.stats().waiting == 3).await;
    first.release().await.unwrap();
    env.soon("the hand-off", join_all(others)).await;
    // The first member was alone and had only its own token. The one that queued up for the others had a token for
    // each.
    assert_eq!(client.counts.acknowledged(), 2, "{:?}", client.counts.all());
}

async fn members_behind_one_that_fails_do_not_wait_as_long_again(env: Env) {
    let pair = Pair::start();
    let client = pair.hasty(&env).await;
    pair.replica.pause();
    let members = (0..20).map(|_| {
        let lock = client.lock("a");
        env.spawn(async move { lock.lock().non_fair().await.map(drop) })
    });
    // One after the other, the failures would take 14 s.
    for failed in env.soon("all of them", join_all(members)).await {
        assert_unacknowledged(&failed.unwrap_err(), "0 of 1 replicas");
    }
    pair.nothing_is_left(&env).await;
}

async fn changes_and_extensions_wait_for_the_replica(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config).await;
    let waits = || {
        let waits = client.counts.acknowledged();
        client.counts.reset();
        // The replica has the same holds as the primary at once.
        assert_eq!(holds(&pair.replica), holds(&pair.primary));
        waits
    };
    let guard = client.rw_lock("a").write().await.unwrap();
    waits();
    let guard = guard.downgrade().await.unwrap();
    assert_eq!(waits(), 1);
    let Upgrade::Writing(guard) = guard.try_upgrade().await.unwrap() else { panic!("no other reader") };
    assert_eq!(waits(), 1);
    let guard = guard.downgrade_to_upgradable().await.unwrap();
    waits();
    let plain = client.rw_lock("a").read().await.unwrap();
    waits();
    let upgrade = env.spawn(guard.upgrade());
    env.eventually("it waits", async || client.counts.of("permit_acquire") == 1).await;
    plain.release().await.unwrap();
    let guard = env.soon("the upgrade", upgrade).await.unwrap();
    // The one that found another reader, and the one that made it the writer. What it acquired in between is no hold of
    // the caller's.
    assert_eq!(waits(), 2);
    guard.release().await.unwrap();

    let fixed = client.lock("b").lock().expires_after(ms(20_000)).await.unwrap();
    waits();
    fixed.extend(ms(60_000)).await.unwrap();
    assert_eq!(waits(), 1);
    let ttl: u64 = redis::cmd("PTTL").arg("bowline:lock:{b}").query(&mut pair.replica.client()).unwrap();
    assert!(ttl > 40_000, "{ttl}");
    fixed.release().await.unwrap();
}

async fn changes_that_no_replica_acknowledges(env: Env) {
    let pair = Pair::start();
    let client = pair.hasty(&env).await;
    let write = client.rw_lock("a").write().await.unwrap();
    let fixed = client.lock("b").lock().expires_after(ms(20_000)).await.unwrap();
    pair.replica.pause();
    let error = fixed.extend(ms(60_000)).await.unwrap_err();
    assert_unacknowledged(&error, "0 of 1 replicas");
    assert!(fixed.is_valid());
    assert!(fixed.remaining() <= ms(20_000));
    let error = write.downgrade().await.map(drop).unwrap_err();
    assert_unacknowledged(&error, "0 of 1 replicas");
    fixed.release().await.unwrap();
    pair.nothing_is_left(&env).await;
}

async fn dropped_at_each_poll_it_leaves_nothing(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config).await;
    let (lock, semaphore) = (client.lock("a"), client.semaphore("a", 2));
    // Dropped at once, or after the event that wakes it, without being polled again.
    for (non_fair, late) in [(true, false), (false, false), (true, true), (false, true)] {
        let (mut polls, mut sweeps) = (0, 1);
        loop {
            let acquire = if non_fair { lock.lock().non_fair() } else { lock.lock() };
            let both = join(acquire.into_future(), semaphore.acquire().into_future());
            let done = polled(both, polls, async || env.sleep(ms(if late { 10 } else { 0 })).await).await;
            if let Some((guard, permit)) = done {
                drop((guard.unwrap(), permit.unwrap()));
                if polls > 1 {
                    break;
                }
                // On a busy machine, all answers may be there at the first poll. Then nothing was dropped half-way.
                assert!(sweeps < 20, "done after {polls} polls, in each of {sweeps} sweeps");
                (polls, sweeps) = (0, sweeps + 1);
                continue;
            }
            pair.nothing_is_left(&env).await;
            polls += 1;
        }
    }
    pair.nothing_is_left(&env).await;
    assert_eq!((client.stats().held, client.stats().waiting), (0, 0));
}

async fn a_hold_that_is_gone_before_it_is_acknowledged_is_acquired_anew(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.command_timeout(ms(600))).await;
    client.counts.reset();
    let waiting = unacknowledged(&env, &pair, &client).await;
    redis::cmd("DEL").arg("bowline:lock:{a}").exec(&mut pair.primary.client()).unwrap();
    env.eventually("it is granted anew", async || client.counts.of("lock_acquire") == 2).await;
    pair.replica.resume();
    let guard = env.soon("the replica is there", waiting).await.unwrap();
    assert!(guard.is_valid());
    assert_eq!(holds(&pair.replica), ["bowline:lock:{a}"]);
    guard.release().await.unwrap();
}

async fn closing_ends_the_wait(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.retry_timeout(ms(60_000))).await;
    client.counts.reset();
    let waiting = unacknowledged(&env, &pair, &client).await;
    env.soon("it closes", client.close()).await;
    let error = env.soon("the wait ends", waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error:#}");
    assert_eq!(holds(&pair.primary), [""; 0]);
    pair.replica.resume();
}

/// The replica is there for those that need one. Others wait for a second one, again and again.
async fn a_wait_for_more_replicas_holds_up_no_other_renewal(env: Env) {
    let pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.retry_timeout(ms(4000))).await;
    let guard = client.lock("a").lock().lease(ms(1500)).await.unwrap();
    let asks_too_much = client.lock("b");
    let failed = asks_too_much.lock().acknowledged_by(2).await.unwrap_err();
    assert_unacknowledged(&failed, "1 of 2 replicas");
    assert!(guard.is_valid());
    assert_eq!(client.stats().lost, 0);
    guard.release().await.unwrap();
}

async fn what_was_acknowledged_survives_its_primary(env: Env) {
    const HOLDS: usize = 200;
    let mut pair = Pair::start();
    let client = pair.client(&env, 1, |config| config.retry_timeout(ms(5_000))).await;
    let locks: Vec<_> = (0..HOLDS).map(|n| client.lock(&n.to_string())).collect();
    let guards = join_all(locks.iter().map(|lock| async { lock.lock().await.unwrap() })).await;
    pair.primary.kill();
    pair.replica.promote();
    let mut new = pair.replica.client();
    for guard in &guards {
        let key = format!("bowline:lock:{{{}}}", guard.name());
        let tokens: Vec<u64> = redis::cmd("HVALS").arg(key).query(&mut new).unwrap();
        assert_eq!(tokens, [guard.token().get()], "{}", guard.name());
    }
    client.close().await;
    drop(guards);
}
