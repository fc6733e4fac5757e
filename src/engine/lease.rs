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
mod term;

pub(crate) use count::deadline;
pub(crate) use term::Term;

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease ran out: it was fixed, or could not be renewed in time.
    Expired,
    /// Redis no longer has the hold: it expired there, was deleted or was lost with the server's data.
    Gone,
    /// An operator took it with `force_release`.
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
/// A hold that is passed on in a line is released, and its successor held.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) keys: Arc<Keys>,
    pub(crate) id: AttemptId,
    /// The last part of its ticket: how many units it has, or reserved tokens.
    pub(crate) amount: u32,
    pub(crate) token: Token,
    pub(crate) lease: Duration,
    pub(crate) term: Term,
    /// How many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) replicas: u32,
    /// The longest lease that the server was asked for, in milliseconds.
    longest: AtomicU64,
    state: Mutex<State>,
    /// Notified when it is lost or released.
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

    /// The grant and each renewal count once so many replicas have acknowledged them.
    pub(crate) fn acknowledged_by(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// What is left until the holder must stop; zero when it must have.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        match *lock(&self.state) {
            State::Held { deadline } => deadline.saturating_duration_since(now),
            State::Lost(_) | State::Released => Duration::ZERO,
        }
    }

    /// Until when it is held; `None` once it is not.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *lock(&self.state) {
            State::Held { deadline } => Some(deadline),
            State::Lost(_) | State::Released => None,
        }
    }

    /// As [`Term::renewal`].
    pub(crate) fn renewal(&self, sent: Instant) -> Duration {
        self.term.renewal(self.lease, sent)
    }

    /// The lease that a renewal sent then asks for. One that replicas acknowledge writes something, even if the lease stays as it
    /// is: the server keeps the longer one.
    pub(crate) fn asked(&self, sent: Instant) -> Duration {
        let least = if self.replicas > 0 { Duration::from_millis(1) } else { Duration::ZERO };
        self.renewal(sent).max(least)
    }

    /// As [`Term::interval`]; `None` too once it is not held.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.deadline().and_then(|deadline| self.term.interval(self.lease, deadline))
    }

    /// The server is about to be asked for this lease.
    pub(crate) fn asks_for(&self, lease: Duration) {
        self.longest.fetch_max(millis(lease), Ordering::Relaxed);
    }

    /// Once no request is under way any more, the server forgets the hold within this time.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::Relaxed))
    }

    /// Not past its deadline: whoever has looked at it since found it lost.
    pub(crate) fn extend(&self, deadline: Instant, now: Instant) {
        if let State::Held { deadline: current } = &mut *lock(&self.state)
            && now < *current
        {
            *current = deadline.max(*current);
        }
    }

    /// Signals the loss. Says whether that is news.
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

    /// Ends the hold, and returns its successor with its deadline: for another guard, under the same attempt id, with the next
    /// token if there are tokens. `None` if the hold was lost, or no more than `least` of its lease is left. Wakes no task: see
    /// [`notify_over`](Self::notify_over).
    pub(crate) fn succeed(&self, now: Instant, least: Duration) -> Option<(Self, Instant)> {
        let mut state = lock(&self.state);
        let deadline = match *state {
            State::Held { deadline } if deadline.saturating_duration_since(now) > least => deadline,
            _ if mutant::on(Mutant::LostHoldPassed) => now + self.lease,
            _ => return None,
        };
        *state = State::Released;
        let same = self.token == Token::NONE || mutant::on(Mutant::TokenPassedOn);
        let token = if same { self.token } else { Token::new(self.token.get() + 1) };
        let Self { keys, id, amount, lease, term, replicas, .. } = self;
        let successor = Self::new(keys.clone(), *id, *amount, token, *lease, *term, deadline);
        Some((successor.acknowledged_by(*replicas), deadline))
    }

    /// Stops being held, if it still is. Wakes no one: see [`notify_over`](Self::notify_over).
    pub(crate) fn end(&self, now: Instant) -> bool {
        let mut state = lock(&self.state);
        let held = matches!(*state, State::Held { deadline } if now < deadline);
        if held {
            *state = State::Released;
        }
        held
    }

    /// Stops being held. Fails when it was lost before, if only because the deadline has passed unnoticed.
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

    /// Why the holder must stop, if it must.
    pub(crate) fn loss(&self, now: Instant) -> Option<Loss> {
        match *lock(&self.state) {
            State::Held { deadline } => (now >= deadline).then_some(Loss::Expired),
            State::Lost(loss) => Some(loss),
            State::Released => None,
        }
    }

    /// Resolves when the loss is signalled; never, once released.
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

    /// Wakes those who wait for the end of the hold. Runs their wakers, so no lock may be held.
    pub(crate) fn notify_over(&self) {
        self.over.notify(usize::MAX);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
