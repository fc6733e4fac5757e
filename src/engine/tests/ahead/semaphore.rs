//! The cohort of a semaphore has a ticket in the queue while it asks ahead.

use super::*;
use crate::engine::attempt::Queued;
use crate::protocol::dispatch::Place;
use crate::protocol::ticket::Ticket;

const GRANTED: Option<AskedAhead> = Some(AskedAhead::Granted { token: Token::NONE, now: 1 });
const WANTED: Option<AskedAhead> = Some(AskedAhead::Wanted { now: 1 });

/// A hold of one permit. The first of the others has asked for another one, and its ticket is queued.
fn semaphore(others: usize) -> (Cohort, AttemptId) {
    let cohort = cohort_with(Kind::Semaphore { limit: 1 }, 1, others);
    let ticket = cohort.queues(0);
    (cohort, ticket)
}

impl Cohort {
    fn opens(&self, other: usize) -> AttemptId {
        let keys = self.id.keys();
        self.setup.engine.open_in_cohort(keys, self.others[other], (1, false), LEASE, self.setup.now).unwrap().id
    }

    fn queues(&self, other: usize) -> AttemptId {
        let id = self.opens(other);
        let queued = Queued { sent: self.setup.now, asked: 1, holder_left: None, call_again: false };
        assert!(self.setup.engine.queued(id, queued, self.setup.now));
        id
    }

    /// The requests of all holds. None of them opens an attempt.
    fn asks_of_all(&self) -> Vec<Ask> {
        let asks = self.setup.engine.work(self.setup.now).ahead;
        assert!(asks.iter().all(|ask| ask.attempt.is_none()), "{asks:?}");
        asks
    }

    /// The member is told to release this hold and to queue up.
    #[track_caller]
    fn requeues(&self, other: usize, hold: &Hold) {
        let Some(Turn::Attempt(handoff)) = self.poll(other) else { panic!("the member has no attempt") };
        assert_eq!(handoff.before.unwrap().id, hold.id);
        self.setup.engine.forget(handoff.id);
    }

    /// Nothing is left, and these tickets are cancelled.
    fn leaves(self, hold: &Hold, tickets: &[AttemptId]) {
        self.setup.engine.release(hold, self.setup.now);
        for other in &self.others {
            self.setup.engine.leave(&self.id, *other, self.setup.now);
        }
        assert_eq!(self.cancelled(), tickets);
        self.setup.assert_empty();
    }
}

#[track_caller]
fn own(ask: &Ask) -> Vec<Ticket> {
    match ask.args(0).place {
        Place::Has(own) => own.to_vec(),
        place @ Place::Next(_) => panic!("{place:?}"),
    }
}

#[test]
fn its_tickets_go_with_the_request() {
    let (cohort, ticket) = semaphore(4);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let (mut hold, mut budget) = cohort.held(0);
    let asks = cohort.asks_of_all();
    let [ask] = &asks[..] else { panic!("{asks:?}") };
    let keys = cohort.id.keys();
    assert_eq!(own(ask), [keys.kind.ticket(ticket, LEASE, 1)]);
    assert_eq!(ask.held, cohort.hold.id);
    cohort.answer(ask, GRANTED);
    for other in 1..3 {
        assert!(cohort.hand_off(&mut hold, budget));
        (hold, budget) = cohort.held(other);
    }
    assert!(cohort.cancelled().is_empty());
    cohort.leaves(&hold, &[ticket]);
}

#[test]
fn a_request_names_as_many_tickets_as_it_may() {
    let cohort = cohort_with(Kind::Semaphore { limit: 1 }, 1, 103);
    let tickets: Vec<_> = (0..102).map(|other| cohort.queues(other)).collect();
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let named: Vec<_> = own(&cohort.asks_of_all()[0]).iter().map(|ticket| ticket.id).collect();
    assert_eq!(named, tickets[..100]);
}

