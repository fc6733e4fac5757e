//! An acquisition. The builder of the blocking API is made, set and run on the thread that blocks.

use std::fmt;
use std::time::Duration;

use bowline::blocking::{self, AnyThread};
use bowline::{Holder, Reentrant, Result};
use futures::future::BoxFuture;

/// Acquires a `T`.
pub(crate) struct Acquire<T> {
    start: Box<dyn FnOnce(Settings) -> BoxFuture<'static, Result<T>> + Send + Sync>,
    settings: Settings,
}

#[derive(Default)]
pub(super) struct Settings {
    fair: Option<bool>,
    timeout: Option<Duration>,
    lease: Option<Duration>,
    expires_after: Option<Duration>,
    hold_at_most: Option<Duration>,
    max_waiters: Option<u32>,
    retained: Option<Duration>,
    for_retained: Option<Duration>,
    holder: Option<Holder>,
    denies_reentry: bool,
}

/// Sets those options of the builder that the test has set.
macro_rules! set {
    ($settings:ident, $builder:expr, $($option:ident),+) => {{
        let mut builder = $builder;
        $(
            if let Some(value) = $settings.$option {
                builder = builder.$option(value);
            }
        )+
        builder
    }};
}

macro_rules! set_fair {
    ($settings:ident, $builder:expr) => {
        match $settings.fair {
            None => $builder,
            Some(true) => $builder.fair(),
            Some(false) => $builder.non_fair(),
        }
    };
}

impl Settings {
    pub(super) fn of<G>(&self, builder: bowline::Acquire<G>) -> bowline::Acquire<G> {
        set!(self, set_fair!(self, builder), timeout, lease, expires_after, hold_at_most, max_waiters, retained)
    }

    pub(super) fn of_try<G>(&self, builder: bowline::TryAcquire<G>) -> bowline::TryAcquire<G> {
        set!(self, builder, timeout, lease, expires_after, hold_at_most, retained, for_retained)
    }

    pub(super) fn of_reentrant<G: Reentrant>(&self, builder: bowline::Acquire<G>) -> bowline::Acquire<G> {
        let builder = self.of(builder);
        let builder = if let Some(holder) = &self.holder { builder.holder(holder) } else { builder };
        if self.denies_reentry { builder.deny_reentry() } else { builder }
    }

    pub(super) fn of_reentrant_try<G: Reentrant>(&self, builder: bowline::TryAcquire<G>) -> bowline::TryAcquire<G> {
        let builder = self.of_try(builder);
        let builder = if let Some(holder) = &self.holder { builder.holder(holder) } else { builder };
        if self.denies_reentry { builder.deny_reentry() } else { builder }
    }

    pub(super) fn of_blocking_reentrant<G: Reentrant>(
        &self,
        builder: blocking::Acquire<G>,
    ) -> blocking::Acquire<G, AnyThread> {
        let builder = self.of(builder).holder(&self.thread());
        if self.denies_reentry { builder.deny_reentry() } else { builder }
    }

    pub(super) fn of_blocking_reentrant_try<G: Reentrant>(
        &self,
        builder: blocking::TryAcquire<G>,
    ) -> blocking::TryAcquire<G, AnyThread> {
        let builder = self.of_try(builder).holder(&self.thread());
        if self.denies_reentry { builder.deny_reentry() } else { builder }
    }

    /// Each call has a thread of its own, which its guard leaves: a holder of its own stands for the thread's.
    fn thread(&self) -> Holder {
        self.holder.unwrap_or_else(Holder::new)
    }
}

impl<T> Acquire<T> {
    pub(super) fn new(start: impl FnOnce(Settings) -> BoxFuture<'static, Result<T>> + Send + Sync + 'static) -> Self {
        Self { start: Box::new(start), settings: Settings::default() }
    }

    pub(crate) fn fair(mut self) -> Self {
        self.settings.fair = Some(true);
        self
    }

    pub(crate) fn non_fair(mut self) -> Self {
        self.settings.fair = Some(false);
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    pub(crate) fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }

    pub(crate) fn expires_after(mut self, lease: Duration) -> Self {
        self.settings.expires_after = Some(lease);
        self
    }

    pub(crate) fn hold_at_most(mut self, limit: Duration) -> Self {
        self.settings.hold_at_most = Some(limit);
        self
    }

    pub(crate) fn max_waiters(mut self, limit: u32) -> Self {
        self.settings.max_waiters = Some(limit);
        self
    }

    pub(crate) fn retained(mut self, time: Duration) -> Self {
        self.settings.retained = Some(time);
        self
    }

    pub(crate) fn for_retained(mut self, time: Duration) -> Self {
        self.settings.for_retained = Some(time);
        self
    }

    pub(crate) fn holder(mut self, holder: &Holder) -> Self {
        self.settings.holder = Some(*holder);
        self
    }

    pub(crate) fn deny_reentry(mut self) -> Self {
        self.settings.denies_reentry = true;
        self
    }
}

impl<T> IntoFuture for Acquire<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        (self.start)(self.settings)
    }
}

impl<T> fmt::Debug for Acquire<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquire")
    }
}
