//! Hand-off budgets that a cohort asks for while it holds.

use super::cohort::{Cohort, SECOND, cohort as cohort_with};
use super::*;
use crate::engine::ahead::Ask;
use crate::protocol::message::Message;
use crate::protocol::reply::AskedAhead;
use crate::protocol::ticket::Claim;

mod permits;
mod queued;
mod semaphore;

const NEXT: Token = Token::new(1000);
const GRANTED: Option<AskedAhead> = Some(AskedAhead::Granted { token: NEXT, now: 1 });
const QUEUED: Option<AskedAhead> = Some(AskedAhead::Queued { now: 1 });

/// The hold of the cohort has two tokens.
fn cohort(kind: Kind, others: usize) -> Cohort {
    cohort_with(kind, 2, others)
}

/// A budget of permits that allows one more hand-off. A real one is larger.
fn small_budget(cohort: &Cohort) -> HandoffBudget {
    HandoffBudget::of(Claim::Tokens(2), cohort.hold.token(), cohort.setup.now, SECOND)
}

impl Cohort {
    /// The first of the others holds, with the last token if there are two, and the request for the next budget is
    /// under way.
    fn asks(&self) -> (Arc<Hold>, HandoffBudget, Ask) {
        assert!(self.hand_off_first(self.budget()));
        let (hold, budget) = self.held(0);
        let mut work = self.setup.engine.work(self.setup.now);
        assert_eq!(work.ahead.len(), 1);
        (hold, budget, work.ahead.remove(0))
    }

    fn answer(&self, ask: &Ask, answer: Option<AskedAhead>) {
        self.setup.engine.ahead_answered(ask, answer, self.setup.now, self.setup.now);
    }

    /// The holds about which the server is asked now.
    fn asked(&self, now: Instant) -> Vec<Arc<Hold>> {
        let work = self.setup.engine.work(now);
        self.setup.answer(&work);
        work.renew
    }

    fn cancelled(&self) -> Vec<AttemptId> {
        let work = self.setup.engine.work(self.setup.now);
        self.setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id).collect()
    }

    /// The owner is done with the hold, and releases it because no member takes it.
    fn ends(self, hold: &Arc<Hold>) {
        self.setup.engine.release(hold, self.setup.now);
        for other in &self.others {
            self.setup.engine.leave(&self.id, *other, self.setup.now);
        }
        self.setup.assert_empty();
    }
}

#[test]
fn a_budget_granted_ahead_goes_on_with_its_own_tokens() {
    let mut cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    assert_eq!((ask.held, ask.args(0).known), (cohort.hold.id, Token::new(1)));
    cohort.setup.now += SECOND;
    cohort.answer(&ask, GRANTED);
    assert_eq!(hold.deadline(), Some(deadline(cohort.setup.now, LEASE)), "the grant renews the lease");
    assert!(cohort.hand_off(&mut hold, budget));
    let (mut hold, budget) = cohort.held(1);
    assert_eq!((hold.id, hold.token()), (cohort.hold.id, NEXT));
    assert!(cohort.hand_off(&mut hold, budget));
    let (hold, _) = cohort.held(2);
    assert_eq!(hold.token(), Token::new(NEXT.get() + 1));
    assert!(cohort.setup.engine.work(cohort.setup.now).ahead.is_empty(), "half of the budget is not used");
    cohort.ends(&hold);
}