#[test]
fn it_queues_up_after_its_budget_if_others_wait() {
    let (cohort, ticket) = semaphore(4);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let (mut hold, budget) = cohort.held(0);
    cohort.answer(&cohort.asks_of_all()[0], WANTED);
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.requeues(1, &hold);
    assert!(cohort.asks_of_all().is_empty(), "once per hold");
    cohort.leaves(&hold, &[ticket]);
}

/// A waiter that comes during a budget of 512 is not passed by all that is left of it.
#[test]
fn a_large_budget_counts_as_a_small_one_once_others_wait() {
    let (cohort, ticket) = semaphore(40);
    let mut large = HandoffBudget::of(Claim::Tokens(512), cohort.hold.token(), cohort.setup.now, SECOND);
    while !large.is_half_spent() {
        large = large.spend(false, cohort.setup.now).unwrap().budget;
    }
    assert!(cohort.hand_off_first(large));
    let (mut hold, mut budget) = cohort.held(0);
    cohort.answer(&cohort.asks_of_all()[0], WANTED);
    for other in 1..HANDOFF_BUDGET as usize {
        assert!(cohort.hand_off(&mut hold, budget));
        (hold, budget) = cohort.held(other);
    }
    assert!(cohort.hand_off(&mut hold, budget));
    cohort.requeues(HANDOFF_BUDGET as usize, &hold);
    cohort.leaves(&hold, &[ticket]);
}

#[test]
fn a_hold_that_waits_for_its_answer_goes_on_or_is_queued_up() {
    for answer in [GRANTED, WANTED, None] {
        let (cohort, ticket) = semaphore(4);
        assert!(cohort.hand_off_first(small_budget(&cohort)));
        let (mut hold, budget) = cohort.held(0);
        let asks = cohort.asks_of_all();
        assert!(cohort.hand_off(&mut hold, budget));
        assert!(cohort.poll(1).is_none(), "no member has it");
        cohort.answer(&asks[0], answer);
        if answer == GRANTED {
            let (held, budget) = cohort.held(1);
            assert_eq!((held.id, budget.next()), (hold.id, 2 * HANDOFF_BUDGET), "it ran dry, and asks for more");
        } else {
            cohort.requeues(1, &hold);
        }
        assert!(cohort.cancelled().is_empty(), "nothing was queued for the request");
        cohort.leaves(&hold, &[ticket]);
    }
}

/// Few hand-offs took nearly all of the time.
#[test]
fn it_does_not_ask_because_time_passes() {
    let (mut cohort, ticket) = semaphore(4);
    let budget = cohort.budget();
    cohort.setup.now += SECOND * 9 / 10;
    assert!(cohort.hand_off_first(budget));
    let (hold, _) = cohort.held(0);
    assert!(cohort.asks_of_all().is_empty());
    cohort.leaves(&hold, &[ticket]);
}

/// A cohort with two holds. Each was handed off once, so its budget is used up, and its request is under way.
struct TwoHolds {
    cohort: Cohort,
    ticket: AttemptId,
    held: [(Arc<Hold>, HandoffBudget); 2],
    asks: Vec<Ask>,
}

fn two_holds() -> TwoHolds {
    let cohort = cohort_with(Kind::Semaphore { limit: 2 }, 1, 6);
    let (first, now) = (cohort.hold.clone(), cohort.setup.now);
    let second = cohort.opens(0);
    let second = cohort.setup.engine.hold(second, 1, Token::NONE, Term::Renewed, now + LEASE, now).unwrap();
    let ticket = cohort.queues(1);
    let held = [(first, 1), (second, 2)].map(|(mut hold, other)| {
        assert!(cohort.hand_off(&mut hold, small_budget(&cohort)));
        drop(hold);
        cohort.held(other)
    });
    let asks = cohort.asks_of_all();
    assert_eq!(asks.len(), 2);
    TwoHolds { cohort, ticket, held, asks }
}

