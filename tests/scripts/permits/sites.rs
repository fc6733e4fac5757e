//! Call sites of one semaphore with different limits, as in every deployment that changes it: each waits by its own.

use std::collections::VecDeque;

use super::lab::{LIMIT, Permits};
use crate::lab::{Acquired, Attempt, Inbox, RELEASED, State, attempt};

const CLIENTS: u32 = 6;

/// What must be: first come, first served, each by the limit in force for it.
#[derive(Default)]
struct Model {
    held: VecDeque<Attempt>,
    queue: VecDeque<Attempt>,
    stored: Option<u32>,
}

impl Model {
    fn settle(&mut self) {
        while let Some(head) = self.queue.front() {
            let used: u32 = self.held.iter().map(|hold| hold.span).sum();
            if used + head.span > self.stored.or(head.limit).unwrap() {
                return;
            }
            self.held.extend(self.queue.pop_front());
        }
    }

    #[track_caller]
    fn assert(&self, lab: &mut Permits) {
        lab.assert_held(&self.held.iter().collect::<Vec<_>>());
        lab.assert_queue(&self.queue.iter().collect::<Vec<_>>());
    }
}

fn listening() -> (Permits, Vec<Inbox>) {
    let mut lab = Permits::semaphore(5);
    let inboxes = (1..=CLIENTS).map(|client| lab.listen(client)).collect();
    (lab, inboxes)
}

/// Six come, each from one site or the other; some take two permits. Then all go, in the order in which they hold.
#[test]
fn limits_of_two_and_five_in_all_orders() {
    let (mut lab, _inboxes) = listening();
    for pattern in 0..1_u32 << CLIENTS {
        lab.rename(&format!("pattern-{pattern}"));
        let mut model = Model::default();
        for n in 0..CLIENTS {
            let limit = if pattern >> n & 1 == 0 { 2 } else { 5 };
            let units = 1 + u32::from((pattern + n) % 3 == 0);
            let next = attempt(n + 1, 1).units(units).limit(limit);
            model.queue.push_back(next.clone());
            model.settle();
            let granted = matches!(lab.acquire(&next), Acquired::Granted(_));
            assert_eq!(granted, model.queue.is_empty(), "pattern {pattern}, client {}", n + 1);
            model.assert(&mut lab);
        }
        while let Some(first) = model.held.pop_front() {
            model.settle();
            assert_eq!(lab.release(&first), RELEASED);
            model.assert(&mut lab);
        }
        assert!(model.queue.is_empty());
    }
}

/// A stored limit is the same for all, whatever they ask with; larger, smaller, between.
#[test]
fn a_stored_limit_wins_over_both() {
    for stored in [1, 2, 3, 5, 6] {
        let (mut lab, _inboxes) = listening();
        assert_eq!(lab.set_limit(stored), LIMIT);
        let mut model = Model { stored: Some(stored), ..Model::default() };
        for n in 1..=CLIENTS {
            let next = attempt(n, 1).limit(if n % 2 == 0 { 2 } else { 5 });
            model.queue.push_back(next.clone());
            model.settle();
            lab.acquire(&next);
            model.assert(&mut lab);
        }
        while let Some(first) = model.held.pop_front() {
            model.settle();
            lab.release(&first);
            model.assert(&mut lab);
        }
    }
}

/// The one with the smaller limit releases, cancels, sends a heartbeat, tries: the ticket of the other is served by its
/// own.
#[test]
fn a_call_serves_other_tickets_by_their_own_limits() {
    let (small, large) = (|n| attempt(1, n).limit(2), |n| attempt(2, n).limit(5));
    let waiting = || {
        let (mut lab, inboxes) = listening();
        let holder = attempt(3, 1).units(2).limit(2);
        lab.hold(&[&holder]);
        lab.queue(&[&small(1), &large(1).units(2)]);
        (lab, inboxes, holder)
    };
    // The first ticket blocks the others, because it does not fit by its own limit.
    let (mut lab, _inboxes, holder) = waiting();
    lab.queue(&[&large(2)]);
    lab.assert_held(&[&holder]);
    assert!(matches!(lab.try_acquire(&large(3)), Acquired::Busy { .. }));
    lab.cancel(&small(1));
    lab.assert_held(&[&holder, &large(1).units(2), &large(2)]);
    // A heartbeat of the other call site.
    let (mut lab, _inboxes, holder) = waiting();
    lab.expire_ticket(&small(1));
    assert_eq!(lab.state(&small(9)), State::Gone);
    lab.assert_held(&[&holder, &large(1).units(2)]);
    // A release that leaves enough room by one limit but not by the other.
    let (mut lab, _inboxes, holder) = waiting();
    lab.cancel(&small(1));
    lab.queue(&[&small(2), &large(3)]);
    assert_eq!(lab.release(&holder), RELEASED);
    lab.assert_held(&[&large(1).units(2)]);
    lab.assert_queue(&[&small(2), &large(3)]);
}
