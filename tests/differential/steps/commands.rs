//! Bare commands, with words good and bad.

use proptest::prelude::*;
use proptest::sample::select;

use super::{Command, KEYS, Word};

fn text(words: &'static [&'static str]) -> BoxedStrategy<Word> {
    select(words).prop_map(|word| Word::Text(word.as_bytes().to_vec())).boxed()
}

fn key() -> BoxedStrategy<Word> {
    prop_oneof![2 => text(&KEYS[..]), 3 => text(&["string", "hash", "list", "zset", "x", "other"])].boxed()
}

/// Mostly a key that the command can do something with.
fn key_of(kind: &'static [&'static str]) -> BoxedStrategy<Word> {
    prop_oneof![8 => text(kind), 1 => key()].boxed()
}

fn member() -> BoxedStrategy<Word> {
    let bytes = Just(Word::Text(b"\xff\0\r\n".to_vec()));
    prop_oneof![30 => text(&["a", "b", "c"]), 6 => text(&["token", "c1:1", "c1:1/30000/1", ""]), 1 => bytes, 1 => number()].boxed()
}

/// Without fractions that newer servers write with fewer digits.
fn number() -> BoxedStrategy<Word> {
    select(&["0", "1", "-1", "2", "2.5", "-0.75", "30000", "1767225600000", "9007199254740991", "1e15"][..])
        .prop_map(Word::Number)
        .boxed()
}

fn integer() -> BoxedStrategy<Word> {
    let odd = ["x", "", "1.5", "+1", "01", "-0", " 1", "1 ", "1e1", "9223372036854775808", "-9223372036854775809"];
    let odd = select(odd.to_vec()).prop_map(|word| Word::Text(word.as_bytes().to_vec()));
    prop_oneof![12 => text(&["0", "1", "2", "-1", "-2", "3", "9223372036854775807"]), 2 => number(), 3 => odd].boxed()
}

/// Long, over, or nonsense.
fn ttl() -> BoxedStrategy<Word> {
    let odd = text(&["0", "-1", "x", "", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775808"]);
    prop_oneof![6 => text(&["20000", "50000"]), 1 => Just(Word::Number("40000")), 2 => odd].boxed()
}

fn score() -> BoxedStrategy<Word> {
    let odd = text(&["x", "", "nan", " 1", "1 ", "(1", "1e999", "-1e999", "1e-400", "1.", ".5", "Infinity", "1_0"]);
    prop_oneof![12 => text(&["0", "1", "2", "2.5", "-1", "1e3", "inf", "-inf", "+inf"]), 2 => number(), 3 => odd]
        .boxed()
}

/// Without space before the number, which Valkey refuses and Redis does not.
fn bound() -> BoxedStrategy<Word> {
    let odd = text(&["x", "", "(", "((1", "nan", "1 ", "(inf", "[1", "1e999", "+", "-"]);
    prop_oneof![12 => text(&["-inf", "+inf", "0", "1", "(1", "2.5", "(2", "3"]), 1 => number(), 3 => odd].boxed()
}

pub(super) fn command() -> impl Strategy<Value = Command> {
    let of = |name: &'static str, parts: Vec<BoxedStrategy<Word>>| {
        let spelled = prop_oneof![8 => Just(name.to_owned()), 1 => Just(name.to_lowercase())];
        (spelled, parts).prop_map(|(name, words)| {
            let mut all = vec![Word::Text(name.into_bytes())];
            all.extend(words);
            all
        })
    };
    let (string, hash) = (|| key_of(&["string"]), || key_of(&["hash"]));
    let (list, zset) = (|| key_of(&["list"]), || key_of(&["zset"]));
    let channel = || text(&["p:inbox:c1", "p:inbox:c2", "elsewhere"]);
    let px = || text(&["PX", "PX", "px", "", "FOO"]);
    let get = || text(&["GET", "GET", "get"]);
    let xx = || text(&["XX", "xx"]);
    let limit = || text(&["LIMIT", "LIMIT", "limit", "FOO"]);
    let known = prop_oneof![
        of("DEL", vec![key()]),
        of("UNLINK", vec![key(), key()]),
        of("EXISTS", vec![key(), key()]),
        of("PEXPIRE", vec![key(), ttl()]),
        of("PEXPIRE", vec![key(), ttl(), text(&["GT", "gt"])]),
        of("PTTL", vec![key()]),
        of("GET", vec![string()]),
        of("INCRBY", vec![string(), integer()]),
        of("STRLEN", vec![string()]),
        of("SET", vec![string(), member()]),
        of("SET", vec![string(), member(), px(), ttl()]),
        of("SET", vec![string(), member(), px(), ttl(), px(), ttl()]),
        of("SET", vec![string(), member(), px(), ttl(), get()]),
        of("SET", vec![string(), member(), get(), px(), ttl()]),
        of("HSET", vec![hash(), member(), member()]),
        of("HSET", vec![hash(), member(), member(), member(), member()]),
        of("HGET", vec![hash(), member()]),
        of("HEXISTS", vec![hash(), member()]),
        of("HGETALL", vec![hash()]),
        of("HMGET", vec![hash(), member(), member()]),
        of("HDEL", vec![hash(), member(), member()]),
        of("HLEN", vec![hash()]),
        of("RPUSH", vec![list(), member(), member(), member(), member(), member()]),
        of("RPUSH", vec![list(), member(), member(), member()]),
        of("LPUSH", vec![list(), member(), member()]),
        of("LREM", vec![list(), integer(), member()]),
        of("LINDEX", vec![list(), integer()]),
        of("LLEN", vec![list()]),
    ];
    let sorted = prop_oneof![
        of("ZADD", vec![zset(), score(), member()]),
        of("ZADD", vec![zset(), score(), member(), score(), member()]),
        of("ZADD", vec![zset(), xx(), score(), member()]),
        of("ZADD", vec![zset(), xx(), xx(), score(), member()]),
        of("ZREM", vec![zset(), member(), member()]),
        of("ZSCORE", vec![zset(), member()]),
        of("ZCARD", vec![zset()]),
        of("ZRANGE", vec![zset(), integer(), integer()]),
        of("ZRANGE", vec![zset(), integer(), integer(), text(&["WITHSCORES", "withscores", "FOO"])]),
        of("ZCOUNT", vec![zset(), bound(), bound()]),
        of("ZRANGEBYSCORE", vec![zset(), bound(), bound()]),
        of("ZRANGEBYSCORE", vec![zset(), bound(), bound(), limit(), integer(), integer()]),
        of(
            "ZRANGEBYSCORE",
            vec![key(), bound(), bound(), limit(), integer(), integer(), limit(), integer(), integer()]
        ),
        of("PUBLISH", vec![channel(), member()]),
        of("PUBSUB", vec![text(&["NUMSUB", "NUMSUB", "numsub", "FOO"]), channel(), channel()]),
    ];
    let unknown = text(&["NOSUCH", "", "HSETT", "ZADD "]).prop_map(|name| vec![name]);
    let words = prop_oneof![30 => known, 22 => sorted, 1 => unknown];
    // The number of words to leave out, or a word to add.
    let odd = prop_oneof![Just(Word::False), Just(Word::Table), Just(Word::Text(b"more".to_vec()))];
    let shape = prop_oneof![16 => Just((0, None)), 1 => (1..4_usize).prop_map(|n| (n, None)), 1 => odd.prop_map(|w| (0, Some(w)))];
    (words, shape, proptest::bool::weighted(0.2)).prop_map(|(mut words, (missing, odd), raises)| {
        words.truncate(words.len() - missing.min(words.len()));
        words.extend(odd);
        Command { raises, words }
    })
}
