//! The commands that the scripts use, and no others: their names, their numbers of arguments and their functions.

mod generic;
mod glob;
mod hash;
mod list;
mod option;
mod sorted_set;
mod string;

use super::answer::{Failure, LuaAnswer};
use super::keyspace::Database;

type Run = fn(&mut Database, &[Vec<u8>]) -> Result<LuaAnswer, Failure>;

/// Name, smallest and largest number of arguments, function.
const COMMANDS: [(&str, usize, usize, Run); 35] = [
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
    ("INCRBY", 2, 2, string::incrby),
    ("INFO", 1, 1, generic::info),
    ("LASTSAVE", 0, 0, generic::lastsave),
    ("LINDEX", 2, 2, list::lindex),
    ("LLEN", 1, 1, list::llen),
    ("LPUSH", 2, MANY, list::lpush),
    ("LREM", 3, 3, list::lrem),
    ("PEXPIRE", 2, 3, generic::pexpire),
    ("PTTL", 1, 1, generic::pttl),
    ("PUBLISH", 2, 2, generic::publish),
    ("PUBSUB", 1, MANY, generic::pubsub),
    ("RPUSH", 2, MANY, list::rpush),
    ("SCAN", 5, 5, generic::scan),
    ("SET", 2, MANY, string::set),
    ("SPUBLISH", 2, 2, generic::spublish),
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

/// The commands that Redis flags as writes, even if they change nothing. A server that takes no writes refuses them.
/// `PUBLISH` is not a write.
const WRITES: [&str; 12] =
    ["DEL", "HDEL", "HSET", "INCRBY", "LPUSH", "LREM", "PEXPIRE", "RPUSH", "SET", "UNLINK", "ZADD", "ZREM"];

/// Runs one command. The first word is its name, in upper or lower case.
pub(super) fn execute(database: &mut Database, words: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let (name, args) = words.split_first().ok_or(Failure::UNKNOWN)?;
    let known = COMMANDS.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name));
    let (known, least, most, run) = known.ok_or(Failure::UNKNOWN)?;
    if args.len() < *least || args.len() > *most {
        return Err(Failure::ARITY);
    }
    if let Some(refusal) = database.refusal.as_ref().filter(|_| WRITES.contains(known)) {
        return Err(Failure(refusal.clone().into()));
    }
    let answer = run(database, args)?;
    if WRITES.contains(known) {
        // Those of the commands that take several keys take nothing else.
        let keys = if *most == MANY && ["DEL", "UNLINK"].contains(known) { args } else { &args[..1] };
        keys.iter().for_each(|key| database.watches.changed(key));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests;
