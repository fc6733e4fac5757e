//! What Redisson derives from the name of a lock.

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
        let [channel, counter] = [CHANNEL, COUNTER].map(|prefix| {
            if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") }.into()
        });
        Self { channel, counter }
    }
}

/// Whether the key is that of a counter.
pub(super) fn is_counter(key: &str) -> bool {
    key.strip_prefix(COUNTER).is_some_and(|rest| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `prefixName` of Redisson spells them.
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
