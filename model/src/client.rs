//! One client: the rounds of an acquisition, and what `count.rs` of the library counts.

use crate::flaw::Flaw;
use crate::master::Answer;
use crate::state::MOST_MASTERS;

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
    /// The version of the set of masters that it knows.
    pub(crate) version: u8,
    /// Those who roll a version out believe that it has ended. It sends nothing any more, and its hold lasts for as
    /// long as its lease.
    pub(crate) stopped: bool,
    /// A master has said that it votes for programs with other masters, so the acquisition fails.
    pub(crate) told: bool,
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
pub(crate) fn tally(answers: impl Iterator<Item = Answer> + Clone, majority: usize, flaw: Option<Flaw>) -> Verdict {
    let accepts = |answer: &Answer| answer.refused.is_none() || flaw == Some(Flaw::TokenNotAccepted);
    if let Some(left) = deadline(answers.clone().filter(accepts), majority) {
        return Verdict::Held(left);
    }
    let taken = answers.clone().filter(|answer| answer.counts()).count();
    let highest = answers.filter_map(|answer| answer.refused).max();
    match highest {
        Some(highest) if taken >= majority => Verdict::Propose(highest + 1),
        _ => Verdict::TooFew,
    }
}

/// For how long a majority of the masters has these votes.
pub(crate) fn deadline(votes: impl Iterator<Item = Answer>, majority: usize) -> Option<u8> {
    let mut left = [0; MOST_MASTERS];
    let counted = votes.filter(|vote| vote.counts()).map(|vote| vote.left);
    left.iter_mut().zip(counted).for_each(|(left, vote)| *left = vote);
    left.sort_unstable();
    Some(left[MOST_MASTERS - majority]).filter(|left| *left > 0)
}
