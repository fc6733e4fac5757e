//! The ledger's side of the lines: a turn is given, taken, or left to the next.
//!
//! | turn | given when | the next |
//! |---|---|---|
//! | lead | the first has nothing any more | acquires |
//! | held | the first is done with its hold | holds it, with its own token |
//! | attempt | it was held in the line for long enough | releases it and queues up, in one request |
//! | attempt | the first gave up while its ticket waits | goes on waiting with it |
//! | failed | the server gave the first no usable answer | fails, or leads if it has not waited for as long |

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::key::Keys;
use crate::lease::Hold;
use crate::ledger::state::{Attempt, Effects, State};
use crate::ledger::{Cleanup, Closed, Ledger};
use crate::mutant::{self, Mutant};
use crate::ticket::WireId;

/// Most guards that one grant may serve: as many tokens it reserves.
pub(crate) const SPAN: u32 = 32;

/// For how much longer a hold may be passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Reserved tokens that nobody has yet.
    left: u32,
    until: Instant,
}

impl Span {
    /// Of a hold that has just been granted.
    pub(crate) fn of(hold: &Hold, until: Instant) -> Self {
        Self { left: hold.amount.saturating_sub(1), until }
    }

    fn next(self, now: Instant) -> Option<Self> {
        if mutant::on(Mutant::LineNeverEnds) {
            return Some(self);
        }
        let in_time = now < self.until || mutant::on(Mutant::LineTakesItsTime);
        in_time.then_some(Self { left: self.left.checked_sub(1)?, ..self })
    }
}

/// What comes to whoever is first in its line.
#[derive(Debug)]
pub(crate) enum Turn {
    Lead,
    Held {
        hold: Arc<Hold>,
        span: Span,
    },
    Attempt(Begun),
    /// The one before has failed with this: the server gave no usable answer.
    Failed(Error),
}

/// An attempt that goes on in other hands.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) id: WireId,
    pub(crate) amount: u32,
    /// The hold that its first request releases.
    pub(crate) before: Option<Arc<Hold>>,
    /// Whether requests for it may have been sent.
    pub(crate) asked: bool,
}

/// Why nobody can stand in the line.
pub(crate) enum NoPlace {
    Closed,
    Full,
}

impl Ledger {
    /// A place in the line, unless as many wait there already; 0 is no limit.
    pub(crate) fn join(&self, keys: &Arc<Keys>, max_waiters: u32) -> Result<u64, NoPlace> {
        self.change(|state, _| {
            if state.closed {
                return Err(NoPlace::Closed);
            }
            let waiting = u32::try_from(state.lines.waiting(keys)).unwrap_or(u32::MAX);
            if max_waiters > 0 && waiting >= max_waiters {
                return Err(NoPlace::Full);
            }
            Ok(state.lines.join(keys))
        })
    }

    /// Waits for the turn of the place.
    pub(crate) fn poll_turn(
        &self,
        keys: &Arc<Keys>,
        place: u64,
        now: Instant,
        context: &Context<'_>,
    ) -> Poll<Result<Turn, Closed>> {
        let mut replaced = None;
        let turn = self.change(|state, effects| {
            if state.closed {
                return Poll::Ready(Err(Closed));
            }
            let (turn, old) = state.lines.poll(keys, place, context);
            replaced = old;
            let turn = std::task::ready!(turn).unwrap_or(Turn::Lead);
            if let Turn::Held { hold, .. } = &turn {
                state.counted.acquired += 1;
                state.counted.passed_on += 1;
                state.renew_again(hold, now);
                state.wake_if_sooner(effects);
            }
            Poll::Ready(Ok(turn))
        });
        drop(replaced);
        turn
    }

    /// As [`open`](Self::open), for the first of a line: with tokens for those behind it. What becomes of it if it is
    /// dropped undecided, the line decides.
    pub(crate) fn open_in_line(
        &self,
        keys: &Arc<Keys>,
        place: u64,
        lease: Duration,
        now: Instant,
    ) -> Result<Begun, Closed> {
        let mut state = crate::sync::lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        let amount = if state.lines.waiting(keys) > 0 { SPAN } else { 1 };
        let id = self.wire_id(state.open(Attempt { place: Some(place), ..Attempt::new(keys, amount, lease, now) }));
        Ok(Begun { id, amount, before: None, asked: false })
    }

    /// The first of the line has no use for its hold any more. `false`: the server is to be told by whoever held it,
    /// because nobody waits in the line, or because the hold is lost.
    pub(crate) fn pass(&self, place: u64, hold: &Arc<Hold>, span: Span, now: Instant) -> bool {
        self.change(|state, effects| {
            let keys = &hold.keys;
            if !state.lines.is_first(keys, place) {
                return false;
            }
            let Some(next) = state.lines.second(keys) else {
                state.give(keys, Turn::Lead, now, effects);
                return false;
            };
            let turn = state.passed(self, hold, span, next, now);
            let passed = !matches!(turn, Turn::Lead);
            state.give(keys, turn, now, effects);
            passed
        })
    }

