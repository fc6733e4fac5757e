//! One election: a round of votes, or two, and what comes of them.

use std::sync::Arc;
use std::time::Instant;

use crate::acquire::request::Request;
use crate::engine::lease::Term;
use crate::error::{ErrorKind, Result};
use crate::protocol::token::Token;
use crate::red_lock::ballot::{Ballot, Proposal};
use crate::red_lock::cast::TurnAnswer;
use crate::red_lock::count::{Lack, Verdict, deadline, tally};
use crate::red_lock::late::Late;
use crate::red_lock::masters::Masters;
use crate::red_lock::quorum_hold::Slot;
use crate::red_lock::round::{Round, Until};

/// The outcome of the votes during one turn.
pub(super) enum Outcome {
    Held {
        votes: Vec<Slot>,
        until: Instant,
        token: Token,
        term: Term,
        /// The requests that the majority did not wait for.
        late: Option<Late>,
    },
    /// Others hold the lock, and the request does not wait.
    Busy,
    /// The turn was lost, or is not on the first master that answers.
    TurnLost,
}

/// The outcome of one election.
pub(super) type Elected = std::result::Result<Outcome, Lack>;

/// Asks for votes once, and with a claim for the turn. Without a majority, the votes are cancelled in the background;
/// and also without the turn, if that was asked for.
pub(super) async fn elect(
    masters: &Arc<Masters>,
    request: &Request,
    ballots: Vec<Ballot>,
    first: Proposal,
) -> Result<(TurnAnswer, Elected)> {
    let mut round = masters.cast(ballots, first, Until::Majority).await;
    masters.check_distinct(request.operation)?;
    check_other(masters, request, &round)?;
    let lacks_turn = round.lacks_turn();
    let turn = std::mem::take(&mut round.turn);
    if lacks_turn {
        return Ok((turn, Err(Lack::TooFew)));
    }
    let (mut round, verdict, token) = second_round(masters, round, first).await;
    check_other(masters, request, &round)?;
    let elected = match verdict {
        Verdict::Held => {
            let late = round.late.take();
            match hold_votes(masters, round, token, first.term) {
                Some((votes, until)) => Ok(Outcome::Held { votes, until, token, term: first.term, late }),
                None => Err(Lack::TooFew),
            }
        }
        Verdict::Contested(left) => Err(Lack::Contested(left)),
        Verdict::Propose(_) | Verdict::TooFew => Err(Lack::TooFew),
    };
    Ok((turn, elected))
}

/// Fails if a master votes for programs with another set of masters. One such answer is enough: this master may be the
/// only one that the two sets have in common.
fn check_other(masters: &Masters, request: &Request, round: &Round) -> Result<()> {
    match &round.other {
        Some((n, other)) => Err(request.error_because(ErrorKind::OtherMasters, masters.other_set(*n, other))),
        None => Ok(()),
    }
}

/// Runs a second round if masters have seen larger tokens. Returns the last round, its verdict and the token that it
/// proposed.
async fn second_round(masters: &Arc<Masters>, round: Round, first: Proposal) -> (Round, Verdict, Token) {
    let all = masters.all.len();
    let count = |round: &Round| tally(all, &round.answers(), masters.now(), first.lease);
    let verdict = count(&round);
    let Verdict::Propose(token) = verdict else { return (round, verdict, first.token) };
    masters.change_stats(|stats| stats.second_rounds += 1);
    // Asks only masters that took the lock: while this attempt has the lock, no other hold can raise the counter.
    let taken = round.casts.into_iter().filter(|cast| cast.is_taken()).map(|cast| cast.ballot).collect();
    let round = masters.cast(taken, Proposal { token, ..first }, Until::Majority).await;
    let verdict = count(&round);
    (round, verdict, token)
}

/// Turns the votes into holds of the clients, which renew them. `None`: too few are left, because a client was closed
/// or leases ended meanwhile.
fn hold_votes(masters: &Masters, round: Round, token: Token, term: Term) -> Option<(Vec<Slot>, Instant)> {
    let mut slots: Vec<Slot> = masters.all.iter().map(|_| Slot::default()).collect();
    // Once granted, the hold asks the others again.
    for cast in round.casts {
        let master = cast.ballot.master;
        slots[master] = cast.hold(masters, token, term).unwrap_or_default();
    }
    let until = deadline(masters.all.len(), slots.iter().filter_map(Slot::validity), masters.now())?;
    Some((slots, until))
}
