//! What can happen, at random: scripts with arguments good and bad, bare commands, keys of other types, time.

use crate::{latch, permits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Lock, queue, tickets and counter of two names, keys that are no lock's, and those of a semaphore and a read-write
/// lock: permits, leases, queue, tickets and counter; and those of a latch.
pub const KEYS: [&str; 27] = [
    "p:lock:{a}",
    "p:lock:{a}:queue",
    "p:lock:{a}:tickets",
    "p:lock:{a}:fence",
    "p:lock:{b}",
    "p:lock:{b}:queue",
    "p:lock:{b}:tickets",
    "p:lock:{b}:fence",
    "x",
    "",
    "string",
    "hash",
    "list",
    "zset",
    "other",
    "p:sem:{s}",
    "p:sem:{s}:leases",
    "p:sem:{s}:queue",
    "p:sem:{s}:tickets",
    "p:sem:{s}:fence",
    "p:rw:{r}",
    "p:rw:{r}:leases",
    "p:rw:{r}:queue",
    "p:rw:{r}:tickets",
    "p:rw:{r}:fence",
    "p:latch:{l}",
    "p:latch:{l}:tickets",
];

pub const INBOX: &str = "p:inbox:";
pub const CLIENTS: [&str; 3] = ["c1", "c2", "c3"];

#[derive(Clone, Debug)]
pub enum Step {
    /// One of bowline's scripts.
    Script {
        name: &'static str,
        keys: Vec<String>,
        args: Vec<String>,
    },
    /// Commands inside one script.
    Commands(Vec<Command>),
    /// A script by hand.
    Source(&'static str),
    /// The key's time is over.
    Expire(&'static str),
    /// The ticket was not touched in time.
    Outdate {
        tickets: &'static str,
        ticket: String,
    },
    Listen(&'static str),
    Deafen(&'static str),
}

#[derive(Clone, Debug)]
pub struct Command {
    /// By `redis.call`, whose error ends the script, or by `redis.pcall`.
    pub raises: bool,
    pub words: Vec<Word>,
}

/// An argument, as Lua has it.
#[derive(Clone)]
pub enum Word {
    Text(Vec<u8>),
    Number(&'static str),
    False,
    Table,
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "'{}'", text.escape_ascii()),
            Self::Number(number) => f.write_str(number),
            Self::False => f.write_str("false"),
            Self::Table => f.write_str("{}"),
        }
    }
}

pub fn sequences() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..48)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => script(),
        20 => permits::script(),
        8 => latch::script(),
        12 => vec(command(), 1..16).prop_map(Step::Commands),
        1 => select(SOURCES).prop_map(Step::Source),
        1 => select(&KEYS[..]).prop_map(Step::Expire),
        1 => (select(vec![KEYS[2], KEYS[6]]), ticket()).prop_map(|(tickets, ticket)| Step::Outdate { tickets, ticket }),
        2 => permits::outdate(),
        1 => latch::outdate(),
        6 => select(&CLIENTS[..]).prop_map(Step::Listen),
        1 => select(&CLIENTS[..]).prop_map(Step::Deafen),
    ]
}

// --- scripts

pub type Text = BoxedStrategy<String>;

