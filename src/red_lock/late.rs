//! The requests that a grant did not wait for: the votes of masters that are slower than a majority.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::red_lock::asking::Returned;
use crate::red_lock::masters::Masters;
use crate::red_lock::voting::Voting;
use crate::tuning::MOST_LATE;

/// Requests of a round that had no answer when a majority had accepted its token. They belong to the hold, which takes
/// the votes that come.
pub(super) struct Late {
    voting: Box<Voting>,
    counted: Counted,
}

/// One of the [`Late`]s that may exist at the same time.
struct Counted(Arc<Masters>);

impl Late {
    /// `None`: there are too many of them already. These requests are cancelled, and the hold asks for the votes again.
    pub(super) fn new(masters: &Arc<Masters>, voting: Voting) -> Option<Self> {
        // Counted first, so that two at the same time are not both the last one.
        let before = masters.late.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(masters.clone());
        (before < MOST_LATE).then(|| Self { voting: Box::new(voting), counted })
    }

    /// As [`Voting::next`].
    pub(super) async fn next(&mut self) -> Option<Returned> {
        self.voting.next().await.map(|(_, returned)| returned)
    }

    /// As [`Voting::give_back`].
    pub(super) async fn give_back(self) {
        let Self { voting, counted } = self;
        voting.give_back().await;
        drop(counted);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lease::Term;
    use crate::protocol::token::Token;
    use crate::red_lock::ballot::Proposal;
    use crate::red_lock::masters::tests::{SECOND, Three};

    #[test]
    fn their_number_is_limited() {
        let three = Three::durable();
        let owner = three.setups[0].context.engine.fresh().unwrap();
        let proposal = Proposal { token: Token::new(7), owner, granted: false, term: Term::Fixed, lease: SECOND };
        let late = || Late::new(&three.masters, Voting::begin(&three.masters, Vec::new(), proposal));
        let mut most: Vec<_> = (0..MOST_LATE).map(|_| late()).collect();
        assert!(most.iter().all(Option::is_some) && late().is_none() && late().is_none());
        most.pop();
        assert!(late().is_some() && late().is_some(), "one at a time");
    }
}
