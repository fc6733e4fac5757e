//! Hand-off budgets that cohorts ask for ahead, each while it holds and uses the one before.
//!
//! | state | becomes, on |
//! |---|---|
//! | under way | granted, queued or refused, on the answer; gone when the hold ends, and the attempt is given up |
//! | granted | gone when the present budget is used up, and the next member uses this one |
//! | queued | gone when the hold ends, and the ticket belongs to the cohort from then on. If it is granted before, the server is asked about the hold, which has gone there |
//! | refused | gone when the hold ends |
//!
//! Locks and writers ask ahead. A cohort of a semaphore does not: while members wait, it has a ticket in the queue,
//! because there may be room for another hold. The request that ends a budget grants that ticket, if it is the first.
//!
//! A cohort asks ahead if its grant was the answer to a request, so that it was alone. A grant from the queue is used
//! up, and the hold released and queued up for in one request: that costs less, and delays the others less, than asking
//! to be told that they wait.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::cohort::budget::HandoffBudget;
use crate::engine::lease::Hold;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::AheadArgs;
use crate::protocol::key::Keys;
use crate::protocol::reply::ServerMillis;

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
    /// The attempt that queues up if other clients wait.
    pub(crate) attempt: AttemptId,
}

impl Ask {
    /// Keeps no reference to the hold, so that it is handed off in place meanwhile: see [`Hold::pass_on`].
    pub(crate) fn new(hold: &Hold, budget: HandoffBudget, attempt: AttemptId) -> Self {
        let Hold { keys, id, amount, lease, .. } = hold;
        Self { keys: keys.clone(), held: *id, amount: *amount, lease: *lease, budget, attempt }
    }

    pub(crate) fn args(&self, not_after: ServerMillis) -> AheadArgs {
        let budget = self.budget.next();
        let amount = self.keys.kind.claim(self.amount).amount_for(budget);
        let ticket = self.keys.kind.ticket(self.attempt, self.lease, amount);
        AheadArgs { held: self.held, known: self.budget.known(), budget, ticket, not_after }
    }
}

/// The state of the request for the next budget of a hold.
#[derive(Debug)]
pub(super) enum Ahead {
    /// The request is sent and has no answer yet. With `is_parked`, the present budget is used up and no member has the
    /// hold.
    UnderWay {
        attempt: AttemptId,
        is_parked: bool,
    },
    /// The hold ended before the watchdog saw the request.
    Unsent(AttemptId),
    Granted(HandoffBudget),
    Queued(AttemptId),
    /// No request is made for this hold. It was granted from the queue, where others are likely to wait, or a request
    /// had no answer.
    Refused,
}

/// The requests for next budgets, by the number of their hold.
#[derive(Debug, Default)]
pub(super) struct Aheads {
    asked: FxHashMap<u64, Ahead>,
    /// The requests that the watchdog has not seen yet.
    added: Vec<Ask>,
}

impl Aheads {
    pub(super) fn begin(&mut self, ask: Ask) {
        self.asked.insert(ask.held.n, Ahead::UnderWay { attempt: ask.attempt, is_parked: false });
        self.added.push(ask);
    }

    pub(super) fn get(&self, n: u64) -> Option<&Ahead> {
        self.asked.get(&n)
    }

    /// Returns `is_parked` while the answer is still awaited, else `None`.
    pub(super) fn under_way(&self, ask: &Ask) -> Option<bool> {
        match self.asked.get(&ask.held.n) {
            Some(Ahead::UnderWay { attempt, is_parked }) if *attempt == ask.attempt => Some(*is_parked),
            _ => None,
        }
    }

    /// Whether this attempt is the one that was opened by the request of the hold, and may be queued.
    pub(super) fn is_for(&self, n: u64, id: AttemptId) -> bool {
        match self.asked.get(&n) {
            Some(Ahead::UnderWay { attempt, .. } | Ahead::Queued(attempt)) => *attempt == id,
            _ => false,
        }
    }

    /// Records that the present budget is used up before the answer has come. `false`: no answer will come.
    pub(super) fn park(&mut self, n: u64) -> bool {
        let ahead = self.asked.get_mut(&n);
        if let Some(Ahead::UnderWay { is_parked, .. }) = ahead {
            *is_parked = true;
            return true;
        }
        false
    }

    pub(super) fn is_parked(&self, n: u64) -> bool {
        matches!(self.asked.get(&n), Some(Ahead::UnderWay { is_parked: true, .. }))
    }

    pub(super) fn set(&mut self, n: u64, ahead: Ahead) {
        self.asked.insert(n, ahead);
    }

    /// Takes the budget that was granted ahead.
    pub(super) fn take_granted(&mut self, n: u64) -> Option<HandoffBudget> {
        let Some(Ahead::Granted(budget)) = self.asked.get(&n) else { return None };
        let budget = *budget;
        self.asked.remove(&n);
        Some(budget)
    }

    /// Ends the hold, and returns the state of its request.
    pub(super) fn end(&mut self, n: u64) -> Option<Ahead> {
        let ahead = self.asked.remove(&n)?;
        let under_way = self.added.len();
        self.added.retain(|ask| ask.held.n != n);
        match ahead {
            Ahead::UnderWay { attempt, .. } if self.added.len() < under_way => Some(Ahead::Unsent(attempt)),
            ahead => Some(ahead),
        }
    }

    /// The number of attempts that were opened by such requests and belong to no cohort yet.
    pub(super) fn attempts(&self) -> usize {
        let opened = |ahead: &&Ahead| matches!(ahead, Ahead::UnderWay { .. } | Ahead::Queued(_));
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
        self.asked.is_empty() && self.added.is_empty()
    }
}
