//! What the handles of all primitives share.

use std::borrow::Borrow;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::retry::Retry;
use crate::error::Result;
use crate::hold::owner::HoldSource;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, Named, SharedCounter};
use crate::protocol::kind::Kind;
use crate::protocol::reply::{ServerMillis, Timed};

/// Small, because each acquisition has a copy. `N` is what is known of the name: a rate limiter has no [`Kind`].
pub(crate) struct Primitive<N = Keys> {
    pub(crate) source: Arc<HoldSource>,
    /// For a bad name, an error that every operation returns.
    keys: Result<Arc<N>>,
}

impl<N> Clone for Primitive<N> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), keys: self.keys.clone() }
    }
}

/// Shows the name only: the context knows attempt ids, which are not for logs.
impl<N: Borrow<Named>> fmt::Debug for Primitive<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Primitive").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Primitive {
    pub(crate) fn new(source: &Arc<HoldSource>, kind: Kind, name: &str) -> Self {
        let keys = Keys::new(&source.context.config.prefix, kind, name).map(Arc::new);
        Self { source: source.clone(), keys }
    }

    /// A lock or a permit in the format of Redisson, whose key is `mapped`.
    pub(crate) fn redisson(source: &Arc<HoldSource>, name: &str, mapped: &str, kind: Kind) -> Self {
        let keys = Keys::redisson(&source.context.config.prefix, name, mapped, kind).map(Arc::new);
        Self { source: source.clone(), keys }
    }

    /// The parts of the handle, unless the name is bad or the client is closed.
    pub(crate) fn into_keys(self, operation: &'static str) -> Result<(Arc<HoldSource>, Arc<Keys>)> {
        self.keys(operation)?;
        Ok((self.source, self.keys?))
    }
}

impl Primitive<Named> {
    pub(crate) fn limiter(source: &Arc<HoldSource>, name: &str) -> Self {
        let keys = Named::limiter(&source.context.config.prefix, name).map(Arc::new);
        Self { source: source.clone(), keys }
    }
}

impl Primitive<SharedCounter> {
    /// A counter in the format of Redisson.
    pub(crate) fn counter(source: &Arc<HoldSource>, counter: Result<SharedCounter>) -> Self {
        Self { source: source.clone(), keys: counter.map(Arc::new) }
    }
}

impl<N: Borrow<Named>> Primitive<N> {
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.keys.as_ref().map(|keys| &*named(keys).name).ok()
    }

    pub(crate) fn keys(&self, operation: &'static str) -> Result<&Arc<N>> {
        let keys = self.keys.as_ref().map_err(|error| error.clone().during(operation))?;
        if self.context().engine.is_closed() {
            return Err(self.context().closed(operation, named(keys)));
        }
        Ok(keys)
    }

    /// Repeats the call as [`ask`](Self::ask) does. The effects of the call must not come after its caller has given
    /// up: the call gets the latest time at which the server may execute it. An answer without a value says that the
    /// server was later than that.
    pub(crate) async fn ask_in_time<'a, T, F>(
        &'a self,
        operation: &'static str,
        call: impl Fn(Scripts<'a>, &'a N, ServerMillis) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<Timed<T>, Failure>>,
    {
        self.ask_in_time_unless(operation, |_, failure| Ok(failure), call).await
    }

    /// Repeats the call as [`ask_in_time`](Self::ask_in_time) does, unless `stop` returns an error for a failure.
    pub(crate) async fn ask_in_time_unless<'a, T, F>(
        &'a self,
        operation: &'static str,
        stop: impl Fn(&Retry<'_>, Failure) -> Result<Failure>,
        call: impl Fn(Scripts<'a>, &'a N, ServerMillis) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<Timed<T>, Failure>>,
    {
        let (keys, context) = (self.keys(operation)?, self.context());
        let mut retry = context.retry(operation, named(keys));
        loop {
            let sent = retry.begin().await?;
            let not_after = context.not_after(sent, retry.limit(sent));
            let call = pin!(call(context.scripts(), keys, not_after));
            match retry.bounded(sent, call).await {
                Ok((answer, now)) => {
                    context.observe(now);
                    // Without one, the estimate of the server's clock was wrong, and the answer has corrected it.
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
                Err(failure) => {
                    let failure = stop(&retry, failure)?;
                    retry.again_after(failure).await?;
                }
            }
        }
    }

    /// Repeats the call until it is answered, but no longer than the client's retry timeout.
    pub(crate) async fn ask<'a, T, F>(
        &'a self,
        operation: &'static str,
        call: impl Fn(Scripts<'a>, &'a N) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let keys = self.keys(operation)?;
        let mut retry = self.context().retry(operation, named(keys));
        loop {
            let sent = retry.begin().await?;
            let call = pin!(call(self.context().scripts(), keys));
            match retry.bounded(sent, call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }
}

fn named<N: Borrow<Named>>(keys: &Arc<N>) -> &Named {
    (**keys).borrow()
}
