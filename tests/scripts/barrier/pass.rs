//! Arrivals, and generations that pass.

use super::lab::{
    Arrived, BARRIER, Barrier, ENDED, EXPIRED, End, FORGOTTEN, Inspected, KEEP, LEFT, Reset, State, TICKETS,
};
use crate::lab::{Attempt, Inbox, TICKET_TTL, attempt};
use crate::latch::lab::call;

/// What a party is told.
pub fn told(party: &Attempt, end: End) -> String {
    format!("{} now {}", end.generation * 1024 + end.place, party.id)
}

fn inboxes<const N: usize>(lab: &mut Barrier, clients: [u32; N]) -> [Inbox; N] {
    clients.map(|client| lab.listen(client))
}

#[test]
fn the_last_arrival_lets_all_pass_and_tells_the_others() {
    let mut lab = Barrier::of(3);
    let (a, b, c) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
    let told_to = inboxes(&mut lab, [1, 2, 3]);
    let left = lab.arrive(&a).queued();
    assert!((TICKET_TTL as i64 - 10_000..=TICKET_TTL as i64).contains(&left), "{left}");
    lab.queue(&[&b]);
    assert_eq!(lab.heartbeat(&[&a, &b, &c]), [State::Waiting, State::Waiting, State::Gone]);
    let before = lab.now();
    let end = lab.arrive(&c).end();
    assert_eq!(end.place, 2, "the last one leads");
    assert!((before..=lab.now()).contains(&end.generation));
    let mut places = Vec::new();
    for (party, inbox) in [&a, &b].into_iter().zip(&told_to) {
        let own = lab.heartbeat(&[party])[0].end();
        assert_eq!(lab.read(inbox), [told(party, own)]);
        assert_eq!(own.generation, end.generation);
        places.push(own.place);
    }
    places.sort_unstable();
    assert_eq!(places, [0, 1]);
    assert_eq!(lab.read(&told_to[2]), [""; 0], "it has the answer");
    assert_eq!(lab.ttl(TICKETS), -2);
    for party in [&a, &b, &c] {
        let left = lab.remembered_for(party);
        assert!((KEEP as i64 - 10_000..=KEEP as i64).contains(&left), "{left}");
    }
    assert!(lab.ttl(BARRIER) > 3_000_000 && lab.ttl(ENDED) > 3_000_000);
    assert_eq!(lab.inspect(), Inspected { generation: end.generation, parties: 3, waiters: 0 });
}

#[test]
fn one_party_passes_at_once() {
    let mut lab = Barrier::of(1);
    let first = lab.arrive(&attempt(1, 1)).end();
    let second = lab.arrive(&attempt(1, 2)).end();
    assert_eq!((first.place, second.place), (0, 0));
    assert!(second.generation > first.generation);
}

/// Its clock was set back, or several have ended in one millisecond.
#[test]
fn generations_grow() {
    let mut lab = Barrier::of(2);
    let later = lab.now() + 1_000_000;
    lab.queue(&[&attempt(1, 1)]);
    let key = lab.keys[0].clone();
    lab.raw(&["HSET", &key, "generation", &later.to_string()]);
    assert_eq!(lab.arrive(&attempt(2, 1)).end().generation, later + 1);
    lab.queue(&[&attempt(1, 2)]);
    assert_eq!(lab.arrive(&attempt(2, 2)).end().generation, later + 2);
    assert_eq!(lab.inspect().generation, later + 2);
}

#[test]
fn another_number_of_parties_is_refused_while_some_wait() {
    let mut lab = Barrier::of(2);
    lab.queue(&[&attempt(1, 1)]);
    let (other, before) = (attempt(2, 1), lab.dump());
    assert_eq!(lab.with_parties(3, |lab| lab.arrive(&other)), Arrived::Other(2));
    before.assert_same(&lab.dump(), 0);
    assert_eq!(lab.arrive(&attempt(3, 1)).end().place, 1);
    // Nobody waits now.
    lab.with_parties(3, |lab| lab.queue(&[&other]));
    assert_eq!(lab.inspect().parties, 3);
    // Nor when the lease of the only one has ended.
    lab.expire(&other);
    lab.queue(&[&attempt(1, 2)]);
    assert_eq!((lab.inspect().parties, lab.inspect().waiters), (2, 1));
}

#[test]
fn a_request_that_comes_too_late_does_not_arrive() {
    let mut lab = Barrier::of(2);
    let late = attempt(1, 1).not_after(1);
    assert_eq!(lab.arrive(&late), Arrived::Stale);
    assert_eq!(lab.server.keys(), [""; 0]);
    // One that has arrived is told how it stands, whenever it asks.
    lab.queue(&[&attempt(1, 1)]);
    lab.arrive(&late).queued();
    let end = lab.arrive(&attempt(2, 1)).end();
    assert_eq!(lab.arrive(&late).end(), End { place: 0, ..end });
}

