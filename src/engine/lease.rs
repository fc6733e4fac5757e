//! One hold and its lease, counted on the client's monotonic clock.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event_listener::Event;

use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::token::Token;

mod count;
mod regrant;
mod term;

pub(crate) use count::{deadline, drift};
pub(crate) use term::Term;

/// The reason why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease expired: it was fixed, or could not be renewed in time.
    Expired,
    /// Redis no longer has the hold: it expired there, was deleted, or was lost with the server's data.
    Gone,
    /// An operator released the hold by [`force_release`](crate::Lock::force_release).
    Revoked,
    /// The client was closed, or its runtime was shut down.
    Closed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease ran out",
            Self::Gone => "the server no longer has the hold",
            Self::Revoked => "the hold was taken by force_release",
            Self::Closed => "the client was closed",
        })
    }
}

impl std::error::Error for Loss {}

/// One ownership period of a lock, shared by its guards and the watchdog.
///
/// | from \ event | renewal answered | deadline, gone, revoked, closed | release |
/// |---|---|---|---|
/// | held | held, later deadline | lost | released |
/// | lost | lost | lost, first reason stays | lost |
/// | released | released | released | released |
///
/// A hold that is handed off in a cohort is released, and its successor is held.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) keys: Arc<Keys>,
    pub(crate) id: AttemptId,
    /// The number of units, or of reserved tokens.
    pub(crate) amount: u32,
    pub(crate) token: Token,
    pub(crate) lease: Duration,
    pub(crate) term: Term,
    /// How many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) replicas: u32,
    /// The longest lease that the server was asked for, in milliseconds.
    longest: AtomicU64,
    state: Mutex<State>,
    /// Notified when the hold is lost or released.
    over: Event,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Held { deadline: Instant },
    Lost(Loss),
    Released,
}

impl Hold {
    pub(crate) fn new(
        keys: Arc<Keys>,
        id: AttemptId,
        amount: u32,
        token: Token,
        lease: Duration,
        term: Term,
        deadline: Instant,
    ) -> Self {
        Self {
            keys,
            id,
            amount,
            token,
            lease,
            term,
            replicas: 0,
            longest: AtomicU64::new(millis(lease)),
            state: Mutex::new(State::Held { deadline }),
            over: Event::new(),
        }
    }

