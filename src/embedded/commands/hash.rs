//! Commands on hashes.

use crate::embedded::answer::{Failure, LuaAnswer};
use crate::embedded::keyspace::Database;
use crate::embedded::values::Hash;

pub(super) fn hset(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let (pairs, []) = args[1..].as_chunks::<2>() else { return Err(Failure::ARITY) };
    let hash = database.get_or_new::<Hash>(&args[0])?;
    Ok(LuaAnswer::count(pairs.iter().filter(|[field, value]| hash.set(field, value)).count()))
}

pub(super) fn hget(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::maybe(database.get::<Hash>(&args[0])?.and_then(|hash| hash.get(&args[1]))))
}

pub(super) fn hexists(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let hash = database.get::<Hash>(&args[0])?;
    Ok(LuaAnswer::Integer(hash.is_some_and(|hash| hash.get(&args[1]).is_some()).into()))
}

pub(super) fn hgetall(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let hash = database.get::<Hash>(&args[0])?;
    let pairs = hash.into_iter().flat_map(|hash| hash.iter());
    Ok(LuaAnswer::array(pairs.flat_map(|(field, value)| [field.clone(), value.clone()])))
}

pub(super) fn hmget(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let hash = database.get::<Hash>(&args[0])?;
    let value = |field: &Vec<u8>| hash.as_ref().and_then(|hash| hash.get(field)).cloned();
    Ok(LuaAnswer::Array(args[1..].iter().map(value).collect()))
}

pub(super) fn hdel(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let Some(hash) = database.get::<Hash>(&args[0])? else { return Ok(LuaAnswer::Integer(0)) };
    let removed = args[1..].iter().filter(|field| hash.remove(field)).count();
    if hash.len() == 0 {
        database.remove(&args[0]);
    }
    Ok(LuaAnswer::count(removed))
}

pub(super) fn hlen(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(database.get::<Hash>(&args[0])?.map_or(0, |hash| hash.len())))
}
