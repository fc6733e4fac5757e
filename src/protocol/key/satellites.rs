//! What Redisson derives from a name, and which names it may have here.

use super::named::{check_length, invalid};
use crate::error::Result;

/// The beginning of the channel of a lock.
const CHANNEL: &str = "redisson_lock__channel";

/// The beginning of the counter of a fenced lock.
const COUNTER: &str = "redisson_lock_token";

/// The channel and the counter of a name.
#[derive(Debug)]
pub(super) struct Satellites {
    pub(super) channel: Box<str>,
    pub(super) counter: Box<str>,
}

impl Satellites {
    pub(super) fn of(name: &str) -> Self {
        let [channel, counter] = [CHANNEL, COUNTER].map(|prefix| prefixed(prefix, name).into());
        Self { channel, counter }
    }
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
            let Satellites { channel, counter } = Satellites::of(name);
            assert_eq!(*channel, format!("redisson_lock__channel:{rest}"));
            assert_eq!(*counter, format!("redisson_lock_token:{rest}"));
            assert!(is_counter(&counter) && !is_counter(&channel) && !is_counter(name));
        }
    }
}
