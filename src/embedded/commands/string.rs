//! Commands on strings.

use super::option::is;
use crate::embedded::answer::{Failure, LuaAnswer};
use crate::embedded::keyspace::{Database, Value};
use crate::embedded::number::integer;

pub(super) fn get(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::maybe(database.get::<Vec<u8>>(&args[0])?.map(|text| &*text)))
}

/// `SET key value [PX milliseconds] [GET]`: replaces a value of any type, and its expiry. With `GET`, the old value
/// must be a string, and is the reply.
pub(super) fn set(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let (mut ttl, mut get) = (None, false);
    let mut options = args[2..].iter();
    while let Some(option) = options.next() {
        if is(option, "GET") {
            get = true;
        } else {
            ttl = Some(options.next().filter(|_| is(option, "PX")).ok_or(Failure::SYNTAX)?);
        }
    }
    let expires = match ttl {
        None => None,
        Some(ttl) => {
            let ttl = integer(ttl).ok_or(Failure::NOT_AN_INTEGER)?;
            let expires = database.now_ms().checked_add(ttl).filter(|_| ttl > 0);
            Some(expires.ok_or_else(|| Failure::expire_time("set"))?)
        }
    };
    let answer = if get { self::get(database, args)? } else { LuaAnswer::Ok };
    database.set(&args[0], Value::String(args[1].clone()), expires);
    Ok(answer)
}

/// Keeps the expiry.
pub(super) fn incrby(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let by = integer(&args[1]).ok_or(Failure::NOT_AN_INTEGER)?;
    let old = match database.get::<Vec<u8>>(&args[0])? {
        Some(text) => integer(text).ok_or(Failure::NOT_AN_INTEGER)?,
        None => 0,
    };
    let new = old.checked_add(by).ok_or(Failure::OVERFLOW)?;
    *database.get_or_new::<Vec<u8>>(&args[0])? = new.to_string().into_bytes();
    Ok(LuaAnswer::Integer(new))
}

pub(super) fn strlen(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(database.get::<Vec<u8>>(&args[0])?.map_or(0, |text| text.len())))
}
