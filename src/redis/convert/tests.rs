use ::redis::VerbatimFormat;

use super::*;
use crate::protocol::Script;

fn parse(wire: &str) -> Value {
    ::redis::parse_redis_value(wire.as_bytes()).unwrap()
}

#[test]
fn commands_are_the_sha_or_the_source_with_keys_and_arguments() {
    let script = Script::all().next().unwrap();
    let call = Call::new(script, &["k1", "k2"], &[Arg::Text("a"), Arg::Number(u64::MAX)]);
    let sha = String::from_utf8(command(&call, false).get_packed_command()).unwrap();
    let tail = "$1\r\n2\r\n$2\r\nk1\r\n$2\r\nk2\r\n$1\r\na\r\n$20\r\n18446744073709551615\r\n";
    assert_eq!(sha, format!("*7\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n{tail}", script.sha1()));
    let whole = String::from_utf8(command(&call, true).get_packed_command()).unwrap();
    assert!(whole.starts_with("*7\r\n$4\r\nEVAL\r\n") && whole.contains(script.source()) && whole.ends_with(tail));
    #[cfg(feature = "redis-1")]
    assert_eq!(self::whole(&command(&call, false), script).get_packed_command(), whole.into_bytes());
}

#[test]
fn every_type_of_value_converts_or_is_an_error() {
    let bytes = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    let verbatim = Value::VerbatimString { format: VerbatimFormat::Text, text: "t".to_owned() };
    for (value, expected) in [
        (parse("_\r\n"), Reply::Nil),
        (parse("$-1\r\n"), Reply::Nil),
        (parse(":-7\r\n"), Reply::Integer(-7)),
        (parse("#t\r\n"), Reply::Integer(1)),
        (parse("#f\r\n"), Reply::Integer(0)),
        (parse("+OK\r\n"), bytes("OK")),
        (parse("+PONG\r\n"), bytes("PONG")),
        (parse("$2\r\nab\r\n"), bytes("ab")),
        (parse(",1.5\r\n"), bytes("1.5")),
        (verbatim, bytes("t")),
        (parse("*2\r\n:1\r\n*0\r\n"), Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])])),
        (parse("~1\r\n:1\r\n"), Reply::Array(vec![Reply::Integer(1)])),
        (Value::Attribute { data: Box::new(Value::Int(1)), attributes: Vec::new() }, Reply::Integer(1)),
        (parse("%1\r\n+a\r\n:1\r\n"), Reply::Array(vec![bytes("a"), Reply::Integer(1)])),
    ] {
        assert_eq!(reply(value).unwrap(), expected);
    }
    assert!(matches!(reply(parse("(12345678901234567890123\r\n")), Err(ConnectionError::Refused { .. })));
    assert!(matches!(reply(parse(">2\r\n+message\r\n+x\r\n")), Err(ConnectionError::Refused { .. })));
}

#[test]
fn errors_keep_their_code_also_inside_arrays_and_lose_quoted_arguments() {
    let code = |wire: &str| match reply(parse(wire)) {
        Err(ConnectionError::Refused { code, message }) => (code, message),
        other => panic!("{other:?}"),
    };
    assert_eq!(code("-WRONGTYPE Operation\r\n").0, "WRONGTYPE");
    assert_eq!(code("*2\r\n:1\r\n-WRONGTYPE Operation\r\n").0, "WRONGTYPE");
    assert_eq!(code("-READONLY You can't write\r\n").0, "READONLY");
    assert_eq!(code("-LOADING Redis is loading\r\n").0, "LOADING");
    assert_eq!(code("-OOM command not allowed\r\n"), ("OOM".to_owned(), "command not allowed".to_owned()));
    let (code, message) = code("-ERR unknown command 'EVALSHA', with args beginning with: 'secret' \r\n");
    assert_eq!((code.as_str(), message.as_str()), ("ERR", "unknown command 'EVALSHA'"));
    assert!(is_noscript(&parse("-NOSCRIPT No matching script.\r\n")));
    assert!(!is_noscript(&parse("-ERR x\r\n")));
}

#[test]
fn errors_of_redis_rs_are_those_of_the_server_and_lose_quoted_arguments() {
    let quoted = "unknown command 'EVALSHA', with args beginning with: 'secret'".to_owned();
    let error = ::redis::make_extension_error("OTHER".to_owned(), Some(quoted));
    let refusal = refused_by_server(&error).unwrap();
    assert_eq!(refusal, ConnectionError::refused("OTHER unknown command 'EVALSHA'"));
    let io = RedisError::from(std::io::Error::other("lost"));
    assert_eq!(refused_by_server(&io), None);
}