/// Mostly one of `good`, now and then one of `bad`.
pub fn mostly(good: &[&'static str], bad: &[&'static str]) -> Text {
    let of = |words: &[&'static str]| select(words.to_vec()).prop_map(str::to_owned);
    prop_oneof![60 => of(good), 1 => of(bad)].boxed()
}

pub fn wire_id() -> Text {
    mostly(
        &["c1:1", "c1:2", "c2:1", "c2:2", "c3:1"],
        &["", "token", "c1", ":1", "c1:x", "c1:1/2", "c1:1:2", "é:1", "c1:1\0", "c4:1"],
    )
}

/// Never so short that it could end between one server and the other.
pub fn lease() -> Text {
    mostly(
        &["30000", "30000", "30000", "30000", "60000"],
        &["0", "-1", "", "x", "1.5", "3e4", " 30000", "9223372036854775807", "9223372036854775808", "030000"],
    )
}

fn span() -> Text {
    mostly(&["1", "1", "1", "1", "1", "32"], &["0", "-3", "x", "", "1e3", "99999999999999999999"])
}

fn ticket() -> Text {
    let made = (wire_id(), lease(), span()).prop_map(|(id, lease, span)| format!("{id}/{lease}/{span}"));
    prop_oneof![25 => made, 1 => mostly(&["", "/", "c1:1/30000", "c1:1/30000/1/"], &["c1:1//", "x"])].boxed()
}

/// 0 is outdated at once.
pub fn ticket_ttl() -> Text {
    mostly(&["20000", "30000", "0"], &["", "x", "-5", "1e5", "0x10000"])
}

pub fn one(text: &str) -> Text {
    Just(text.to_owned()).boxed()
}

pub fn counts_everyone() -> Text {
    mostly(&["1", "1", "1", "0"], &["", "true"])
}

pub fn inbox() -> Text {
    one(INBOX)
}

fn script() -> impl Strategy<Value = Step> {
    let lock = || prop_oneof![4 => Just(0), 1 => Just(4)].prop_map(|at| keys_from(at, 4));
    let acquire = vec![
        wire_id(),
        mostly(&["wait", "wait", "try"], &["", "WAIT"]),
        lease(),
        span(),
        ticket_ttl(),
        mostly(&["0", "0", "1", "2"], &["-1", "x", ""]),
        // Long ago, or in the year 2128.
        mostly(&["0", "0", "0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]),
        inbox(),
        counts_everyone(),
    ];
    let no_ticket = || prop_oneof![2 => one(""), 1 => ticket()].boxed();
    let release = vec![wire_id(), inbox(), counts_everyone(), no_ticket(), ticket_ttl(), counts_everyone()];
    let from = mostly(&["1", "-1"], &["0", "x", "", "2"]);
    let cancel = vec![ticket(), from, inbox(), counts_everyone()];
    let touched = vec((ticket(), ticket_ttl()), 0..4)
        .prop_map(|pairs| pairs.into_iter().flat_map(|(ticket, ttl)| [ticket, ttl]).collect::<Vec<_>>());
    let touch = (inbox(), counts_everyone(), touched)
        .prop_map(|(inbox, counts, touched)| [vec![inbox, counts], touched].concat())
        .boxed();
    let renewed =
        vec((select(vec![0, 0, 4, 1, 8]), wire_id(), prop_oneof![lease(), one("0")]), 0..5).prop_map(|holds| {
            let keys = holds.iter().map(|(key, ..)| KEYS[*key].to_owned()).collect();
            let args = holds.into_iter().flat_map(|(_, id, lease)| [id, lease]).collect();
            (keys, args)
        });
    let of = |name, args: BoxedStrategy<Vec<String>>| (lock(), args).prop_map(move |(keys, args)| (name, keys, args));
    let calls = prop_oneof![
        12 => of("lock_acquire", acquire.boxed()),
        4 => of("lock_release", release.boxed()),
        5 => of("lock_cancel", cancel.boxed()),
        3 => of("lock_touch", touch),
        2 => renewed.prop_map(|(keys, args)| ("lock_renew", keys, args)),
        1 => of("lock_force_release", vec![wire_id(), inbox(), counts_everyone()].boxed()),
        1 => of("lock_inspect", Just(Vec::new()).boxed()),
    ];
    cut(calls)
}

/// Now and then keys or arguments are missing.
pub fn cut(calls: impl Strategy<Value = (&'static str, Vec<String>, Vec<String>)>) -> impl Strategy<Value = Step> {
    let missing = || prop_oneof![30 => Just(0_usize), 1 => 1..5_usize];
    (calls, missing(), missing()).prop_map(|((name, mut keys, mut args), no_keys, no_args)| {
        keys.truncate(keys.len().saturating_sub(no_keys));
        args.truncate(args.len().saturating_sub(no_args));
        Step::Script { name, keys, args }
    })
}

pub fn keys_from(at: usize, n: usize) -> Vec<String> {
    KEYS[at..at + n].iter().map(|key| (*key).to_owned()).collect()
}

// --- commands

fn text(words: &'static [&'static str]) -> BoxedStrategy<Word> {
    select(words).prop_map(|word| Word::Text(word.as_bytes().to_vec())).boxed()
}

fn key() -> BoxedStrategy<Word> {
    prop_oneof![2 => text(&KEYS), 3 => text(&["string", "hash", "list", "zset", "x", "other"])].boxed()
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

fn command() -> impl Strategy<Value = Command> {
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
    let channel = text(&["p:inbox:c1", "p:inbox:c2", "elsewhere"]);
    let px = || text(&["PX", "PX", "px", "", "FOO"]);
    let xx = || text(&["XX", "xx"]);
    let limit = || text(&["LIMIT", "LIMIT", "limit", "FOO"]);
    let known = prop_oneof![
        of("DEL", vec![key()]),
        of("UNLINK", vec![key(), key()]),
        of("EXISTS", vec![key(), key()]),
        of("PEXPIRE", vec![key(), ttl()]),
        of("PTTL", vec![key()]),
        of("GET", vec![string()]),
        of("STRLEN", vec![string()]),
        of("SET", vec![string(), member()]),
        of("SET", vec![string(), member(), px(), ttl()]),
        of("SET", vec![string(), member(), px(), ttl(), px(), ttl()]),
        of("HSET", vec![hash(), member(), member()]),
        of("HSET", vec![hash(), member(), member(), member(), member()]),
        of("HGET", vec![hash(), member()]),
        of("HEXISTS", vec![hash(), member()]),
        of("HKEYS", vec![hash()]),
        of("HGETALL", vec![hash()]),
        of("HMGET", vec![hash(), member(), member()]),
        of("HDEL", vec![hash(), member(), member()]),
        of("HLEN", vec![hash()]),
        of("RPUSH", vec![list(), member(), member(), member(), member(), member()]),
        of("RPUSH", vec![list(), member(), member(), member()]),
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
        of("PUBLISH", vec![channel, member()]),
    ];
    let unknown = text(&["NOSUCH", "", "HSETT", "ZADD "]).prop_map(|name| vec![name]);
    let words = prop_oneof![30 => known, 22 => sorted, 1 => unknown];
    // How many to leave out, or what to add.
    let odd = prop_oneof![Just(Word::False), Just(Word::Table), Just(Word::Text(b"more".to_vec()))];
    let shape = prop_oneof![16 => Just((0, None)), 1 => (1..4_usize).prop_map(|n| (n, None)), 1 => odd.prop_map(|w| (0, Some(w)))];
    (words, shape, proptest::bool::weighted(0.2)).prop_map(|(mut words, (missing, odd), raises)| {
        words.truncate(words.len() - missing.min(words.len()));
        words.extend(odd);
        Command { raises, words }
    })
}

/// What scripts can return and raise, where real servers agree: before 7.0 a raised table is an error of Lua.
pub const SOURCES: &[&str] = &[
    "return",
    "return 3.99",
    "return -3.99",
    "return {1, 2.5, 'a', {true, {}}, false, 7, nil, 9}",
    "return {x = 1, 'first'}",
    "return true",
    "return false",
    "return ''",
    "return {ok = 'FINE'}",
    "return {err = 'MINE of mine'}",
    "return {1, {err = 'MINE of mine'}}",
    "return redis.call('SET', 'x', 'y', 'PX', 30000)",
    "return {redis.call('SET', 'x', 2.5), redis.call('GET', 'x')}",
    "redis.call('SET', 'x', 1) redis.call('HLEN', 'x') return 'not reached'",
    "redis.call('SET', 'x', 1) return redis.pcall('HLEN', 'x')",
    "redis.call('SET', 'x', 1) return {1, redis.pcall('HLEN', 'x')}",
    "error('mine')",
    "return nothing.at_all",
    "global = 1",
    "return undefined",
    "return (",
    "return redis.call()",
    "return redis.pcall()",
    "local ok = pcall(redis.call, 'HLEN') return {ok and 1 or 0}",
    "return type(redis.pcall('HLEN').err)",
    "local t = redis.call('TIME') return {type(t[1]), #t, t[1] * 1000 + math.floor(t[2] / 1000)}",
    "local a, b = redis.call('TIME'), redis.call('TIME') return {type(a[2]), tostring(a[3]), b[1] - a[1] < 2}",
    "return string.format('%.0f', 2^53)",
    "return tostring(2^53) .. tostring(1e15) .. tostring(0.1)",
    "return {#KEYS, #ARGV, tostring(KEYS[1]), ARGV[1]}",
    "return {string.byte(string.sub('abc', 2)), select('#', unpack({1, 2, 3})), table.concat({1, 2}, ',')}",
];
