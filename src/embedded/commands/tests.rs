//! Tables of commands and their replies. The differential test proves that Redis replies the same.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::protocol::Script;

mod lists;

const NOW: u64 = 1_000_000;

/// Words are separated by spaces. `''` is the empty word.
fn run(database: &mut Database, command: &str) -> Result<LuaAnswer, Failure> {
    let word = |word: &str| if word == "''" { Vec::new() } else { word.as_bytes().to_vec() };
    execute(database, &command.split(' ').map(word).collect::<Vec<_>>())
}

fn shown(outcome: Result<LuaAnswer, Failure>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match outcome {
        Ok(LuaAnswer::Nil) => "nil".to_owned(),
        Ok(LuaAnswer::Ok) => "OK".to_owned(),
        Ok(LuaAnswer::Integer(number)) => number.to_string(),
        Ok(LuaAnswer::Bytes(bytes)) => format!("'{}'", text(&bytes)),
        Ok(LuaAnswer::Array(items)) => format!(
            "[{}]",
            items
                .iter()
                .map(|item| item.as_ref().map_or_else(|| "nil".to_owned(), |item| text(item)))
                .collect::<Vec<_>>()
                .join(" ")
        ),
        Ok(LuaAnswer::Counts(counts)) => {
            let count = |(name, count): &(Vec<u8>, usize)| format!("{}:{count}", text(name));
            format!("[{}]", counts.iter().map(count).collect::<Vec<_>>().join(" "))
        }
        Ok(LuaAnswer::Page { cursor, keys }) => {
            let keys: Vec<_> = keys.iter().map(|key| text(key)).collect();
            format!("{} {keys:?}", text(&cursor))
        }
        Err(Failure(line)) => line.into_owned(),
    }
}

/// Runs the commands in order on one database.
#[track_caller]
fn table(rows: &[(&str, &str)]) {
    let mut database = Database::default();
    database.begin(Duration::from_millis(NOW));
    for (command, expected) in rows {
        assert_eq!(shown(run(&mut database, command)), *expected, "{command}");
    }
}

mod pages;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const ARITY: &str = "ERR Wrong number of args calling Redis command from script";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const SYNTAX: &str = "ERR syntax error";

#[test]
fn strings_and_keys() {
    table(&[
        ("GET a", "nil"),
        ("STRLEN a", "0"),
        ("SET a xyz", "OK"),
        ("get a", "'xyz'"),
        ("STRLEN a", "3"),
        ("PTTL a", "-1"),
        ("PTTL b", "-2"),
        ("SET a y PX 500", "OK"),
        ("PTTL a", "500"),
        ("SET a z", "OK"),
        ("PTTL a", "-1"),
        ("SET a y px 0", "ERR invalid expire time in 'set' command"),
        ("SET a y PX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET a y PX 1.5", NOT_AN_INTEGER),
        ("SET a y PX", SYNTAX),
        ("SET a y GET PX", SYNTAX),
        ("SET a y GET PX 0", "ERR invalid expire time in 'set' command"),
        ("SET a y PX 500 GET", "'z'"),
        ("PTTL a", "500"),
        ("SET new z get get", "nil"),
        ("DEL new", "1"),
        ("SET a y EX", SYNTAX),
        ("SET a", ARITY),
        ("GET", ARITY),
        ("EXISTS a b a", "2"),
        ("PEXPIRE a 100", "1"),
        ("PEXPIRE b 100", "0"),
        ("PEXPIRE b x", NOT_AN_INTEGER),
        ("PEXPIRE a 9223372036854775807", "ERR invalid expire time in 'pexpire' command"),
        ("PTTL a", "100"),
        ("PEXPIRE a 100 GT", "0"),
        ("PEXPIRE a 99 gt", "0"),
        ("PTTL a", "100"),
        ("PEXPIRE a 101 GT", "1"),
        ("PTTL a", "101"),
        ("PEXPIRE a -1 GT", "0"),
        ("PEXPIRE a 102 LT", SYNTAX),
        ("PEXPIRE b 100 GT", "0"),
        ("SET c 1", "OK"),
        ("PEXPIRE c 100 GT", "0"),
        ("PTTL c", "-1"),
        ("DEL c", "1"),
        ("PEXPIRE a -1", "1"),
        ("EXISTS a", "0"),
        ("SET a 1", "OK"),
        ("DEL a b", "1"),
        ("UNLINK a b", "0"),
        ("INCRBY a 2", "2"),
        ("PEXPIRE a 100", "1"),
        ("INCRBY a -3", "-1"),
        ("PTTL a", "100"),
        ("GET a", "'-1'"),
        ("INCRBY a 9223372036854775807", "9223372036854775806"),
        ("INCRBY a 2", "ERR increment or decrement would overflow"),
        ("INCRBY a 1.5", NOT_AN_INTEGER),
        ("SET a x", "OK"),
        ("INCRBY a 1", NOT_AN_INTEGER),
        ("INCRBY a", ARITY),
        ("DEL a", "1"),
        ("TIME", "[1000 0]"),
        ("PUBLISH c m", "0"),
        ("PUBSUB NUMSUB c d", "[c:0 d:0]"),
        ("SPUBLISH c m", "0"),
        ("PUBSUB SHARDNUMSUB c d", "[c:0 d:0]"),
        ("pubsub numsub", "[]"),
        ("PUBSUB CHANNELS", "ERR Unknown Redis command called from script"),
        ("PUBSUB", ARITY),
        ("NOSUCH", "ERR Unknown Redis command called from script"),
    ]);
}