    /// Sets how many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) fn acknowledged_by(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// The time until the holder must stop. Zero if it must have stopped already.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        match *lock(&self.state) {
            State::Held { deadline } => deadline.saturating_duration_since(now),
            State::Lost(_) | State::Released => Duration::ZERO,
        }
    }

    /// When the hold ends. `None` once it is lost or released.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *lock(&self.state) {
            State::Held { deadline } => Some(deadline),
            State::Lost(_) | State::Released => None,
        }
    }

    /// See [`Term::renewal`].
    pub(crate) fn renewal(&self, sent: Instant) -> Duration {
        self.term.renewal(self.lease, sent)
    }

    /// The lease to ask for in a renewal sent at `sent`. A renewal that replicas must acknowledge has to write something,
    /// and never asks for less than the client counts on, because a failover may lose the request that made the lease that
    /// long. The server keeps the longer lease.
    pub(crate) fn asked(&self, sent: Instant) -> Duration {
        if mutant::on(Mutant::WaitAfterARead) {
            return self.renewal(sent);
        }
        if self.replicas == 0 {
            return self.renewal(sent);
        }
        // The server counts in whole milliseconds.
        let counted = self.remaining(sent) + count::drift(self.longest()) + Duration::from_millis(1);
        self.renewal(sent).max(counted.min(self.longest()))
    }

    /// See [`Term::interval`]. `None` too once the hold is over.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.deadline().and_then(|deadline| self.term.interval(self.lease, deadline))
    }

    /// Records that the server is about to be asked for this lease.
    pub(crate) fn asks_for(&self, lease: Duration) {
        self.longest.fetch_max(millis(lease), Ordering::Relaxed);
    }

    /// The longest time for which Redis may keep the hold, counted from the end of the last request about it.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::Relaxed))
    }

    /// Moves the deadline. Does nothing if the old one has passed, because a caller may have seen the hold as lost since.
    pub(crate) fn extend(&self, deadline: Instant, now: Instant) {
        if let State::Held { deadline: current } = &mut *lock(&self.state)
            && now < *current
        {
            *current = deadline.max(*current);
        }
    }

    /// Signals the loss. `false`: the hold was over already.
    pub(crate) fn lose(&self, loss: Loss) -> bool {
        let mut state = lock(&self.state);
        let news = matches!(*state, State::Held { .. });
        if news {
            *state = State::Lost(loss);
        }
        drop(state);
        if news {
            self.notify_over();
        }
        news
    }

    /// Ends the hold, and returns its successor with its deadline. The successor is for another guard and has the same
    /// attempt id. Its token is `token`, or the next one if tokens are reserved. `None` if the hold was lost, or if no more
    /// than `least` of its lease is left. Wakes no task: see [`notify_over`](Self::notify_over).
    pub(crate) fn succeed(&self, now: Instant, least: Duration, token: Option<Token>) -> Option<(Self, Instant)> {
        let mut state = lock(&self.state);
        if mutant::on(Mutant::LostHoldHandedOff) {
            *state = State::Held { deadline: now + self.lease };
        }
        let State::Held { deadline } = *state else { return None };
        if deadline.saturating_duration_since(now) <= least {
            return None;
        }
        *state = State::Released;
        let next = if self.token == Token::NONE { self.token } else { Token::new(self.token.get() + 1) };
        let mut token = token.unwrap_or(next);
        if mutant::on(Mutant::TokenHandedOn) {
            token = self.token;
        }
        let Self { keys, id, amount, lease, term, replicas, .. } = self;
        let successor = Self::new(keys.clone(), *id, *amount, token, *lease, *term, deadline);
        Some((successor.acknowledged_by(*replicas), deadline))
    }

    /// Ends the hold. `false`: it was over already. Wakes no task: see [`notify_over`](Self::notify_over).
    pub(crate) fn end(&self, now: Instant) -> bool {
        let mut state = lock(&self.state);
        let held = matches!(*state, State::Held { deadline } if now < deadline);
        if held {
            *state = State::Released;
        }
        held
    }

    /// Ends the hold and wakes its waiters. Fails if the hold was lost before, even if the deadline passed unnoticed.
    pub(crate) fn release(&self, now: Instant) -> Result<(), Loss> {
        let mut state = lock(&self.state);
        match *state {
            State::Held { deadline } if now < deadline => {
                *state = State::Released;
                drop(state);
                self.notify_over();
                Ok(())
            }
            State::Held { .. } => {
                drop(state);
                self.lose(Loss::Expired);
                Err(Loss::Expired)
            }
            State::Lost(loss) => Err(loss),
            State::Released => Ok(()),
        }
    }

    /// The reason why the holder must stop. `None` while it may go on.
    pub(crate) fn loss(&self, now: Instant) -> Option<Loss> {
        match *lock(&self.state) {
            State::Held { deadline } => (now >= deadline).then_some(Loss::Expired),
            State::Lost(loss) => Some(loss),
            State::Released => None,
        }
    }

    /// Resolves when a loss is signalled. Never resolves after a release.
    pub(crate) async fn lost(&self) -> Loss {
        match self.over().await {
            Some(loss) => loss,
            None => std::future::pending().await,
        }
    }

    /// Resolves when the hold is over: with the loss, or with `None` if it was released.
    pub(crate) async fn over(&self) -> Option<Loss> {
        loop {
            let listener = self.over.listen();
            match *lock(&self.state) {
                State::Held { .. } => {}
                State::Lost(loss) => return Some(loss),
                State::Released => return None,
            }
            listener.await;
        }
    }

    /// Wakes the tasks that wait for the end of the hold. The caller must not hold a mutex, because this runs foreign
    /// wakers.
    pub(crate) fn notify_over(&self) {
        // `Event::notify` allocates memory even if no task listens, and most holds end without a listener. No task is missed: a task
        // first listens, and then checks the state under its mutex.
        if self.over.total_listeners() > 0 {
            self.over.notify(usize::MAX);
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
