//! Writers ask ahead, and semaphores do not.

use super::*;
use crate::protocol::dispatch::AheadArgs;
use crate::protocol::limits::WRITE;
use crate::protocol::ticket::Claim;

/// A budget of permits that allows one more hand-off. A real one is larger.
fn small_budget(cohort: &Cohort) -> HandoffBudget {
    HandoffBudget::of(Claim::Tokens(2), cohort.hold.token(), cohort.setup.now, SECOND)
}

/// The ticket is for all units, however many guards the budget is to serve.
#[test]
fn a_writer_asks_ahead_for_all_units() {
    let cohort = cohort_with(Kind::ReadWrite, WRITE, 2);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let asks = cohort.setup.engine.work(cohort.setup.now).ahead;
    let [ask] = &asks[..] else { panic!("{asks:?}") };
    let AheadArgs { held, known, budget, ticket, .. } = ask.args(0);
    assert_eq!((held, known, budget), (cohort.hold.id, Token::new(1), HANDOFF_BUDGET));
    assert_eq!(ticket.claim, Claim::Units { units: WRITE, limit: WRITE });
    cohort.answer(ask, GRANTED);
    let (mut hold, budget) = cohort.held(0);
    assert!(cohort.hand_off(&mut hold, budget));
    assert_eq!(cohort.held(1).0.token(), NEXT);
    cohort.ends(&hold);
}

#[test]
fn permits_of_a_semaphore_do_not_ask_ahead() {
    let cohort = cohort_with(Kind::Semaphore { limit: 1 }, 1, 2);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    assert!(cohort.setup.engine.work(cohort.setup.now).ahead.is_empty());
}
