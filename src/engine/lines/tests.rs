use uuid::Uuid;

use super::*;

struct Setup {
    lines: Lines<&'static str>,
    id: LineId,
}

fn setup(kind: Kind) -> Setup {
    let keys = Arc::new(Keys::new("p", kind, "n").unwrap());
    Setup { lines: Lines::new(), id: LineId::of(&keys, 1) }
}

const NOTHING: Poll<Option<&str>> = Poll::Ready(None);

impl Setup {
    /// As the ledger does.
    fn join(&mut self) -> u64 {
        let place = self.lines.join(&self.id);
        self.settle();
        place
    }

    fn settle(&mut self) {
        self.lines.settle(&self.id, &mut Vec::new());
    }

    fn poll(&mut self, place: u64) -> Poll<Option<&'static str>> {
        self.lines.poll(&self.id, place, &mut Some(Waker::noop().clone()))
    }

    /// What comes back, and how many were woken.
    fn give(&mut self, turn: &'static str) -> (Result<u64, &'static str>, usize) {
        let mut wakers = Vec::new();
        (self.lines.give(&self.id, turn, &mut wakers), wakers.len())
    }

    fn leave(&mut self, place: u64) -> (Option<&'static str>, usize) {
        let mut wakers = Vec::new();
        let given = self.lines.leave(&self.id, place, &mut wakers);
        self.settle();
        (given, wakers.len())
    }

    fn holds(&mut self, place: u64, hold: u64) {
        self.lines.holds(&self.id, place, hold);
        self.settle();
    }

    fn ends(&mut self, hold: u64) {
        self.lines.ends(&self.id, hold);
        self.settle();
    }
}

fn ticket(n: u64) -> WireId {
    WireId { client: Uuid::nil(), n }
}

#[test]
fn turns_go_in_order_of_arrival() {
    let mut line = setup(Kind::Lock);
    let places = [line.join(), line.join(), line.join()];
    assert_eq!(line.poll(places[0]), NOTHING);
    line.holds(places[0], 1);
    assert_eq!((line.poll(places[1]), line.poll(places[2])), (Poll::Pending, Poll::Pending));
    assert_eq!(line.give("one"), (Ok(places[1]), 1));
    assert_eq!((line.poll(places[1]), line.poll(places[2])), (Poll::Ready(Some("one")), Poll::Pending));
    assert_eq!(line.give("two"), (Ok(places[2]), 1));
    assert_eq!(line.poll(places[2]), Poll::Ready(Some("two")));
    assert_eq!(line.give("three"), (Err("three"), 0));
    line.ends(1);
    assert!(line.lines.lines.is_empty());
}

#[test]
fn whoever_leaves_is_passed_over_and_what_it_was_given_comes_back() {
    let mut line = setup(Kind::Lock);
    let places = [line.join(), line.join(), line.join(), line.join()];
    line.holds(places[0], 1);
    assert_eq!(line.poll(places[2]), Poll::Pending);
    assert_eq!(line.leave(places[2]), (None, 1));
    assert_eq!(line.give("one"), (Ok(places[1]), 0));
    assert_eq!(line.leave(places[1]), (Some("one"), 0));
    assert_eq!(line.give("one"), (Ok(places[3]), 0));
    assert_eq!(line.poll(places[3]), Poll::Ready(Some("one")));
}

#[test]
fn one_asks_at_a_time_for_what_is_one() {
    for kind in [Kind::Lock, Kind::ReadWrite] {
        let mut line = setup(kind);
        let places = [line.join(), line.join(), line.join()];
        assert_eq!((line.poll(places[0]), line.poll(places[1])), (NOTHING, Poll::Pending));
        line.holds(places[0], 1);
        assert_eq!(line.poll(places[1]), Poll::Pending);
        // Lost, or changed.
        line.ends(1);
        assert_eq!((line.poll(places[1]), line.poll(places[2])), (NOTHING, Poll::Pending));
        line.leave(places[1]);
        assert_eq!(line.poll(places[2]), NOTHING);
    }
}

#[test]
fn as_many_ask_at_once_as_there_may_be_permits_and_one_when_they_are_held() {
    let mut line = setup(Kind::Semaphore { limit: 2 });
    let places = [line.join(), line.join(), line.join(), line.join()];
    assert_eq!(places.map(|place| line.poll(place).is_ready()), [true, true, false, false]);
    line.holds(places[0], 1);
    assert_eq!(line.poll(places[2]), Poll::Pending);
    line.holds(places[1], 2);
    // An operator may have set a larger limit.
    assert_eq!((line.poll(places[2]), line.poll(places[3])), (NOTHING, Poll::Pending));
    line.holds(places[2], 3);
    assert_eq!(line.poll(places[3]), NOTHING);
}

#[test]
fn a_ticket_is_for_whoever_is_first() {
    let mut line = setup(Kind::Semaphore { limit: 1 });
    let places = [line.join(), line.join(), line.join()];
    line.holds(places[0], 1);
    line.lines.queues(&line.id, places[1], ticket(2));
    assert_eq!((line.poll(places[1]), line.poll(places[2])), (Poll::Pending, Poll::Pending));
    assert!(line.lines.is_short(&line.id));
    // What the first is done with does not wait for the ticket.
    assert_eq!(line.give("held"), (Ok(places[1]), 1));
    assert!(!line.lines.is_short(&line.id));
    assert_eq!(line.give("another"), (Err("another"), 0));
    assert!(line.lines.takes(&line.id, ticket(2)) && !line.lines.takes(&line.id, ticket(2)));
    assert_eq!(line.give("granted"), (Ok(places[2]), 1));
}

#[test]
fn a_ticket_that_nobody_waits_for_is_given_up() {
    let mut line = setup(Kind::Semaphore { limit: 2 });
    let places = [line.join(), line.join()];
    for (place, n) in places.into_iter().zip([1, 2]) {
        line.lines.queues(&line.id, place, ticket(n));
    }
    assert_eq!(line.lines.surplus(&line.id), None);
    line.leave(places[0]);
    assert_eq!(line.lines.surplus(&line.id), Some(ticket(2)));
    assert_eq!(line.lines.surplus(&line.id), None);
    line.leave(places[1]);
    assert_eq!(line.lines.surplus(&line.id), Some(ticket(1)));
    line.settle();
    assert!(line.lines.lines.is_empty());
}
