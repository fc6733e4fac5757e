//! More waiters than one call tells.

use super::lab::{Counted, Deleted, Latch, NONE, Set, State, TICKETS, Waits, call};
use crate::lab::{Attempt, Inbox, attempt};

const PORTION: usize = 1_000;

/// So many waiters of as many clients, who listen.
fn waiters(lab: &mut Latch, waiters: u64, clients: u32) -> (Vec<Attempt>, Vec<Inbox>) {
    lab.checked = false;
    let waiters: Vec<_> = (0..waiters).map(|n| attempt(10 + n as u32 % clients, n).patient()).collect();
    lab.queue(&waiters.iter().collect::<Vec<_>>());
    (waiters, (10..10 + clients).map(|client| lab.listen(client)).collect())
}

/// Whom the messages tell the word. No client has got more than one message per call.
fn told(lab: &mut Latch, inboxes: &[Inbox], word: &str, calls: usize) -> Vec<String> {
    let messages = inboxes.iter().flat_map(|inbox| {
        let messages = lab.read(inbox);
        assert!(messages.len() <= calls, "{} messages by {calls} calls", messages.len());
        messages
    });
    let ids = messages.flat_map(|message| {
        let ids = message.strip_prefix(word).unwrap_or_else(|| panic!("{message}")).trim_start();
        ids.split(' ').map(str::to_owned).collect::<Vec<_>>()
    });
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids
}

fn all(waiters: &[Attempt]) -> Vec<String> {
    let mut ids: Vec<_> = waiters.iter().map(|waiter| waiter.id.clone()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn everybody_is_told_a_portion_with_each_call() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 10_100, 100);
    assert_eq!(lab.count_down(&call(1)), Counted::More(0));
    assert_eq!(told(&mut lab, &inboxes, "open", 1).len(), PORTION);
    assert_eq!(lab.inspect().waiters, 10_100 - PORTION as u64);
    assert!(lab.ttl(TICKETS) > 0);
    // A second copy notifies no waiter, and replies that more have to be notified. Other calls that count down do not
    // notify the rest either.
    assert_eq!(lab.count_down(&call(1).resent()), Counted::More(0));
    assert_eq!(lab.count_down(&call(2)), Counted::Count(0));
    assert_eq!(told(&mut lab, &inboxes, "open", 0), [""; 0]);

    let mut calls = 0;
    while lab.try_cancel(&attempt(1, 0)) == Ok((false, true)) {
        calls += 1;
    }
    assert_eq!(calls, 9, "the tenth told the last 100");
    let mut rest = told(&mut lab, &inboxes, "open", 10);
    rest.dedup();
    assert_eq!(rest.len(), 10_100 - PORTION);
    assert_eq!((lab.ttl(TICKETS), lab.cancel(&attempt(1, 0))), (-2, false));
    assert!(waiters.iter().step_by(100).all(|waiter| lab.heartbeat(&[waiter]) == [State::Open]));
}

#[test]
fn as_many_as_one_call_tells_need_no_second() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, PORTION as u64, 3);
    assert_eq!(lab.count_down(&call(1)), Counted::Count(0));
    assert_eq!(told(&mut lab, &inboxes, "open", 1), all(&waiters));
    assert_eq!(lab.ttl(TICKETS), -2);
}

/// The client that counted down to zero has died: those who wait tell each other.
#[test]
fn a_heartbeat_tells_the_next_and_knows_what_became_of_its_own() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 2_500, 3);
    assert_eq!(lab.count_down(&call(1)), Counted::More(0));
    told(&mut lab, &inboxes, "open", 1);
    let late: Vec<_> = waiters[2_400..].iter().collect();
    assert_eq!(lab.try_heartbeat(&late[..2]), Ok((vec![State::Open; 2], true)));
    assert_eq!(told(&mut lab, &inboxes, "open", 1).len(), PORTION);
    assert_eq!(lab.try_heartbeat(&late[..2]), Ok((vec![State::Open; 2], false)));
    assert_eq!(told(&mut lab, &inboxes, "open", 1).len(), 500);
    assert_eq!(lab.ttl(TICKETS), -2);
}

/// A waiter of the last latch is not taken for one of the next.
#[test]
fn the_next_latch_is_set_when_all_are_told() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 2_500, 3);
    assert_eq!(lab.count_down(&call(1)), Counted::More(0));
    assert_eq!(lab.set(&call(2), 7), Set::More);
    assert_eq!(lab.inspect().count, 0);
    assert_eq!(lab.remembered().len(), 2, "it is not decided");
    assert_eq!(lab.set(&call(2), 7), Set::Set);
    assert_eq!(told(&mut lab, &inboxes, "open", 3), all(&waiters));
    assert_eq!((lab.inspect().count, lab.ttl(TICKETS)), (7, -2));
    assert_eq!(lab.heartbeat(&[&waiters[2_400]]), [State::Gone]);
}

/// Nor if the latch has ended meanwhile: they are told what became of theirs.
#[test]
fn the_word_outlives_the_latch() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 2_500, 3);
    assert_eq!(lab.count_down(&call(1)), Counted::More(0));
    assert_eq!(lab.delete(&call(2)), Deleted::More);
    assert_eq!(told(&mut lab, &inboxes, "open", 2).len(), 2 * PORTION);
    assert_eq!(lab.delete(&call(2).resent()), Deleted::More);
    assert_eq!(lab.wait(&attempt(5, 1)), Waits::None);
    // A waiter that was answered by its heartbeat needs no message, but gets one.
    assert_eq!(lab.try_heartbeat(&[&waiters[2_499]]), Ok((vec![State::Open], false)));
    assert_eq!(told(&mut lab, &inboxes, "open", 1).len(), 500);
    assert_eq!(lab.inspect(), NONE);
}

#[test]
fn a_deletion_tells_everybody_too() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 2_500, 3);
    assert_eq!(lab.delete(&call(1)), Deleted::More);
    assert_eq!(lab.try_heartbeat(&[&waiters[2_400]]), Ok((vec![State::Gone], true)));
    assert_eq!(lab.set(&call(2), 7), Set::Set);
    assert_eq!(told(&mut lab, &inboxes, "gone", 3), all(&waiters));
    assert_eq!(lab.heartbeat(&[&waiters[0], &waiters[2_400]]), [State::Gone; 2]);
}

/// Dead waiters, and waiters that have given up meanwhile, delay no one.
#[test]
fn only_the_living_are_told() {
    let mut lab = Latch::of(1);
    let (waiters, inboxes) = waiters(&mut lab, 2_500, 3);
    for waiter in &waiters[..700] {
        lab.expire_ticket(waiter, 1);
    }
    assert_eq!(lab.count_down(&call(1)), Counted::More(0));
    assert_eq!(lab.try_cancel(&waiters[2_499]), Ok((true, false)));
    assert_eq!(told(&mut lab, &inboxes, "open", 2), all(&waiters[700..2_499]));
    assert_eq!(lab.ttl(TICKETS), -2);
}
