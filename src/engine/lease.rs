//! One hold and its lease, counted on the client's monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use event_listener::Event;

use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::resource::RenewArgs;
use crate::protocol::token::Token;

mod asked;
mod count;
mod granted;
mod loss;
mod over;
mod part;
mod regrant;
mod state;
mod term;
mod units;
mod whole;

pub(crate) use count::{ORDINARY, answer_within, deadline, drift};
pub use loss::Loss;
use state::{AtomicState, LeaseState};
pub(crate) use term::Term;
use units::UnitsLeft;
use whole::PartOf;
pub(crate) use whole::Whole;

/// One ownership period of a lock, shared by its guards and the watchdog. After [`pass_on`](Self::pass_on), the
/// same value stands for the next guard's period.
///
/// | from \ event | renewal answered | deadline, gone, revoked, closed | release |
/// |---|---|---|---|
/// | held | held, later deadline | lost | released |
/// | lost | lost | lost, first reason stays | lost |
/// | released | released | released | released |
///
/// A hold that is handed off in a cohort is released, and its successor is held. If nobody watches it, it is
/// [passed on](Self::pass_on) instead: it stays held, with the next token.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) keys: Arc<Keys>,
    pub(crate) id: AttemptId,
    /// The number of units, or of reserved tokens.
    pub(crate) amount: u32,
    /// How many of the units are left.
    pub(crate) units: UnitsLeft,
    /// See [`token`](Self::token).
    token: AtomicU64,
    pub(crate) lease: Duration,
    pub(crate) term: Term,
    /// How many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) replicas: u32,
    /// Whether the request was sent more than once, so that a copy of it may still be executed.
    pub(crate) resent: bool,
    /// The longest lease that the server was asked for, in milliseconds.
    longest: AtomicU64,
    state: AtomicState,
    /// Whether the server is known to store it in full.
    in_full: AtomicBool,
    part_of: PartOf,
    asked: AtomicBool,
    /// Notified when the hold is lost or released, and when somebody asks the holder to release.
    over: Event,
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
            units: UnitsLeft::new(amount),
            token: AtomicU64::new(token.get()),
            lease,
            term,
            replicas: 0,
            resent: false,
            longest: AtomicU64::new(millis(lease)),
            state: AtomicState::held(deadline),
            in_full: AtomicBool::new(false),
            part_of: PartOf::default(),
            asked: AtomicBool::new(false),
            over: Event::new(),
        }
    }

    /// The time until the holder must stop. Zero if it must have stopped already.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.deadline().map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(now))
    }

    /// When the hold ends. `None` once it is lost or released.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state.load() {
            LeaseState::Held { deadline } => Some(deadline),
            LeaseState::Lost(_) | LeaseState::Released => None,
        }
    }

    /// See [`Term::renewal`].
    pub(crate) fn renewal(&self, sent: Instant) -> Duration {
        self.term.renewal(self.lease, sent)
    }

    /// The lease to ask for in a renewal sent at `sent`. A renewal that replicas must acknowledge has to write
    /// something, and never asks for less than the client counts on, because a failover may lose the request that made
    /// the lease that long. The server keeps the longer lease.
    pub(crate) fn asked(&self, sent: Instant) -> Duration {
        if mutant::on(Mutant::WaitAfterARead) {
            return self.renewal(sent);
        }
        if self.replicas == 0 {
            return self.renewal(sent);
        }
        self.renewal(sent).max(self.counted(sent))
    }

    /// The lease to ask for so that the client counts on no less than now. The drift is taken off what is asked for.
    pub(crate) fn counted(&self, now: Instant) -> Duration {
        // The server counts in whole milliseconds.
        let counted = self.remaining(now) + count::drift(self.longest()) + Duration::from_millis(1);
        counted.min(self.longest())
    }

    /// A renewal that asks for `lease`. The server shortens whatever lasts longer than any call has asked for. All
    /// calls about a renewed hold ask for its lease, or for less before its end. A fixed lease may be extended by more
    /// at any time, and a late copy of this call must not undo that. So the server stores the longest that an extension
    /// has asked for; but not with a lock that Java reads, which is never shortened.
    pub(crate) fn renewal_args(&self, lease: Duration) -> RenewArgs<'_> {
        let longest = if self.keys.kind.has_queue() { self.longest().max(lease) } else { Duration::ZERO };
        let extended = longest > self.lease;
        RenewArgs { keys: &self.keys, id: self.id, lease, longest, extended, in_full: &self.in_full }
    }

    /// The name of the script that renews this hold now.
    pub(crate) fn renewed_by(&self) -> Option<&'static str> {
        self.keys.kind.renewal(&self.in_full)
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

    /// Moves the deadline. Does nothing if the old one has passed, because a caller may have seen the hold as lost
    /// since.
    pub(crate) fn extend(&self, deadline: Instant, now: Instant) {
        let longer = |state| match state {
            LeaseState::Held { deadline: current } if now < current => {
                Some(LeaseState::Held { deadline: deadline.max(current) })
            }
            _ => None,
        };
        let _ = self.state.update(longer);
    }

    /// Signals the loss. `false`: the hold was over already.
    pub(crate) fn lose(&self, loss: Loss) -> bool {
        let news = self.set_lost(loss);
        if news {
            self.notify_over();
        }
        news
    }

    /// As [`lose`](Self::lose), but wakes no task: see [`notify_over`](Self::notify_over).
    pub(crate) fn set_lost(&self, loss: Loss) -> bool {
        let lost = |state| matches!(state, LeaseState::Held { .. }).then_some(LeaseState::Lost(loss));
        let news = self.state.update(lost).is_ok();
        if news && loss == Loss::Closed {
            self.part_of.tell_closed();
        }
        news
    }

    /// The fencing token. A hold that is [passed on](Self::pass_on) gets another one before the next guard has the
    /// hold.
    pub(crate) fn token(&self) -> Token {
        Token::new(self.token.load(Ordering::Relaxed))
    }

    /// Ends the hold, and returns its successor with its deadline. The successor is for another guard and has the same
    /// attempt id. Its token is `token`, or the next one if tokens are reserved. `None` if the hold was lost, or if no
    /// more than `least` of its lease is left. Wakes no task: see [`notify_over`](Self::notify_over).
    pub(crate) fn succeed(&self, now: Instant, least: Duration, token: Option<Token>) -> Option<(Self, Instant)> {
        let passed_on = |state| self.passes_on(state, now, least).map(|_| LeaseState::Released);
        let deadline = self.passes_on(self.state.update(passed_on).ok()?, now, least)?;
        let Self { keys, id, amount, lease, term, replicas, resent, .. } = self;
        let token = self.next_token(token);
        let successor = Self::new(keys.clone(), *id, *amount, token, *lease, *term, deadline);
        // The server was asked about the same hold, as after a hand-off in place.
        successor.asks_for(self.longest());
        if self.is_asked_to_release() {
            successor.set_asked_to_release();
        }
        Some((successor.acknowledged_by(*replicas).sent_again(*resent), deadline))
    }

    /// As [`succeed`](Self::succeed), but this hold becomes its own successor. Only for a hold to which none but its
    /// last guard and the engine have references, because others would take the next guard's hold for this one's.
    pub(crate) fn pass_on(&self, now: Instant, least: Duration, token: Option<Token>) -> Option<()> {
        self.passes_on(self.state.load(), now, least)?;
        self.token.store(self.next_token(token).get(), Ordering::Relaxed);
        Some(())
    }

    /// The deadline, if the hold is not lost and more than `least` of its lease is left.
    fn passes_on(&self, state: LeaseState, now: Instant, least: Duration) -> Option<Instant> {
        if mutant::on(Mutant::LostHoldHandedOff) {
            return Some(now + self.lease);
        }
        let LeaseState::Held { deadline } = state else { return None };
        (deadline.saturating_duration_since(now) > least).then_some(deadline)
    }

    /// The token of the next guard.
    fn next_token(&self, token: Option<Token>) -> Token {
        let own = self.token();
        if mutant::on(Mutant::TokenHandedOn) {
            return own;
        }
        token.unwrap_or(if own == Token::NONE { own } else { own.next() })
    }

    /// Ends the hold. `false`: it was over already. Wakes no task: see [`notify_over`](Self::notify_over).
    pub(crate) fn end(&self, now: Instant) -> bool {
        let ended =
            |state| matches!(state, LeaseState::Held { deadline } if now < deadline).then_some(LeaseState::Released);
        self.state.update(ended).is_ok()
    }

    /// Ends the hold and wakes its waiters. Fails if the hold was lost before, even if the deadline passed unnoticed.
    pub(crate) fn release(&self, now: Instant) -> Result<(), Loss> {
        if self.end(now) {
            self.notify_over();
            return Ok(());
        }
        match self.state.load() {
            LeaseState::Held { .. } => {
                self.lose(Loss::Expired);
                Err(Loss::Expired)
            }
            LeaseState::Lost(loss) => Err(loss),
            LeaseState::Released => Ok(()),
        }
    }

    /// The reason why the holder must stop. `None` while it may go on.
    pub(crate) fn loss(&self, now: Instant) -> Option<Loss> {
        match self.state.load() {
            LeaseState::Held { deadline } => (now >= deadline).then_some(Loss::Expired),
            LeaseState::Lost(loss) => Some(loss),
            LeaseState::Released => None,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