/// Each request costs a round trip, however much was left of the budget that it replaces.
#[test]
fn a_budget_is_used_up_before_the_next_one_begins() {
    let mut cohort = cohort_with(Kind::Lock, 4, 5);
    let (mut hold, mut budget, ask) = cohort.asks();
    cohort.answer(&ask, GRANTED);
    let tokens = [3, 4, NEXT.get(), NEXT.get() + 1];
    for (other, token) in (1..).zip(tokens) {
        // The last two lie further from the answer than a budget may last, and as far from each other as it may.
        cohort.setup.now += if other < 3 { SECOND / 10 } else { SECOND * 9 / 10 };
        assert!(cohort.setup.engine.work(cohort.setup.now).ahead.is_empty(), "it has asked already");
        assert!(cohort.hand_off(&mut hold, budget));
        (hold, budget) = cohort.held(other);
        assert_eq!(hold.token(), Token::new(token));
    }
    let mut work = cohort.setup.engine.work(cohort.setup.now);
    assert_eq!(work.ahead.len(), 1, "half of its time has passed");
    assert!(!cohort.hand_off(&mut hold, budget), "no member waits");
    assert_eq!(cohort.cancelled(), [work.ahead.remove(0).attempt.unwrap()]);
    cohort.ends(&hold);
}

#[test]
fn a_cohort_that_asks_keeps_its_hold_until_the_answer() {
    let cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    assert!(cohort.hand_off(&mut hold, budget));
    assert!(cohort.poll(1).is_none() && cohort.cancelled().is_empty());
    cohort.answer(&ask, GRANTED);
    let (hold, budget) = cohort.held(1);
    assert_eq!((hold.token(), budget.next()), (NEXT, 2 * HANDOFF_BUDGET), "it ran dry, and asks for more");
    cohort.ends(&hold);
}

/// The server grants it only if it has lost the hold. Another client may have had the lock in between.
#[test]
fn a_ticket_queued_ahead_that_is_granted_has_the_hold_checked_at_once() {
    for case in 0..8 {
        let [queued, under_way, is_held] = [1, 2, 4].map(|bit| case & bit != 0);
        println!("queued {queued}, renewal under way {under_way}, held {is_held}");
        let mut cohort = cohort(Kind::Lock, 3);
        let (hold, _, ask) = cohort.asks();
        let sent = cohort.setup.now + if under_way { LEASE / 3 } else { SECOND };
        if queued {
            cohort.answer(&ask, QUEUED);
        }
        if under_way {
            assert_eq!(cohort.asked(sent).len(), 1);
        }
        cohort.setup.now = sent + SECOND;
        let now = cohort.setup.now;
        cohort.setup.engine.deliver(Message::Granted { id: ask.attempt.unwrap(), token: NEXT, at: u64::MAX }, now);
        if under_way {
            // As of before the grant.
            cohort.setup.engine.renewed(sent, now, std::slice::from_ref(&hold), &[]);
        }
        let asked = cohort.asked(now);
        assert!(matches!(&asked[..], [asked] if Arc::ptr_eq(asked, &hold)), "{asked:?}");
        let (held, gone) = if is_held { (&asked[..], &[][..]) } else { (&[][..], &asked[..]) };
        cohort.setup.engine.renewed(now, now, held, gone);
        assert_eq!(hold.loss(now), (!is_held).then_some(Loss::Gone));
        match cohort.poll(1) {
            None => assert!(is_held),
            Some(Turn::Attempt(turn)) => {
                assert!(queued && !is_held && turn.id == ask.attempt.unwrap() && turn.is_decided)
            }
            turn => assert!(matches!(turn, Some(Turn::Lead { .. })) && !queued && !is_held, "{turn:?}"),
        }
        assert!(cohort.asked(now).is_empty(), "the server is asked once");
        cohort.setup.engine.drop_pending(ask.attempt.unwrap(), None, now);
        cohort.ends(&hold);
    }
}

#[test]
fn a_hold_that_waits_for_its_budget_is_released_if_others_wait() {
    let cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.answer(&ask, QUEUED);
    assert!(cohort.poll(1).is_none());
    assert_eq!(cohort.cancelled(), [hold.id]);
    cohort.ends(&hold);
}

#[test]
fn a_hold_that_waits_for_its_budget_is_queued_up_without_an_answer() {
    let cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.answer(&ask, None);
    let handoff = match cohort.poll(1) {
        Some(Turn::Attempt(handoff)) => handoff,
        turn => panic!("{turn:?}"),
    };
    assert_eq!(handoff.before.unwrap().id, hold.id);
    assert_eq!(cohort.cancelled(), [ask.attempt.unwrap()], "a late copy of the request may queue its ticket");
    cohort.setup.engine.forget(handoff.id);
    cohort.ends(&hold);
}