/// One member waits. The first hold is kept for it. Then the second hold is handed to it, or both are kept.
#[test]
fn a_hold_is_not_kept_for_a_member_that_has_another_one() {
    for goes_on in [false, true] {
        let TwoHolds { cohort, held, asks, .. } = two_holds();
        let now = cohort.setup.now;
        for other in [5, 4] {
            cohort.setup.engine.leave(&cohort.id, cohort.others[other], now);
        }
        // The member that is left waits for the ticket. This one has none.
        cohort.setup.engine.join_asleep(&cohort.id, 0).ok().unwrap();
        let [(mut first, of_first), (mut second, of_second)] = held;
        assert!(cohort.hand_off(&mut first, of_first));
        assert!(cohort.cancelled().is_empty(), "it is kept for the member that waits without a ticket");
        let budget = if goes_on { small_budget(&cohort) } else { of_second };
        assert!(cohort.hand_off(&mut second, budget));
        assert_eq!(cohort.cancelled().len(), 1, "one of the two is surplus");
        assert_eq!(cohort.poll(3).is_some(), goes_on);
        for ask in &asks {
            cohort.answer(ask, GRANTED);
        }
        assert!(cohort.cancelled().is_empty());
    }
}

/// The hold is kept for a member. Then the server grants another hold to the cohort, and the member asks for one more.
#[test]
fn a_hold_is_not_kept_for_a_member_that_asks() {
    let cohort = cohort_with(Kind::Semaphore { limit: 2 }, 1, 3);
    let now = cohort.setup.now;
    let asking = cohort.opens(0);
    assert!(cohort.hand_off_first(small_budget(&cohort)));
    let (mut hold, budget) = cohort.held(1);
    assert_eq!(cohort.asks_of_all().len(), 1);
    assert!(cohort.hand_off(&mut hold, budget));
    assert!(cohort.cancelled().is_empty(), "it is kept for the last member");
    cohort.setup.engine.hold(asking, 1, Token::NONE, Term::Renewed, now + LEASE, now).unwrap();
    assert!(matches!(cohort.poll(2), Some(Turn::Lead { .. })));
    assert_eq!(cohort.cancelled(), [hold.id]);
}

/// The cohort has a ticket in the queue even if no other client waits.
#[test]
fn it_asks_after_a_grant_from_the_queue() {
    let (cohort, ticket) = semaphore(4);
    let now = cohort.setup.now;
    let grant = Outcome::Granted { token: Token::NONE, counted_from: now };
    cohort.setup.engine.change(|state| state.handoff_handler().decide(ticket, grant, now));
    assert!(matches!(cohort.poll(0), Some(Turn::Attempt(handoff)) if handoff.is_decided));
    let mut second = cohort.setup.engine.hold(ticket, 1, Token::NONE, Term::Renewed, now + LEASE, now).unwrap();
    assert!(cohort.hand_off(&mut second, small_budget(&cohort)));
    let asks = cohort.asks_of_all();
    assert!(matches!(&asks[..], [ask] if ask.held == ticket && own(ask).is_empty()), "{asks:?}");
    cohort.setup.engine.release(&second, now);
    let hold = cohort.hold.clone();
    cohort.leaves(&hold, &[]);
}

/// At most as many holds are kept as members wait without a ticket.
#[test]
fn holds_that_wait_for_their_answers_are_released_when_too_few_members_are_left() {
    let TwoHolds { cohort, ticket, mut held, asks } = two_holds();
    let now = cohort.setup.now;
    for (hold, budget) in &mut held {
        assert!(cohort.hand_off(hold, *budget));
    }
    // Three members wait, one of them for the ticket.
    assert!(cohort.cancelled().is_empty());
    for (left, other) in [(1, 5), (2, 4)] {
        cohort.setup.engine.leave(&cohort.id, cohort.others[other], now);
        assert_eq!(cohort.cancelled().len(), 1, "{left} of two");
    }
    for ask in &asks {
        cohort.answer(ask, GRANTED);
    }
    assert!(cohort.poll(3).is_none());
    cohort.leaves(&held[0].0, &[ticket]);
}