#[test]
fn a_resend_and_a_heartbeat_refresh_the_lease() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    for heartbeat in [false, true] {
        lab.queue(&[&a]);
        let key = lab.keys[TICKETS].clone();
        let soon = lab.now() + 9_000;
        lab.raw(&["ZADD", &key, &soon.to_string(), &a.id]);
        for key in [0, TICKETS] {
            let key = lab.keys[key].clone();
            lab.raw(&["PEXPIRE", &key, "60000"]);
        }
        if heartbeat {
            let (left, states) = lab.try_heartbeat(&[&a]).unwrap();
            assert_eq!(states, [State::Waiting]);
            assert!(left > 9_000, "{left}");
            assert!(lab.ttl(0) > 3_000_000 && lab.ttl(TICKETS) > 3_000_000);
        } else {
            lab.arrive(&a).queued();
        }
        let expiry: u64 = redis::cmd("ZSCORE").arg(key).arg(&a.id).query(&mut lab.connection).unwrap();
        assert!(expiry > lab.now() + TICKET_TTL - 10_000);
    }
    assert_eq!(lab.inspect().waiters, 1);
}

/// What is left is that of the first lease, whoever asks.
#[test]
fn a_party_is_told_when_the_first_lease_ends() {
    let mut lab = Barrier::of(4);
    let (brief, long) = (attempt(1, 1).ttl(20_000), attempt(2, 1).ttl(600_000));
    lab.queue(&[&long]);
    let left = lab.arrive(&brief).queued();
    assert!(left <= 20_000, "{left}");
    let left = lab.arrive(&attempt(4, 1).ttl(600_000)).queued();
    assert!(left <= 20_000, "{left}");
    let left = lab.arrive(&long).queued();
    assert!(left <= 20_000, "{left}");
    let (left, _) = lab.try_heartbeat(&[&long]).unwrap();
    assert!((1..=20_000).contains(&left), "{left}");
    let (left, states) = lab.try_heartbeat(&[&attempt(3, 1)]).unwrap();
    assert_eq!((left, states), (-1, vec![State::Gone]), "it does not wait");
}

#[test]
fn who_waits_is_listed() {
    let mut lab = Barrier::of(3);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    let (seen, mut listed) = lab.try_inspect(5).unwrap();
    assert_eq!((seen.parties, seen.waiters), (3, 2));
    listed.sort();
    assert_eq!(listed, [a.id.clone(), b.id.clone()]);
    assert_eq!(lab.try_inspect(1).unwrap().1.len(), 1);
    lab.expire(&a);
    let (seen, listed) = lab.try_inspect(5).unwrap();
    assert_eq!((seen.waiters, listed), (1, vec![b.id]));
}

/// What ends forgets more than it adds of that whose time is over, also if the clock was set back since.
#[test]
fn what_is_remembered_does_not_grow() {
    for ahead in [0, 3_600_000] {
        let mut lab = Barrier::of(3);
        lab.queue(&[&attempt(1, 0)]);
        let later = (lab.now() + ahead).to_string();
        let key = lab.keys[0].clone();
        lab.raw(&["HSET", &key, "generation", &later]);
        for n in 0..20 {
            lab.queue(&[&attempt(1, n), &attempt(2, n)]);
            lab.arrive(&attempt(3, n)).end();
        }
        assert_eq!(lab.remembered(), 60);
        lab.outdate();
        for n in 20..25 {
            lab.queue(&[&attempt(1, n), &attempt(2, n)]);
            lab.arrive(&attempt(3, n)).end();
        }
        assert_eq!(lab.remembered(), 15, "those whose time is not over");
        assert_eq!(lab.heartbeat(&[&attempt(1, 0)]), [State::Gone]);
    }
}

/// Two that remember for a short time pass, a little later, so that what is over is forgotten.
fn brief_generations(lab: &mut Barrier, first: u64) {
    let start = lab.now();
    while lab.now() <= start + 5 {}
    let keep = std::mem::replace(&mut lab.keep, 1);
    for n in first..first + 10 {
        lab.queue(&[&attempt(20, n)]);
        lab.arrive(&attempt(21, n)).end();
    }
    lab.keep = keep;
}

