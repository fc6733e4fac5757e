//! The client of the blocking API.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(feature = "blocking")]
use std::sync::Arc;

use uuid::Uuid;

use super::barrier::Barrier;
use super::changes::Changes;
use super::double_barrier::DoubleBarrier;
use super::election::Election;
use super::latch::CountDownLatch;
use super::limiter::RateLimiter;
use super::lock::Lock;
use super::multi_lock::MultiLock;
use super::names::Names;
use super::once::Once;
use super::redisson::Redisson;
use super::rw_lock::RwLock;
use super::semaphore::Semaphore;
use super::thread::block;
#[cfg(feature = "blocking")]
use crate::Executor;
use crate::{Deadlocks, HoldChanges, NameInUse, NameState, Quota, Result, Schedule, Stats, Warning};

/// A client for blocking code: see [`bowline::Client`](crate::Client). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
}

/// Connects to a URL, or by [`ConnectOptions`](crate::ConnectOptions), with the default settings. The client's tasks
/// run on a thread of smol's global executor.
///
/// # Errors
/// Those of [`smol::connect`](crate::smol::connect) and [those of blocking](crate::blocking).
#[cfg(feature = "blocking")]
pub fn connect(to: impl Into<crate::ConnectOptions>) -> Result<Client> {
    connect_with(to, crate::Config::default())
}

/// Connects as [`connect`] does, with the settings in `config`.
///
/// # Errors
/// Those of [`connect`].
#[cfg(feature = "blocking")]
pub fn connect_with(to: impl Into<crate::ConnectOptions>, config: crate::Config) -> Result<Client> {
    let options = to.into();
    let executor: Arc<dyn Executor> = Arc::new(crate::smol::Smol);
    block(&executor, "connect", Box::pin(crate::smol::connect_with(options, config))).map(Client::new)
}

impl Client {
    /// Wraps an async client. Both share all state.
    pub fn new(client: crate::Client) -> Self {
        Self { inner: client }
    }

    /// The async client that this one wraps.
    pub fn as_async(&self) -> &crate::Client {
        &self.inner
    }

    /// Returns the lock `name`: see [`bowline::Client::lock`](crate::Client::lock).
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.inner.lock(name), self.inner.executor().clone())
    }

    /// Returns the read-write lock `name`: see [`bowline::Client::rw_lock`](crate::Client::rw_lock).
    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock::new(self.inner.rw_lock(name), self.inner.executor().clone())
    }

    /// Returns the semaphore `name`: see [`bowline::Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore::new(self.inner.semaphore(name, limit), self.inner.executor().clone())
    }

    /// Returns the count-down latch `name`: see [`bowline::Client::latch`](crate::Client::latch).
    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch::new(self.inner.latch(name), self.inner.executor().clone())
    }

    /// Returns the barrier `name` for so many parties: see [`bowline::Client::barrier`](crate::Client::barrier).
    pub fn barrier(&self, name: &str, parties: u32) -> Barrier {
        Barrier::new(self.inner.barrier(name, parties), self.inner.executor().clone())
    }

    /// Returns the double barrier `name` for so many parties: see
    /// [`bowline::Client::double_barrier`](crate::Client::double_barrier).
    pub fn double_barrier(&self, name: &str, parties: u32) -> DoubleBarrier {
        DoubleBarrier::new(self.inner.double_barrier(name, parties), self.inner.executor().clone())
    }

    /// Returns the election `name`: see [`bowline::Client::election`](crate::Client::election).
    pub fn election(&self, name: &str) -> Election {
        Election::new(self.inner.election(name), self.inner.executor().clone())
    }

    /// Returns work that runs at most once in each period: see [`bowline::Client::once`](crate::Client::once).
    pub fn once(&self, name: &str, schedule: impl Into<Schedule>) -> Once {
        Once::new(self.inner.once(name, schedule), self.inner.executor().clone())
    }

    /// Returns the rate limiter `name`: see [`bowline::Client::rate_limiter`](crate::Client::rate_limiter).
    pub fn rate_limiter(&self, name: &str, quota: Quota) -> RateLimiter {
        RateLimiter::new(self.inner.rate_limiter(name, quota), self.inner.executor().clone())
    }

    /// Returns the locks `names`, to be acquired together: see [`bowline::Client::lock_all`](crate::Client::lock_all).
    pub fn lock_all<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> MultiLock {
        self.inner.lock_all(names).into()
    }

    /// Returns the locks that Java programs share by Redisson: see
    /// [`bowline::Client::redisson`](crate::Client::redisson).
    pub fn redisson(&self) -> Redisson {
        Redisson::new(self.inner.redisson(), self.inner.executor().clone())
    }

    /// Lists the names that are in use: see [`bowline::Client::names`](crate::Client::names).
    pub fn names(&self) -> Names {
        Names::new(self.inner.names(), self.inner.executor().clone())
    }

    /// Reads who holds each of these names and who waits for it: see [`bowline::Client::look`](crate::Client::look).
    ///
    /// # Errors
    /// Those of the async method, one for each name. The outer one is [that of blocking](crate::blocking).
    pub fn look(&self, names: &[NameInUse]) -> Result<Vec<Result<NameState>>> {
        block(self.inner.executor(), "look", Box::pin(async { Ok(self.inner.look(names).await) }))
    }

    /// Reports grants, releases and losses of a name: see [`bowline::Client::changes`](crate::Client::changes).
    pub fn changes(&self, name: NameInUse) -> Changes<HoldChanges> {
        Changes::new(self.inner.changes(name), self.inner.executor())
    }

    /// Searches for programs that wait for each other's holds: see
    /// [`bowline::Client::deadlocks`](crate::Client::deadlocks). Call [`block`](Deadlocks::block) on the result.
    pub fn deadlocks(&self) -> Deadlocks {
        self.inner.deadlocks()
    }

    /// The identity of the client in Redis: see [`bowline::Client::id`](crate::Client::id).
    pub fn id(&self) -> Uuid {
        self.inner.id()
    }

    /// Problems found in the server's setup: see [`bowline::Client::warnings`](crate::Client::warnings).
    pub fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    /// Counters of this client: see [`bowline::Client::stats`](crate::Client::stats).
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Closes the client and all its clones: see [`bowline::Client::close`](crate::Client::close).
    ///
    /// # Errors
    /// Only [those of blocking](crate::blocking).
    pub fn close(&self) -> Result<()> {
        self.inner.executor().block_on(Box::pin(self.inner.close()))
    }

    /// Calls `work` with this client and then closes the client, even if `work` panics: see
    /// [`bowline::Client::scope`](crate::Client::scope). On a thread that may not block, the client is closed in the
    /// background.
    pub fn scope<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        let worked = catch_unwind(AssertUnwindSafe(|| work(self)));
        if self.close().is_err() {
            self.inner.begin_close();
        }
        worked.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Self {
        Self::new(client)
    }
}
