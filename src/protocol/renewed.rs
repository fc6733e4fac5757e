//! Replies of renewals.

use super::failure::Failure;
use super::fields::{Fields, Stored};
use super::reply::ServerMillis;
use super::token::Token;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    pub(crate) now: ServerMillis,
    pub(crate) holds: Vec<HoldState>,
    /// Why some holds are [`Unanswered`](HoldState::Unanswered).
    pub(crate) failure: Option<Failure>,
    /// The places of the holds that were asked for in their main key only, and are stored in full. They are
    /// [`Unanswered`](HoldState::Unanswered), too.
    pub(crate) in_full: Vec<usize>,
}

impl Renewed {
    /// The same answer after `replicas` replicas have acknowledged it. At least `needed` replicas have to. A missing
    /// hold is known without any replica.
    pub(super) fn acknowledged(mut self, replicas: u32, needed: u32) -> Self {
        if replicas < needed {
            for hold in self.holds.iter_mut().filter(|hold| matches!(hold, HoldState::Held(_))) {
                *hold = HoldState::Unacknowledged(replicas);
            }
        }
        self
    }

    /// Joins the answers to several calls about one hold each. If none was answered, the error is that of one of the
    /// calls.
    pub(super) fn joined(answers: Vec<Result<Self, Failure>>) -> Result<Self, Failure> {
        let mut joined = Self { now: 0, holds: Vec::with_capacity(answers.len()), failure: None, in_full: Vec::new() };
        for answer in answers {
            match answer {
                Ok(renewed) => {
                    joined.now = joined.now.max(renewed.now);
                    let before = joined.holds.len();
                    joined.in_full.extend(renewed.in_full.iter().map(|n| before + n));
                    joined.holds.extend(renewed.holds);
                }
                Err(failure) => {
                    joined.holds.push(HoldState::Unanswered);
                    joined.failure.get_or_insert(failure);
                }
            }
        }
        if joined.in_full.is_empty() { joined.or_failure() } else { Ok(joined) }
    }

    /// Fails if no hold was answered.
    fn or_failure(mut self) -> Result<Self, Failure> {
        let none = self.holds.iter().all(|hold| *hold == HoldState::Unanswered);
        match self.failure.take() {
            Some(failure) if none => Err(failure),
            failure => Ok(Self { failure, ..self }),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldState {
    /// Held, with the token that the server stores. `None` if another program wrote something that is not a token.
    Held(Option<Token>),
    NotHeld,
    Unusable,
    /// Held, but fewer replicas than needed have acknowledged that in time. The number of those that did.
    Unacknowledged(u32),
    /// The call about this hold failed.
    Unanswered,
}

pub(super) fn renewed(fields: &mut Fields<'_>) -> Option<Renewed> {
    renewed_short(fields).filter(|renewed| renewed.in_full.is_empty())
}

/// The answer to a call that has named the main keys only.
pub(super) fn renewed_short(fields: &mut Fields<'_>) -> Option<Renewed> {
    let count = fields.entries();
    let now = fields.number()?;
    let (mut holds, mut in_full) = (Vec::with_capacity(count), Vec::new());
    for n in 0..count {
        holds.push(match fields.stored()? {
            Stored::Token(token) => HoldState::Held(token),
            Stored::Integer(0) => HoldState::NotHeld,
            Stored::Integer(-1) => HoldState::Unusable,
            Stored::Integer(-2) => {
                in_full.push(n);
                HoldState::Unanswered
            }
            Stored::Integer(_) => return None,
        });
    }
    Some(Renewed { now, holds, failure: None, in_full })
}

#[cfg(test)]
mod tests;
