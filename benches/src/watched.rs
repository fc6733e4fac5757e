//! What bowline has its connection and its executor do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline::wire::Request;
use bowline::{Call, Executor};
use bowline_testkit::watched::{Sent, Watch};
use futures::future::BoxFuture;

/// What was seen of one client.
#[derive(Debug, Default)]
pub struct Seen {
    sent: Mutex<BTreeMap<&'static str, u64>>,
    answered: Mutex<BTreeMap<&'static str, u64>>,
    subscriptions: AtomicU64,
    recorded: Mutex<Option<Vec<Recorded>>>,
    spawned: AtomicU64,
    ended: AtomicU64,
    timers: AtomicU64,
}

/// What was sent with a script, as text.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `KEYS`.
    pub keys: Vec<String>,
    /// `ARGV`.
    pub args: Vec<String>,
}

impl Recorded {
    fn of(call: &Call<'_>) -> Self {
        let keys = call.keys.iter().map(|key| (*key).to_owned()).collect();
        Self { keys, args: Request::new(call).words() }
    }
}

impl Seen {
    /// Scripts sent.
    pub fn commands(&self) -> u64 {
        lock(&self.sent).values().sum()
    }

    /// How often this script was sent.
    pub fn commands_of(&self, script: &str) -> u64 {
        lock(&self.sent).get(script).copied().unwrap_or(0)
    }

    /// How often this script was answered.
    pub fn answers_to(&self, script: &str) -> u64 {
        lock(&self.answered).get(script).copied().unwrap_or(0)
    }

    /// Subscriptions made.
    pub fn subscriptions(&self) -> u64 {
        self.subscriptions.load(Ordering::SeqCst)
    }

    /// Tasks spawned.
    pub fn spawned(&self) -> u64 {
        self.spawned.load(Ordering::SeqCst)
    }

    /// Tasks that have been spawned and are not done.
    pub fn tasks(&self) -> u64 {
        self.spawned() - self.ended.load(Ordering::SeqCst)
    }

    /// Timers set.
    pub fn timers(&self) -> u64 {
        self.timers.load(Ordering::SeqCst)
    }

    /// Keeps what is sent from now on, until it is [taken](Self::recorded).
    pub fn record(&self) {
        *lock(&self.recorded) = Some(Vec::new());
    }

    /// What was sent since [`record`](Self::record).
    pub fn recorded(&self) -> Vec<Recorded> {
        lock(&self.recorded).take().unwrap_or_default()
    }
}

impl Watch for Seen {
    fn sent(&self, calls: &[Call<'_>], _: Sent) {
        count(&self.sent, calls);
        if let Some(recorded) = &mut *lock(&self.recorded) {
            recorded.extend(calls.iter().map(Recorded::of));
        }
    }

    fn answered(&self, calls: &[Call<'_>]) {
        count(&self.answered, calls);
    }

    fn subscribes(&self) {
        self.subscriptions.fetch_add(1, Ordering::SeqCst);
    }
}

fn count(scripts: &Mutex<BTreeMap<&'static str, u64>>, calls: &[Call<'_>]) {
    let mut scripts = lock(scripts);
    calls.iter().for_each(|call| *scripts.entry(call.script.name()).or_default() += 1);
}

/// An executor that tells what it is asked to do.
#[derive(Debug)]
pub struct WatchedExecutor {
    /// What has been seen so far.
    pub seen: Arc<Seen>,
    /// What does the work.
    pub inner: Arc<dyn Executor>,
}

impl Executor for WatchedExecutor {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.seen.spawned.fetch_add(1, Ordering::SeqCst);
        let ended = Ended(self.seen.clone());
        self.inner.spawn(Box::pin(async move {
            let _ended = ended;
            task.await;
        }));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.seen.timers.fetch_add(1, Ordering::SeqCst);
        self.inner.sleep(duration)
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        self.inner.block_on(future)
    }
}

struct Ended(Arc<Seen>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
