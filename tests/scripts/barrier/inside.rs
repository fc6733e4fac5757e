//! The parties inside a double barrier, and its entry.

use super::lab::{Arrived, BARRIER, Barrier, ENDED, EXPIRED, FORGOTTEN, LEFT, RESET, Ready, Reset, State, TICKETS};
use super::pass::told;
use crate::lab::{Around, attempt};
use crate::latch::lab::call;

#[test]
fn all_leave_when_the_last_one_is_ready() {
    let mut lab = Barrier::inside(3);
    let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    let told_to = [1, 2, 3].map(|client| lab.listen(client));
    lab.queue(&[&a, &b, &c]);
    assert_eq!(lab.heartbeat(&[&a, &b, &c]), [State::Waiting; 3], "as many as there are parties stay");
    assert_eq!((lab.ready(&b), lab.ready(&a)), (Ready::Waits, Ready::Waits));
    assert_eq!(lab.ready(&b), Ready::Waits, "it is ready once");
    let end = lab.ready(&c).end();
    let mut places = vec![end.place];
    for (party, inbox) in [&a, &b].into_iter().zip(&told_to) {
        let own = lab.heartbeat(&[party])[0].end();
        assert_eq!(lab.read(inbox), [told(party, own)]);
        assert_eq!(own.generation, end.generation);
        places.push(own.place);
    }
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2]);
    assert_eq!(lab.read(&told_to[2]), [""; 0], "it has the answer");
    assert_eq!(lab.ttl(TICKETS), -2);
    // Ready for this generation is not ready for the next one.
    let (d, e, f) = (attempt(1, 2), attempt(2, 2), attempt(3, 2));
    lab.queue(&[&d, &e, &f]);
    assert_eq!(lab.after, end.generation);
    assert_eq!((lab.ready(&d), lab.ready(&e)), (Ready::Waits, Ready::Waits));
    assert!(lab.ready(&f).end().generation > end.generation);
}

