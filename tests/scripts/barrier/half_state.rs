//! A script that fails has changed nothing: wrong-typed keys, a server out of memory, a user without permissions. And
//! what is left when a part of the state is lost.

use super::lab::{BARRIER, Barrier, ENDED, FORGOTTEN, LEFT, Reset, State, TICKETS};
use crate::lab::{Around, Lab, attempt};
use crate::latch::lab::call;
use crate::refusals::Refusal;

#[test]
fn a_wrong_key() {
    for key in [BARRIER, TICKETS, ENDED] {
        let mut lab = Barrier::of(3);
        let a = attempt(1, 1);
        lab.queue(&[&a]);
        lab.set_wrong(key);
        lab.assert_refused("WRONGTYPE", |lab| lab.try_arrive(&attempt(2, 1)));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_heartbeat(&[&a]));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_leave(&a));
        lab.assert_refused("WRONGTYPE", |lab| lab.try_reset(&call(91)));
        match key {
            ENDED => assert_eq!(lab.inspect().waiters, 1, "it does not look there"),
            _ => lab.assert_refused("WRONGTYPE", |lab| lab.try_inspect(1)),
        }
    }
}

#[test]
fn a_user_who_may_not_set_a_ttl() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert!(lab.try_arrive(&a).is_err());
    assert!(lab.try_leave(&a).is_err());
    assert!(lab.try_reset(&call(91).resent()).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.with_parties(1, |lab| assert!(lab.try_arrive(&a).is_err()));
    assert_eq!(lab.server.keys(), [""; 0]);
    // The keys that there are need a longer life, which they cannot get.
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    lab.queue(&[&a]);
    lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
    assert!(lab.try_arrive(&attempt(2, 1)).is_err());
    assert!(lab.try_leave(&a).is_err());
    assert_eq!((lab.inspect().waiters, lab.remembered()), (1, 0));
    // One of another number of parties, after a lease has ended, leaves no number behind.
    lab.expire(&a);
    assert!(lab.with_parties(3, |lab| lab.try_arrive(&attempt(2, 1))).is_err());
    assert_eq!(lab.inspect().parties, 2);
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    assert_eq!(lab.heartbeat(&[&a]), [State::Waiting]);
}

/// Those that wait have come inside after one generation, and the party whose call fails after another one.
#[test]
fn an_arrival_that_fails_leaves_those_that_wait_with_their_generation() {
    let mut lab = Barrier::entry(3);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    let refused = ["ACL", "SETUSER", "default", "-pexpire"];
    lab.raw(&refused);
    assert!(lab.try_arrive_of(7, &a).is_err());
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    lab.arrive_of(7, &a).queued();
    lab.expire(&a);
    lab.raw(&refused);
    assert!(lab.try_arrive_of(8, &b).is_err());
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    let of: String = redis::cmd("HGET").arg(&lab.keys[0]).arg("of").query(&mut lab.server.client()).unwrap();
    assert_eq!(of, "7");
}

#[test]
fn a_user_who_may_not_publish() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    lab.queue(&[&a]);
    lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
    let end = lab.arrive(&attempt(2, 1)).end();
    assert_eq!(lab.heartbeat(&[&a])[0].end().generation, end.generation, "its own heartbeat tells it");
}

#[test]
fn out_of_memory() {
    let mut lab = Barrier::of(2);
    let a = attempt(1, 1);
    lab.queue(&[&a]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    lab.assert_refused("OOM", |lab| lab.try_arrive(&attempt(2, 1)));
    lab.assert_refused("OOM", |lab| lab.try_heartbeat(&[&a]));
    assert!(lab.leave(&a), "who leaves is not held up");
    assert_eq!(lab.arrive(&a).end().place, LEFT);
    lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
    lab.queue(&[&attempt(1, 2)]);
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(lab.reset(&call(91)), Reset::Reset);
}

/// A replica that is empty still, or has yet to hear of the parties: nothing that it does not have is believed to be
/// gone.
#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = Barrier::on(Lab::on(Refusal::server()), 2);
        if !refusal.applies(&lab) {
            continue;
        }
        let (a, b, waits) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
        lab.queue(&[&a]);
        lab.arrive(&b).end();
        lab.queue(&[&waits]);
        lab.reset(&call(91));
        lab.queue(&[&attempt(3, 2)]);
        refusal.begin(lab.lab());
        let (code, before) = (&*refusal.code(), lab.dump());
        for party in [&a, &b, &waits, &attempt(3, 2), &attempt(4, 1)] {
            lab.assert_refused(code, |lab| lab.try_arrive(party));
            lab.assert_refused(code, |lab| lab.try_heartbeat(&[party]));
            lab.assert_refused(code, |lab| lab.try_leave(party));
        }
        lab.with_parties(3, |lab| lab.assert_refused(code, |lab| lab.try_arrive(&attempt(4, 1))));
        for call in [call(91), call(92), call(92).resent()] {
            lab.assert_refused(code, |lab| lab.try_reset(&call));
        }
        assert_eq!(lab.inspect().waiters, 1, "what there is may be looked at");
        refusal.end(lab.lab());
        before.assert_same(&lab.dump(), 0);
    }
}

/// The server has lost one of the keys. No party is told that it has passed, and none waits for ever.
#[test]
fn a_key_that_is_lost() {
    for key in [BARRIER, TICKETS, ENDED] {
        let mut lab = Barrier::of(2);
        let (before, a, b) = (attempt(1, 1), attempt(2, 1), attempt(3, 1));
        lab.queue(&[&before]);
        let passed = lab.arrive(&attempt(4, 1)).end();
        lab.queue(&[&a]);
        lab.del(key);
        let states = lab.heartbeat(&[&before, &a]);
        match key {
            // What remembers the time for an end is not needed to tell it.
            ENDED => assert_eq!((states[0].end().generation, states[1]), (passed.generation, State::Waiting)),
            TICKETS => assert_eq!((states[0].end().generation, states[1]), (passed.generation, State::Gone)),
            _ => assert_eq!((states[0], states[1].end().place), (State::Gone, FORGOTTEN)),
        }
        if key != ENDED {
            lab.queue(&[&b]);
        }
        let end = lab.arrive(&attempt(4, 2)).end();
        assert_eq!(end.place, 1);
        assert!(end.generation > passed.generation, "by the clock, if the last one is not known");
        if key == ENDED {
            assert_eq!(
                (lab.remembered(), lab.inspect().parties),
                (2, 2),
                "ends without a time are forgotten, and no more"
            );
        }
    }
}
