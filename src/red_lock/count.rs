//! Decides which votes are a majority, for how long, and which token to propose next. Pure: time comes in as an
//! argument.

use std::time::{Duration, Instant};

use crate::protocol::token::Token;

/// The time in which the vote of a master counts, by the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    /// The end of the lease, counted from before the request was sent.
    pub(super) until: Instant,
    /// If the master has restarted, the time from which its vote counts. `None`: it counts at once.
    pub(super) from: Option<Instant>,
}

impl Validity {
    fn counts(self, now: Instant, least: Duration) -> bool {
        has_come(self.from, now) && self.until > now + least
    }
}

/// Whether the time has come from which a vote counts. `None`: it counts at once.
pub(super) fn has_come(from: Option<Instant>, now: Instant) -> bool {
    from.is_none_or(|from| from <= now)
}

/// The answer of one master. Masters without an answer have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VoteAnswer {
    /// The master took the lock and accepted the token.
    Accepted(Validity),
    /// The master took the lock, but has seen a token that is not smaller.
    Refused(Validity, Token),
    /// Another hold has the lock for this much longer. [`Duration::MAX`]: its lease has no end. If the master has
    /// restarted, its vote would count from the given time.
    Busy(Duration, Option<Instant>),
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A majority took the lock and accepted the token.
    Held,
    /// A majority took the lock, but some have seen larger tokens. This token is larger than all of them.
    Propose(Token),
    /// Other holds prevent a majority. The first of them ends after this time.
    Contested(Duration),
    /// Too few masters answered in time or have been up for long enough.
    TooFew,
}

/// What a look at one master has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// No hold has the lock. If the master has restarted, its vote would count from the given time.
    Free(Option<Instant>),
    /// As [`VoteAnswer::Busy`].
    Busy(Duration, Option<Instant>),
}

/// Why there is no majority yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// As [`Verdict::Contested`].
    Contested(Duration),
    /// As [`Verdict::TooFew`].
    TooFew,
}

/// The number of masters that is a majority of `masters`.
pub(super) fn majority(masters: usize) -> usize {
    masters / 2 + 1
}

/// Counts the answers of a round. A vote counts if more than a tenth of its lease is left, so that there is time to do
/// something with the hold.
pub(super) fn tally(masters: usize, answers: &[VoteAnswer], now: Instant, lease: Duration) -> Verdict {
    let least = lease / 10;
    let (mut accepted, mut taken, mut busy) = (0, 0, 0);
    let (mut highest, mut left) = (Token::NONE, None::<Duration>);
    for answer in answers {
        match *answer {
            VoteAnswer::Accepted(validity) if validity.counts(now, least) => {
                accepted += 1;
                taken += 1;
            }
            VoteAnswer::Refused(validity, seen) => {
                taken += usize::from(validity.counts(now, least));
                highest = highest.max(seen);
            }
            VoteAnswer::Busy(rest, from) => {
                busy += usize::from(has_come(from, now));
                left = Some(left.map_or(rest, |left| left.min(rest)));
            }
            VoteAnswer::Accepted(_) => {}
        }
    }
    let majority = majority(masters);
    match left {
        _ if accepted >= majority => Verdict::Held,
        _ if taken >= majority => Verdict::Propose(highest.next()),
        Some(left) if taken + busy >= majority => Verdict::Contested(left),
        _ => Verdict::TooFew,
    }
}

/// Counts what the looks at the masters have found: whether a majority is free to vote.
pub(super) fn survey(masters: usize, seen: &[Seen], now: Instant) -> Result<(), Lack> {
    let (mut free, mut busy, mut left) = (0, 0, None::<Duration>);
    for seen in seen {
        match *seen {
            Seen::Free(from) => free += usize::from(has_come(from, now)),
            Seen::Busy(rest, from) => {
                busy += usize::from(has_come(from, now));
                left = Some(left.map_or(rest, |left| left.min(rest)));
            }
        }
    }
    match left {
        _ if free >= majority(masters) => Ok(()),
        Some(left) if free + busy >= majority(masters) => Err(Lack::Contested(left)),
        _ => Err(Lack::TooFew),
    }
}

/// The time until which these votes are a majority. `None`: too few of them count now.
pub(super) fn deadline(masters: usize, votes: impl IntoIterator<Item = Validity>, now: Instant) -> Option<Instant> {
    let mut ends: Vec<Instant> =
        votes.into_iter().filter(|vote| vote.counts(now, Duration::ZERO)).map(|vote| vote.until).collect();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    ends.get(majority(masters) - 1).copied()
}

#[cfg(test)]
mod tests;
