//! Commands on strings.

use super::{Answer, Failure, is};
use crate::embedded::keyspace::{Database, Value};
use crate::embedded::number::integer;

pub(super) fn get(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::maybe(database.get::<Vec<u8>>(&args[0])?.map(|text| &*text)))
}

/// `SET key value [PX milliseconds]`: whatever the key was, and without its old expiry.
pub(super) fn set(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let ttl = ttl(&args[2..])?;
    let expires = ttl.map(|ttl| expires(database, ttl, "set")).transpose()?;
    database.set(&args[0], Value::String(args[1].clone()), expires);
    Ok(Answer::Ok)
}

/// `GETEX key [PX milliseconds]`: the time is read only if there is a value.
pub(super) fn getex(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let ttl = ttl(&args[1..])?;
    let Some(text) = database.get::<Vec<u8>>(&args[0])?.cloned() else { return Ok(Answer::Nil) };
    if let Some(ttl) = ttl {
        let expires = expires(database, ttl, "getex")?;
        database.expire(&args[0], expires);
    }
    Ok(Answer::Bytes(text))
}

/// The last of the options, which are `PX milliseconds` only.
fn ttl(options: &[Vec<u8>]) -> Result<Option<&Vec<u8>>, Failure> {
    let (options, []) = options.as_chunks::<2>() else { return Err(Failure::SYNTAX) };
    if !options.iter().all(|[option, _]| is(option, "PX")) {
        return Err(Failure::SYNTAX);
    }
    Ok(options.last().map(|[_, ttl]| ttl))
}

fn expires(database: &Database, ttl: &[u8], command: &str) -> Result<i64, Failure> {
    let ttl = integer(ttl).ok_or(Failure::NOT_AN_INTEGER)?;
    let expires = database.now_ms().checked_add(ttl).filter(|_| ttl > 0);
    expires.ok_or_else(|| Failure::expire_time(command))
}

pub(super) fn strlen(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::count(database.get::<Vec<u8>>(&args[0])?.map_or(0, |text| text.len())))
}
