//! Commands on lists.

use std::collections::VecDeque;

use crate::embedded::answer::{Failure, LuaAnswer};
use crate::embedded::keyspace::Database;
use crate::embedded::number::integer;

type List = VecDeque<Vec<u8>>;

pub(super) fn rpush(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let list = database.get_or_new::<List>(&args[0])?;
    list.extend(args[1..].iter().cloned());
    Ok(LuaAnswer::count(list.len()))
}

pub(super) fn lpush(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let list = database.get_or_new::<List>(&args[0])?;
    args[1..].iter().for_each(|item| list.push_front(item.clone()));
    Ok(LuaAnswer::count(list.len()))
}

/// `LREM key count element`: removes at most `count` equal elements from the head, or from the tail if `count` is
/// negative. Zero removes all of them.
pub(super) fn lrem(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let count = integer(&args[1]).ok_or(Failure::NOT_AN_INTEGER)?;
    let Some(list) = database.get::<List>(&args[0])? else { return Ok(LuaAnswer::Integer(0)) };
    let most = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
    let equal = |item: &Vec<u8>| *item == args[2];
    let mut removed = 0;
    while removed < most {
        let found = if count < 0 { list.iter().rposition(equal) } else { list.iter().position(equal) };
        let Some(index) = found else { break };
        list.remove(index);
        removed += 1;
    }
    if list.is_empty() {
        database.remove(&args[0]);
    }
    Ok(LuaAnswer::count(removed))
}

/// A negative index counts from the tail. As in Redis, the index is not parsed if the list does not exist.
pub(super) fn lindex(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let Some(list) = database.get::<List>(&args[0])? else { return Ok(LuaAnswer::Nil) };
    let index = integer(&args[1]).ok_or(Failure::NOT_AN_INTEGER)?;
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    let place = if index < 0 { list.len().checked_sub(distance) } else { Some(distance) };
    Ok(LuaAnswer::maybe(place.and_then(|place| list.get(place))))
}

pub(super) fn llen(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(database.get::<List>(&args[0])?.map_or(0, |list| list.len())))
}
