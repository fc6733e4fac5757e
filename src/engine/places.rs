//! The ledger's side of the lines: a turn is given, taken, or left to the next.
//!
//! | turn | given when | the next |
//! |---|---|---|
//! | lead | nothing that the line waits for is under way | acquires |
//! | held | somebody is done with a hold | holds it, with its own token |
//! | attempt | it was held in the line for long enough | releases it and queues up, in one request |
//! | attempt | somebody gave up with a request under way | goes on with it |
//! | attempt | it is decided what becomes of a ticket of the line | goes on with that |
//! | failed | somebody failed, and those who wait for as long would too | fails, or leads |

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::protocol::key::{Keys, Kind};
use crate::engine::lines::LineId;
use crate::engine::passing::{Begun, SPAN, Turn};
use crate::engine::state::{Attempt, Effects, State};
use crate::engine::{Cleanup, Closed, Ledger, Outcome};
use crate::mutant::{self, Mutant};
use crate::protocol::ticket::WireId;

/// Why nobody can stand in the line.
pub(crate) enum NoPlace {
    Closed,
    Full,
}

impl Ledger {
    /// A place in the line, unless as many wait there already; 0 is no limit.
    pub(crate) fn join(&self, line: &LineId, max_waiters: u32) -> Result<u64, NoPlace> {
        self.change(|state, effects| {
            if state.closed {
                return Err(NoPlace::Closed);
            }
            let waiting = u32::try_from(state.lines.waiting(line)).unwrap_or(u32::MAX);
            if max_waiters > 0 && waiting >= max_waiters {
                return Err(NoPlace::Full);
            }
            let place = state.lines.join(line);
            state.lines.settle(line, &mut effects.wakers);
            Ok(place)
        })
    }

    /// Waits for the turn of the place.
    pub(crate) fn poll_turn(
        &self,
        line: &LineId,
        place: u64,
        now: Instant,
        context: &Context<'_>,
    ) -> Poll<Result<Turn, Closed>> {
        // Cloned and dropped outside of the lock, as it is other people's code.
        let mut waker = Some(context.waker().clone());
        self.change(|state, effects| {
            if state.closed {
                return Poll::Ready(Err(Closed));
            }
            let turn = std::task::ready!(state.lines.poll(line, place, &mut waker)).unwrap_or(Turn::Lead);
            if let Turn::Held { hold, .. } = &turn {
                state.counted.acquired += 1;
                state.counted.passed_on += 1;
                state.renew_again(hold, now);
                state.wake_if_sooner(effects);
            }
            Poll::Ready(Ok(turn))
        })
    }

    /// As [`open`](Self::open), for somebody in a line: of a lock, with tokens for those behind it. Queued, it is the
    /// line's; what becomes of it if it is dropped before, the line decides.
    pub(crate) fn open_in_line(
        &self,
        keys: &Arc<Keys>,
        place: u64,
        amount: u32,
        lease: Duration,
        now: Instant,
    ) -> Result<Begun, Closed> {
        let mut state = crate::mutex::lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        let line = LineId::of(keys, amount);
        let others_wait = state.lines.waiting(&line) > 0;
        let amount = if keys.kind == Kind::Lock && others_wait { SPAN } else { amount };
        state.lines.asks(&line, place);
        let id = self.wire_id(state.open(Attempt { place: Some(place), ..Attempt::new(keys, amount, lease, now) }));
        Ok(Begun { id, amount, before: None, asked: 0, decided: false })
    }

    /// The place has failed, and so does whoever else there has waited since then.
    pub(crate) fn fail(&self, line: &LineId, place: u64, error: &Error, since: Instant, now: Instant) {
        self.change(|state, effects| {
            state.give(line, Turn::Failed { error: error.clone(), since }, now, effects);
            state.leave(line, place, now, effects);
        });
    }

