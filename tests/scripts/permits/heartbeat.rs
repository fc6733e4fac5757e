//! `permit_heartbeat` and `permit_cancel`.

use super::lab::{LEASES, Permits, QUEUE, TICKETS, writer};
use crate::lab::{
    CANCEL_GONE, CANCEL_RELEASED, CANCELLED, HeartbeatReply, LEASE, RELEASED, State, TICKET_TTL, attempt, grant,
};

#[test]
fn a_waiting_ticket_is_refreshed_and_the_queue_lives_on() {
    let mut lab = Permits::semaphore(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.expire_ticket(&b);
    for key in [QUEUE, TICKETS] {
        let key = lab.keys[key].clone();
        lab.raw(&["PEXPIRE", &key, "60000"]);
    }
    let heartbeat_reply = lab.heartbeat(&[&b]);
    assert_eq!((heartbeat_reply.more, heartbeat_reply.states), (false, vec![State::Waiting]));
    assert!((1..=LEASE as i64).contains(&heartbeat_reply.ttl));
    assert_eq!(lab.inspect().waiters, 1);
    let key = lab.keys[TICKETS].clone();
    let expiry: u64 = redis::cmd("ZSCORE").arg(key).arg(lab.ticket(&b)).query(&mut lab.connection).unwrap();
    assert!(expiry > lab.now() + TICKET_TTL - 10_000);
    assert!(lab.ttl(QUEUE) > 3_000_000 && lab.ttl(TICKETS) > 3_000_000);
}

#[test]
fn all_of_ones_own_that_fit_are_granted_in_the_reply() {
    let mut lab = Permits::read_write();
    let w = writer(1, 1);
    lab.hold(&[&w]);
    let (b, c, theirs, d) = (attempt(2, 1), attempt(2, 2), attempt(3, 1), writer(2, 3));
    lab.queue(&[&b, &c, &theirs, &d]);
    let inboxes = [lab.listen(2), lab.listen(3)];
    lab.expire_hold(&w);
    let heartbeat_reply = lab.heartbeat(&[&d, &c, &b, &attempt(9, 9)]);
    let token = lab.token_of(&b);
    assert_eq!(heartbeat_reply.states, [State::Waiting, State::Granted(token), State::Granted(token), State::Gone]);
    lab.assert_messages(&inboxes[0], &[]);
    lab.assert_messages(&inboxes[1], &[grant(&theirs, token)]);
    assert!(heartbeat_reply.ttl > 0);
}

#[test]
fn a_grant_whose_message_was_lost_is_reported_with_its_full_lease() {
    let mut lab = Permits::semaphore(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1).lease(45_000));
    lab.hold(&[&a]);
    lab.queue(&[&b]);
    lab.listen(2);
    assert_eq!(lab.release(&a), RELEASED);
    let (leases, soon) = (lab.keys[LEASES].clone(), (lab.now() + 1_000).to_string());
    lab.raw(&["ZADD", &leases, "XX", &soon, &b.id]);
    lab.raw(&["PEXPIRE", &leases, "1500"]);
    assert_eq!(lab.state(&b), State::Granted(0));
    assert!((35_000..=45_000).contains(&lab.inspect().holds[0].3));
    assert!(lab.ttl(LEASES) > 35_000);
}

#[test]
fn what_is_not_there_is_gone_and_is_not_created() {
    let mut lab = Permits::read_write();
    assert_eq!(lab.heartbeat(&[&attempt(1, 1)]), HeartbeatReply { ttl: -2, more: false, states: vec![State::Gone] });
    assert_eq!(lab.cancel(&attempt(1, 1)), CANCEL_GONE);
    for junk in ["", "x", "a:1", "a:1/5", "used/1/1", "::/1/1"] {
        assert_eq!(lab.cancel_ticket(junk, false), Ok(CANCEL_GONE), "{junk}");
    }
    assert_eq!(lab.server.keys(), [""; 0]);
}

#[test]
fn a_cancel_takes_the_ticket_or_the_hold() {
    for from_tail in [false, true] {
        for gone in 0..4 {
            let mut lab = Permits::semaphore(2);
            let a = attempt(1, 1).units(2);
            lab.hold(&[&a]);
            let mut waiters: Vec<_> = (2..6).map(|client| attempt(client, 1)).collect();
            lab.queue(&waiters.iter().collect::<Vec<_>>());
            let cancelled = waiters.remove(gone);
            assert_eq!(lab.cancel_ticket(&lab.ticket(&cancelled), from_tail), Ok(CANCELLED));
            lab.assert_queue(&waiters.iter().collect::<Vec<_>>());
            let _inboxes: Vec<_> = (2..6).map(|client| lab.listen(client)).collect();
            assert_eq!(lab.cancel_ticket(&lab.ticket(&a), from_tail), Ok(CANCEL_RELEASED));
            lab.assert_held(&[&waiters[0], &waiters[1]]);
            assert_eq!(lab.cancel(&a), CANCEL_GONE);
        }
    }
}

#[test]
fn an_expired_hold_has_nothing_to_cancel() {
    let mut lab = Permits::semaphore(1);
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    lab.hold(&[&a]);
    lab.expire_hold(&a);
    assert_eq!(lab.cancel(&a), CANCEL_GONE);
    lab.hold(&[&b]);
    assert_eq!(lab.cancel(&a), CANCEL_GONE);
    lab.assert_held(&[&b]);
}
