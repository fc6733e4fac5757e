//! The first connect of what is connected in the background: a connection, or a client over any connection.
//!
//! | state | left by |
//! |---|---|
//! | connecting | an attempt that succeeds, [`close`](FirstConnect::close) |
//! | connected | never: from then on, what was made tells why nothing is executed |
//! | closed | never |

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event_listener::Event;
use futures::future::{BoxFuture, Either, select};

use crate::backoff::Backoff;
use crate::connection::{Connection, ConnectionError};
use crate::error::{ErrorKind, Result};
use crate::mutex::lock;
use crate::on_drop::OnDrop;
use crate::runtime::{Executor, timeout};
use crate::until::until;

#[derive(Debug)]
pub(crate) struct FirstConnect {
    executor: Arc<dyn Executor>,
    /// Since when attempts are made.
    since: Instant,
    /// Where the connection leads, as it is shown to users. Empty: it is not known.
    target: String,
    /// Whether an attempt has succeeded. Read at each request, and therefore without the lock.
    is_made: AtomicBool,
    state: Mutex<ConnectState>,
    changed: Event,
}

#[derive(Debug)]
enum ConnectState {
    /// Why the last attempt failed.
    Connecting(ConnectionError),
    Connected,
    Closed,
}

impl FirstConnect {
    pub(crate) fn new(target: String, executor: Arc<dyn Executor>) -> Self {
        let first = ConnectionError::Unreachable("the first attempt to connect has not ended".to_owned());
        let (state, since) = (Mutex::new(ConnectState::Connecting(first)), executor.now());
        Self { executor, since, target, is_made: AtomicBool::new(false), state, changed: Event::new() }
    }

    /// Attempts to connect until it succeeds, and passes what was made to `take_up` before those who wait are woken.
    /// `None`: it was closed before. If the future is dropped before it succeeds, it is closed too.
    pub(crate) fn make<T, R>(
        self: Arc<Self>,
        backoff: Backoff,
        attempt: impl Fn() -> BoxFuture<'static, Result<T>>,
        take_up: impl FnOnce(T) -> R,
    ) -> impl Future<Output = Option<R>> {
        // Created here, because the runtime may drop the task before the first poll.
        let first = OnDrop(self, |first| first.close());
        async move {
            let making = pin!(first.0.attempt_until_made(backoff, attempt));
            let made = match select(making, pin!(first.0.closed())).await {
                Either::Left((made, _)) => made?,
                Either::Right(_) => return None,
            };
            first.0.take_up(made, take_up)
        }
    }

    async fn attempt_until_made<T>(
        &self,
        mut backoff: Backoff,
        attempt: impl Fn() -> BoxFuture<'static, Result<T>>,
    ) -> Option<T> {
        loop {
            match attempt().await {
                Ok(made) => return Some(made),
                Err(error) if error.kind() == ErrorKind::Closed => return None,
                Err(error) => self.set_failed(ConnectionError::until_connected(&error)),
            }
            self.executor.sleep(backoff.pause()).await;
        }
    }

    /// `None`: it was closed meanwhile. What was made is dropped then, which closes it.
    fn take_up<T, R>(&self, made: T, take_up: impl FnOnce(T) -> R) -> Option<R> {
        let mut state = lock(&self.state);
        if matches!(*state, ConnectState::Closed) {
            return None;
        }
        let taken = take_up(made);
        *state = ConnectState::Connected;
        self.is_made.store(true, Ordering::Release);
        drop(state);
        self.changed.notify(usize::MAX);
        Some(taken)
    }

    fn set_failed(&self, why: ConnectionError) {
        if let ConnectState::Connecting(last) = &mut *lock(&self.state) {
            *last = why;
        }
        self.changed.notify(usize::MAX);
    }

    /// Ends the attempts. Changes nothing after one has succeeded.
    pub(crate) fn close(&self) {
        if let state @ ConnectState::Connecting(_) = &mut *lock(&self.state) {
            *state = ConnectState::Closed;
        }
        self.changed.notify(usize::MAX);
    }

    /// Whether no attempt has succeeded yet.
    pub(crate) fn is_missing(&self) -> bool {
        !self.is_made.load(Ordering::Acquire)
    }

    /// Why no attempt has succeeded yet. `None`: one has.
    pub(crate) fn missing(&self) -> Option<ConnectionError> {
        match &*lock(&self.state) {
            ConnectState::Connecting(why) => Some(why.clone()),
            ConnectState::Connected => None,
            ConnectState::Closed => Some(ConnectionError::Closed),
        }
    }

    /// The error of a caller that has waited in vain: where the connection leads, why the last attempt failed, and for
    /// how long attempts have been made. `None`: one has succeeded.
    pub(crate) fn told(&self) -> Option<ConnectionError> {
        let why = self.missing()?;
        let ConnectionError::Unreachable(reason) = why else { return Some(why) };
        let target = if reason.contains(&self.target) { String::new() } else { format!("{}: ", self.target) };
        let millis = self.executor.now().saturating_duration_since(self.since).as_millis();
        let tried = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Some(ConnectionError::Unreachable(format!("{target}{reason} (connecting for {tried:?})")))
    }

    /// As [`told`](Self::told), for a client over that connection, which may be made in the background as well and then
    /// knows more.
    pub(crate) fn why_down(&self, connection: &dyn Connection, key: &str) -> Option<ConnectionError> {
        match self.told()? {
            ConnectionError::Closed => Some(ConnectionError::Closed),
            why => Some(connection.why_down(key).unwrap_or(why)),
        }
    }

    /// Waits until an attempt has succeeded, for `longest` at most.
    ///
    /// # Errors
    /// None has by then, or time does not mend why none has.
    pub(crate) async fn made_within(&self, longest: Duration) -> std::result::Result<(), ConnectionError> {
        let settled = self.until(|state| match state {
            ConnectState::Connecting(why) => !why.kind().is_retryable(),
            ConnectState::Connected | ConnectState::Closed => true,
        });
        timeout(&self.executor, longest, settled).await;
        self.told().map_or(Ok(()), Err)
    }

    /// Resolves after the next attempt, for `longest` at most. Resolves at once if there will be none.
    #[cfg(any(test, feature = "_redis"))]
    pub(crate) async fn attempted_within(&self, longest: Duration) {
        let changed = self.changed.listen();
        if matches!(*lock(&self.state), ConnectState::Connecting(_)) {
            timeout(&self.executor, longest, changed).await;
        }
    }

    /// Resolves when an attempt has succeeded, or when there will be none.
    pub(crate) async fn ended(self: Arc<Self>) {
        self.until(|state| !matches!(state, ConnectState::Connecting(_))).await;
    }

    async fn closed(&self) {
        self.until(|state| matches!(state, ConnectState::Closed)).await;
    }

    /// Resolves when the state is, or becomes, one of those.
    async fn until(&self, is_it: impl Fn(&ConnectState) -> bool) {
        until(&self.changed, move || is_it(&lock(&self.state)).then_some(())).await;
    }
}

#[cfg(test)]
mod tests;
