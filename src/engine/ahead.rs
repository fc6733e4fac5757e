//! Hand-off budgets that cohorts ask for ahead, each while it holds and uses the one before.
//!
//! | state | becomes, on |
//! |---|---|
//! | under way | granted, queued or refused, on the answer; gone when the hold ends, and the attempt is given up |
//! | granted | gone when the present budget is used up, and the next member uses this one |
//! | queued | gone when the hold ends, and the ticket belongs to the cohort from then on. If it is granted before, the server is asked about the hold, which has gone there |
//! | refused | gone when the hold ends |
//!
//! A cohort of a lock or of writers asks ahead if its grant was the answer to a request, so that it was alone. A grant
//! from the queue is used up, and the hold released and queued up for in one request: that costs less, and delays the
//! others less, than asking to be told that they wait.
//!
//! A cohort of a semaphore has a ticket in the queue while members wait, because there may be room for another hold.
//! So a grant from the queue does not show that others wait, and the cohort asks after such a grant, too. The request
//! names the tickets of the cohort, so that the server does not take them for tickets of others. It opens no attempt,
//! because it queues no ticket. The cohort asks when half of its hand-offs are used, and not when half of the time is
//! over. A budget that ends by its time lasts so long that one round trip more costs little.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::cohort::budget::{HandoffBudget, amount_to_hand_off};
use crate::engine::lease::Hold;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::{AheadArgs, Place};
use crate::protocol::key::Keys;
use crate::protocol::reply::ServerMillis;
use crate::protocol::ticket::{Claim, Ticket};

/// The most tickets of a cohort that go with a request. The server takes the rest for tickets of others. As many
/// members may have asked at the same time as the limit of the semaphore allows.
const MOST_OWN: usize = 100;

/// What a ticket asks for that is queued ahead: the small budget of every waiter. A larger budget is granted only at
/// once, while no other client waits.
pub(super) fn amount_to_queue(claim: Claim) -> u32 {
    amount_to_hand_off(claim, false)
}

/// A request for the next budget of a hold, sent before the present budget is used up.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) keys: Arc<Keys>,
    pub(crate) held: AttemptId,
    /// Those of the hold.
    pub(crate) amount: u32,
    pub(crate) lease: Duration,
    /// The hand-off budget that the hold has now.
    pub(crate) budget: HandoffBudget,
    /// The attempt that queues up if other clients wait. `None` for a semaphore.
    pub(crate) attempt: Option<AttemptId>,
    /// The tickets that the cohort of a semaphore has in the queue.
    own: Vec<Ticket>,
}

impl Ask {
    /// Keeps no reference to the hold, so that it is handed off in place meanwhile: see [`Hold::pass_on`].
    pub(crate) fn new(hold: &Hold, budget: HandoffBudget, attempt: Option<AttemptId>) -> Self {
        let Hold { keys, id, amount, lease, .. } = hold;
        Self { keys: keys.clone(), held: *id, amount: *amount, lease: *lease, budget, attempt, own: Vec::new() }
    }

    /// The tickets of the cohort, oldest first. One whose answer has not been read yet is missing: the server takes it
    /// for a ticket of others, and the hold ends with its budget.
    pub(super) fn set_own(&mut self, tickets: impl Iterator<Item = Ticket>) {
        self.own = tickets.take(MOST_OWN).collect();
    }

    pub(crate) fn args(&self, not_after: ServerMillis) -> AheadArgs<'_> {
        let (kind, budget) = (self.keys.kind, self.budget.next());
        let place = self.attempt.map_or(Place::Has(&self.own), |attempt| {
            Place::Next(kind.ticket(attempt, self.lease, amount_to_queue(kind.claim(self.amount))))
        });
        AheadArgs { held: self.held, known: self.budget.known(), lease: self.lease, budget, place, not_after }
    }
}

/// The state of the request for the next budget of a hold.
#[derive(Debug)]
pub(super) enum Ahead {
    /// The request is sent and has no answer yet. With `is_parked`, the present budget is used up and no member has the
    /// hold.
    UnderWay {
        attempt: Option<AttemptId>,
        is_parked: bool,
    },
    /// The hold ended before the watchdog saw the request.
    Unsent(AttemptId),
    Granted(HandoffBudget),
    Queued(AttemptId),
    /// No request is made for this hold. It was granted from the queue, where others are likely to wait, the server has
    /// said that they do, or a request had no answer.
    Refused,
}

