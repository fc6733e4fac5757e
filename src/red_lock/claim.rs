//! The claim: the first round of an acquisition that nobody is in the way of. All masters are asked for their votes at
//! once, and the first one for the turn in the same step. It refuses both if another acquisition has the turn or waits
//! for it, and the votes of the others are cancelled then.

use std::sync::Arc;

use crate::acquire::pending::PendingAttempt;
use crate::acquire::request::Request;
use crate::engine::turn::Closed;
use crate::error::{ErrorKind, Result};
use crate::hold::owner::HoldOwner;
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::red_lock::ballot::{Proposal, TurnBallot};
use crate::red_lock::cast::TurnAnswer;
use crate::red_lock::count::majority;
use crate::red_lock::election::{Elected, elect};
use crate::red_lock::masters::Masters;
use crate::tuning::CONTENDED;

/// What has come of a claim.
pub(super) enum Claim {
    /// The acquisition has the turn, and its first round of votes is over.
    Made { turn: Arc<HoldOwner>, owner: AttemptId, elected: Elected },
    /// Another acquisition has the turn or waits for it.
    Taken,
    /// No claim was made, or the first master has not answered it.
    None,
}

/// Claims the lock, if that can be expected to succeed.
pub(super) async fn claim(
    masters: &Arc<Masters>,
    request: &Request,
    (turns, votes): (&[Arc<Keys>], &[Arc<Keys>]),
) -> Result<Claim> {
    let lease = request.lease;
    let (name, now) = (&*request.keys.name, masters.now());
    masters.check_usable(request, votes, majority(masters.all.len()))?;
    // The master on which the turn would be waited for.
    let Some(first) = (0..masters.all.len()).find(|n| masters.all[*n].serves(&turns[*n], now)) else {
        return Ok(Claim::None);
    };
    // The turn would propose a token by the clock of its master. A claim proposes one before it has the turn.
    let longest = masters.settings.longest_lease;
    let Some(token) = masters.all[first].standing(|standing| standing.token(now, longest)) else {
        return Ok(Claim::None);
    };
    let serves_both = masters.all[first].serves(&votes[first], now);
    if !serves_both || !lock(&masters.contended).may_be_claimed(name, now) {
        return Ok(Claim::None);
    }
    let closed = |Closed| request.error(ErrorKind::Closed);
    let owner = masters.all[0].context().engine.fresh().map_err(closed)?;
    let mut ballots = masters.ballots(votes, 0..masters.all.len(), lease);
    let Some(ballot) = ballots.iter_mut().find(|ballot| ballot.master == first) else {
        return Ok(Claim::None);
    };
    let attempt =
        PendingAttempt::open(masters.all[first].context().clone(), &turns[first], 1, lease).map_err(closed)?;
    ballot.turn = Some(TurnBallot { keys: turns[first].clone(), attempt, lease });
    let proposal = Proposal { token, owner, granted: false, term: request.term(now), lease };
    Ok(match elect(masters, request, ballots, proposal).await? {
        (TurnAnswer::Granted(turn), elected) => Claim::Made { turn: Arc::new(turn), owner, elected },
        (TurnAnswer::Taken, _) => {
            let now = masters.now();
            lock(&masters.contended).note(name, now + CONTENDED, now);
            Claim::Taken
        }
        (TurnAnswer::None, _) => Claim::None,
    })
}
