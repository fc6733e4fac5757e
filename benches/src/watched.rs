//! A connection and an executor that tell what bowline has them do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bowline::{Acknowledged, Arg, Call, Connection, ConnectionError, Executor, Notice, Reply, Topology, Warning};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

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

/// The sizes and the text of what was sent with a script.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `KEYS`.
    pub keys: Vec<String>,
    /// `ARGV`.
    pub args: Vec<String>,
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

    fn answer(&self, call: &Call<'_>) {
        *lock(&self.answered).entry(call.script.name()).or_default() += 1;
    }

    fn call(&self, call: &Call<'_>) {
        *lock(&self.sent).entry(call.script.name()).or_default() += 1;
        if let Some(recorded) = &mut *lock(&self.recorded) {
            let keys = call.keys.iter().map(|key| (*key).to_owned()).collect();
            let args = call.args.iter().map(|arg| match arg {
                Arg::Text(text) => (*text).to_owned(),
                Arg::Number(number) => number.to_string(),
            });
            recorded.push(Recorded { keys, args: args.collect() });
        }
    }
}

/// Anything that tells what it is asked to do.
#[derive(Debug)]
pub struct Watched<T: ?Sized> {
    /// What has been seen so far.
    pub seen: Arc<Seen>,
    /// What does the work.
    pub inner: Arc<T>,
}

#[async_trait]
impl<C: Connection> Connection for Watched<C> {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.seen.call(&call);
        let answer = self.inner.run(call).await;
        self.seen.answer(&call);
        answer
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        calls.iter().for_each(|call| self.seen.call(call));
        let answers = self.inner.run_batch(calls).await;
        calls.iter().for_each(|call| self.seen.answer(call));
        answers
    }

    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        calls.iter().for_each(|call| self.seen.call(call));
        let answers = self.inner.run_acknowledged(calls, replicas, within).await;
        calls.iter().for_each(|call| self.seen.answer(call));
        answers
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.seen.subscriptions.fetch_add(1, Ordering::SeqCst);
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    fn reconnects(&self) -> u64 {
        self.inner.reconnects()
    }

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        self.inner.without_runtime(within)
    }

    fn close(&self) {
        self.inner.close();
    }
}

impl Executor for Watched<dyn Executor> {
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
