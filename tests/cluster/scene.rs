//! A cluster at work: many clients wait for a few names, and one holds many.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bowline::{Client, ErrorKind, LockGuard, PrimitiveKind};
use futures::future::{BoxFuture, join_all};

use crate::log::Log;
use crate::support::cluster::Cluster;
use crate::support::env::{Env, TestClient};

pub(crate) const CLIENTS: usize = 4;
pub(crate) const WAITERS: usize = 64;
pub(crate) const HOLDS: usize = 1_000;
/// How often every waiter is served after a disturbance.
const AGAIN: usize = 2;
/// Long enough for a busy machine, and short enough for renewals during the test.
const LEASE: Duration = Duration::from_secs(15);

pub(crate) struct Scene {
    env: Env,
    cluster: Arc<Mutex<Cluster>>,
    url: String,
    pub(crate) log: Arc<Log>,
    pub(crate) names: Vec<String>,
    clients: Vec<TestClient>,
    holds: Vec<LockGuard>,
    waiters: Vec<BoxFuture<'static, ()>>,
    stop: Arc<AtomicBool>,
}

impl Scene {
    /// Waits until the holds are there, and copied to the replicas.
    pub(crate) async fn start(env: Env, cluster: Cluster, names: Vec<String>) -> Self {
        let url = cluster.user_url();
        let mut clients = Vec::new();
        for n in 0..CLIENTS {
            // The plain URL of one node works as well.
            let url = if n == 0 { user(&cluster.node(n).url()) } else { url.clone() };
            clients.push(env.client_at(&url, |config| config.lease(LEASE)).await.unwrap());
        }
        let holder = clients[0].client.clone();
        let holds = join_all((0..HOLDS).map(|n| {
            let lock = holder.lock(&format!("held:{n}"));
            async move { lock.lock().await.unwrap() }
        }));
        let holds = holds.await;
        let (log, stop) = (Arc::new(Log::default()), Arc::new(AtomicBool::new(false)));
        let waiters = (0..WAITERS).map(|task| {
            let client = clients[task % CLIENTS].client.clone();
            let name = names[task / CLIENTS % names.len()].clone();
            env.spawn(work(client, name, task, Arc::clone(&log), Arc::clone(&stop)))
        });
        let waiters = waiters.collect();
        let cluster = Arc::new(Mutex::new(cluster));
        let scene = Self { env, cluster, url, log, names, clients, holds, waiters, stop };
        scene.served_again().await;
        scene
    }

    /// Does something to the cluster, beside the work.
    pub(crate) async fn disturb<T: Send + 'static>(&self, what: impl FnOnce(&mut Cluster) -> T + Send + 'static) -> T {
        let cluster = Arc::clone(&self.cluster);
        self.env.on_a_thread(move || what(&mut cluster.lock().unwrap())).await
    }

    /// Every waiter is served again, from now on.
    pub(crate) async fn served_again(&self) {
        let since = Instant::now();
        let behind = || (0..WAITERS).filter(|task| self.log.served_since(*task, since) < AGAIN).collect::<Vec<_>>();
        let deadline = since + Duration::from_secs(30);
        while !behind().is_empty() {
            assert!(Instant::now() < deadline, "not served: {:?}; {:?}", behind(), self.clients[0].stats());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Prints what the disturbance has cost.
    pub(crate) fn report(&self, what: &str) {
        println!("{what}: at most {:?} without a grant of its first name", self.log.longest_gap(&self.names[..1]));
    }

    /// Nothing was lost: no hold, no waiter. Then everybody leaves, and nothing is left.
    pub(crate) async fn finish(self) -> usize {
        self.served_again().await;
        // A client that connects after the fault.
        let late = self.env.client_at(&self.url, |config| config).await.unwrap();
        for name in &self.names {
            late.lock(name).lock().await.unwrap().release().await.unwrap();
        }
        let lost = self.holds.iter().filter(|hold| hold.lost_signal().is_lost()).count();
        assert_eq!(lost, 0, "of {HOLDS} holds");
        let listed = late.names().of_kind(PrimitiveKind::Lock).starting_with("held:").all().await.unwrap();
        assert_eq!(listed.len(), HOLDS);
        self.stop.store(true, Ordering::SeqCst);
        join_all(self.waiters).await;
        for released in join_all(self.holds.into_iter().map(LockGuard::release)).await {
            released.unwrap();
        }
        join_all(self.clients.iter().map(|client| client.close())).await;
        late.close().await;
        self.log.check()
    }
}

/// A URL of the user whose rights docs/acl.md names.
pub(crate) fn user(url: &str) -> String {
    url.replace("redis://", "redis://bowline:secret@")
}

/// Locks, holds for a moment and releases, again and again.
async fn work(client: Client, name: String, task: usize, log: Arc<Log>, stop: Arc<AtomicBool>) {
    let lock = client.lock(&name);
    while !stop.load(Ordering::SeqCst) {
        let fair = task.is_multiple_of(2);
        let acquiring = lock.lock();
        let acquired = if fair { acquiring.fair().await } else { acquiring.await };
        let guard = match acquired {
            Ok(guard) => guard,
            // There was no answer for the retry timeout, so the waiter acquires again.
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Refused) => continue,
            Err(error) => panic!("{error}"),
        };
        let (token, from) = (guard.token(), Instant::now());
        tokio::time::sleep(Duration::from_millis(1)).await;
        if !guard.lost_signal().is_lost() {
            log.held(&name, task, token, from, Instant::now());
        }
        // If the outcome is unknown, the hold is cleaned up in the background.
        let _ = guard.release().await;
    }
}
