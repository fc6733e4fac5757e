//! One client: the rounds of an acquisition, and what `count.rs` of the library counts.

use crate::flaw::Flaw;
use crate::master::Answer;
use crate::state::MASTERS;

const MAJORITY: usize = MASTERS / 2 + 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Client {
    /// How many acquisitions it has begun.
    pub(crate) begun: u8,
    pub(crate) renewals: u8,
    pub(crate) phase: Phase,
    /// A write of an earlier hold that is still under way: the program was paused, or the write is late.
    pub(crate) late: Option<LateWrite>,
    /// Of [`Flaw::OldProposal`]: what it proposed before.
    pub(crate) old: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LateWrite {
    pub(crate) token: u8,
    pub(crate) n: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Voting {
        token: u8,
        is_second: bool,
        age: u8,
        /// The largest token of holds that were granted before.
        floor: u8,
    },
    Holding {
        token: u8,
        is_second: bool,
        left: u8,
    },
}

/// What came of a round.
pub(crate) enum Verdict {
    Held(u8),
    Propose(u8),
    TooFew,
}

impl Client {
    /// The number of the attempt that it votes or holds for.
    pub(crate) fn attempt(&self) -> Option<u8> {
        (self.phase != Phase::Idle).then_some(self.begun)
    }

    pub(crate) fn token(&self) -> u8 {
        match self.phase {
            Phase::Idle => 0,
            Phase::Voting { token, .. } | Phase::Holding { token, .. } => token,
        }
    }

    pub(crate) fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Holding { .. })
    }
}

/// Counts the answers of a round.
pub(crate) fn tally(answers: &[Answer], flaw: Option<Flaw>) -> Verdict {
    let accepts = |answer: &Answer| answer.refused.is_none() || flaw == Some(Flaw::TokenNotAccepted);
    let accepted: Vec<Answer> = answers.iter().copied().filter(accepts).collect();
    if let Some(left) = deadline(&accepted) {
        return Verdict::Held(left);
    }
    let taken = answers.iter().filter(|answer| answer.counts()).count();
    let highest = answers.iter().filter_map(|answer| answer.refused).max();
    match highest {
        Some(highest) if taken >= MAJORITY => Verdict::Propose(highest + 1),
        _ => Verdict::TooFew,
    }
}

/// For how long a majority of the masters has these votes.
pub(crate) fn deadline(votes: &[Answer]) -> Option<u8> {
    let mut left: Vec<u8> = votes.iter().filter(|vote| vote.counts()).map(|vote| vote.left).collect();
    left.sort_unstable();
    left.iter().rev().nth(MAJORITY - 1).copied()
}
