//! The order in which several primitives are acquired, the same in every process.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use crate::acquire::builder::choices::{Options, Part};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::key::Keys;

/// The parts in the order in which they are acquired, each resource once.
///
/// Two acquisitions of the same resources take them in the same order, so neither holds the later one while it waits
/// for the earlier one. Equal names on different servers cannot be told apart in a way that all processes share: the
/// sort is stable and leaves them in the order of the caller.
pub(super) fn ordered(options: &Options) -> Result<Vec<Part>> {
    let operation = options.operation;
    options.first()?;
    let mut ordered: Vec<(&Arc<Keys>, Part)> = Vec::new();
    let mut known = HashMap::new();
    for part in options.parts() {
        let keys = part.primitive.keys(operation)?;
        // The table of re-entry identifies the servers: two `RedLock`s of the same clients are two sources, but share
        // it.
        let resource = (Arc::as_ptr(&part.primitive.source.reentry), keys.main());
        let place = *known.entry(resource).or_insert(ordered.len());
        match ordered.get_mut(place) {
            Some((known, first)) => first.amount = joint(operation, (known, first.amount), (keys, part.amount))?,
            None => ordered.push((keys, part.clone())),
        }
    }
    ordered.sort_by(|(one, _), (other, _)| by_rank(one, other));
    Ok(ordered.into_iter().map(|(_, part)| part).collect())
}

fn by_rank(one: &Keys, other: &Keys) -> Ordering {
    one.rank().cmp(&other.rank())
}

/// The amount of one hold that covers both acquisitions of the same keys.
fn joint(operation: &'static str, one: (&Keys, u32), other: (&Keys, u32)) -> Result<u32> {
    let (keys, kind) = (one.0, one.0.kind);
    let error = |kind, reason| Err(Error::because(kind, operation, reason).with_name(&keys.name));
    if kind != other.0.kind {
        return error(ErrorKind::InvalidInput, "the handles of the semaphore have different limits");
    }
    match kind.joint(one.1, other.1) {
        Some(amount) => Ok(amount),
        None => error(ErrorKind::WouldDeadlock, "the lock is named for reading and for writing"),
    }
}

#[cfg(test)]
mod tests;
