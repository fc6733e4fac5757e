//! What an acquisition costs when many want the same, counted at the connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};

use super::{Env, TestClient};

/// Acquires and releases so often, from so many tasks over four clients, which costs two commands per acquisition.
/// `make` makes what a task of a client repeats.
pub(crate) async fn an_acquisition_costs_two_commands(
    env: &Env,
    tasks: usize,
    acquisitions: u64,
    make: impl Fn(&TestClient) -> Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        // No renewal and no heartbeat is due meanwhile, however slow the machine is.
        clients.push(env.client_with(|config| config.lease(Duration::from_secs(3600))).await);
    }
    let left = Arc::new(AtomicU64::new(acquisitions));
    let tasks: Vec<_> = (0..tasks)
        .map(|n| {
            let (once, left) = (make(&clients[n % 4]), left.clone());
            env.spawn(async move {
                while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                    once().await;
                }
            })
        })
        .collect();
    join_all(tasks).await;
    let all: Vec<_> = clients.iter().map(|client| client.counts.all()).collect();
    let total: u64 = clients.iter().map(|client| client.counts.total()).sum();
    let average = total as f64 / acquisitions as f64;
    assert!(average <= 2.01, "{average} commands per contended acquisition: {all:?}");
}
