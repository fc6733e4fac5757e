//! One lock over several independent servers.

use std::time::Duration;

use super::acquire::{Acquire, TryAcquire};
use super::client::Client;
use super::election::Election;
use super::multi_lock::MultiLock;
use super::thread::{block, this_thread};
use crate::{RedLockState, RedLockStats, Result};

/// Locks over 3 or 5 independent servers, for blocking code. Guarantees, fairness and errors are those of
/// [`bowline::RedLock`](crate::RedLock).
///
/// A guard belongs to its thread, which re-enters what it holds already.
///
/// # Examples
/// ```no_run
/// # #[cfg(feature = "blocking")]
/// # fn main() -> bowline::Result<()> {
/// use bowline::blocking::{RedLock, connect};
///
/// let masters = [connect("redis://one/")?, connect("redis://two/")?, connect("redis://three/")?];
/// let locks = RedLock::new(masters)?;
/// let guard = locks.lock("orders:42").block()?;
/// println!("writing with token {}", guard.token());
/// guard.release()
/// # }
/// # #[cfg(not(feature = "blocking"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
pub struct RedLock {
    inner: crate::RedLock,
}

impl RedLock {
    /// Makes a `RedLock` over the servers of these clients, 3 or 5, with the default settings: see
    /// [`bowline::RedLock::new`](crate::RedLock::new).
    ///
    /// # Errors
    /// Those of [`bowline::RedLock::new`](crate::RedLock::new).
    pub fn new(masters: impl IntoIterator<Item = Client>) -> Result<Self> {
        Self::builder(masters).build()
    }

    /// A builder, to choose other settings than the defaults.
    pub fn builder(masters: impl IntoIterator<Item = Client>) -> RedLockBuilder {
        let masters = masters.into_iter().map(|client| client.as_async().clone());
        RedLockBuilder { inner: crate::RedLock::builder(masters) }
    }

    /// Acquires the lock `name` for this thread, and waits while others hold it: see
    /// [`bowline::RedLock::lock`](crate::RedLock::lock).
    pub fn lock(&self, name: &str) -> Acquire {
        self.inner.lock(name).holder(&this_thread()).with_guard()
    }

    /// Acquires the lock `name` for this thread if it is free: see
    /// [`bowline::RedLock::try_lock`](crate::RedLock::try_lock).
    pub fn try_lock(&self, name: &str) -> TryAcquire {
        self.inner.try_lock(name).holder(&this_thread()).with_guard()
    }

    /// Returns the election `name`: see [`bowline::RedLock::election`](crate::RedLock::election).
    pub fn election(&self, name: &str) -> Election {
        Election::new(self.inner.election(name), self.inner.executor().clone())
    }

    /// Reads what each master thinks of the lock `name`: see [`bowline::RedLock::inspect`](crate::RedLock::inspect).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn inspect(&self, name: &str) -> Result<RedLockState> {
        block(self.inner.executor(), "inspect", Box::pin(self.inner.inspect(name)))
    }

    /// The counters of this `RedLock` and its clones: see [`bowline::RedLock::stats`](crate::RedLock::stats).
    pub fn stats(&self) -> RedLockStats {
        self.inner.stats()
    }
}

impl From<crate::RedLock> for RedLock {
    fn from(inner: crate::RedLock) -> Self {
        Self { inner }
    }
}

impl MultiLock {
    /// Adds the lock `name` of a [`RedLock`]: see [`bowline::MultiLock::red_lock`](crate::MultiLock::red_lock).
    pub fn red_lock(self, locks: &RedLock, name: &str) -> Self {
        Self { inner: self.inner.red_lock(&locks.inner, name) }
    }
}

/// A builder of a blocking [`RedLock`]. Its settings are those of [`bowline::RedLockBuilder`](crate::RedLockBuilder).
#[derive(Clone, Debug)]
#[must_use = "call build()"]
pub struct RedLockBuilder {
    inner: crate::RedLockBuilder,
}

impl RedLockBuilder {
    /// How long an acquisition waits for the answer of one master: see
    /// [`bowline::RedLockBuilder::node_timeout`](crate::RedLockBuilder::node_timeout).
    pub fn node_timeout(self, timeout: Duration) -> Self {
        Self { inner: self.inner.node_timeout(timeout) }
    }

    /// The longest lease of any acquisition of the `RedLock`: see
    /// [`bowline::RedLockBuilder::longest_lease`](crate::RedLockBuilder::longest_lease).
    pub fn longest_lease(self, lease: Duration) -> Self {
        Self { inner: self.inner.longest_lease(lease) }
    }

    /// Declares that no master loses a write when it restarts: see
    /// [`bowline::RedLockBuilder::durable`](crate::RedLockBuilder::durable).
    pub fn durable(self, durable: bool) -> Self {
        Self { inner: self.inner.durable(durable) }
    }

    /// Declares that the masters were started for the first time, as in a test: see
    /// [`bowline::RedLockBuilder::new_masters`](crate::RedLockBuilder::new_masters).
    pub fn new_masters(self, new: bool) -> Self {
        Self { inner: self.inner.new_masters(new) }
    }

    /// Names this set of masters, and says which version of the set it is: see
    /// [`bowline::RedLockBuilder::masters_version`](crate::RedLockBuilder::masters_version).
    pub fn masters_version(self, name: &str, version: u32) -> Self {
        Self { inner: self.inner.masters_version(name, version) }
    }

    /// Checks the clients and the settings, and makes the `RedLock`. Sends nothing.
    ///
    /// # Errors
    /// Those of [`bowline::RedLockBuilder::build`](crate::RedLockBuilder::build).
    pub fn build(self) -> Result<RedLock> {
        self.inner.build().map(RedLock::from)
    }
}
