use uuid::Uuid;

use super::*;
use crate::connection::ConnectionError;
use crate::connection::Reply;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::fields::{UnexpectedReply, decode};
use crate::protocol::mutex::reply as lock;
use crate::protocol::script::Script;

fn read<T>(read: fn(&mut Fields<'_>) -> Option<T>, reply: &Reply, entries: usize) -> Result<T, UnexpectedReply> {
    decode(Script::all().next().unwrap(), reply, entries, read)
}

fn bytes(text: &str) -> Reply {
    Reply::Bytes(text.into())
}

#[test]
fn well_formed() {
    let reply = Reply::Array(vec![bytes("GRANTED"), bytes("17"), Reply::Integer(5)]);
    assert_eq!(read(acquired, &reply, 0), Ok(Acquired::Granted { token: Token::new(17), now: 5 }));
    let reply = Reply::Array(vec![
        bytes("QUEUED"),
        Reply::Integer(-2),
        Reply::Integer(3),
        Reply::Integer(1),
        Reply::Integer(5),
    ]);
    let queued = Acquired::Queued { holder_left: None, length: 3, more: true, now: 5 };
    assert_eq!(read(acquired, &reply, 0), Ok(queued));
    let id = AttemptId { client: Uuid::from_u128(7), n: 12 };
    let mut items = vec![bytes("RELEASED"), Reply::Integer(0), Reply::Integer(5)];
    let told = |told| Ok(Released::Released { more: false, told, now: 5 });
    assert_eq!(read(released, &Reply::Array(items.clone()), 0), told(vec![]));
    items.push(bytes(&format!("9 30000 {}", id.text())));
    let granted = Message::Granted { id, token: Token::new(9), at: 30_000 };
    assert_eq!(read(released, &Reply::Array(items.clone()), 0), told(vec![granted]));
    items.push(bytes("noise"));
    assert!(read(released, &Reply::Array(items), 0).is_err());
}

/// Whatever a proxy, another module or a bug answers: an error that shows no string of it.
#[test]
fn malformed() {
    let secret = "0123-attempt-id";
    let malformed = [
        Reply::Nil,
        Reply::Integer(1),
        bytes(secret),
        Reply::Array(vec![]),
        Reply::Array(vec![bytes(secret)]),
        Reply::Array(vec![bytes("GRANTED")]),
        Reply::Array(vec![bytes("GRANTED"), bytes("x"), Reply::Integer(5)]),
        Reply::Array(vec![bytes("GRANTED"), bytes("9007199254740993"), Reply::Integer(5)]),
        Reply::Array(vec![bytes("GRANTED"), bytes("1"), Reply::Integer(-5)]),
        Reply::Array(vec![bytes("GRANTED"), bytes("1"), Reply::Integer(5), Reply::Nil]),
        Reply::Array(vec![Reply::Bytes(vec![0xff]), bytes("1"), Reply::Integer(5)]),
    ];
    for reply in malformed {
        let error = read(acquired, &reply, 0).unwrap_err().to_string();
        assert!(!error.contains(secret), "{error}");
        assert!(read(released, &reply, 0).is_err());
        assert!(read(requeued, &reply, 0).is_err());
        assert!(read(cancelled, &reply, 0).is_err());
        assert!(read(heartbeat_reply, &reply, 1).is_err());
        assert!(read(renewed, &reply, 1).is_err());
        assert!(read(lock::force_released, &reply, 0).is_err());
        assert!(read(lock::inspected, &reply, 0).is_err());
    }
}

/// One call per hold: those of a node that is away say nothing about the others.
#[test]
fn renewals_of_several_calls_are_joined() {
    let renewed = |now, hold| Ok(Renewed { now, holds: vec![hold], failure: None });
    let failed = || Err(Failure::Connection(ConnectionError::Unknown("lost".to_owned())));
    let joined = Renewed::joined(vec![renewed(5, HoldState::Held), failed(), renewed(3, HoldState::NotHeld)]).unwrap();
    assert_eq!(joined.holds, [HoldState::Held, HoldState::Unanswered, HoldState::NotHeld]);
    assert_eq!((joined.now, joined.failure), (5, failed().err()));
    assert_eq!(Renewed::joined(vec![failed(), failed()]), failed());
    assert_eq!(Renewed::joined(vec![renewed(5, HoldState::Held)]).unwrap().failure, None);
}

#[test]
fn held_means_held_by_as_many_replicas_as_are_needed() {
    use HoldState::{Held, NotHeld, Unacknowledged, Unanswered, Unusable};

    let holds = vec![Held, NotHeld, Unusable, Unanswered, Held];
    let renewed =
        |replicas, needed| Renewed { now: 5, holds: holds.clone(), failure: None }.acknowledged(replicas, needed).holds;
    for (replicas, needed) in [(0, 0), (1, 0), (1, 1), (3, 2)] {
        assert_eq!(renewed(replicas, needed), holds, "{replicas} of {needed}");
    }
    for (replicas, needed) in [(0, 1), (1, 2)] {
        let few = Unacknowledged(replicas);
        // What is not held is known without any replica.
        assert_eq!(renewed(replicas, needed), [few, NotHeld, Unusable, Unanswered, few], "{replicas} of {needed}");
    }
}