#[test]
fn one_party_more_is_refused_while_a_generation_is_inside() {
    let mut lab = Barrier::inside(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    assert_eq!(lab.arrive(&attempt(3, 1)), Arrived::Other(2));
    assert_eq!(lab.with_parties(3, |lab| lab.arrive(&attempt(3, 1))), Arrived::Other(2));
    lab.arrive(&a).queued();
    lab.ready(&a);
    assert_eq!(lab.arrive(&attempt(3, 1)), Arrived::Other(2), "it is inside until all leave");
    lab.ready(&b).end();
    lab.arrive(&attempt(3, 1)).queued();
}

#[test]
fn a_party_that_stops_inside_breaks_it_for_all() {
    for case in ["leaves", "expires", "reset"] {
        let mut lab = Barrier::inside(3);
        let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
        lab.queue(&[&a, &b, &c]);
        let inbox = lab.listen(1);
        lab.ready(&a);
        let why = match case {
            "leaves" => {
                assert!(lab.leave(&c));
                LEFT
            }
            "expires" => {
                lab.expire(&c);
                assert_eq!(lab.ready(&b).end().place, EXPIRED, "who is ready then learns it at once");
                EXPIRED
            }
            _ => {
                assert_eq!(lab.reset(&call(9)), Reset::Reset);
                RESET
            }
        };
        let end = lab.heartbeat(&[&a])[0].end();
        assert_eq!(end.place, why);
        assert_eq!(lab.read(&inbox), [told(&a, end)]);
        assert_eq!(lab.ready(&a).end(), end);
        assert_eq!(lab.ready(&b).end().place, why, "{case}");
        // The next generation has nothing of it.
        let (d, e, f) = (attempt(1, 2), attempt(2, 2), attempt(3, 2));
        lab.queue(&[&d, &e, &f]);
        assert_eq!((lab.ready(&d), lab.ready(&e)), (Ready::Waits, Ready::Waits));
        lab.ready(&f).end();
    }
}

#[test]
fn who_is_not_inside_leaves_nothing() {
    let mut lab = Barrier::inside(2);
    assert_eq!(lab.ready(&attempt(1, 1)), Ready::Gone);
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.queue(&[&attempt(1, 1), &attempt(2, 1)]);
    assert_eq!(lab.ready(&attempt(3, 1)), Ready::Gone);
    assert_eq!(lab.ready(&attempt(1, 1)), Ready::Waits);
    lab.del(TICKETS);
    assert_eq!(lab.ready(&attempt(1, 1)), Ready::Gone);
    assert_eq!(lab.heartbeat(&[&attempt(1, 1)]), [State::Gone]);
}

/// All were inside when the one that leaves passed the entry, so one of them is lost.
#[test]
fn a_party_that_was_lost_breaks_it() {
    let mut lab = Barrier::inside(3);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    let inbox = lab.listen(1);
    assert_eq!(lab.ready(&b).end().place, FORGOTTEN);
    let end = lab.heartbeat(&[&a])[0].end();
    assert_eq!((end.place, lab.read(&inbox)), (FORGOTTEN, vec![told(&a, end)]));
}

/// Of what was noted, nothing says any more until when it is remembered. Who is ready stays so.
#[test]
fn who_is_ready_is_not_forgotten_with_the_ends() {
    let mut lab = Barrier::inside(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    lab.ready(&a);
    lab.del(ENDED);
    assert!(!lab.leave(&attempt(9, 1)), "a late cancel of another party notes its end");
    lab.ready(&b).end();
}

#[test]
fn a_second_copy_changes_nothing() {
    let mut lab = Barrier::inside(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    let (first, second) = lab.twice(0, |lab| lab.ready(&a));
    assert_eq!((first, second), (Ready::Waits, Ready::Waits));
    let (first, second) = lab.twice(0, |lab| lab.ready(&b));
    assert_eq!(first, second);
    // Also after the next generation has begun.
    lab.queue(&[&attempt(1, 2), &attempt(2, 2)]);
    lab.ready(&attempt(1, 2));
    assert_eq!(lab.ready(&b), first);
    assert_eq!(lab.heartbeat(&[&attempt(1, 2), &attempt(2, 2)]), [State::Waiting; 2]);
}

/// A party that is inside no more may still have a ticket at the entry, for as long as its lease lasts.
#[test]
fn the_entry_mixes_no_generations() {
    let mut lab = Barrier::entry(2);
    let (old, a, b) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    lab.arrive_of(7, &old).queued();
    let inbox = lab.listen(1);
    lab.arrive_of(8, &a).queued();
    let end = lab.heartbeat(&[&old])[0].end();
    assert_eq!(end.place, LEFT);
    assert_eq!(lab.read(&inbox), [told(&old, end)]);
    // A late one of the older generation breaks its own only.
    let late = attempt(1, 2);
    let (first, second) = lab.twice(0, |lab| lab.arrive_of(7, &late).end());
    assert_eq!((first, first.place), (second, LEFT));
    assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
    let end = lab.arrive_of(8, &b).end();
    assert_eq!((end.place, lab.heartbeat(&[&a])[0].end().generation), (1, end.generation));
    // When nobody waits, any generation is welcome: the server may have lost the last one.
    lab.arrive_of(3, &attempt(1, 3)).queued();
    lab.arrive_of(3, &attempt(2, 3)).end();
}

#[test]
fn a_script_that_fails_has_changed_nothing() {
    let mut lab = Barrier::inside(2);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    lab.ready(&a);
    // Parties leave a server that is out of memory.
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.ready(&b).end();
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    for key in [BARRIER, TICKETS, ENDED] {
        let mut lab = Barrier::inside(2);
        lab.queue(&[&a, &b]);
        lab.set_wrong(key);
        lab.assert_refused("WRONGTYPE", |lab| lab.try_ready(&a));
    }
}
