//! The connection that carries commands. Its supervisor, the calls and the subscriptions share it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;

use self::silence::Silence;
use self::state::{LinkState, StateCell, Up};
use self::under_way::UnderWay;
use super::dial::Dial;
use super::dial::ahead::Ahead;
use super::dial::gate::Gate;
use super::dial::locate::Locate;
use super::failure::Failure;
use super::url::target::Target;
use crate::config::Config;
use crate::connection::ConnectionError;
use crate::observe;
use crate::runtime::{self, Executor};

pub(super) mod acknowledging;
pub(super) mod ahead;
pub(super) mod beside;
pub(super) mod calls;
mod dialling;
pub(super) mod limit;
pub(super) mod loaded;
pub(super) mod sending;
pub(super) mod silence;
pub(super) mod state;
pub(super) mod supervisor;
#[cfg(test)]
mod tests;
pub(super) mod unanswered;
pub(super) mod under_way;

pub(super) use self::dialling::attempt;

/// Most calls to the node of a cluster, and most calls that wait for replicas, are answered within this time. The other
/// calls set timers of their own.
const SOON: Duration = Duration::from_millis(500);

pub(super) struct Link {
    pub(super) executor: Arc<dyn Executor>,
    /// Opens sockets that take no more bytes once the connection is closed.
    pub(super) dialer: Arc<dyn Dial>,
    gate: Gate,
    pub(super) locate: Arc<dyn Locate>,
    pub(super) timeout: Duration,
    /// The calls that share one timer: up to the timeout, or up to [`SOON`] to the node of a cluster and in a
    /// [`sibling`](Self::sibling).
    pub(super) under_way: UnderWay,
    pub(super) silence: Silence,
    /// The time limit for the connection's own work after the first connect, such as a reconnect or a heartbeat.
    pub(super) upkeep: Duration,
    /// See [`round_trip`](Self::round_trip), in microseconds.
    round_trip: AtomicU64,
    pub(super) seed: u64,
    state: StateCell,
    /// Answers of connections up to this generation no longer count.
    disowned: AtomicU64,
    /// The number of connections that were made after the first ones.
    pub(super) reconnects: AtomicU64,
    /// The socket of the first subscription, if one is dialled ahead.
    ahead: Option<Ahead>,
    /// Whether calls are handed to the first connection before its login is answered.
    is_early: bool,
}

