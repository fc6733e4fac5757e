//! What can happen, at random: scripts with arguments good and bad, bare commands, keys of other types, time.

use std::sync::LazyLock;

use bowline::wire::{Limiter, Resource, read_labels};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::{election, latch, permits, redisson};
use commands::command;
use scripts::{script, ticket};

mod commands;
mod scripts;

pub use scripts::{
    Text, attempt_id, client, counts_everyone, cut, first_place, inbox, keys_from, lease, listed, mostly, one, span,
    ticket_ttl,
};

/// The keys of two locks, keys of no primitive, those of a semaphore, a read-write lock, a latch and a rate limiter,
/// what an election has besides a lock's, those of labels, and those of a lock, of a counter and of permits
/// that expire in Redisson's format.
pub static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of = |resource: bowline::Result<Resource>| resource.unwrap().keys().into_iter().map(|key| &*key.leak());
    let others = ["x", "", "string", "hash", "list", "zset", "other"].into_iter();
    of(Resource::lock(PREFIX, "a"))
        .chain(of(Resource::lock(PREFIX, "b")))
        .chain(others)
        .chain(of(Resource::semaphore(PREFIX, "s", 3)))
        .chain(of(Resource::read_write(PREFIX, "r")))
        .chain(of(Resource::latch(PREFIX, "l")))
        .chain([&*Limiter::new(PREFIX, "q").unwrap().key().to_owned().leak()])
        .chain(of(Resource::watch(PREFIX, "e", 0, 0)).skip(1))
        .chain(read_labels(PREFIX, &[]).keys().into_iter().map(|key| &*key.to_owned().leak()))
        .chain(["j", "redisson_lock_token:{j}", "k", "p:call:{k}:c1:1", "t", "{t}:timeout", "p:call:{t}:c1:1"])
        .collect()
});

/// Where the keys of each begin.
pub const LOCKS: [usize; 2] = [0, 4];
pub const NO_LOCK: usize = 8;
pub const SEMAPHORE: usize = 15;
pub const READ_WRITE: usize = 20;
pub const LATCH: usize = 25;
pub const LIMITER: usize = 28;
pub const ELECTION: usize = 29;
pub const LABELS: usize = 31;
pub const REDISSON: usize = 33;
pub const COUNTER: usize = 35;
pub const TIMED: usize = 37;

const PREFIX: &str = "p";
/// With [`PREFIX`]; a client follows.
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
    /// The ticket had no heartbeat in time.
    Outdate {
        tickets: &'static str,
        ticket: String,
    },
    /// The step on servers that take no writes: the real one is a replica without a primary.
    Readonly(Box<Step>),
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
    let steps = prop_oneof![60 => step().prop_map(|step| vec![step]), 1 => scripts::cancelled()];
    vec(steps, 1..48).prop_map(|steps| steps.concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => script(),
        20 => permits::script(),
        8 => latch::script(),
        6 => election::script(),
        5 => redisson::script(),
        12 => vec(command(), 1..16).prop_map(Step::Commands),
        1 => select(SOURCES).prop_map(Step::Source),
        1 => select(&KEYS[..]).prop_map(Step::Expire),
        1 => (select(LOCKS.map(|lock| KEYS[lock + 2]).to_vec()), ticket()).prop_map(|(tickets, ticket)| Step::Outdate { tickets, ticket }),
        2 => permits::outdate(),
        1 => latch::outdate(),
        1 => election::outdate(),
        2 => readonly(),
        6 => select(&CLIENTS[..]).prop_map(Step::Listen),
        1 => select(&CLIENTS[..]).prop_map(Step::Deafen),
    ]
}

fn readonly() -> impl Strategy<Value = Step> {
    let commands = vec(command(), 1..16).prop_map(Step::Commands);
    prop_oneof![2 => script(), 2 => permits::script(), 1 => latch::script(), 1 => election::script(), 1 => redisson::script(), 1 => commands]
        .prop_map(|step| Step::Readonly(Box::new(step)))
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