impl Ahead {
    fn is_parked(&self) -> bool {
        matches!(self, Self::UnderWay { is_parked: true, .. })
    }
}

/// The requests for next budgets, by the number of their hold.
#[derive(Debug, Default)]
pub(super) struct Aheads {
    asked: FxHashMap<u64, Ahead>,
    /// How many of them are parked.
    parked: usize,
    /// The requests that the watchdog has not seen yet.
    added: Vec<Ask>,
}

impl Aheads {
    pub(super) fn begin(&mut self, ask: Ask) {
        self.set(ask.held.n, Ahead::UnderWay { attempt: ask.attempt, is_parked: false });
        self.added.push(ask);
    }

    pub(super) fn get(&self, n: u64) -> Option<&Ahead> {
        self.asked.get(&n)
    }

    /// Returns `is_parked` while the answer is still awaited, else `None`. A hold has one request at a time, and its
    /// number is never used again.
    pub(super) fn under_way(&self, ask: &Ask) -> Option<bool> {
        match self.asked.get(&ask.held.n) {
            Some(Ahead::UnderWay { attempt, is_parked }) if *attempt == ask.attempt => Some(*is_parked),
            _ => None,
        }
    }

    /// Whether this attempt is the one that was opened by the request of the hold, and may be queued.
    pub(super) fn is_for(&self, n: u64, id: AttemptId) -> bool {
        match self.asked.get(&n) {
            Some(Ahead::UnderWay { attempt, .. }) => *attempt == Some(id),
            Some(Ahead::Queued(attempt)) => *attempt == id,
            _ => false,
        }
    }

    /// Records that the present budget is used up before the answer has come. `false`: no answer will come.
    pub(super) fn park(&mut self, n: u64) -> bool {
        let Some(Ahead::UnderWay { attempt, .. }) = self.asked.get(&n) else { return false };
        self.set(n, Ahead::UnderWay { attempt: *attempt, is_parked: true });
        true
    }

    pub(super) fn is_any_parked(&self) -> bool {
        self.parked > 0
    }

    pub(super) fn is_parked(&self, n: u64) -> bool {
        self.asked.get(&n).is_some_and(Ahead::is_parked)
    }

    pub(super) fn set(&mut self, n: u64, ahead: Ahead) {
        self.parked += usize::from(ahead.is_parked());
        let before = self.asked.insert(n, ahead);
        self.parked -= before.map_or(0, |before| usize::from(before.is_parked()));
    }

    fn take(&mut self, n: u64) -> Option<Ahead> {
        let ahead = self.asked.remove(&n)?;
        self.parked -= usize::from(ahead.is_parked());
        Some(ahead)
    }

    /// Takes the budget that was granted ahead.
    pub(super) fn take_granted(&mut self, n: u64) -> Option<HandoffBudget> {
        let Some(Ahead::Granted(budget)) = self.asked.get(&n) else { return None };
        let budget = *budget;
        self.take(n);
        Some(budget)
    }

    /// Ends the hold, and returns the state of its request.
    pub(super) fn end(&mut self, n: u64) -> Option<Ahead> {
        let ahead = self.take(n)?;
        let under_way = self.added.len();
        self.added.retain(|ask| ask.held.n != n);
        match ahead {
            Ahead::UnderWay { attempt, .. } if self.added.len() < under_way => attempt.map(Ahead::Unsent),
            ahead => Some(ahead),
        }
    }

    /// The number of attempts that were opened by such requests and belong to no cohort yet.
    pub(super) fn attempts(&self) -> usize {
        let opened = |ahead: &&Ahead| matches!(ahead, Ahead::UnderWay { attempt: Some(_), .. } | Ahead::Queued(_));
        self.asked.values().filter(opened).count()
    }

    /// Takes the requests that were added since the last call.
    pub(super) fn start(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.added)
    }

    pub(super) fn is_added(&self) -> bool {
        !self.added.is_empty()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.added.is_empty() && self.parked == 0
    }
}