    /// The place is left, whether its turn has come or not.
    pub(crate) fn leave(&self, line: &LineId, place: u64, now: Instant) {
        self.change(|state, effects| state.leave(line, place, now, effects));
    }

    /// Of an attempt that nobody waits for any more: the next in its line goes on with it, if there is one without.
    pub(super) fn hand_on(&self, state: &mut State, id: WireId, now: Instant, effects: &mut Effects) -> bool {
        let Some(attempt) = state.open.get_mut(&id.n).filter(|attempt| attempt.place.is_some()) else { return false };
        let line = LineId::of(&attempt.keys, attempt.amount);
        if !state.lines.is_short(&line) {
            return false;
        }
        let (amount, before) = (attempt.amount, attempt.before.clone());
        state.give(&line, Turn::Attempt(Begun { id, amount, before, asked: 1, decided: false }), now, effects);
        true
    }
}

impl State {
    /// Queued, what somebody in a line asks for is the line's. `false`: nobody in a line asks for it.
    pub(super) fn queued_in_line(&mut self, id: WireId, now: Instant, effects: &mut Effects) -> bool {
        let Some(attempt) = self.open.get_mut(&id.n) else { return false };
        let Some(place) = attempt.place.take() else { return false };
        let (line, decided) = (LineId::of(&attempt.keys, attempt.amount), attempt.outcome.is_some());
        self.lines.queues(&line, place, id);
        if decided {
            self.turn(id, now, effects);
        }
        true
    }

    /// What becomes of the attempt. If it is a ticket of a line, it is for whoever is first by now.
    pub(super) fn decide(&mut self, id: WireId, outcome: Outcome, now: Instant, effects: &mut Effects) {
        if let Some(attempt) = self.open.get_mut(&id.n) {
            attempt.decide(outcome, effects);
            self.turn(id, now, effects);
        }
    }

    fn turn(&mut self, id: WireId, now: Instant, effects: &mut Effects) {
        let Some(attempt) = self.open.get(&id.n) else { return };
        let (line, amount, asked) = (LineId::of(&attempt.keys, attempt.amount), attempt.amount, attempt.asked);
        if self.lines.takes(&line, id) {
            self.give(&line, Turn::Attempt(Begun { id, amount, before: None, asked, decided: true }), now, effects);
        }
    }

    fn leave(&mut self, line: &LineId, place: u64, now: Instant, effects: &mut Effects) {
        let turn = self.lines.leave(line, place, &mut effects.wakers);
        if let Some(turn) = turn.filter(|_| !mutant::on(Mutant::TurnSwallowed)) {
            self.give(line, turn, now, effects);
        }
        while let Some(ticket) = self.lines.surplus(line) {
            if !mutant::on(Mutant::TicketOutlivesItsLine) {
                self.give_up(ticket, now, effects);
            }
        }
        self.lines.settle(line, &mut effects.wakers);
    }

    /// To the first of those in the line who are short of a ticket; if nobody is, what the turn has in Redis is cleaned
    /// up.
    pub(super) fn give(&mut self, line: &LineId, turn: Turn, now: Instant, effects: &mut Effects) {
        let asks = !matches!(turn, Turn::Held { .. });
        let attempt = if let Turn::Attempt(begun) = &turn { Some(begun.id.n) } else { None };
        match self.lines.give(line, turn, &mut effects.wakers) {
            Ok(place) => {
                if asks {
                    self.lines.asks(line, place);
                }
                if let Some(attempt) = attempt.and_then(|id| self.open.get_mut(&id)) {
                    attempt.place = Some(place);
                }
            }
            Err(Turn::Lead | Turn::Failed { .. }) => {}
            Err(Turn::Held { hold, .. }) => {
                if self.remove_hold(hold.id.n).is_some() {
                    self.clean_up(Cleanup::of(&hold, now), effects);
                }
            }
            Err(Turn::Attempt(Begun { id, .. })) => self.give_up(id, now, effects),
        }
    }
}