#[test]
fn hashes() {
    table(&[
        ("HSET h b 1 a 2", "2"),
        ("HSET h b 3 c 4", "1"),
        ("HGET h b", "'3'"),
        ("HGET h x", "nil"),
        ("HEXISTS h a", "1"),
        ("HEXISTS h x", "0"),
        ("HEXISTS i x", "0"),
        ("HLEN h", "3"),
        ("HLEN i", "0"),
        ("HMGET h c x a", "[4 nil 2]"),
        ("HMGET i x y", "[nil nil]"),
        ("HMGET h", ARITY),
        ("HGETALL h", "[b 3 a 2 c 4]"),
        ("HGETALL i", "[]"),
        ("HDEL h b x c", "2"),
        ("HDEL i x", "0"),
        ("HGETALL h", "[a 2]"),
        ("HDEL h a a", "1"),
        ("EXISTS h", "0"),
        ("HSET h a 1", "1"),
        ("HSET h a", ARITY),
        ("HSET h a 1 b", ARITY),
        ("GET h", WRONG_TYPE),
        ("RPUSH h x", WRONG_TYPE),
        ("LPUSH h x", WRONG_TYPE),
        ("ZADD h 1 x", WRONG_TYPE),
        ("STRLEN h", WRONG_TYPE),
        ("SET h s GET", WRONG_TYPE),
        ("SET h s", "OK"),
        ("HLEN h", WRONG_TYPE),
        ("HGETALL h", WRONG_TYPE),
        ("HMGET h a", WRONG_TYPE),
        ("HDEL h a", WRONG_TYPE),
        ("HSET h a 1", WRONG_TYPE),
    ]);
}

