//! A connection that is made in the background. Until it is there, calls are not executed.
//!
//! | state | what calls do | left by |
//! |---|---|---|
//! | connecting | wait, then fail with what the last attempt failed with | an attempt that succeeds |
//! | connected | are handed on | [`close`](Connection::close) |
//! | closed | fail | never |
//!
//! A call that waits for the connection is not handed on afterwards: it was made before the topology and the clock of
//! the server were known, on which its arguments depend. The operations of a client therefore wait before they make
//! their calls ([`Later::made_within`]).

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use event_listener::Event;
use futures::future::{BoxFuture, Either, select};

use crate::backoff::Backoff;
use crate::connection::{Call, Connection, ConnectionError};
use crate::error::ErrorKind;
use crate::mutex::lock;
use crate::runtime::{Executor, timeout};

mod calls;

pub(crate) struct Later {
    executor: Arc<dyn Executor>,
    /// The longest wait of a call.
    timeout: Duration,
    /// Since when it is being made, and to where.
    since: Instant,
    target: String,
    /// The connection that an attempt opens, if there is one already. It may be made in the background itself, and
    /// knows more then.
    below: Option<Arc<dyn Connection>>,
    /// Set when the state becomes connected. Calls that are handed on need no lock.
    made: OnceLock<Arc<dyn Connection>>,
    state: Mutex<LaterState>,
    changed: Event,
}

#[derive(Debug)]
enum LaterState {
    /// With what calls fail.
    Connecting(ConnectionError),
    Connected,
    Closed,
}

/// What an attempt has made: the connection, and what else the maker needs of it.
pub(crate) type Attempt<T> = BoxFuture<'static, crate::error::Result<(Arc<dyn Connection>, T)>>;

impl Later {
    /// To a server at this place, as it is shown to users.
    pub(crate) fn to(target: String, executor: Arc<dyn Executor>, timeout: Duration) -> Self {
        let first = ConnectionError::Unreachable("the first attempt to connect has not ended".to_owned());
        let (state, changed, since) = (Mutex::new(LaterState::Connecting(first)), Event::new(), executor.now());
        Self { executor, timeout, since, target, below: None, made: OnceLock::new(), state, changed }
    }

    /// Where this connection leads, once it can be used.
    pub(crate) fn over(below: &Arc<dyn Connection>, executor: Arc<dyn Executor>, timeout: Duration) -> Self {
        Self { below: Some(Arc::clone(below)), ..Self::to(String::new(), executor, timeout) }
    }

    /// Attempts to connect until it succeeds. `None`: it was closed before. If the future is dropped, it is closed too.
    pub(crate) fn make<T>(
        self: Arc<Self>,
        backoff: Backoff,
        attempt: impl Fn() -> Attempt<T>,
    ) -> impl Future<Output = Option<T>> {
        // Created here, because the runtime may drop the task before the first poll.
        let later = CloseUnlessMade(self);
        async move {
            let making = pin!(later.0.attempt_until_made(backoff, attempt));
            match select(making, pin!(later.0.closed())).await {
                Either::Left((with, _)) => with,
                Either::Right(_) => None,
            }
        }
    }

    async fn attempt_until_made<T>(&self, mut backoff: Backoff, attempt: impl Fn() -> Attempt<T>) -> Option<T> {
        loop {
            match attempt().await {
                Ok((made, with)) => return self.take_up(made).then_some(with),
                Err(error) if error.kind() == ErrorKind::Closed => return None,
                Err(error) => self.set_failed(ConnectionError::until_connected(&error)),
            }
            self.executor.sleep(backoff.pause()).await;
        }
    }

    /// Why there is no connection yet. `None`: there is one.
    pub(crate) fn missing(&self) -> Option<ConnectionError> {
        match &*lock(&self.state) {
            LaterState::Connecting(why) => Some(why.clone()),
            LaterState::Connected => None,
            LaterState::Closed => self.made.get().is_none().then_some(ConnectionError::Closed),
        }
    }

