use super::*;
use crate::connection::{ConnectionError, Reply};
use crate::protocol::fields::{UnexpectedReply, decode};
use crate::protocol::script::Script;

fn read(read: fn(&mut Fields<'_>) -> Option<Renewed>, reply: &Reply, holds: usize) -> Result<Renewed, UnexpectedReply> {
    decode(Script::all().next().unwrap(), reply, holds, read)
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.as_bytes().to_vec())
}

/// A hold whose text another program wrote does not stop the renewals of the others.
#[test]
fn a_renewal_reports_the_token_of_each_hold() {
    let states =
        vec![bytes("17"), bytes("0"), bytes("x"), Reply::Bytes(vec![0xff]), Reply::Integer(0), Reply::Integer(-1)];
    let reply = |states: &[Reply]| Reply::Array([&[Reply::Integer(5)], states].concat());
    let held = |token| HoldState::Held(Some(Token::new(token)));
    let other = HoldState::Held(None);
    let holds = vec![held(17), held(0), other, other, HoldState::NotHeld, HoldState::Unusable];
    assert_eq!(read(renewed, &reply(&states), 6), Ok(Renewed { now: 5, holds, failure: None, in_full: Vec::new() }));
    for state in [Reply::Integer(1), Reply::Nil] {
        assert!(read(renewed, &reply(&[state]), 1).is_err());
    }
}

/// Each hold has a call of its own. Calls to a node that is down say nothing about holds on other nodes.
#[test]
fn renewals_of_several_calls_are_joined() {
    let renewed = |now, hold| Ok(Renewed { now, holds: vec![hold], failure: None, in_full: Vec::new() });
    let failed = || Err(Failure::Connection(ConnectionError::Unknown("lost".to_owned())));
    let held = HoldState::Held(Some(Token::new(7)));
    let joined = Renewed::joined(vec![renewed(5, held), failed(), renewed(3, HoldState::NotHeld)]).unwrap();
    assert_eq!(joined.holds, [held, HoldState::Unanswered, HoldState::NotHeld]);
    assert_eq!((joined.now, joined.failure), (5, failed().err()));
    assert_eq!(Renewed::joined(vec![failed(), failed()]), failed());
    assert_eq!(Renewed::joined(vec![renewed(5, held)]).unwrap().failure, None);
}

#[test]
fn held_means_held_by_as_many_replicas_as_are_needed() {
    use HoldState::{Held, NotHeld, Unacknowledged, Unanswered, Unusable};

    let held = Held(Some(Token::new(7)));
    let holds = vec![held, NotHeld, Unusable, Unanswered, held];
    let renewed = |replicas, needed| {
        Renewed { now: 5, holds: holds.clone(), failure: None, in_full: Vec::new() }
            .acknowledged(replicas, needed)
            .holds
    };
    for (replicas, needed) in [(0, 0), (1, 0), (1, 1), (3, 2)] {
        assert_eq!(renewed(replicas, needed), holds, "{replicas} of {needed}");
    }
    for (replicas, needed) in [(0, 1), (1, 2)] {
        let few = Unacknowledged(replicas);
        assert_eq!(renewed(replicas, needed), [few, NotHeld, Unusable, Unanswered, few], "{replicas} of {needed}");
    }
}

/// Holds that are stored in full are asked for by another call.
#[test]
fn holds_that_are_stored_in_full_are_told_apart() {
    use HoldState::{NotHeld, Unanswered};

    let held = HoldState::Held(Some(Token::new(7)));
    let states = [bytes("7"), Reply::Integer(-2), Reply::Integer(0), Reply::Integer(-2)];
    let reply = Reply::Array([&[Reply::Integer(5)], &states[..]].concat());
    let answer = read(renewed_short, &reply, 4).unwrap();
    assert_eq!((answer.holds, answer.in_full), (vec![held, Unanswered, NotHeld, Unanswered], vec![1, 3]));
    assert!(read(renewed, &reply, 4).is_err(), "a call with all keys finds all");
    assert!(read(renewed_short, &Reply::Array(vec![Reply::Integer(5), Reply::Integer(-3)]), 1).is_err());

    // In a cluster, each hold has a call of its own.
    let failure = || Failure::Connection(ConnectionError::Unknown("lost".to_owned()));
    let one = || Ok(read(renewed_short, &Reply::Array(vec![Reply::Integer(5), Reply::Integer(-2)]), 1).unwrap());
    let joined = Renewed::joined(vec![Err(failure()), one(), one()]).unwrap();
    assert_eq!((joined.holds, joined.in_full, joined.failure), (vec![Unanswered; 3], vec![1, 2], Some(failure())));
}
