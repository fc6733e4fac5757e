//! The requests to a master of a RedLock.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::token::Token;
use crate::protocol::vote::{self, TurnArgs, VoteArgs};

impl Resource {
    /// Asks a master to vote for the hold that `owner` identifies, with the token `proposal`. `granted`: a majority has
    /// accepted it. `set` is the set of masters that the caller knows, or empty.
    pub fn cast(&self, attempt: Attempt, proposal: u64, owner: Attempt, granted: bool, set: &str) -> Request {
        self.cast_knowing(0, attempt, proposal, owner, granted, set)
    }

    /// As [`cast`](Self::cast), by a caller that knows the process with this last save.
    pub fn cast_knowing(
        &self,
        known: u64,
        attempt: Attempt,
        proposal: u64,
        owner: Attempt,
        granted: bool,
        set: &str,
    ) -> Request {
        sent(vote::vote(&self.keys, VoteArgs { known, ..voting(attempt, proposal, owner, granted, set) }))
    }

    /// Asks a master for its vote and, in the same step, for the turn.
    pub fn claim(&self, attempt: Attempt, proposal: u64, owner: Attempt, turns: &Self, turn: Attempt) -> Request {
        let args = voting(attempt, proposal, owner, false, "");
        sent(vote::claim(&self.keys, args, &turns.keys, TurnArgs { id: id(turn), lease: turn.lease }))
    }

    /// Releases a vote and, unless somebody waits for it, the turn.
    pub fn leave(&self, attempt: Attempt, turns: &Self, turn: Attempt) -> Request {
        sent(vote::leave((&self.keys, id(attempt)), (&turns.keys, id(turn))))
    }

    /// Looks whether a master is free to vote.
    pub fn view(&self) -> Request {
        sent(vote::view(&self.keys))
    }
}

fn voting(attempt: Attempt, proposal: u64, owner: Attempt, granted: bool, set: &str) -> VoteArgs<'_> {
    let Attempt { lease, not_after, .. } = attempt;
    let (id, owner) = (id(attempt), id(owner));
    VoteArgs { id, lease, proposal: Token::new(proposal), owner, granted, not_after, set, known: 0 }
}
