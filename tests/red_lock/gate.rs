//! A connection to a master that can be frozen, so that calls are neither executed nor answered until it thaws, or far
//! away, so that answers take their time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Call, Connection, ConnectionError, Executor, Notice, Reply, Topology};
use event_listener::Event;
use futures::stream::BoxStream;

/// Whether a master is frozen, for all its connections.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_frozen: AtomicBool,
    /// Calls of this script wait until it thaws, after so many of them. Other calls overtake them, as they may when
    /// each waits for a connection.
    held_up: Mutex<Option<(&'static str, u32)>>,
    /// In milliseconds.
    answers_after: AtomicU64,
    thawed: Event,
}

impl Gate {
    pub(crate) fn freeze(&self) {
        self.is_frozen.store(true, Ordering::SeqCst);
    }

    /// From now on, calls of the script wait, but for the next `passing`.
    pub(crate) fn hold_up(&self, script: &'static str, passing: u32) {
        *self.held_up.lock().unwrap() = Some((script, passing));
    }

    pub(crate) fn thaw(&self) {
        self.is_frozen.store(false, Ordering::SeqCst);
        *self.held_up.lock().unwrap() = None;
        self.thawed.notify(usize::MAX);
    }

    /// From now on, answers arrive this much later than they were given.
    pub(crate) fn answer_after(&self, delay: Duration) {
        self.answers_after.store(u64::try_from(delay.as_millis()).unwrap(), Ordering::SeqCst);
    }

    async fn open(&self) {
        self.until(|| !self.is_frozen.load(Ordering::SeqCst)).await;
    }

    async fn open_for(&self, script: &str) {
        self.open().await;
        let may_pass = || match &mut *self.held_up.lock().unwrap() {
            Some((held_up, passing)) if *held_up == script => {
                let passes = *passing > 0;
                *passing = passing.saturating_sub(1);
                passes
            }
            _ => true,
        };
        self.until(may_pass).await;
    }

    async fn until(&self, may_pass: impl Fn() -> bool) {
        loop {
            let listener = self.thawed.listen();
            if may_pass() {
                return;
            }
            listener.await;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Gated<C> {
    pub(crate) inner: C,
    pub(crate) gate: Arc<Gate>,
    pub(crate) topology: Topology,
    pub(crate) executor: Arc<dyn Executor>,
}

#[async_trait]
impl<C: Connection> Connection for Gated<C> {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.gate.open_for(call.script.name()).await;
        let answer = self.inner.run(call).await;
        let delay = self.gate.answers_after.load(Ordering::SeqCst);
        if delay > 0 {
            self.executor.sleep(Duration::from_millis(delay)).await;
        }
        answer
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.gate.open().await;
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.gate.open().await;
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.topology
    }

    fn close(&self) {
        self.inner.close();
    }
}
