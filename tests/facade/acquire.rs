//! An acquisition, whose builder is made, set and run on the thread that blocks.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use real::blocking::{Acquire as Blocking, AnyThread, TryAcquire as TryBlocking};
use real::{Holder, Reentrant, Result};

use crate::thread::on_a_thread;

/// Acquires a `T`.
pub struct Acquire<T> {
    block: Box<dyn FnOnce(Settings) -> Result<T> + Send + Sync>,
    settings: Settings,
}

#[derive(Default)]
pub struct Settings {
    fair: Option<bool>,
    timeout: Option<Duration>,
    lease: Option<Duration>,
    expires_after: Option<Duration>,
    hold_at_most: Option<Duration>,
    max_waiters: Option<u32>,
    holder: Option<Holder>,
}

impl Settings {
    pub fn of<G>(&self, mut builder: real::Acquire<G>) -> real::Acquire<G> {
        builder = match self.fair {
            None => builder,
            Some(true) => builder.fair(),
            Some(false) => builder.non_fair(),
        };
        builder = if let Some(timeout) = self.timeout { builder.timeout(timeout) } else { builder };
        builder = if let Some(lease) = self.lease { builder.lease(lease) } else { builder };
        builder = if let Some(lease) = self.expires_after { builder.expires_after(lease) } else { builder };
        builder = if let Some(limit) = self.hold_at_most { builder.hold_at_most(limit) } else { builder };
        if let Some(limit) = self.max_waiters { builder.max_waiters(limit) } else { builder }
    }

    pub fn of_try<G>(&self, mut builder: real::TryAcquire<G>) -> real::TryAcquire<G> {
        builder = if let Some(timeout) = self.timeout { builder.timeout(timeout) } else { builder };
        builder = if let Some(lease) = self.expires_after { builder.expires_after(lease) } else { builder };
        builder = if let Some(limit) = self.hold_at_most { builder.hold_at_most(limit) } else { builder };
        if let Some(lease) = self.lease { builder.lease(lease) } else { builder }
    }

    /// With the holder too.
    pub fn of_reentrant<G: Reentrant>(&self, builder: Blocking<G>) -> Blocking<G, AnyThread> {
        self.of(builder).holder(&self.holder())
    }

    /// With the holder too.
    pub fn of_reentrant_try<G: Reentrant>(&self, builder: TryBlocking<G>) -> TryBlocking<G, AnyThread> {
        self.of_try(builder).holder(&self.holder())
    }

    /// Each call has a thread of its own, which its guard leaves: a holder of its own stands for the thread's.
    fn holder(&self) -> Holder {
        self.holder.unwrap_or_else(Holder::new)
    }
}

impl<T> Acquire<T> {
    pub fn new(block: impl FnOnce(Settings) -> Result<T> + Send + Sync + 'static) -> Self {
        Self { block: Box::new(block), settings: Settings::default() }
    }

    pub fn fair(mut self) -> Self {
        self.settings.fair = Some(true);
        self
    }

    pub fn non_fair(mut self) -> Self {
        self.settings.fair = Some(false);
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }

    pub fn expires_after(mut self, lease: Duration) -> Self {
        self.settings.expires_after = Some(lease);
        self
    }

    pub fn hold_at_most(mut self, limit: Duration) -> Self {
        self.settings.hold_at_most = Some(limit);
        self
    }

    pub fn max_waiters(mut self, limit: u32) -> Self {
        self.settings.max_waiters = Some(limit);
        self
    }

    pub fn holder(mut self, holder: &Holder) -> Self {
        self.settings.holder = Some(*holder);
        self
    }
}

impl<T: Send + 'static> IntoFuture for Acquire<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        on_a_thread(move || (self.block)(self.settings))
    }
}

impl<T> fmt::Debug for Acquire<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}
