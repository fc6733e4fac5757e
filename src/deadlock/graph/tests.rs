use std::time::Duration;

use super::*;
use crate::protocol::limits::{READ, UPGRADABLE, UPGRADE};
use crate::protocol::names::PrimitiveKind;

const LOCK: Claim = Claim::Tokens(1);
const READER: Claim = Claim::Units { units: READ, limit: WRITE };
const WRITER: Claim = Claim::Units { units: WRITE, limit: WRITE };

const UPGRADABLE_READER: Claim = Claim::Units { units: UPGRADABLE, limit: WRITE };
const UPGRADE_OF_IT: Claim = Claim::Units { units: UPGRADE, limit: WRITE };

fn permits(units: u32) -> Claim {
    Claim::Units { units, limit: 2 }
}

fn client(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn id(n: u128, attempt: u64) -> AttemptId {
    AttemptId { client: client(n), n: attempt }
}

/// A name with its holds and its queue, each by the number of a client. The token is 100 more than that number.
fn look(name: &str, holds: &[(u128, Claim)], queue: &[(u128, Claim)]) -> Looked {
    Looked::new(NameInUse::new(PrimitiveKind::Lock, name), seen(holds, queue))
}

fn seen(holds: &[(u128, Claim)], queue: &[(u128, Claim)]) -> Seen {
    let hold = |(n, claim): &(u128, Claim)| SeenHold {
        id: id(*n, 1).text(),
        token: Token::new(100 + u64::try_from(*n).unwrap()),
        left: Some(Duration::from_secs(1)),
        claim: *claim,
    };
    let ticket =
        |(n, claim): &(u128, Claim)| Ticket { id: id(*n, 2), lease: Duration::from_secs(1), claim: *claim, rest: 0 };
    let queue: Vec<_> = queue.iter().map(ticket).collect();
    Seen { holds: holds.iter().map(hold).collect(), limit: None, waiters: 0, queue }
}

/// Who waits for which name because of whom, and whether by a hold.
fn found(looked: &[Looked]) -> Vec<Vec<(u128, String, u128, bool)>> {
    let edge = |edge: &Edge| {
        let name = looked[edge.at].name.name.clone();
        (edge.waiter.as_u128(), name, edge.blocker.as_u128(), edge.hold.is_some())
    };
    cycles(looked, 9).iter().map(|cycle| cycle.iter().map(edge).collect()).collect()
}

fn by_hold(waiter: u128, name: &str, blocker: u128) -> (u128, String, u128, bool) {
    (waiter, name.to_owned(), blocker, true)
}

fn by_queue(waiter: u128, name: &str, blocker: u128) -> (u128, String, u128, bool) {
    (waiter, name.to_owned(), blocker, false)
}

#[test]
fn three_wait_in_a_circle() {
    let mut looked = vec![
        look("a", &[(1, LOCK)], &[(3, LOCK)]),
        look("b", &[(2, LOCK)], &[(1, LOCK)]),
        look("c", &[(3, LOCK)], &[(2, LOCK)]),
    ];
    let circle = vec![by_hold(1, "b", 2), by_hold(2, "c", 3), by_hold(3, "a", 1)];
    let circles = [circle];
    assert_eq!(found(&looked), circles);
    assert_eq!(cycles(&looked, 9)[0][1].hold, Some(Token::new(103)));
    // One who waits behind them is no part of it, and one who gets on has nothing to do with it.
    looked[0] = look("a", &[(1, LOCK)], &[(3, LOCK), (9, LOCK)]);
    looked.push(look("d", &[(8, LOCK)], &[(7, LOCK)]));
    assert_eq!(found(&looked), circles);
    // Without one of the holds, all of them get on.
    looked[2] = look("c", &[], &[(2, LOCK)]);
    assert_eq!(found(&looked), Vec::<Vec<_>>::new());
}

#[test]
fn two_circles_with_a_client_in_common_are_both_found() {
    let looked = [
        look("a", &[(1, LOCK)], &[(2, LOCK)]),
        look("b", &[(2, LOCK)], &[(1, LOCK)]),
        look("c", &[(1, LOCK)], &[(3, LOCK)]),
        look("d", &[(3, LOCK)], &[(1, LOCK)]),
    ];
    let [first, second] = [2, 3].map(|other| {
        let names = if other == 2 { ("a", "b") } else { ("c", "d") };
        vec![by_hold(1, names.1, other), by_hold(other, names.0, 1)]
    });
    let mut circles = found(&looked);
    circles.iter_mut().for_each(|circle| circle.sort());
    assert_eq!(circles, [first, second]);
}

#[test]
fn who_is_before_in_a_queue_is_in_the_way() {
    // 2 waits for b behind 3, which waits for a, which 2 holds. The holder of b gets on.
    let looked = [look("a", &[(2, LOCK)], &[(3, LOCK)]), look("b", &[(9, LOCK)], &[(3, LOCK), (2, LOCK)])];
    assert_eq!(found(&looked), [vec![by_queue(2, "b", 3), by_hold(3, "a", 2)]]);
    // The other way round, 2 gets b.
    let looked = [look("a", &[(2, LOCK)], &[(3, LOCK)]), look("b", &[(9, LOCK)], &[(2, LOCK), (3, LOCK)])];
    assert_eq!(found(&looked), Vec::<Vec<_>>::new());
    // A circle of tickets only: the first of each queue is granted next.
    let looked = [look("a", &[(9, LOCK)], &[(1, LOCK), (2, LOCK)]), look("b", &[(9, LOCK)], &[(2, LOCK), (1, LOCK)])];
    assert_eq!(found(&looked), Vec::<Vec<_>>::new());
}

#[test]
fn an_upgrade_waits_for_all_other_readers() {
    let reads = (1, UPGRADABLE_READER);
    let looked = |first: &[(u128, Claim)], queue: &[(u128, Claim)]| {
        found(&[look("a", first, queue), look("b", &[(1, LOCK)], &[(2, LOCK)])])
    };
    let circle = vec![vec![by_hold(1, "a", 2), by_hold(2, "b", 1)]];
    assert_eq!(looked(&[reads, (2, READER)], &[(1, UPGRADE_OF_IT)]), circle);
    assert_eq!(looked(&[reads], &[(1, UPGRADE_OF_IT)]), Vec::<Vec<_>>::new(), "it does not wait for itself");
    // Of upgradable readers, one waits for the other, and plain readers do not.
    assert_eq!(looked(&[(2, UPGRADABLE_READER)], &[reads]), circle);
    assert_eq!(looked(&[(2, UPGRADABLE_READER)], &[(1, READER)]), Vec::<Vec<_>>::new());
    assert_eq!(looked(&[(2, READER)], &[reads]), Vec::<Vec<_>>::new());
    assert_eq!(looked(&[(2, UPGRADABLE_READER)], &[(1, WRITER)]), circle);
}

#[test]
fn readers_wait_for_writers_only() {
    let looked = |first: &[(u128, Claim)], queue: &[(u128, Claim)]| {
        found(&[look("a", first, queue), look("b", &[(1, LOCK)], &[(2, LOCK)])])
    };
    let circle = |reader| vec![vec![by_hold(1, "a", reader), by_hold(2, "b", 1)]];
    assert_eq!(looked(&[(2, READER)], &[(1, WRITER)]), circle(2));
    assert_eq!(looked(&[(2, WRITER)], &[(1, READER)]), circle(2));
    assert_eq!(looked(&[(2, READER)], &[(1, READER)]), Vec::<Vec<_>>::new());
    // Behind a reader that waits, a reader gets on when that one does.
    let waits =
        |queue: &[(u128, Claim)]| found(&[look("a", &[(9, WRITER)], queue), look("b", &[(2, LOCK)], &[(1, LOCK)])]);
    assert_eq!(waits(&[(1, READER), (2, READER)]), Vec::<Vec<_>>::new());
    assert_eq!(waits(&[(1, WRITER), (2, READER)]).len(), 1);
    assert_eq!(waits(&[(1, READER), (2, WRITER)]).len(), 1);
    // Of two tickets of one client, the writer's counts too.
    assert_eq!(waits(&[(1, READER), (1, WRITER), (2, READER)]).len(), 1);
}

#[test]
fn permits_are_there_as_soon_as_enough_holders_get_on() {
    let looked = |wanted: u32, holds: &[(u128, Claim)]| {
        found(&[look("a", holds, &[(1, permits(wanted))]), look("b", &[(1, LOCK)], &[(2, LOCK), (3, LOCK)])])
    };
    assert_eq!(looked(1, &[(2, permits(1)), (3, permits(1))]).len(), 2);
    assert_eq!(looked(1, &[(2, permits(1)), (9, permits(1))]), Vec::<Vec<_>>::new());
    assert_eq!(looked(2, &[(2, permits(1)), (9, permits(1))]).len(), 1);
    assert_eq!(looked(1, &[(2, permits(2))]).len(), 1);
    // The limit that is stored counts, and not that of the ticket.
    let mut semaphore = look("a", &[(2, permits(1)), (3, permits(1))], &[(1, permits(1))]);
    semaphore.limit = Some(3);
    assert_eq!(found(&[semaphore, look("b", &[(1, LOCK)], &[(2, LOCK), (3, LOCK)])]), Vec::<Vec<_>>::new());
}

#[test]
fn a_client_does_not_wait_for_a_name_that_it_holds() {
    // A cohort has asked ahead, and others wait.
    assert_eq!(found(&[look("a", &[(1, LOCK)], &[(2, LOCK), (1, LOCK)])]), Vec::<Vec<_>>::new());
    assert_eq!(found(&[look("a", &[(1, permits(1)), (2, permits(1))], &[(1, permits(1)), (2, permits(1))])]).len(), 0);
    // Two tasks of one client in one queue.
    assert_eq!(found(&[look("a", &[(9, LOCK)], &[(1, LOCK), (1, LOCK)])]), Vec::<Vec<_>>::new());
}

#[test]
fn what_has_changed_between_two_looks_does_not_count() {
    let before = [look("a", &[(1, LOCK)], &[(2, LOCK)]), look("b", &[(2, LOCK)], &[(1, LOCK)])];
    let again = |change: fn(&mut Looked)| {
        let mut looked = before.to_vec();
        looked.iter_mut().for_each(change);
        looked.iter_mut().zip(&before).for_each(|(look, before)| look.keep_what_was_in(before));
        found(&looked).len()
    };
    assert_eq!(again(|_| ()), 1);
    // Another hold of the same client, a hold that was granted anew, and another wait.
    assert_eq!(again(|look| look.holds[0].1.id = id(1, 7).text()), 0);
    assert_eq!(again(|look| look.holds[0].1.token = Token::new(999)), 0);
    assert_eq!(again(|look| look.queue[0].id.n = 7), 0);
}

#[test]
fn what_other_programs_wrote_holds_up_nobody() {
    let looked = |holder: &str| {
        let mut seen = seen(&[(1, LOCK)], &[(2, LOCK)]);
        seen.holds[0].id = holder.to_owned();
        let name = NameInUse::new(PrimitiveKind::Lock, "a");
        found(&[Looked::new(name, seen), look("b", &[(2, LOCK)], &[(1, LOCK)])]).len()
    };
    assert_eq!((looked(&id(1, 1).text()), looked("somebody")), (1, 0));
}

/// Thousands behind a deadlock take no time, and are in no circle.
#[test]
fn a_long_queue_behind_a_deadlock() {
    let behind: Vec<(u128, Claim)> = [(2, LOCK)].into_iter().chain((10..1010).map(|n| (n, LOCK))).collect();
    let mut looked = vec![look("a", &[(1, LOCK)], &behind), look("b", &[(2, LOCK)], &[(1, LOCK)])];
    let circle = [vec![by_hold(1, "b", 2), by_hold(2, "a", 1)]];
    assert_eq!(found(&looked), circle);
    // One of those behind holds what the next one waits for, a thousand times.
    looked.extend((10..1010).map(|n| look(&n.to_string(), &[(n, LOCK)], &[(n + 1000, LOCK)])));
    assert_eq!(found(&looked), circle);
}

#[test]
fn no_more_circles_are_returned_than_are_wanted() {
    let pairs: Vec<Looked> = (1..9)
        .flat_map(|n| {
            [look("a", &[(2 * n, LOCK)], &[(2 * n + 1, LOCK)]), look("b", &[(2 * n + 1, LOCK)], &[(2 * n, LOCK)])]
        })
        .collect();
    assert_eq!(cycles(&pairs, 9).len(), 8);
    assert_eq!(cycles(&pairs, 3).len(), 3);
}

#[test]
fn one_behind_a_waiter_that_gets_on_gets_on_too() {
    // 8 gets c after 7 and 9, and gives its permit of a to 1.
    let looked = [
        look("a", &[(2, permits(1)), (8, permits(1))], &[(1, permits(1))]),
        look("b", &[(1, LOCK)], &[(2, LOCK)]),
        look("c", &[(7, LOCK)], &[(9, LOCK), (8, LOCK)]),
    ];
    assert_eq!(found(&looked), Vec::<Vec<_>>::new());
}

#[test]
fn holds_say_more_than_places_in_a_queue() {
    // Two circles lead back to 1. That by holds alone is longer by the name d, but ends by a `force_release`.
    let looked = [
        look("a", &[(1, LOCK)], &[(2, LOCK)]),
        look("b", &[(3, LOCK)], &[(1, LOCK)]),
        look("c", &[(2, LOCK)], &[(3, LOCK)]),
        look("d", &[(3, LOCK)], &[(2, LOCK), (1, LOCK)]),
    ];
    assert_eq!(found(&looked), [vec![by_hold(1, "b", 3), by_hold(3, "c", 2), by_hold(2, "a", 1)]]);
    // 1 waits for 2 twice: in the queue of a, and as the holder of b.
    let looked = [
        look("a", &[(9, LOCK)], &[(2, LOCK), (1, LOCK)]),
        look("b", &[(2, LOCK)], &[(1, LOCK)]),
        look("c", &[(1, LOCK)], &[(2, LOCK)]),
    ];
    assert_eq!(found(&looked), [vec![by_hold(1, "b", 2), by_hold(2, "c", 1)]]);
}

/// Client 9 gets on. Each of the others waits for one of them by a ticket, and that one for it.
#[test]
fn waits_in_queues_hide_no_cycle_with_a_hold() {
    let looked = [
        look("n", &[(1, LOCK)], &[(3, LOCK)]),
        look("x", &[(9, LOCK)], &[(2, LOCK), (1, LOCK)]),
        look("y", &[(9, LOCK)], &[(1, LOCK), (2, LOCK)]),
        look("z", &[(9, LOCK)], &[(3, LOCK), (2, LOCK)]),
        look("w", &[(9, LOCK)], &[(2, LOCK), (3, LOCK)]),
    ];
    assert_eq!(found(&looked), [[by_queue(1, "x", 2), by_queue(2, "z", 3), by_hold(3, "n", 1)]]);
}

/// Clients 1 and 4 wait with client 2 in two queues, and client 2 waits with client 3 for holds.
#[test]
fn who_waits_beside_a_deadlock_is_no_part_of_it() {
    let looked = [
        look("x", &[(9, LOCK)], &[(2, LOCK), (1, LOCK), (4, LOCK)]),
        look("y", &[(9, LOCK)], &[(1, LOCK), (4, LOCK), (2, LOCK)]),
        look("b", &[(3, LOCK)], &[(2, LOCK)]),
        look("c", &[(2, LOCK)], &[(3, LOCK)]),
    ];
    assert_eq!(found(&looked), [[by_hold(2, "b", 3), by_hold(3, "c", 2)]]);
}
