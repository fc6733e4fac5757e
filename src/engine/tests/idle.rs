//! Retained holds that no guard uses.

use super::*;
use crate::protocol::limits::LARGEST_BUDGET;
use crate::protocol::message::Message;

mod budget;
mod wanted;

const SECOND: Duration = Duration::from_secs(1);

/// A cohort that holds a retained lock.
struct Retained {
    setup: Setup,
    cohort: CohortId,
    hold: Arc<Hold>,
    budget: HandoffBudget,
}

/// The request was answered with a grant of so many tokens.
fn retained(tokens: u32) -> Retained {
    opened(tokens, |_, _| {})
}

/// `before` comes between the request and its grant.
fn opened(tokens: u32, before: impl FnOnce(&Setup, AttemptId)) -> Retained {
    let (setup, keys) = (setup(), keys("a"));
    let cohort = CohortId::of(&keys, 1);
    let first = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let handoff = setup.engine.open_in_cohort(&keys, first, (1, true), LEASE, setup.now).unwrap();
    assert!(handoff.id.is_retained() && handoff.amount == LARGEST_BUDGET);
    before(&setup, handoff.id);
    let until = setup.now + LEASE;
    let hold = setup.engine.hold(handoff.id, tokens, Token::new(1), Term::Renewed, until, setup.now).unwrap();
    let budget = HandoffBudget::of(Kind::Lock.claim(tokens), hold.token(), setup.now, SECOND);
    Retained { setup, cohort, hold, budget }
}

impl Retained {
    /// The guard is done.
    fn ends(&mut self, time: Duration) -> bool {
        let Self { setup, cohort, hold, budget, .. } = self;
        setup.engine.hand_off(cohort, hold, *budget, Some(time), setup.now)
    }

    fn idles(tokens: u32) -> Self {
        let mut retained = retained(tokens);
        assert!(retained.ends(9 * SECOND));
        retained
    }

    fn join(&self) -> u64 {
        let joined = self.setup.engine.join(&self.cohort, 1, Some(Waker::noop()), self.setup.now).ok().unwrap();
        assert!(!joined.waits, "it is polled again at once");
        joined.number
    }

    /// What the next member finds at once.
    fn next(&mut self) -> Option<Turn> {
        let member = self.join();
        let context = Context::from_waker(Waker::noop());
        let turn = self.setup.engine.poll_turn(&self.cohort, member, self.setup.now, &context);
        let Poll::Ready(Ok((Ok(turn), _))) = turn else { return None };
        if let Turn::Held { hold, budget, was_idle } = &turn {
            assert!(was_idle);
            (self.hold, self.budget) = (hold.clone(), *budget);
        } else {
            self.setup.engine.leave(&self.cohort, member, self.setup.now);
        }
        Some(turn)
    }

    #[track_caller]
    fn takes(&mut self) -> Token {
        let turn = self.next();
        assert!(matches!(turn, Some(Turn::Held { .. })), "{turn:?}");
        drop(turn);
        self.hold.token()
    }

    /// The attempts that are cancelled now.
    fn cancelled(&self, now: Instant) -> Vec<AttemptId> {
        let work = self.setup.engine.work(now);
        self.setup.answer(&work);
        work.cleanups.iter().map(|(_, cleanup)| cleanup.ticket.id).collect()
    }

    fn wanted(&self) {
        self.setup.engine.deliver(Message::Wanted { id: self.hold.id }, self.setup.now);
    }

    fn is_released(&self) -> bool {
        self.cancelled(self.setup.now) == [self.hold.id] && self.setup.engine.stats().lost == 0
    }

    /// The guard is done, and releases.
    fn releases(mut self) {
        assert!(!self.ends(9 * SECOND));
        self.setup.engine.release(&self.hold, self.setup.now);
        self.setup.assert_empty();
    }
}

#[test]
fn an_idle_hold_is_taken_with_the_next_token_and_counts_as_no_hold() {
    let mut retained = Retained::idles(9);
    assert_eq!(retained.setup.engine.stats().held, 0);
    assert_eq!(retained.takes(), Token::new(2));
    assert!(retained.ends(SECOND) && retained.takes() == Token::new(3));
    let Stats { held, retained: taken, passed_on, acquired, .. } = retained.setup.engine.stats();
    assert_eq!((held, taken, passed_on, acquired), (1, 2, 0, 3));
    retained.wanted();
    retained.releases();
}

#[test]
fn an_idle_hold_is_not_renewed_and_the_next_guard_renews_it_at_once() {
    let mut retained = Retained::idles(9);
    retained.setup.now += 9 * SECOND - Duration::from_nanos(1);
    assert!(retained.setup.engine.work(retained.setup.now).renew.is_empty());
    retained.takes();
    retained.setup.now += 2 * SECOND;
    // It came due while nobody used the hold.
    assert!(retained.ends(9 * SECOND));
    retained.setup.now += SECOND;
    assert!(retained.setup.engine.work(retained.setup.now).renew.is_empty());
    retained.takes();
    assert_eq!(retained.setup.engine.work(retained.setup.now).renew.len(), 1);
    retained.wanted();
    retained.releases();
}

#[test]
fn an_idle_hold_is_released_when_its_time_is_over() {
    let mut retained = Retained::idles(9);
    let (ends, just) = (retained.setup.now + 9 * SECOND, Duration::from_nanos(1));
    let work = retained.setup.engine.work(retained.setup.now);
    assert_eq!(work.next, Some(ends));
    assert_eq!(retained.cancelled(ends - just), []);
    assert_eq!(retained.cancelled(ends), [retained.hold.id]);
    retained.setup.now = ends;
    assert!(matches!(retained.next(), Some(Turn::Lead { .. })), "the next member asks the server");
    retained.setup.assert_empty();
}

