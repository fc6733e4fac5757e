//! Commands on sorted sets.

use super::option::is;
use crate::embedded::answer::{Failure, LuaAnswer};
use crate::embedded::keyspace::Database;
use crate::embedded::number::{Bound, double, general, integer};
use crate::embedded::values::SortedSet;

/// `ZADD key [XX] [score member]...`: replies the number of new members. `XX` only changes the scores of existing
/// members.
pub(super) fn zadd(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let options = args[1..].iter().take_while(|word| is(word, "XX")).count();
    let update = options > 0;
    let (pairs, []) = args[1 + options..].as_chunks::<2>() else { return Err(Failure::SYNTAX) };
    if pairs.is_empty() {
        return Err(Failure::SYNTAX);
    }
    let scores: Option<Vec<f64>> = pairs.iter().map(|[score, _]| double(score)).collect();
    let scores = scores.ok_or(Failure::NOT_A_FLOAT)?;
    let members = pairs.iter().map(|[_, member]| member).zip(scores);
    if update {
        if let Some(set) = database.get::<SortedSet>(&args[0])? {
            for (member, score) in members {
                if set.score(member).is_some() {
                    set.set(member, score);
                }
            }
        }
        return Ok(LuaAnswer::Integer(0));
    }
    let set = database.get_or_new::<SortedSet>(&args[0])?;
    Ok(LuaAnswer::count(members.filter(|(member, score)| set.set(member, *score)).count()))
}

pub(super) fn zrem(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let Some(set) = database.get::<SortedSet>(&args[0])? else { return Ok(LuaAnswer::Integer(0)) };
    let removed = args[1..].iter().filter(|member| set.remove(member)).count();
    if set.len() == 0 {
        database.remove(&args[0]);
    }
    Ok(LuaAnswer::count(removed))
}

pub(super) fn zscore(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let score = database.get::<SortedSet>(&args[0])?.and_then(|set| set.score(&args[1]));
    Ok(score.map_or(LuaAnswer::Nil, |score| LuaAnswer::Bytes(general(score).into_bytes())))
}

pub(super) fn zcard(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    Ok(LuaAnswer::count(database.get::<SortedSet>(&args[0])?.map_or(0, |set| set.len())))
}

pub(super) fn zcount(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let (min, max) = range(args)?;
    Ok(LuaAnswer::count(database.get::<SortedSet>(&args[0])?.map_or(0, |set| set.range(min, max).count())))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`. A negative count means no limit. A negative offset
/// selects nothing.
pub(super) fn zrangebyscore(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let (mut offset, mut count, mut scores) = (0, -1, false);
    let mut options = &args[3..];
    loop {
        options = match options {
            [] => break,
            [option, rest @ ..] if is(option, "WITHSCORES") => {
                scores = true;
                rest
            }
            [option, first, second, rest @ ..] if is(option, "LIMIT") => {
                (offset, count) = integer(first).zip(integer(second)).ok_or(Failure::NOT_AN_INTEGER)?;
                rest
            }
            _ => return Err(Failure::SYNTAX),
        }
    }
    let (min, max) = range(args)?;
    let (offset, count) = (offset.try_into().unwrap_or(usize::MAX), count.try_into().unwrap_or(usize::MAX));
    let set = database.get::<SortedSet>(&args[0])?;
    let range = set.into_iter().flat_map(|set| set.range(min, max)).skip(offset).take(count);
    Ok(listed(range, scores))
}

/// `ZRANGE key start stop [WITHSCORES]`, by rank. A negative rank counts from the end.
pub(super) fn zrange(database: &mut Database, args: &[Vec<u8>]) -> Result<LuaAnswer, Failure> {
    let scores = args.len() > 3;
    if !args[3..].iter().all(|word| is(word, "WITHSCORES")) {
        return Err(Failure::SYNTAX);
    }
    let (start, stop) = integer(&args[1]).zip(integer(&args[2])).ok_or(Failure::NOT_AN_INTEGER)?;
    let Some(set) = database.get::<SortedSet>(&args[0])? else { return Ok(LuaAnswer::Array(Vec::new())) };
    let length = i64::try_from(set.len()).unwrap_or(i64::MAX);
    let rank = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (first, end) = (rank(start).max(0), rank(stop).saturating_add(1).max(0));
    let (first, end) = (usize::try_from(first).unwrap_or(usize::MAX), usize::try_from(end).unwrap_or(usize::MAX));
    Ok(listed(set.iter().take(end).skip(first), scores))
}

fn listed<'a>(range: impl Iterator<Item = (&'a Vec<u8>, f64)>, scores: bool) -> LuaAnswer {
    LuaAnswer::array(range.flat_map(|(member, score)| {
        let score = scores.then(|| general(score).into_bytes());
        std::iter::once(member.clone()).chain(score)
    }))
}

fn range(args: &[Vec<u8>]) -> Result<(Bound, Bound), Failure> {
    Bound::parse(&args[1]).zip(Bound::parse(&args[2])).ok_or(Failure::NOT_A_RANGE)
}
