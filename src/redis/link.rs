//! The connection that carries commands: its state, which its supervisor, the calls and the subscriptions share.
//!
//! | state | what calls do | left by |
//! |---|---|---|
//! | down | wait | the supervisor, once a connection is logged in |
//! | up | are handed to the driver | the driver's end; a call that got no answer in time; an answer that only a replica gives |
//! | closed | fail | never |

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use event_listener::Event;
use futures::future::select;

use super::dial::Dial;
use super::failure::Failure;
use super::handshake::{self, Fresh};
use super::loaded::Loaded;
use super::locate::Locate;
use super::progress::{Progress, Stage};
use crate::backoff::Pauses;
use crate::config::Config;
use crate::connection::ConnectionError;
use crate::mutex::lock;
use crate::runtime::{self, Executor};
use crate::trace;

/// Between attempts to connect again.
pub(super) const RECONNECT: Pauses =
    Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(800) };

/// What the connection, its supervisor and its subscriptions share.
pub(super) struct Shared {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) dialer: Arc<dyn Dial>,
    pub(super) locate: Arc<dyn Locate>,
    pub(super) timeout: Duration,
    /// How long the connections' own work may take, after the first: an attempt to connect, a heartbeat.
    pub(super) upkeep: Duration,
    /// How long the connection for commands took for one answer when it was made, in microseconds.
    round_trip: AtomicU64,
    pub(super) seed: u64,
    /// The generation of the connection that calls are handed to, 0 while there is none: what the state says, without its
    /// lock.
    pub(super) current: AtomicU64,
    /// Answers of connections up to this generation do not count any more: another server is the primary.
    disowned: AtomicU64,
    /// Connections made after the first ones.
    pub(super) reconnects: AtomicU64,
    state: Mutex<State>,
    changed: Event,
}

enum State {
    /// With what went wrong last: the end of the connection, then each failed attempt at a new one.
    Down(Failure),
    Up(Up),
    Closed,
}

/// A connection that commands can be handed to.
#[derive(Clone)]
pub(super) struct Up {
    /// Tells one connection from the next. Counts from 1.
    pub(super) generation: u64,
    pub(super) connection: MultiplexedConnection,
    pub(super) loaded: Arc<Loaded>,
}

