//! Commands on strings.

use super::option::is;
use crate::embedded::answer::{Answer, Failure};
use crate::embedded::keyspace::{Database, Value};
use crate::embedded::number::integer;

pub(super) fn get(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::maybe(database.get::<Vec<u8>>(&args[0])?.map(|text| &*text)))
}

/// `SET key value [PX milliseconds]`: replaces a value of any type, and its expiry.
pub(super) fn set(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let (options, []) = args[2..].as_chunks::<2>() else { return Err(Failure::SYNTAX) };
    if !options.iter().all(|[option, _]| is(option, "PX")) {
        return Err(Failure::SYNTAX);
    }
    let expires = match options.last() {
        None => None,
        Some([_, ttl]) => {
            let ttl = integer(ttl).ok_or(Failure::NOT_AN_INTEGER)?;
            let expires = database.now_ms().checked_add(ttl).filter(|_| ttl > 0);
            Some(expires.ok_or_else(|| Failure::expire_time("set"))?)
        }
    };
    database.set(&args[0], Value::String(args[1].clone()), expires);
    Ok(Answer::Ok)
}

pub(super) fn strlen(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::count(database.get::<Vec<u8>>(&args[0])?.map_or(0, |text| text.len())))
}