impl Link {
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        locate: Arc<dyn Locate>,
        config: &Config,
        seed: u64,
    ) -> Self {
        Self::with(executor, dialer, locate, [config.command_timeout, config.upkeep()], seed)
    }

    /// The state of another connection to the same server, for calls that have limits of their own.
    pub(super) fn sibling(&self) -> Self {
        let (executor, dialer, locate) = (self.executor.clone(), self.dialer.clone(), self.locate.clone());
        let sibling = Self::with(executor, dialer, locate, [self.timeout, self.upkeep], self.seed.wrapping_add(1));
        sibling.expecting_answers_soon()
    }

    /// For a link whose slow calls are looked after: they leave the shared timer early.
    pub(super) fn expecting_answers_soon(self) -> Self {
        Self { under_way: UnderWay::new(SOON.min(self.timeout)), ..self }
    }

    fn with(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        locate: Arc<dyn Locate>,
        [timeout, upkeep]: [Duration; 2],
        seed: u64,
    ) -> Self {
        let [round_trip, disowned, reconnects] = [0; 3].map(AtomicU64::new);
        let gate = Gate::default();
        Self {
            executor,
            dialer: gate.guard(dialer),
            gate,
            locate,
            timeout,
            under_way: UnderWay::new(timeout),
            silence: Silence::default(),
            upkeep,
            round_trip,
            seed,
            state: StateCell::new(),
            disowned,
            reconnects,
            ahead: None,
            is_early: false,
        }
    }

    /// Waits for a connection. Returns at once if there is one.
    pub(super) async fn ready(&self) -> Result<Up, ConnectionError> {
        self.state
            .until(|state| match state {
                LinkState::Down(_) => None,
                LinkState::Up(up) => Some(Ok(up.clone())),
                LinkState::Closed => Some(Err(ConnectionError::Closed)),
            })
            .await
    }

    /// Resolves when the connection is closed.
    pub(super) async fn closed(&self) {
        self.state.until(|state| matches!(state, LinkState::Closed).then_some(())).await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.read(|state| matches!(state, LinkState::Closed))
    }

    /// Nothing is sent after this has returned.
    pub(super) fn close(&self) {
        self.state.change(|_| Some(LinkState::Closed));
        self.gate.shut();
    }

    /// Makes this the connection that calls are handed to.
    pub(super) fn take_up(&self, server: Arc<Target>, connection: MultiplexedConnection, generation: u64) {
        self.state.change(|_| Some(LinkState::Up(Up { generation, server, connection, loaded: Arc::default() })));
    }

    /// Records that an attempt at a new connection has failed.
    pub(super) fn failed(&self, failure: Failure) {
        self.state.change(|_| Some(LinkState::Down(failure)));
    }

    /// Records how long the server took for its answer to a login.
    pub(super) fn measured(&self, round_trip: Duration) {
        self.round_trip.store(micros(round_trip), Ordering::Relaxed);
    }

    /// Records how long an answer took. An eighth of the difference counts, so that one slow answer changes little, and
    /// at most twice what was known. Not for many answers that were waited for together: see [`called`](Self::called).
    pub(super) fn answered(&self, time: Duration) {
        let known = self.round_trip.load(Ordering::Relaxed);
        let time = micros(time).min(known.saturating_mul(2));
        // Of two updates at the same time, one may be lost. The next answer corrects that.
        self.round_trip.store(known - known / 8 + time / 8, Ordering::Relaxed);
    }

    /// Records how long the answer to a call took. It may have waited with many others for a server that stood still,
    /// or for replicas, so it can make the round trip shorter and never longer.
    pub(super) fn called(&self, time: Duration) {
        if time < self.round_trip() {
            self.answered(time);
        }
    }

    /// Gives a connection up because of `why`. The calls that are under way on it fail.
    pub(super) fn suspect(&self, generation: u64, why: Failure) {
        self.state.change(|state| match state {
            LinkState::Up(up) if up.generation == generation => Some(LinkState::Down(why)),
            _ => None,
        });
    }

    /// Voids the answers of connections up to this generation, because another server is the primary. Only sets a mark:
    /// the caller gives the connections up afterwards.
    pub(super) fn disown(&self, generation: u64) {
        self.disowned.fetch_max(generation, Ordering::SeqCst);
    }

    /// The generation of the connection that calls are handed to, or 0 if there is none.
    pub(super) fn current(&self) -> u64 {
        self.state.current.load(Ordering::SeqCst)
    }

    /// Whether calls are handed to the connection of this generation, and its answers count.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        self.current() == generation && !self.is_disowned(generation)
    }

    /// Whether answers of the connection of this generation no longer count.
    pub(super) fn is_disowned(&self, generation: u64) -> bool {
        generation <= self.disowned.load(Ordering::SeqCst)
    }

    /// The error of a call for which there was no connection before its deadline. If the server refused the login, it
    /// is the server's error.
    pub(super) fn unavailable(&self) -> ConnectionError {
        self.why_down().unwrap_or_else(|| match self.is_closed() {
            true => ConnectionError::Closed,
            false => ConnectionError::Unreachable("connecting took too long".to_owned()),
        })
    }

    /// Why there is no connection: the failure of the last attempt.
    pub(super) fn why_down(&self) -> Option<ConnectionError> {
        let failure = self.state.read(|state| match state {
            LinkState::Down(failure) => Some(failure.clone()),
            LinkState::Up(_) | LinkState::Closed => None,
        });
        let (error, place) = (failure?.into(), self.locate.to_string());
        Some(match error {
            ConnectionError::Unreachable(reason) if !reason.contains(&place) => {
                ConnectionError::Unreachable(format!("{place}: {reason}"))
            }
            error => error,
        })
    }

    /// Runs `future`. `None` after `timeout`.
    pub(super) async fn within<F: Future>(&self, timeout: Duration, future: F) -> Option<F::Output> {
        runtime::timeout(&self.executor, timeout, future).await
    }

    /// The shortest silence that can be a sign of a dead connection for commands.
    pub(super) fn patient(&self) -> Duration {
        (self.round_trip() * 2).min(self.upkeep)
    }

    /// How long an answer takes, about: as long as that to the last login, corrected by later ones.
    pub(super) fn round_trip(&self) -> Duration {
        Duration::from_micros(self.round_trip.load(Ordering::Relaxed))
    }

    /// Records that a connection was restored. `carries` names what it carries, by a word of [`observe`].
    pub(super) fn reconnected(&self, carries: &'static str) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
        observe::reconnected(carries);
    }

    /// Resolves when calls are no longer handed to the connection of this generation.
    pub(super) async fn gone(&self, generation: u64) {
        self.state
            .until(|state| match state {
                LinkState::Up(up) if up.generation == generation => None,
                _ => Some(()),
            })
            .await;
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.read(|state| match state {
            LinkState::Down(_) => "down",
            LinkState::Up(_) => "up",
            LinkState::Closed => "closed",
        });
        f.debug_struct("Link")
            .field("target", &format_args!("{}", self.locate))
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
