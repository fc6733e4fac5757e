//! The commands that the scripts use, and no others: names, numbers of arguments, and where each is.

mod generic;
mod hash;
mod list;
mod sorted_set;
mod string;

use std::borrow::Cow;

use super::keyspace::Database;

/// What a command replies to the script that called it.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Nil,
    Ok,
    Integer(i64),
    Bytes(Vec<u8>),
    Array(Vec<Option<Vec<u8>>>),
    /// Each thing with its number.
    Counts(Vec<(Vec<u8>, usize)>),
}

impl Answer {
    fn count(n: usize) -> Self {
        Self::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }

    fn array(items: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::Array(items.into_iter().map(Some).collect())
    }

    fn maybe(bytes: Option<&Vec<u8>>) -> Self {
        bytes.map_or(Self::Nil, |bytes| Self::Bytes(bytes.clone()))
    }
}

/// The line that Redis sends in place of a reply, without the leading `-`.
#[derive(Debug, PartialEq)]
pub(super) struct Failure(pub(super) Cow<'static, str>);

impl Failure {
    pub(super) const WRONG_TYPE: Self =
        Self(Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value"));
    const SYNTAX: Self = Self(Cow::Borrowed("ERR syntax error"));
    const NOT_AN_INTEGER: Self = Self(Cow::Borrowed("ERR value is not an integer or out of range"));
    const NOT_A_FLOAT: Self = Self(Cow::Borrowed("ERR value is not a valid float"));
    const NOT_A_RANGE: Self = Self(Cow::Borrowed("ERR min or max is not a float"));
    const UNKNOWN: Self = Self(Cow::Borrowed("ERR Unknown Redis command called from script"));
    const ARITY: Self = Self(Cow::Borrowed("ERR Wrong number of args calling Redis command from script"));

    fn expire_time(command: &str) -> Self {
        Self(format!("ERR invalid expire time in '{command}' command").into())
    }
}

type Run = fn(&mut Database, &[Vec<u8>]) -> Result<Answer, Failure>;

/// Name, how many arguments at least and at most, and what runs it.
const COMMANDS: [(&str, usize, usize, Run); 29] = [
    ("DEL", 1, MANY, generic::del),
    ("EXISTS", 1, MANY, generic::exists),
    ("GET", 1, 1, string::get),
    ("HDEL", 2, MANY, hash::hdel),
    ("HEXISTS", 2, 2, hash::hexists),
    ("HGET", 2, 2, hash::hget),
    ("HGETALL", 1, 1, hash::hgetall),
    ("HLEN", 1, 1, hash::hlen),
    ("HMGET", 2, MANY, hash::hmget),
    ("HSET", 3, MANY, hash::hset),
    ("LINDEX", 2, 2, list::lindex),
    ("LLEN", 1, 1, list::llen),
    ("LREM", 3, 3, list::lrem),
    ("PEXPIRE", 2, 2, generic::pexpire),
    ("PTTL", 1, 1, generic::pttl),
    ("PUBLISH", 2, 2, generic::publish),
    ("PUBSUB", 1, MANY, generic::pubsub),
    ("RPUSH", 2, MANY, list::rpush),
    ("SET", 2, MANY, string::set),
    ("STRLEN", 1, 1, string::strlen),
    ("TIME", 0, 0, generic::time),
    ("UNLINK", 1, MANY, generic::del),
    ("ZADD", 3, MANY, sorted_set::zadd),
    ("ZCARD", 1, 1, sorted_set::zcard),
    ("ZCOUNT", 3, 3, sorted_set::zcount),
    ("ZRANGE", 3, MANY, sorted_set::zrange),
    ("ZRANGEBYSCORE", 3, MANY, sorted_set::zrangebyscore),
    ("ZREM", 2, MANY, sorted_set::zrem),
    ("ZSCORE", 2, 2, sorted_set::zscore),
];

const MANY: usize = usize::MAX;

/// Those that Redis counts as writes, whatever they find: a server that takes none refuses them. `PUBLISH` is not one.
const WRITES: [&str; 10] = ["DEL", "HDEL", "HSET", "LREM", "PEXPIRE", "RPUSH", "SET", "UNLINK", "ZADD", "ZREM"];

/// Runs one command; its name comes first, in any case.
pub(super) fn execute(database: &mut Database, words: &[Vec<u8>]) -> Result<Answer, Failure> {
    let (name, args) = words.split_first().ok_or(Failure::UNKNOWN)?;
    let known = COMMANDS.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name));
    let (known, least, most, run) = known.ok_or(Failure::UNKNOWN)?;
    if args.len() < *least || args.len() > *most {
        return Err(Failure::ARITY);
    }
    if let Some(refusal) = database.refusal.as_ref().filter(|_| WRITES.contains(known)) {
        return Err(Failure(refusal.clone().into()));
    }
    run(database, args)
}

fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

#[cfg(test)]
mod tests;
