//! The only place that spells keys and channels.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};

/// Longest name, in bytes, before encoding.
pub(crate) const MAX_NAME: usize = 512;

/// The four keys of one lock. The braces are the cluster hash tag: all four live in one slot.
#[derive(Debug)]
pub(crate) struct LockKeys {
    pub(crate) name: Arc<str>,
    pub(crate) lock: String,
    queue: String,
    tickets: String,
    fence: String,
}

impl LockKeys {
    pub(crate) fn new(prefix: &str, name: &str) -> Result<Self> {
        let lock = format!("{prefix}:lock:{{{}}}", encode(name)?);
        Ok(Self {
            name: name.into(),
            queue: format!("{lock}:queue"),
            tickets: format!("{lock}:tickets"),
            fence: format!("{lock}:fence"),
            lock,
        })
    }

    /// What the client of this id may write to for a test, in one slot. The counter, which stays behind, is one for
    /// all clients; the rest cannot be the keys of any name.
    pub(crate) fn scratch(prefix: &str, client: Uuid) -> Self {
        let shared = format!("{prefix}:lock:{{bowline-check}}");
        let lock = format!("{shared}:{client}");
        Self {
            name: "bowline-check".into(),
            queue: format!("{lock}:queue"),
            tickets: format!("{lock}:tickets"),
            fence: format!("{shared}:fence"),
            lock,
        }
    }

    /// In the order of the scripts' `KEYS`.
    pub(crate) fn all(&self) -> [&str; 4] {
        [&self.lock, &self.queue, &self.tickets, &self.fence]
    }
}

/// The lock's key decides: it spells the prefix and the name.
impl PartialEq for LockKeys {
    fn eq(&self, other: &Self) -> bool {
        self.lock == other.lock
    }
}

impl Eq for LockKeys {}

impl Hash for LockKeys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lock.hash(state);
    }
}

/// What the inbox channels of all clients start with; the client's uuid follows.
pub(crate) fn inbox_prefix(prefix: &str) -> String {
    format!("{prefix}:inbox:")
}

/// A name as it stands between the braces: braces would end the hash tag, control bytes garble an operator's screen.
fn encode(name: &str) -> Result<String> {
    if name.is_empty() {
        return Err(invalid("the name is empty"));
    }
    if name.len() > MAX_NAME {
        return Err(invalid(format!("the name has {} bytes, more than {MAX_NAME}", name.len())));
    }
    let mut encoded = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '{' | '}' | '%') || c.is_ascii_control() {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{:02X}", u32::from(c));
        } else {
            encoded.push(c);
        }
    }
    Ok(encoded)
}

/// A prefix stands in front of the hash tag, so it must not contain one.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() || prefix.len() > 64 {
        return Err(invalid("the prefix must have 1 to 64 bytes"));
    }
    if prefix.chars().any(|c| matches!(c, '{' | '}' | '*' | '?' | '[' | ']') || c.is_control() || c == ' ') {
        return Err(invalid("the prefix must not contain spaces, control characters or any of {}*?[]"));
    }
    Ok(())
}

fn invalid(reason: impl Into<String>) -> Error {
    Error::because(ErrorKind::InvalidInput, "name", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling() {
        let keys = LockKeys::new("bowline", "orders:42").unwrap();
        assert_eq!(
            keys.all(),
            [
                "bowline:lock:{orders:42}",
                "bowline:lock:{orders:42}:queue",
                "bowline:lock:{orders:42}:tickets",
                "bowline:lock:{orders:42}:fence",
            ]
        );
        assert_eq!(inbox_prefix("bowline"), "bowline:inbox:");
    }

    #[test]
    fn scratch_keys_are_nobody_elses_but_for_the_counter() {
        let [one, other] = [1, 2].map(|n| LockKeys::scratch("bowline", Uuid::from_u128(n)));
        let named = LockKeys::new("bowline", "bowline-check").unwrap();
        assert_eq!(one.lock, "bowline:lock:{bowline-check}:00000000-0000-0000-0000-000000000001");
        for keys in [&other, &named] {
            assert!(one.all()[..3].iter().all(|key| !keys.all().contains(key)));
            assert_eq!(one.fence, keys.fence);
        }
    }

    #[test]
    fn no_two_names_share_a_key_and_none_breaks_the_hash_tag() {
        let names = ["a", "{a}", "}a", "a}", "a{b", "%7Ba%7D", "a b", "a\n", "a\0", "%", "ü", "日本", "\u{7f}"];
        let mut seen = std::collections::HashSet::new();
        for name in names {
            let keys = LockKeys::new("p", name).unwrap();
            let tag = keys.lock.strip_prefix("p:lock:{").unwrap().strip_suffix('}').unwrap();
            assert!(!tag.is_empty() && !tag.contains(['{', '}']), "{name:?} -> {tag:?}");
            assert!(!tag.chars().any(|c| c.is_ascii_control()));
            assert!(seen.insert(keys.lock.clone()), "{name:?} collides");
        }
    }

    #[test]
    fn bad_names_and_prefixes() {
        for name in ["", &"x".repeat(MAX_NAME + 1)] {
            assert_eq!(LockKeys::new("p", name).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(LockKeys::new("p", &"x".repeat(MAX_NAME)).is_ok());
        for prefix in ["", "a{b", "a}", "a b", "a*", "a\n", &"x".repeat(65)] {
            assert_eq!(check_prefix(prefix).unwrap_err().kind(), ErrorKind::InvalidInput, "{prefix:?}");
        }
        assert!(check_prefix("my-app:locks").is_ok());
    }
}