impl Shared {
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        locate: Arc<dyn Locate>,
        config: &Config,
        seed: u64,
    ) -> Self {
        Self::with(executor, dialer, locate, [config.command_timeout, config.upkeep()], seed)
    }

    /// For another connection to the same server.
    pub(super) fn sibling(&self) -> Self {
        let (executor, dialer, locate) = (self.executor.clone(), self.dialer.clone(), self.locate.clone());
        Self::with(executor, dialer, locate, [self.timeout, self.upkeep], self.seed.wrapping_add(1))
    }

    fn with(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        locate: Arc<dyn Locate>,
        [timeout, upkeep]: [Duration; 2],
        seed: u64,
    ) -> Self {
        let state = Mutex::new(State::Down(Failure::Io("connecting".to_owned())));
        let [round_trip, current, disowned, reconnects] = [0; 4].map(AtomicU64::new);
        let changed = Event::new();
        Self {
            executor,
            dialer,
            locate,
            timeout,
            upkeep,
            round_trip,
            seed,
            current,
            disowned,
            reconnects,
            state,
            changed,
        }
    }

    /// Waits for a connection, without waiting when there is one.
    pub(super) async fn ready(&self) -> Result<Up, ConnectionError> {
        self.until(|state| match state {
            State::Down(_) => None,
            State::Up(up) => Some(Ok(up.clone())),
            State::Closed => Some(Err(ConnectionError::Closed)),
        })
        .await
    }

    /// Resolves once the connection is closed.
    pub(super) async fn closed(&self) {
        self.until(|state| matches!(state, State::Closed).then_some(())).await;
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(*lock(&self.state), State::Closed)
    }

    pub(super) fn close(&self) {
        self.change(|_| Some(State::Closed));
    }

    /// Hands calls to this connection from now on.
    pub(super) fn take_up(&self, connection: MultiplexedConnection, generation: u64) {
        self.change(|_| Some(State::Up(Up { generation, connection, loaded: Arc::default() })));
    }

    /// An attempt at a new connection has failed.
    pub(super) fn failed(&self, failure: Failure) {
        self.change(|_| Some(State::Down(failure)));
    }

    /// Notes how long the server takes for one answer.
    pub(super) fn measured(&self, round_trip: Duration) {
        self.round_trip.store(u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Gives a connection up, because of `why`; calls that are under way on it fail.
    pub(super) fn suspect(&self, generation: u64, why: Failure) {
        self.change(|state| match state {
            State::Up(up) if up.generation == generation => Some(State::Down(why)),
            _ => None,
        });
    }

    /// Gives a connection up whose server is not the primary any more: an answer that no caller has seen yet is no
    /// answer.
    pub(super) fn disown(&self, generation: u64) {
        self.disowned.fetch_max(generation, Ordering::SeqCst);
        self.suspect(generation, Failure::Io("another server is the primary now".to_owned()));
    }

    /// Whether calls are handed to that connection.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        self.current.load(Ordering::SeqCst) == generation
    }

    /// Whether answers of that connection do not count any more.
    pub(super) fn is_disowned(&self, generation: u64) -> bool {
        generation <= self.disowned.load(Ordering::SeqCst)
    }

    /// The error of a call for which there was no connection before its deadline. A server that refuses the login has said
    /// so, and the call fails with its words.
    pub(super) fn unavailable(&self) -> ConnectionError {
        match &*lock(&self.state) {
            State::Down(failure) => failure.clone().into(),
            State::Up(_) => ConnectionError::Unreachable("connecting took too long".to_owned()),
            State::Closed => ConnectionError::Closed,
        }
    }

    /// `future`, or `None` once `timeout` has passed.
    pub(super) async fn within<F: Future>(&self, timeout: Duration, future: F) -> Option<F::Output> {
        runtime::timeout(&self.executor, timeout, future).await
    }

    /// Asks where the server is, connects and logs in, with messages going to `push` if there is one.
    pub(super) async fn dial(
        &self,
        push: Option<Arc<dyn AsyncPushSender>>,
        progress: &Arc<Progress>,
    ) -> Result<Fresh, Failure> {
        progress.enter(Stage::Locate);
        let target = self.locate.locate().await?;
        progress.enter(Stage::Dial);
        let dialled = handshake::login(Arc::clone(&target), &*self.dialer, push, progress).await;
        dialled.map_err(|failure| self.locate.explain(&target, failure))
    }

    /// Waits before the next dial, unless there is another server to dial.
    pub(super) async fn pause(&self, pause: Duration) {
        select(self.executor.sleep(pause), self.locate.moved()).await;
    }

    /// One attempt at making a connection, which may take as long as the `limit`, or is [`late`](Progress::late). The next one
    /// may take longer if this was too short: behind a slow network, or a server that has to answer thousands at once, none
    /// would ever be long enough.
    pub(super) async fn attempt<T>(
        &self,
        limit: &mut Duration,
        progress: &Progress,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let (started, allowed) = (self.executor.now(), *limit);
        let made = self.within(allowed, attempt).await;
        let least = match &made {
            Some(Ok(_)) => self.executor.now().saturating_duration_since(started) * 2,
            Some(Err(_)) => allowed,
            None => allowed * 2,
        };
        *limit = least.max(self.upkeep).min(self.timeout);
        made.unwrap_or_else(|| Err(progress.late(allowed)))
    }

    /// Sooner than this, silence is no sign that the connection for commands is dead.
    pub(super) fn patient(&self) -> Duration {
        let round_trip = Duration::from_micros(self.round_trip.load(Ordering::Relaxed));
        (round_trip * 2).min(self.upkeep)
    }

    /// The connection for that stands again.
    pub(super) fn reconnected(&self, carries: &'static str) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
        trace::reconnected(carries);
    }

    /// Resolves once calls are not handed to that connection any more.
    pub(super) async fn gone(&self, generation: u64) {
        self.until(|state| match state {
            State::Up(up) if up.generation == generation => None,
            _ => Some(()),
        })
        .await;
    }

    async fn until<T>(&self, found: impl Fn(&State) -> Option<T>) -> T {
        loop {
            if let Some(found) = found(&lock(&self.state)) {
                return found;
            }
            let changed = self.changed.listen();
            // Again: it may have changed before the listener was there.
            if let Some(found) = found(&lock(&self.state)) {
                return found;
            }
            changed.await;
        }
    }

    /// Nothing leaves the closed state.
    fn change(&self, to: impl FnOnce(&State) -> Option<State>) {
        let mut state = lock(&self.state);
        let new = if matches!(*state, State::Closed) { None } else { to(&state) };
        if let Some(new) = new {
            let generation = if let State::Up(up) = &new { up.generation } else { 0 };
            self.current.store(generation, Ordering::SeqCst);
            let old = std::mem::replace(&mut *state, new);
            drop(state);
            drop(old);
            self.changed.notify(usize::MAX);
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*lock(&self.state) {
            State::Down(_) => "down",
            State::Up(_) => "up",
            State::Closed => "closed",
        };
        f.debug_struct("Shared")
            .field("target", &format_args!("{}", self.locate))
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
