//! What Redisson derives from a name, and which names it may have here.

use super::named::{check_length, invalid};
use crate::error::Result;
use crate::protocol::slot;

/// The beginning of the channel of a lock.
const CHANNEL: &str = "redisson_lock__channel";

/// The beginning of the counter of a fenced lock.
const COUNTER: &str = "redisson_lock_token";

/// The beginning of the channel of a semaphore.
pub(super) const PERMITS: &str = "redisson_sc";

/// The word in the keys of marks.
const MARK: &str = "call";

/// What belongs to a name and is not spelled like it.
#[derive(Debug)]
pub(super) struct Satellites {
    pub(super) channel: Box<str>,
    /// The counter of a fenced lock, or the leases of permits.
    pub(super) beside: Box<str>,
    /// What the keys of [marks](marks) of permits begin with. Empty for a lock.
    pub(super) marks: Box<str>,
}

impl Satellites {
    pub(super) fn of_lock(name: &str) -> Self {
        let [channel, beside] = [CHANNEL, COUNTER].map(|prefix| prefixed(prefix, name).into());
        Self { channel, beside, marks: Box::default() }
    }

    /// Of a semaphore whose permits have leases. `prefix` is that of the client.
    pub(super) fn of_permits(prefix: &str, name: &str) -> Self {
        let beside = if name.contains('{') { format!("{name}:timeout") } else { format!("{{{name}}}:timeout") };
        Self { channel: prefixed(PERMITS, name).into(), beside: beside.into(), marks: marks(prefix, name).into() }
    }
}

/// What the keys begin with by which calls are known that have been executed. They are in the slot of the name.
pub(super) fn marks(prefix: &str, name: &str) -> String {
    format!("{prefix}:{MARK}:{{{}}}:", slot::hashed(name))
}

/// As `prefixName` of Redisson spells it.
pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") }
}

/// Fails unless the key can be one of Redisson's. Each of the two formats would take the other one's keys for its own.
pub(super) fn check_mapped(prefix: &str, mapped: &str) -> Result<()> {
    check_length(mapped)?;
    let below = mapped.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(':'));
    let is_own = below.and_then(|rest| rest.split_once(":{")).is_some_and(|(word, _)| !word.contains(':'));
    if is_own || is_counter(mapped) {
        return Err(invalid("the key is one of bowline's own, or the counter of a fenced lock"));
    }
    Ok(())
}

/// Whether the key is that of a counter.
pub(super) fn is_counter(key: &str) -> bool {
    key.strip_prefix(COUNTER).is_some_and(|rest| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_name_is_spelled_as_redisson_does() {
        for (name, rest) in [("a", "{a}"), ("a{b}c", "a{b}c"), ("a}b", "{a}b}"), ("a{b", "a{b"), (" ü:", "{ ü:}")] {
            let Satellites { channel, beside, .. } = Satellites::of_lock(name);
            assert_eq!(*channel, format!("redisson_lock__channel:{rest}"));
            assert_eq!(*beside, format!("redisson_lock_token:{rest}"));
            assert!(is_counter(&beside) && !is_counter(&channel) && !is_counter(name));
            let Satellites { channel, beside, .. } = Satellites::of_permits("p", name);
            assert_eq!(*channel, format!("redisson_sc:{rest}"));
            assert_eq!(*beside, format!("{rest}:timeout"));
        }
    }
}
