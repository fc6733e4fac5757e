//! Masters that die, stand still or hand over, under clients that wait and hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bowline::{Lock, LockGuard};
use futures::future::{BoxFuture, join_all};

use crate::scene::{all_on, caught_up, client, in_the_end, is_held_at, ms};
use crate::support::adapters::ours;
use crate::support::env::{Env, TestClient, on_runtime};
use crate::support::sentinels::{MASTER_NAME, Sentinels};
use crate::support::server::Server;

on_runtime! { run, tokio_multi, TokioMulti,
    waiters_are_served_after_the_master_is_killed,
    a_manual_failover_is_followed_while_the_old_master_still_grants,
    a_master_that_stands_still_and_comes_back_is_not_used_again
}
on_runtime! { run, smol, Smol, waiters_are_served_after_the_master_is_killed }
on_runtime! { run, async_std, AsyncStd, waiters_are_served_after_the_master_is_killed }

const CLIENTS: usize = 4;
const WAITERS: usize = 64;
const HELD: usize = 20;

/// Clients, and what they hold.
struct Crowd {
    clients: Vec<TestClient>,
    held: Vec<LockGuard>,
}

/// Those who wait for the lock `a`, each with the moment of its grant.
type Waiters = Vec<BoxFuture<'static, Instant>>;

impl Crowd {
    async fn gather(env: &Env, servers: &Sentinels) -> Self {
        let clients = join_all((0..CLIENTS).map(|_| client(env, servers))).await;
        let held =
            join_all((0..HELD).map(|n| clients[n % CLIENTS].lock(&format!("held {n}")).lock().into_future())).await;
        Self { held: held.into_iter().map(Result::unwrap).collect(), clients }
    }

    /// They wait for the guard that comes with them.
    async fn contend(&self, env: &Env) -> (LockGuard, Waiters) {
        let first = self.clients[0].lock("a").lock().await.unwrap();
        let waiters = (0..WAITERS).map(|n| env.spawn(wait(env.clone(), self.clients[n % CLIENTS].lock("a")))).collect();
        env.eventually("all wait", async || {
            self.clients.iter().map(|client| client.stats().waiting).sum::<u64>() == WAITERS as u64
        })
        .await;
        (first, waiters)
    }

    /// Nothing that the server has is reported lost.
    fn assert_kept(&self, server: &Server) {
        for guard in &self.held {
            assert!(is_held_at(server, guard), "{} was on the replica", guard.name());
            assert!(guard.is_valid(), "{} is held on the master, and was reported lost", guard.name());
        }
    }

    async fn end(self) {
        join_all(self.held.into_iter().map(async |guard| guard.release().await.unwrap())).await;
        // While there are servers at which the latest releases can be repeated.
        join_all(self.clients.iter().map(|client| client.close())).await;
    }
}

async fn wait(env: Env, lock: Lock) -> Instant {
    let guard = lock.lock().await.unwrap();
    let granted = env.now();
    // The failover may have lost the hold, if no replica had received it.
    let _ = guard.release().await;
    granted
}

/// Notes when a sentinel names another master first.
fn when_named(servers: &Sentinels, old: usize) -> thread::JoinHandle<Instant> {
    let old = servers.server(old).port();
    let mut sentinels: Vec<_> = (0..3).map(|n| servers.sentinel_client(n)).collect();
    thread::spawn(move || {
        loop {
            for sentinel in &mut sentinels {
                let mut command = redis::cmd("SENTINEL");
                let (_, port): (String, u16) =
                    command.arg("GET-MASTER-ADDR-BY-NAME").arg(MASTER_NAME).query(sentinel).unwrap();
                if port != old {
                    return Instant::now();
                }
            }
            thread::sleep(ms(2));
        }
    })
}

/// Notes when a former master takes no more writes: it says so, or the sentinels cut the connection as they demote it.
fn when_demoted(old: &Server) -> thread::JoinHandle<Instant> {
    let mut old = old.client();
    thread::spawn(move || {
        loop {
            let info: redis::RedisResult<String> = redis::cmd("INFO").arg("replication").query(&mut old);
            if !info.is_ok_and(|info| info.contains("role:master")) {
                return Instant::now();
            }
            thread::sleep(ms(10));
        }
    })
}