/// The watchdog learns of it, although it waits for a later time.
#[test]
fn the_watchdog_looks_again_for_a_hold_that_ends_sooner() {
    let mut retained = retained(9);
    let next = retained.setup.engine.work(retained.setup.now).next;
    let listener = retained.setup.engine.listen();
    assert!(retained.ends(SECOND) && next > Some(retained.setup.now + SECOND));
    assert!(listener.now_or_never().is_some());
    // Now it waits for that time, and the next end is later.
    retained.setup.engine.work(retained.setup.now);
    let listener = retained.setup.engine.listen();
    retained.takes();
    assert!(retained.ends(2 * SECOND));
    assert!(listener.now_or_never().is_none());
    retained.wanted();
    retained.setup.assert_empty();
}

/// It ends while a third of the lease is left.
#[test]
fn an_idle_hold_does_not_outlast_what_its_next_guard_needs() {
    for (held, idle) in [(10, 10), (14, 6), (15, 0)] {
        let mut retained = retained(9);
        retained.setup.now += held * SECOND;
        let kept = retained.ends(10 * SECOND);
        assert_eq!(kept, idle > 0, "held for {held} s");
        if kept {
            let ends = retained.setup.now + idle * SECOND;
            assert_eq!(retained.cancelled(ends - Duration::from_nanos(1)), [], "held for {held} s");
            assert_eq!(retained.cancelled(ends), [retained.hold.id], "held for {held} s");
        } else {
            retained.setup.engine.release(&retained.hold, retained.setup.now);
        }
        retained.setup.assert_empty();
    }
}

/// The process stood still, and the watchdog has not looked yet.
#[test]
fn an_idle_hold_with_too_little_of_its_lease_is_released_and_not_given() {
    for left in [10 * SECOND, SECOND, Duration::ZERO] {
        let mut retained = Retained::idles(9);
        retained.setup.now += LEASE - left;
        assert!(matches!(retained.next(), Some(Turn::Lead { .. })), "with {left:?} left");
        assert!(retained.is_released(), "with {left:?} left");
        retained.setup.assert_empty();
    }
}

/// Nobody has a guard that could be told of a loss.
#[test]
fn the_end_of_an_idle_hold_is_no_loss() {
    let ends: [fn(&Retained, Instant); 4] = [
        |retained, now| retained.setup.engine.deliver(Message::Revoked { id: retained.hold.id }, now),
        |retained, now| retained.setup.engine.close(now),
        |retained, now| retained.setup.engine.end(now),
        |retained, now| retained.setup.answer(&retained.setup.engine.work(now + LEASE)),
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let retained = Retained::idles(9);
        end(&retained, retained.setup.now);
        assert_eq!(retained.setup.engine.stats().lost, 0, "{n}");
        retained.setup.assert_empty();
    }
}

/// One that the runtime has dropped is released without it.
#[test]
fn an_idle_hold_is_left_to_the_good_bye() {
    let retained = Retained::idles(9);
    let left = retained.setup.engine.die(retained.setup.now);
    assert_eq!(left.iter().map(|cleanup| cleanup.ticket.id).collect::<Vec<_>>(), [retained.hold.id]);
}

#[test]
fn a_member_that_leaves_with_an_idle_hold_releases_it() {
    let retained = Retained::idles(9);
    let member = retained.join();
    retained.setup.engine.leave(&retained.cohort, member, retained.setup.now);
    assert!(retained.is_released());
    retained.setup.assert_empty();
}

#[test]
fn members_that_wait_go_before_idleness() {
    let mut retained = retained(9);
    let waits = retained.setup.engine.join_asleep(&retained.cohort, 0).ok().unwrap();
    assert!(retained.ends(9 * SECOND));
    assert_eq!(retained.setup.engine.stats().held, 1, "the member has it");
    retained.setup.engine.leave(&retained.cohort, waits, retained.setup.now);
    assert!(retained.is_released());
    retained.setup.assert_empty();
}

#[test]
fn a_request_that_does_not_wait_takes_an_idle_hold_and_joins_nobody() {
    let mut retained = Retained::idles(9);
    let join = |retained: &Retained| retained.setup.engine.join(&retained.cohort, 0, None, retained.setup.now);
    let member = join(&retained).ok().unwrap().number;
    let turn = retained.setup.engine.poll_turn(
        &retained.cohort,
        member,
        retained.setup.now,
        &Context::from_waker(Waker::noop()),
    );
    let Poll::Ready(Ok((Ok(Turn::Held { hold, budget, .. }), _))) = turn else { panic!("{turn:?}") };
    assert!(matches!(join(&retained), Err(CannotJoin::Busy)));
    (retained.hold, retained.budget) = (hold, budget);
    retained.wanted();
    retained.setup.engine.release(&retained.hold, retained.setup.now);
    assert!(join(&retained).is_ok(), "it asks the server");
}

#[test]
fn a_plain_hold_does_not_become_idle() {
    let (setup, keys) = (setup(), keys("a"));
    let cohort = CohortId::of(&keys, 1);
    let first = setup.engine.join_asleep(&cohort, 0).ok().unwrap();
    let handoff = setup.engine.open_in_cohort(&keys, first, (1, false), LEASE, setup.now).unwrap();
    let hold = setup.grant(handoff.id, true);
    let budget = HandoffBudget::of(Kind::Lock.claim(9), hold.token(), setup.now, SECOND);
    assert!(!setup.engine.hand_off(&cohort, &mut hold.clone(), budget, Some(SECOND), setup.now));
    setup.engine.release(&hold, setup.now);
    setup.assert_empty();
}