/// A party that is in time for its own client is not forgotten because others remember for less time.
#[test]
fn each_is_remembered_for_its_own_time() {
    let mut lab = Barrier::of(2);
    lab.checked = false;
    let (slow, call) = (attempt(1, 1), call(91).resent());
    assert!(!lab.leave(&slow));
    assert_eq!(lab.reset(&call), Reset::Gone);
    brief_generations(&mut lab, 0);
    brief_generations(&mut lab, 10);
    assert_eq!(lab.arrive(&slow).end().place, LEFT);
    lab.queue(&[&attempt(4, 1)]);
    assert_eq!(lab.reset(&call), Reset::Gone, "its first copy has found none");
    assert_eq!(lab.inspect().waiters, 1);
    let remembered = lab.remembered();
    assert!(remembered < 30, "{remembered}");
}

/// The ends of a generation are remembered for the longest time of its parties, whoever ends it.
#[test]
fn a_generation_is_remembered_for_all_of_its_parties() {
    for how in 0..5 {
        let mut lab = Barrier::of(3);
        lab.checked = false;
        let [a, b, c] = [1, 2, 3].map(|client| attempt(client, 1));
        lab.queue(&[&a]);
        // The others remember for a short time only.
        lab.keep = 1;
        lab.queue(&[&b]);
        match how {
            0 => drop(lab.arrive(&c).end()),
            1 => assert!(lab.leave(&b)),
            2 => assert_eq!(lab.reset(&call(91).timeless()), Reset::Reset),
            3 => {
                lab.expire(&a);
                assert_eq!(lab.heartbeat(&[&b])[0].end().place, EXPIRED);
            }
            _ => {
                lab.expire(&a);
                lab.with_parties(1, |lab| lab.arrive(&c).end());
            }
        }
        lab.with_parties(2, |lab| {
            brief_generations(lab, 0);
            brief_generations(lab, 10);
        });
        assert!(matches!(lab.heartbeat(&[&a])[0], State::Ended(_)), "{how}");
    }
}

/// No party is counted for a generation of another number of parties, nor waits for ever.
#[test]
fn a_barrier_that_was_lost_breaks_what_waits() {
    let mut lab = Barrier::of(10);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.queue(&[&a, &b]);
    lab.del(0);
    lab.with_parties(3, |lab| lab.queue(&[&attempt(3, 1)]));
    for party in [&a, &b] {
        assert_eq!(lab.heartbeat(&[party])[0].end().place, FORGOTTEN);
    }
    assert_eq!(lab.inspect().waiters, 1);
    lab.del(0);
    assert_eq!(lab.heartbeat(&[&attempt(3, 1)])[0].end().place, FORGOTTEN);
    // For how long its parties may ask is not known any more.
    assert!(lab.remembered_for(&attempt(3, 1)) > 3_000_000);
}

/// Copies of an arrival may be executed until their last moment, and a party may ask for a while after that.
#[test]
fn an_end_is_remembered_until_no_copy_can_come() {
    let mut lab = Barrier::of(1);
    let last = lab.now() + 500_000;
    lab.arrive(&attempt(1, 1).not_after(last)).end();
    let left = lab.remembered_for(&attempt(1, 1));
    assert!((KEEP as i64 + 400_000..=KEEP as i64 + 500_000).contains(&left), "{left}");
}

/// A party that has left is remembered, so that a late copy of its arrival does not arrive.
#[test]
fn who_has_left_does_not_arrive_later() {
    let mut lab = Barrier::of(2);
    assert!(!lab.leave(&attempt(1, 1)));
    assert_eq!(lab.arrive(&attempt(1, 1)).end().place, LEFT);
    assert_eq!(lab.inspect().waiters, 0);
    let left = lab.remembered_for(&attempt(1, 1));
    assert!((KEEP as i64 - 10_000..=KEEP as i64).contains(&left), "{left}");
}

/// The keys live longer than what they remember, and both as long as parties wait.
#[test]
fn what_is_remembered_lives_as_long_as_the_barrier() {
    let mut lab = Barrier::of(2);
    let keep = 7_200_000;
    lab.keep = keep;
    lab.queue(&[&attempt(1, 1)]);
    lab.arrive(&attempt(2, 1)).end();
    assert!(lab.ttl(BARRIER) > 7_000_000 && lab.ttl(ENDED) > 7_000_000);
    lab.keep = KEEP;
    let mut lab = Barrier::of(2);
    lab.queue(&[&attempt(1, 1)]);
    lab.arrive(&attempt(2, 1)).end();
    for heartbeat in [false, true] {
        for key in [BARRIER, ENDED] {
            let key = lab.keys[key].clone();
            lab.raw(&["PEXPIRE", &key, "60000"]);
        }
        if heartbeat {
            assert_eq!(lab.heartbeat(&[&attempt(1, 2)]), [State::Waiting]);
        } else {
            lab.queue(&[&attempt(1, 2)]);
        }
        assert!(lab.ttl(BARRIER) > 3_000_000 && lab.ttl(ENDED) > 3_000_000, "{heartbeat}");
    }
}