async fn waiters_are_served_after_the_master_is_killed(env: Env) {
    let mut servers = Sentinels::start();
    let crowd = Crowd::gather(&env, &servers).await;
    let (first, waiters) = crowd.contend(&env).await;
    caught_up(&env, &servers, 0, &[1, 2]).await;
    let named = when_named(&servers, 0);
    let killed = env.now();
    servers.kill(0);
    // No server receives the release until there is a master again.
    let released = env.spawn(async move { first.release().await });
    let granted = in_the_end(&env, "all are served", join_all(waiters)).await;
    let _ = released.await;
    let promoted = servers.await_master(|server| server != 0);
    crowd.assert_kept(servers.server(promoted));
    let (named, mut granted) = (named.join().unwrap(), granted);
    granted.sort();
    let after = |moment: Instant| moment.saturating_duration_since(named);
    println!(
        "named {:?} after the kill; granted first {:?} and last {:?} after that",
        named - killed,
        after(granted[0]),
        after(granted[WAITERS - 1])
    );
    assert!(crowd.clients.iter().all(|client| client.stats().lost <= 1), "the lock of the waiters at most");
    crowd.end().await;
}

/// For ten seconds after a manual failover, the old master takes writes.
async fn a_manual_failover_is_followed_while_the_old_master_still_grants(env: Env) {
    let servers = Sentinels::start();
    let crowd = Crowd::gather(&env, &servers).await;
    caught_up(&env, &servers, 0, &[1, 2]).await;
    let (stop, passed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..WAITERS)
        .map(|n| {
            let (lock, stop, passed) = (crowd.clients[n % CLIENTS].lock("a"), stop.clone(), passed.clone());
            env.spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    // If the old master executed a release that the new one has not received, the lock stays held for a
                    // lease.
                    let guard = lock.lock().lease(ms(2000)).await.unwrap();
                    passed.fetch_add(1, Ordering::SeqCst);
                    let _ = guard.release().await;
                }
            })
        })
        .collect();
    let mut master = 0;
    for _ in 0..2 {
        let began = env.now();
        let (old, promoted) = (master, servers.fail_over());
        env.eventually("no connection is left on the old master", async || ours(servers.server(old)).is_empty()).await;
        let (left, demoted) = (env.now() - began, when_demoted(servers.server(old)));
        // From now on the clients know the new master.
        let before = passed.load(Ordering::SeqCst);
        env.eventually("they go on", async || passed.load(Ordering::SeqCst) > before + 200).await;
        for n in 0..50 {
            let guard = crowd.clients[n % CLIENTS].lock("b").lock().await.unwrap();
            assert!(is_held_at(servers.server(promoted), &guard), "granted by the new master");
            guard.release().await.unwrap();
        }
        all_on(&env, &servers, CLIENTS, promoted, &[old]).await;
        crowd.assert_kept(servers.server(promoted));
        master = promoted;
        servers.await_ready();
        println!("left after {left:?}; the old master took writes for {:?}", demoted.join().unwrap() - began);
    }
    stop.store(true, Ordering::SeqCst);
    in_the_end(&env, "all end", join_all(tasks)).await;
    crowd.end().await;
}

/// What thaws takes itself for a master until the sentinels tell it otherwise.
async fn a_master_that_stands_still_and_comes_back_is_not_used_again(env: Env) {
    let servers = Sentinels::start();
    let crowd = Crowd::gather(&env, &servers).await;
    let (first, waiters) = crowd.contend(&env).await;
    caught_up(&env, &servers, 0, &[1, 2]).await;
    let frozen = env.now();
    servers.freeze(0);
    let released = env.spawn(async move { first.release().await });
    let promoted = servers.await_master(|server| server != 0);
    let granted = in_the_end(&env, "all are served", join_all(waiters)).await;
    let _ = released.await;
    servers.thaw(0);
    let (thawed, demoted) = (env.now(), when_demoted(servers.server(0)));
    // A client that connects now does, too.
    let newcomer = client(&env, &servers).await;
    for n in 0..200 {
        let client = if n % 2 == 0 { &newcomer } else { &crowd.clients[n % CLIENTS] };
        let guard = client.lock("b").lock().await.unwrap();
        assert!(is_held_at(servers.server(promoted), &guard), "granted by the new master");
        guard.release().await.unwrap();
    }
    all_on(&env, &servers, CLIENTS + 1, promoted, &[0]).await;
    let first = granted.into_iter().min().expect("waiters");
    let writable = demoted.join().unwrap() - thawed;
    println!("granted {:?} after the freeze; the old master took writes for {writable:?} after it", first - frozen);
    crowd.assert_kept(servers.server(promoted));
    crowd.end().await;
    newcomer.close().await;
}
