//! Commands on keys of any type, the clock and the channels.

use super::glob;
use super::option::is;
use crate::embedded::answer::{Failure, LuaAnswer};
use crate::embedded::keyspace::Database;
use crate::embedded::number::integer;

pub(super) fn del(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(args.iter().filter(|key| database.remove(key)).count()))
}

pub(super) fn exists(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(args.iter().filter(|key| database.exists(key)).count()))
}

/// A time to live that is zero or negative removes the key. Of the options, only `GT` is supported.
pub(super) fn pexpire(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let ttl = integer(&args[1]).ok_or(Failure::NOT_AN_INTEGER)?;
    let expires = database.now_ms().checked_add(ttl).ok_or_else(|| Failure::expire_time("pexpire"))?;
    if args.get(2).is_some_and(|option| !is(option, "GT")) {
        return Err(Failure::SYNTAX);
    }
    let is_shorter = match database.expiry(&args[0]) {
        None => return Ok(LuaAnswer::Integer(0)),
        Some(current) => current.is_none_or(|current| expires <= current),
    };
    // A key without an end lasts longer than any other.
    if args.len() > 2 && is_shorter {
        return Ok(LuaAnswer::Integer(0));
    }
    if ttl <= 0 {
        database.remove(&args[0]);
    } else {
        database.expire(&args[0], expires);
    }
    Ok(LuaAnswer::Integer(1))
}

pub(super) fn pttl(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::Integer(match database.expiry(&args[0]) {
        None => -2,
        Some(None) => -1,
        Some(Some(expires)) => expires - database.now_ms(),
    }))
}

/// Supports `SCAN <cursor> MATCH <pattern> COUNT <count>` only.
pub(super) fn scan(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let cursor = std::str::from_utf8(&args[0]).ok().and_then(|cursor| cursor.parse().ok());
    let cursor = cursor.ok_or(Failure::CURSOR)?;
    if !is(&args[1], "MATCH") || !is(&args[3], "COUNT") {
        return Err(Failure::SYNTAX);
    }
    let count = integer(&args[4]).ok_or(Failure::NOT_AN_INTEGER)?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(Failure::SYNTAX)?;
    let (next, mut keys) = database.scan(cursor, count);
    keys.retain(|key| glob::matches(&args[2], key));
    Ok(LuaAnswer::Page { cursor: next.to_string().into_bytes(), keys })
}

/// Supports `INFO server` only.
pub(super) fn info(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    if !is(&args[0], "SERVER") {
        return Err(Failure::UNKNOWN);
    }
    Ok(LuaAnswer::Bytes(database.identity.info(database.now()).into_bytes()))
}

/// The embedded server saves nothing. A server counts its start as a save.
pub(super) fn lastsave(database: &mut Database, _: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::Integer(database.identity.last_save()))
}

pub(super) fn publish(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(database.channels.publish(&args[0], &args[1])))
}

/// The embedded server is not a cluster, so a shard channel never has subscribers.
pub(super) fn spublish(_: &mut Database, _: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::Integer(0))
}

/// Supports `PUBSUB NUMSUB` and `PUBSUB SHARDNUMSUB` only.
pub(super) fn pubsub(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let sharded = is(&args[0], "SHARDNUMSUB");
    if !sharded && !is(&args[0], "NUMSUB") {
        return Err(Failure::UNKNOWN);
    }
    let count = |channel: &Vec<u8>| {
        let listeners = if sharded { 0 } else { database.channels.listeners(channel) };
        (channel.clone(), listeners)
    };
    Ok(LuaAnswer::Counts(args[1..].iter().map(count).collect()))
}

pub(super) fn time(database: &mut Database, _: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let now = database.now();
    let parts = [now.as_secs().to_string(), now.subsec_micros().to_string()];
    Ok(LuaAnswer::array(parts.map(String::into_bytes)))
}