    /// The first of the line has failed.
    pub(crate) fn fail(&self, keys: &Arc<Keys>, place: u64, error: &Error, now: Instant) {
        self.change(|state, effects| {
            if state.lines.is_first(keys, place) {
                state.give(keys, Turn::Failed(error.clone()), now, effects);
            }
        });
    }

    /// The place is left, whether it was its turn or not.
    pub(crate) fn leave(&self, keys: &Arc<Keys>, place: u64, now: Instant) {
        self.change(|state, effects| {
            if !state.lines.is_first(keys, place) {
                state.lines.leave(keys, place, &mut effects.wakers);
                return;
            }
            let turn = state.lines.take(keys).unwrap_or(Turn::Lead);
            if matches!(turn, Turn::Lead) || !mutant::on(Mutant::TurnSwallowed) {
                state.give(keys, turn, now, effects);
            }
        });
    }

    /// Of an attempt that nobody waits for any more: the next in its line goes on with it, if there is one.
    pub(super) fn hand_on(&self, state: &mut State, id: WireId, now: Instant, effects: &mut Effects) -> bool {
        let Some(attempt) = state.open.get_mut(&id.n) else { return false };
        let Some(place) = attempt.place else { return false };
        if !state.lines.is_first(&attempt.keys, place) {
            return false;
        }
        let Some(next) = state.lines.second(&attempt.keys) else { return false };
        attempt.place = Some(next);
        effects.wakers.extend(attempt.waker.take());
        let (keys, before) = (attempt.keys.clone(), attempt.before.clone());
        let turn = Turn::Attempt(Begun { id, amount: attempt.amount, before, asked: true });
        state.give(&keys, turn, now, effects);
        true
    }
}

impl State {
    /// What a hold that its guard is done with is for the next one.
    fn passed(&mut self, ledger: &Ledger, hold: &Arc<Hold>, span: Span, next: u64, now: Instant) -> Turn {
        let id = hold.id.n;
        let kept = self.holds.get(&id).is_some_and(|kept| Arc::ptr_eq(kept, hold));
        if !kept && !mutant::on(Mutant::LostHoldPassed) {
            return Turn::Lead;
        }
        // With less of its lease left, the next one asks the server rather than the watchdog's luck.
        if let Some(span) = span.next(now)
            && let Some((hold, deadline)) = hold.pass(now, hold.lease / 2)
        {
            let hold = Arc::new(hold);
            self.holds.insert(id, hold.clone());
            // Not renewed until somebody has it: a future that nobody polls must not keep others waiting for ever.
            self.schedule.remove(id);
            self.schedule.insert(id, now, deadline, None);
            return Turn::Held { hold, span };
        }
        if !hold.end(now) {
            return Turn::Lead;
        }
        self.remove_hold(id);
        // Even with none behind the next one: whoever is done now may be back before that one is.
        let attempt = Attempt {
            place: Some(next),
            before: Some(hold.clone()),
            ..Attempt::new(&hold.keys, SPAN, hold.lease, now)
        };
        let id = ledger.wire_id(self.open(attempt));
        Turn::Attempt(Begun { id, amount: SPAN, before: Some(hold.clone()), asked: false })
    }

    /// To the next in the line; if nobody is there, what the turn has in Redis is cleaned up.
    fn give(&mut self, keys: &Arc<Keys>, turn: Turn, now: Instant, effects: &mut Effects) {
        if let (Turn::Attempt(Begun { id, .. }), Some(next)) = (&turn, self.lines.second(keys))
            && let Some(attempt) = self.open.get_mut(&id.n)
        {
            attempt.place = Some(next);
        }
        match self.lines.give(keys, turn, &mut effects.wakers) {
            Ok(()) | Err(Turn::Lead | Turn::Failed(_)) => {}
            Err(Turn::Held { hold, .. }) => {
                if self.remove_hold(hold.id.n).is_some() {
                    self.clean_up(Cleanup::of(&hold, now), effects);
                }
            }
            Err(Turn::Attempt(Begun { id, .. })) => self.give_up(id, now, effects),
        }
    }

    /// Somebody has looked at the hold, and has it.
    fn renew_again(&mut self, hold: &Arc<Hold>, now: Instant) {
        if let Some(deadline) = hold.deadline().filter(|_| self.holds.contains_key(&hold.id.n)) {
            self.schedule.remove(hold.id.n);
            self.keep(hold, deadline, now);
        }
    }
}