#[test]
fn sorted_sets() {
    table(&[
        ("ZADD z 2 b 1 a 3 c", "3"),
        ("ZADD z 5 a 1.5 d", "1"),
        ("ZSCORE z a", "'5'"),
        ("ZSCORE z d", "'1.5'"),
        ("ZSCORE z x", "nil"),
        ("ZSCORE y x", "nil"),
        ("ZADD z XX 4 a 9 x", "0"),
        ("ZADD y XX 4 a", "0"),
        ("EXISTS y", "0"),
        ("ZADD z XX 1", SYNTAX),
        ("ZADD z 1 a 2", SYNTAX),
        ("ZADD z x a", "ERR value is not a valid float"),
        ("ZADD z nan a", "ERR value is not a valid float"),
        ("ZCARD z", "4"),
        ("ZCOUNT z -inf +inf", "4"),
        ("ZCOUNT z (2 4", "2"),
        ("ZCOUNT z 2 (4", "2"),
        ("ZCOUNT z (2 (2", "0"),
        ("ZCOUNT z 4 2", "0"),
        ("ZCOUNT z x 2", "ERR min or max is not a float"),
        ("ZRANGE z 0 0 WITHSCORES", "[d 1.5]"),
        ("ZRANGE z 0 -1", "[d b c a]"),
        ("ZRANGE z -2 9 withscores WITHSCORES", "[c 3 a 4]"),
        ("ZRANGE z -9 1", "[d b]"),
        ("ZRANGE z 2 1", "[]"),
        ("ZRANGE z 0 -9", "[]"),
        ("ZRANGE y 0 -1", "[]"),
        ("ZRANGE y 0 x", NOT_AN_INTEGER),
        ("ZRANGE z 0 1 FOO", SYNTAX),
        ("ZRANGEBYSCORE z -inf +inf", "[d b c a]"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", "[b c]"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 -1", "[b c a]"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT -1 2", "[]"),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 x", NOT_AN_INTEGER),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1", SYNTAX),
        ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2 withscores", "[b 2 c 3]"),
        ("ZRANGEBYSCORE z -inf (2 WITHSCORES WITHSCORES LIMIT 0 5", "[d 1.5]"),
        ("ZRANGEBYSCORE z -inf +inf SCORES", SYNTAX),
        ("ZRANGEBYSCORE z -inf +inf WITHSCORES LIMIT", SYNTAX),
        ("ZRANGEBYSCORE y 0 1", "[]"),
        ("ZREM z a b x", "2"),
        ("ZREM z c d", "2"),
        ("EXISTS z", "0"),
        ("ZREM z c", "0"),
        ("RPUSH z a", "1"),
        ("ZCARD z", WRONG_TYPE),
        ("ZRANGE z 0 1", WRONG_TYPE),
        ("ZADD z XX 1 a", WRONG_TYPE),
        ("ZADD z x a", "ERR value is not a valid float"),
    ]);
}

#[test]
fn keys_expire_after_their_last_millisecond() {
    let mut database = Database::default();
    let mut at = |ms: u64, command: &str| {
        database.begin(Duration::from_millis(ms));
        shown(run(&mut database, command))
    };
    assert_eq!(at(NOW, "SET a 1 PX 100"), "OK");
    assert_eq!(at(NOW, "RPUSH b 1"), "1");
    assert_eq!(at(NOW, "PEXPIRE b 200"), "1");
    assert_eq!(at(NOW + 100, "PTTL a"), "0");
    assert_eq!(at(NOW + 101, "EXISTS a b"), "1");
    // A new value does not inherit the expiry of the old one.
    assert_eq!(at(NOW + 150, "SET b 1"), "OK");
    assert_eq!(at(NOW + 900, "EXISTS a b"), "1");
}

/// As in Redis, a write is refused after its arguments are counted and before its key is read.
#[test]
fn a_server_that_takes_no_writes_still_reads_and_publishes() {
    let mut database = Database::default();
    database.begin(Duration::from_millis(NOW));
    let mut answer = |refusal: Option<&str>, command: &str| {
        database.refusal = refusal.map(str::to_owned);
        shown(run(&mut database, command))
    };
    let readonly = "READONLY You can't write against a read only replica.";
    assert_eq!(answer(None, "HSET h a 1"), "1");
    for write in [
        "DEL h",
        "HDEL h a",
        "HDEL h ''",
        "HDEL none ''",
        "HSET h a 2",
        "LREM h 1 a",
        "pexpire h 100",
        "RPUSH l a",
        "SET s a",
        "UNLINK h",
        "ZADD z 1 a",
        "ZREM z a",
    ] {
        assert_eq!(answer(Some(readonly), write), readonly, "{write}");
    }
    for (read, expected) in [("HGET h a", "'1'"), ("PTTL h", "-1"), ("PUBLISH c m", "0"), ("HDEL h", ARITY)] {
        assert_eq!(answer(Some(readonly), read), expected, "{read}");
    }
    assert_eq!(answer(None, "HDEL h ''"), "0");
    assert_eq!(answer(None, "HDEL h a"), "1");
}

#[test]
fn the_commands_are_those_of_the_scripts_and_no_more() {
    let used: BTreeSet<String> = Script::all().flat_map(Script::commands).map(str::to_owned).collect();
    let known: BTreeSet<String> = COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(known, used);
}
