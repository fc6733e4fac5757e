//! `lock_heartbeat`: tickets are kept alive, and each is reported.

use crate::lab::{HeartbeatReply, LEASE, Lab, RELEASED, State, TICKET_TTL, attempt, grant};

#[test]
fn a_waiting_ticket_is_refreshed() {
    let (mut lab, _, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    lab.expire_ticket(&b);
    assert_eq!(lab.inspect().waiters, 0);
    let heartbeat_reply = lab.heartbeat(&[&b]);
    assert_eq!((heartbeat_reply.more, heartbeat_reply.states), (false, vec![State::Waiting]));
    assert!((1..=LEASE as i64).contains(&heartbeat_reply.ttl), "what is left of the hold in the way");
    assert_eq!(lab.inspect().waiters, 1);
    let key = lab.keys[2].clone();
    let expiry: u64 = redis::cmd("ZSCORE").arg(key).arg(b.ticket()).query(&mut lab.connection).unwrap();
    assert!(expiry > lab.now() + TICKET_TTL - 10_000);
}

#[test]
fn the_queue_lives_on() {
    let (mut lab, _, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    for key in [lab.keys[1].clone(), lab.keys[2].clone()] {
        lab.raw(&["PEXPIRE", &key, "60000"]);
    }
    lab.heartbeat(&[&b]);
    for key in &lab.keys[1..3] {
        assert!(lab.server.ttl_ms(key) > 3_000_000);
    }
}

#[test]
fn ones_own_ticket_takes_a_free_lock_in_the_reply() {
    let (mut lab, _, first) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(2, 2));
    let inbox = lab.listen(2);
    lab.acquire(&b);
    lab.acquire(&c);
    lab.expire_hold();
    let heartbeat_reply = lab.heartbeat(&[&c, &b]);
    let State::Granted(token) = heartbeat_reply.states[1] else { panic!("{heartbeat_reply:?}") };
    assert!(token > first);
    assert_eq!(heartbeat_reply.states[0], State::Waiting);
    assert!(heartbeat_reply.ttl > 0, "the other one waits for this hold");
    assert_eq!(lab.read(&inbox), [""; 0]);
    lab.assert_holder(&b);
    lab.assert_queue(&[&c]);
}

/// A client whose inbox is cut is unreachable for others, never for itself.
#[test]
fn ones_own_ticket_is_never_skipped() {
    let (mut lab, _, _) = Lab::held();
    let b = attempt(2, 1);
    lab.acquire(&b);
    lab.expire_hold();
    assert!(matches!(lab.state(&b), State::Granted(_)));
}

#[test]
fn a_free_lock_goes_to_the_first_ticket() {
    let (mut lab, _, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    let inbox = lab.listen(2);
    lab.acquire(&b);
    lab.acquire(&c);
    lab.expire_hold();
    assert_eq!(lab.state(&c), State::Waiting);
    lab.assert_holder(&b);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.read(&inbox), [grant(&b, token)]);
}

#[test]
fn a_grant_whose_message_was_lost_is_reported_with_its_full_lease() {
    let (mut lab, a, _) = Lab::held();
    let b = attempt(2, 1).lease(45_000);
    let _inbox = lab.listen(2);
    lab.acquire(&b);
    assert_eq!(lab.release(&a), RELEASED);
    let key = lab.keys[0].clone();
    lab.raw(&["PEXPIRE", &key, "1000"]);
    let token = lab.inspect().token.parse().unwrap();
    assert_eq!(lab.state(&b), State::Granted(token));
    assert!((35_000..=45_000).contains(&lab.lock_ttl()), "{}", lab.lock_ttl());
}

#[test]
fn what_is_not_there_is_gone_and_is_not_created() {
    let mut lab = Lab::new();
    let b = attempt(2, 1);
    assert_eq!(lab.heartbeat(&[&b]), HeartbeatReply { ttl: -2, more: false, states: vec![State::Gone] });
    assert_eq!(lab.server.keys(), [""; 0]);
    let (mut lab, a, _) = Lab::held();
    lab.acquire(&b);
    lab.cancel(&b);
    assert_eq!(lab.state(&b), State::Gone);
    lab.release(&a);
    assert_eq!(lab.state(&a), State::Gone);
    assert_eq!(lab.heartbeat(&[]).states, []);
}

#[test]
fn many_tickets_of_one_client_each_get_their_answer() {
    let (mut lab, a, token) = Lab::held();
    let mine: Vec<_> = (1..=100).map(|n| attempt(2, n)).collect();
    for waiter in &mine {
        lab.acquire(waiter);
    }
    for cancelled in mine.iter().step_by(3) {
        lab.cancel(cancelled);
    }
    let mut all: Vec<_> = mine.iter().collect();
    all.push(&a);
    let states = lab.heartbeat(&all).states;
    for (i, state) in states[..100].iter().enumerate() {
        assert_eq!(*state, if i % 3 == 0 { State::Gone } else { State::Waiting }, "{i}");
    }
    assert_eq!(states[100], State::Granted(token));
}

#[test]
fn half_a_queue_is_dropped_and_its_waiters_are_told() {
    for missing in [1, 2] {
        for free in [false, true] {
            let (mut lab, _, _) = Lab::held();
            let (b, c) = (attempt(2, 1), attempt(3, 1));
            lab.acquire(&b);
            lab.acquire(&c);
            if free {
                lab.expire_hold();
            }
            lab.del(missing);
            assert_eq!(lab.state(&b), State::Gone);
            assert!(lab.server.ttl_ms(&lab.keys[1]) == -2 && lab.server.ttl_ms(&lab.keys[2]) == -2);
            assert_eq!(lab.state(&c), State::Gone);
        }
    }
    // One entry is missing, not the whole key.
    let (mut lab, _, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(3, 1));
    lab.acquire(&b);
    lab.acquire(&c);
    let key = lab.keys[2].clone();
    lab.raw(&["ZREM", &key, &c.ticket()]);
    assert_eq!(lab.state(&b), State::Gone);
    assert_eq!(lab.acquire(&b).queued(), 1);
    assert_eq!(lab.acquire(&c).queued(), 2);
}
