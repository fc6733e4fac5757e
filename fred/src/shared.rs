//! What a connection shares with its subscriptions.

use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::Executor;
use fred::clients::Client;
use futures::future::{Either, select};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub(crate) struct Shared {
    pub(crate) executor: Arc<dyn Executor>,
    /// The client of the application.
    pub(crate) client: Client,
    /// The runtime of fred. bowline may poll its futures on threads that know of none.
    tokio: Handle,
    /// The longest wait for an answer.
    pub(crate) timeout: Duration,
    /// The scripts that the server has answered, by their SHA1.
    loaded: Mutex<HashSet<&'static str>>,
    reconnects: AtomicU64,
    closed: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(executor: Arc<dyn Executor>, client: Client, tokio: Handle, timeout: Duration) -> Arc<Self> {
        let (loaded, reconnects, closed) = (Mutex::default(), AtomicU64::new(0), watch::Sender::new(false));
        Arc::new(Self { executor, client, tokio, timeout, loaded, reconnects, closed })
    }

    pub(crate) fn is_loaded(&self, sha: &str) -> bool {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).contains(sha)
    }

    /// Notes whether the server has the script.
    pub(crate) fn set_loaded(&self, sha: &'static str, is_loaded: bool) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if is_loaded {
            loaded.insert(sha)
        } else {
            loaded.remove(sha)
        };
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    pub(crate) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// `None`: the connection was closed before or meanwhile.
    pub(crate) async fn unless_closed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut closed = self.closed.subscribe();
        if *closed.borrow() {
            return None;
        }
        match select(pin!(work), pin!(closed.wait_for(|closed| *closed))).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    /// Runs `work` for at most `limit`. `None`: the time is over.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), self.executor.sleep(limit)).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    /// Runs `work` where it finds the runtime of fred.
    pub(crate) async fn in_tokio<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let _entered = self.tokio.enter();
            work.as_mut().poll(context)
        })
        .await
    }

    /// Calls `work` where it finds the runtime of fred.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.tokio.enter();
        work()
    }
}
