use uuid::Uuid;

use super::*;
use crate::connection::Reply;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::fields::{UnexpectedReply, decode};
use crate::protocol::mutex::reply as lock;
use crate::protocol::renewed::renewed;
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
    let short = Reply::Integer(1_795_354_973_692_024);
    let granted = Acquired::Granted { token: Token::new(1_795_354_973_692_024), now: 1_795_354_973_692 };
    assert_eq!(read(acquired, &short, 0), Ok(granted));
    let [not_held, not_read] = [0, 2].map(|number| read(released, &Reply::Integer(number), 0));
    assert_eq!(not_held, Ok(Released::NotHeld { call_again: false, now: 0 }));
    assert!(not_read.is_err());
    let released_alone = Released::Released { call_again: false, messages: vec![], now: 0 };
    assert_eq!(read(released, &Reply::Integer(1), 0), Ok(released_alone));
    assert!(read(acquired, &Reply::Integer(1), 0).is_err(), "what a release replies");
    let granted = Acquired::Granted { token: Token::new(17), now: 1_795_354_973_692 };
    assert_eq!(read(acquired, &bytes("17 1795354973692024"), 0), Ok(granted));
    for text in ["17", "17 x", "17 5 5", "-1 5", "9007199254740993 5", ""] {
        assert!(read(acquired, &bytes(text), 0).is_err(), "{text}");
    }
    assert!(read(released, &bytes("17 5"), 0).is_err());
    assert!(read(acquired, &Reply::Integer(1 << 53), 0).is_err());
    let reply = Reply::Array(vec![
        bytes("QUEUED"),
        Reply::Integer(-2),
        Reply::Integer(3),
        Reply::Integer(1),
        Reply::Integer(5),
    ]);
    let queued = Acquired::Queued { holder_left: None, length: 3, call_again: true, now: 5 };
    assert_eq!(read(acquired, &reply, 0), Ok(queued));
    let id = AttemptId { client: Uuid::from_u128(7), n: 12 };
    let mut items = vec![bytes("RELEASED"), Reply::Integer(0), Reply::Integer(5)];
    let answer = |messages| Ok(Released::Released { call_again: false, messages, now: 5 });
    assert_eq!(read(released, &Reply::Array(items.clone()), 0), answer(vec![]));
    items.push(bytes(&format!("9 30000 {}", id.text())));
    let granted = Message::Granted { id, token: Token::new(9), at: 30_000 };
    assert_eq!(read(released, &Reply::Array(items.clone()), 0), answer(vec![granted]));
    items.push(bytes("noise"));
    assert!(read(released, &Reply::Array(items), 0).is_err());
}

/// Replies that a proxy, another module or a bug may send. The error must not show their strings.
#[test]
fn malformed() {
    let secret = "0123-attempt-id";
    let malformed = [
        Reply::Nil,
        Reply::Integer(-1),
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
