//! The ballots of a round: what each master is asked for.

use std::sync::Arc;
use std::time::Duration;

use crate::acquire::pending::PendingAttempt;
use crate::context::Context;
use crate::engine::lease::Term;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::token::Token;
use crate::red_lock::masters::Masters;

/// The proposal that masters vote on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proposal {
    pub(super) token: Token,
    /// Identifies the hold on all masters.
    pub(super) owner: AttemptId,
    /// Whether the hold has been granted, and asks for votes that it lacks.
    pub(super) granted: bool,
    pub(super) term: Term,
    pub(super) lease: Duration,
}

/// An attempt to get the vote of one master. If it is dropped, the attempt is cancelled in the background.
pub(super) struct Ballot {
    pub(super) master: usize,
    pub(super) keys: Arc<Keys>,
    pub(super) attempt: PendingAttempt<Arc<Context>>,
    /// Whether an earlier round has asked for it.
    pub(super) is_asked: bool,
    /// The turn that the master is asked for in the same step.
    pub(super) turn: Option<TurnBallot>,
}

/// An attempt to get the turn together with a vote.
pub(super) struct TurnBallot {
    pub(super) keys: Arc<Keys>,
    pub(super) attempt: PendingAttempt<Arc<Context>>,
    pub(super) lease: Duration,
}

impl Masters {
    /// Opens a ballot for each of these masters that serves the name. A master whose client is closed gets none.
    pub(super) fn ballots(&self, keys: &[Arc<Keys>], of: impl Iterator<Item = usize>, lease: Duration) -> Vec<Ballot> {
        let open = |master: usize| {
            let keys = keys[master].clone();
            let attempt = PendingAttempt::open(self.all[master].context().clone(), &keys, 1, lease);
            attempt.ok().map(|attempt| Ballot { master, keys, attempt, is_asked: false, turn: None })
        };
        let now = self.now();
        of.filter(|master| self.all[*master].serves(&keys[*master], now)).filter_map(open).collect()
    }
}