#[test]
fn a_request_without_an_answer_is_not_sent_again() {
    let cohort = cohort(Kind::Lock, 3);
    let (mut hold, budget, ask) = cohort.asks();
    cohort.answer(&ask, None);
    assert_eq!(cohort.cancelled(), [ask.attempt.unwrap()]);
    assert!(cohort.hand_off(&mut hold, budget));
    match cohort.poll(1) {
        Some(Turn::Attempt(handoff)) => {
            assert_eq!(handoff.before.unwrap().id, hold.id);
            cohort.setup.engine.forget(handoff.id);
        }
        turn => panic!("{turn:?}"),
    }
    cohort.ends(&hold);
}

#[test]
fn what_was_asked_ahead_is_cancelled_when_the_last_member_leaves() {
    for answer in [None, QUEUED] {
        let cohort = cohort(Kind::Lock, 1);
        let (mut hold, budget, ask) = cohort.asks();
        if answer.is_some() {
            cohort.answer(&ask, answer);
        }
        assert!(!cohort.hand_off(&mut hold, budget), "no member waits");
        assert_eq!(cohort.cancelled(), [ask.attempt.unwrap()]);
        cohort.answer(&ask, QUEUED);
        cohort.ends(&hold);
    }
}

/// The reply may take long, and other clients may wait.
#[test]
fn a_hold_that_waits_for_its_budget_is_released_when_no_member_is_left() {
    let cohort = cohort(Kind::Lock, 2);
    let (mut hold, budget, ask) = cohort.asks();
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.setup.engine.leave(&cohort.id, cohort.others[1], cohort.setup.now);
    assert_eq!(cohort.cancelled(), [hold.id, ask.attempt.unwrap()]);
    cohort.answer(&ask, GRANTED);
    cohort.ends(&hold);
}

#[test]
fn a_request_that_was_not_sent_leaves_nothing() {
    let cohort = cohort(Kind::Lock, 1);
    let claim = cohort.hold.keys.kind.claim(2);
    assert!(cohort.hand_off_first(HandoffBudget::of(claim, Token::new(1), cohort.setup.now, SECOND)));
    let (mut hold, budget) = cohort.held(0);
    assert!(!cohort.hand_off(&mut hold, budget));
    let work = cohort.setup.engine.work(cohort.setup.now);
    assert!(work.ahead.is_empty() && work.cleanups.is_empty());
    cohort.ends(&hold);
}

#[test]
fn a_hold_that_is_gone_is_lost_whether_a_member_has_it_or_not() {
    for parked in [false, true] {
        let cohort = cohort(Kind::Lock, 3);
        let (hold, budget, ask) = cohort.asks();
        if parked {
            // The hold is watched here, and is not told of the end of the one that is parked.
            assert!(cohort.hand_off(&mut hold.clone(), budget));
        }
        cohort.answer(&ask, Some(AskedAhead::NotHeld { now: 1 }));
        let loss = if parked { None } else { Some(Loss::Gone) };
        assert_eq!(hold.loss(cohort.setup.now), loss);
        assert!(matches!(cohort.poll(1), Some(Turn::Lead { .. })));
        cohort.ends(&hold);
    }
}

#[test]
fn closing_cancels_what_was_asked_ahead() {
    for answer in [None, QUEUED] {
        let cohort = cohort(Kind::Lock, 2);
        let (_, _, ask) = cohort.asks();
        if answer.is_some() {
            cohort.answer(&ask, answer);
        }
        cohort.setup.engine.close(cohort.setup.now);
        assert_eq!(cohort.cancelled(), [ask.attempt.unwrap(), cohort.hold.id]);
        cohort.answer(&ask, GRANTED);
        for other in &cohort.others {
            cohort.setup.engine.leave(&cohort.id, *other, cohort.setup.now);
        }
        cohort.setup.assert_empty();
    }
}
