//! Commands on hashes.

use super::{Answer, Failure};
use crate::embedded::keyspace::Database;
use crate::embedded::values::Hash;

pub(super) fn hset(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let (pairs, []) = args[1..].as_chunks::<2>() else { return Err(Failure::ARITY) };
    let hash = database.get_or_new::<Hash>(&args[0])?;
    Ok(Answer::count(pairs.iter().filter(|[field, value]| hash.set(field, value)).count()))
}

pub(super) fn hget(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::maybe(database.get::<Hash>(&args[0])?.and_then(|hash| hash.get(&args[1]))))
}

pub(super) fn hexists(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let hash = database.get::<Hash>(&args[0])?;
    Ok(Answer::Integer(hash.is_some_and(|hash| hash.get(&args[1]).is_some()).into()))
}

pub(super) fn hkeys(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    let fields = |hash: &mut Hash| hash.iter().map(|(field, _)| field.clone()).collect();
    Ok(Answer::Array(database.get::<Hash>(&args[0])?.map_or_else(Vec::new, fields)))
}

pub(super) fn hlen(database: &mut Database, args: &[Vec<u8>]) -> Result<Answer, Failure> {
    Ok(Answer::count(database.get::<Hash>(&args[0])?.map_or(0, |hash| hash.len())))
}
