//! More waiters than one call tells.

use futures::future::{BoxFuture, join_all};

use super::{TTL, end, waiting};
use crate::support::counted::TestClient;
use crate::support::env::{Env, on_every_server};
use bowline::{ErrorKind, Result};

on_every_server! {
    all_are_let_through_by_the_client_that_counted_to_zero,
    all_are_told_of_a_deletion,
    the_next_latch_is_set_when_all_are_told,
}

const WAITERS: u64 = 2_500;

/// Long leases: no heartbeat comes before the end of the test.
async fn clients(env: &Env) -> [TestClient; 3] {
    let client = || env.client_with(|config| config.lease(TTL));
    [client().await, client().await, client().await]
}

async fn waiters(env: &Env, clients: &[TestClient]) -> Vec<BoxFuture<'static, Result<()>>> {
    let latch = clients[0].latch("a");
    assert!(latch.try_set(1, TTL).await.unwrap());
    let waiter = |n: u64| {
        let latch = clients[n as usize % clients.len()].latch("a");
        env.spawn(async move { latch.wait().await })
    };
    let waiters = (0..WAITERS).map(waiter).collect();
    waiting(env, &latch, WAITERS).await;
    clients.iter().for_each(|client| client.counts.reset());
    waiters
}

async fn all_are_let_through_by_the_client_that_counted_to_zero(env: Env) {
    let clients = clients(&env).await;
    let waiters = waiters(&env, &clients).await;
    assert_eq!(clients[0].latch("a").count_down().await.unwrap(), 0);
    for passed in env.soon("all of them", join_all(waiters)).await {
        passed.unwrap();
    }
    assert_eq!((clients[0].counts.of("latch_count_down"), clients[0].counts.of("latch_cancel")), (1, 2));
    assert_eq!(
        clients.iter().map(|client| client.counts.total()).sum::<u64>(),
        3,
        "and no client has sent a heartbeat"
    );
    end(&env, &clients[0].latch("a")).await;
}

async fn all_are_told_of_a_deletion(env: Env) {
    let clients = clients(&env).await;
    let waiters = waiters(&env, &clients).await;
    assert!(clients[0].latch("a").delete().await.unwrap());
    for told in env.soon("all of them", join_all(waiters)).await {
        assert_eq!(told.unwrap_err().kind(), ErrorKind::Lost);
    }
    assert_eq!(clients[0].counts.of("latch_delete"), 1);
    assert_eq!(
        clients.iter().map(|client| client.counts.of("latch_heartbeat")).sum::<u64>(),
        0,
        "no client had to ask"
    );
    end(&env, &clients[0].latch("a")).await;
}

async fn the_next_latch_is_set_when_all_are_told(env: Env) {
    let clients = clients(&env).await;
    let waiters = waiters(&env, &clients).await;
    let (latch, other) = (clients[0].latch("a"), clients[1].latch("a"));
    assert_eq!(latch.count_down().await.unwrap(), 0);
    assert!(other.try_set(7, TTL).await.unwrap());
    let state = other.inspect().await.unwrap();
    assert_eq!((state.count, state.waiters), (7, 0));
    for passed in env.soon("all of them", join_all(waiters)).await {
        passed.unwrap();
    }
    end(&env, &latch).await;
}