    /// The error of a caller that has waited for the first connection in vain: where it leads, why the last attempt
    /// failed, and for how long attempts have been made. `None`: there is a connection.
    fn told(&self, key: &str) -> Option<ConnectionError> {
        let why = self.missing()?;
        if why != ConnectionError::Closed
            && let Some(why) = self.below.as_ref().and_then(|below| below.why_down(key))
        {
            return Some(why);
        }
        let ConnectionError::Unreachable(reason) = why else { return Some(why) };
        let target = if reason.contains(&self.target) { String::new() } else { format!("{}: ", self.target) };
        let millis = self.executor.now().saturating_duration_since(self.since).as_millis();
        let tried = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Some(ConnectionError::Unreachable(format!("{target}{reason} (connecting for {tried:?})")))
    }

    /// Waits until there is a connection, for `longest` at most.
    ///
    /// # Errors
    /// There is none by then, or time does not mend it that there is none.
    pub(crate) async fn made_within(&self, longest: Duration, key: &str) -> Result<(), ConnectionError> {
        let settled = self.until(|state| match state {
            LaterState::Connecting(why) => !why.kind().is_retryable(),
            LaterState::Connected | LaterState::Closed => true,
        });
        timeout(&self.executor, longest, settled).await;
        self.told(key).map_or(Ok(()), Err)
    }

    /// Whether there has been no connection yet.
    pub(crate) fn is_missing(&self) -> bool {
        self.made.get().is_none()
    }

    /// `false`: it was closed meanwhile, and the connection is.
    fn take_up(&self, made: Arc<dyn Connection>) -> bool {
        let mut state = lock(&self.state);
        if matches!(*state, LaterState::Closed) {
            drop(state);
            made.close();
            return false;
        }
        let is_first = self.made.set(made).is_ok();
        *state = LaterState::Connected;
        drop(state);
        self.changed.notify(usize::MAX);
        is_first
    }

    fn set_failed(&self, why: ConnectionError) {
        if let LaterState::Connecting(last) = &mut *lock(&self.state) {
            *last = why;
        }
        self.changed.notify(usize::MAX);
    }

    async fn closed(&self) {
        self.until(|state| matches!(state, LaterState::Closed)).await;
    }

    /// The error of a call that finds no connection, once there is one or it is of no use to wait any longer.
    async fn not_executed(&self, calls: &[Call<'_>], within: Option<Duration>) -> ConnectionError {
        let limit = calls.iter().filter_map(|call| call.within).chain(within).fold(self.timeout, Duration::min);
        let key = calls.iter().find_map(|call| call.keys.first()).copied().unwrap_or_default();
        let only_now = || ConnectionError::Unreachable("connected after the call was made".to_owned());
        self.made_within(limit, key).await.err().unwrap_or_else(only_now)
    }

    /// Resolves when the state is, or becomes, one of those.
    async fn until(&self, is_it: impl Fn(&LaterState) -> bool) {
        loop {
            let changed = self.changed.listen();
            if is_it(&lock(&self.state)) {
                return;
            }
            changed.await;
        }
    }

    /// Resolves when there is a connection, or when there will be none.
    pub(crate) async fn ended(self: Arc<Self>) {
        self.until(|state| !matches!(state, LaterState::Connecting(_))).await;
    }

    /// Resolves after the next attempt, or if there is a connection.
    async fn attempted(&self) {
        let changed = self.changed.listen();
        if matches!(*lock(&self.state), LaterState::Connecting(_)) {
            changed.await;
        }
    }
}

struct CloseUnlessMade(Arc<Later>);

impl Drop for CloseUnlessMade {
    fn drop(&mut self) {
        if self.0.made.get().is_none() {
            self.0.close();
        }
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").field("state", &*lock(&self.state)).field("made", &self.made.get()).finish()
    }
}

#[cfg(test)]
mod tests;
