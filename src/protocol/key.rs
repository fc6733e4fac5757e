//! The only place that spells keys and channels.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use uuid::Uuid;

use super::kind::Kind;
use super::limits::WRITE;
use crate::error::{Error, ErrorKind, Result};

/// Longest name, in bytes, before encoding.
pub(crate) const MAX_NAME: usize = 512;

/// The keys of one resource. The braces are the cluster hash tag: all of them live in one slot.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) kind: Kind,
    pub(crate) name: Arc<str>,
    /// One behind the other, in the order of `KEYS` in the scripts: a client may wait for very many names.
    spelled: Box<str>,
    main: usize,
    /// With which prefix the counter of tokens is spelled, which all scratch keys share.
    shared: usize,
}

impl Keys {
    pub(crate) fn new(prefix: &str, kind: Kind, name: &str) -> Result<Self> {
        if let Kind::Semaphore { limit } = kind {
            check_limit(limit)?;
        }
        let main = format!("{prefix}:{}:{{{}}}", kind.facts().word, encode(name)?);
        Ok(Self::below(kind, name, &main, &main))
    }

    fn below(kind: Kind, name: &str, shared: &str, main: &str) -> Self {
        let mut spelled = String::new();
        for suffix in kind.facts().suffixes {
            spelled.push_str(if is_shared(suffix) { shared } else { main });
            spelled.push_str(suffix);
        }
        Self { kind, name: name.into(), spelled: spelled.into(), main: main.len(), shared: shared.len() }
    }

    /// What the client of this id may write to for a test, in one slot. The counter, which stays behind, is one for
    /// all clients; the rest cannot be the keys of any name.
    pub(crate) fn scratch(prefix: &str, kind: Kind, client: Uuid) -> Self {
        let shared = format!("{prefix}:{}:{{bowline-check}}", kind.facts().word);
        Self::below(kind, "bowline-check", &shared, &format!("{shared}:{client}"))
    }

    /// The key that says who holds it, or what is left to count.
    pub(crate) fn main(&self) -> &str {
        self.spelled.get(..self.main).unwrap_or_default()
    }

    /// All of them, in the order of `KEYS` in the scripts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        let mut rest = &*self.spelled;
        self.kind.facts().suffixes.iter().map(move |suffix| {
            let length = if is_shared(suffix) { self.shared } else { self.main } + suffix.len();
            let (key, behind) = rest.split_at_checked(length).unwrap_or_default();
            rest = behind;
            key
        })
    }

    /// Those that a renewal needs.
    pub(super) fn renewed(&self) -> impl Iterator<Item = &str> {
        self.all().take(self.kind.facts().renewed)
    }

    /// The one that ends like this.
    pub(super) fn ending(&self, suffix: &str) -> &str {
        self.all().find(|key| key.ends_with(suffix)).unwrap_or_default()
    }
}

/// Whether the keys of all clients' checks end like this.
fn is_shared(suffix: &str) -> bool {
    suffix == ":fence"
}

/// The main key spells prefix, kind and name. What is asked for with another limit is not the same.
impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.main() == other.main() && self.kind == other.kind
    }
}

impl Eq for Keys {}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.main().hash(state);
    }
}

/// What the inbox channels of all clients start with; the client's uuid follows.
pub(crate) fn inbox_prefix(prefix: &str) -> String {
    format!("{prefix}:inbox:")
}

/// What is spelled with a `%`: braces would end the hash tag, control bytes garble an operator's screen.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'{').add(b'}').add(b'%');

/// A name as it stands between the braces. What is not ASCII stays as it is, although URLs would escape it.
fn encode(name: &str) -> Result<String> {
    if name.is_empty() {
        return Err(invalid("the name is empty"));
    }
    if name.len() > MAX_NAME {
        return Err(invalid(format!("the name has {} bytes, more than {MAX_NAME}", name.len())));
    }
    let mut encoded = String::with_capacity(name.len());
    for part in name.split_inclusive(|c: char| !c.is_ascii()) {
        let ascii = part.trim_end_matches(|c: char| !c.is_ascii());
        encoded.extend(utf8_percent_encode(ascii, ESCAPED));
        encoded.push_str(&part[ascii.len()..]);
    }
    Ok(encoded)
}

/// A semaphore has fewer units than a read-write lock, which is how scripts tell them apart.
pub(crate) fn check_limit(limit: u32) -> Result<()> {
    if (1..WRITE).contains(&limit) {
        return Ok(());
    }
    let reason = format!("a limit of {limit} permits; it must be 1 to {}", WRITE - 1);
    Err(Error::because(ErrorKind::InvalidInput, "limit", reason))
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

    fn listed(keys: &Keys) -> Vec<&str> {
        keys.all().collect()
    }

    #[test]
    fn spelling() {
        let keys = Keys::new("bowline", Kind::Lock, "orders:42").unwrap();
        assert_eq!(
            listed(&keys),
            [
                "bowline:lock:{orders:42}",
                "bowline:lock:{orders:42}:queue",
                "bowline:lock:{orders:42}:tickets",
                "bowline:lock:{orders:42}:fence",
            ]
        );
        let keys = Keys::new("bowline", Kind::ReadWrite, "a}b").unwrap();
        assert_eq!(listed(&keys)[..2], ["bowline:rw:{a%7Db}", "bowline:rw:{a%7Db}:leases"]);
        let keys = Keys::new("bowline", Kind::Latch, "a").unwrap();
        assert_eq!(listed(&keys), ["bowline:latch:{a}", "bowline:latch:{a}:tickets", "bowline:latch:{a}:calls"]);
        assert_eq!(inbox_prefix("bowline"), "bowline:inbox:");
    }

    #[test]
    fn scratch_keys_are_nobody_elses_but_for_the_counter() {
        let [one, other] = [1, 2].map(|n| Keys::scratch("bowline", Kind::Lock, Uuid::from_u128(n)));
        let named = Keys::new("bowline", Kind::Lock, "bowline-check").unwrap();
        assert_eq!(one.main(), "bowline:lock:{bowline-check}:00000000-0000-0000-0000-000000000001");
        for keys in [&other, &named] {
            assert!(listed(&one)[..3].iter().all(|key| !listed(keys).contains(key)));
            assert_eq!(listed(&one)[3], listed(keys)[3]);
        }
    }

    #[test]
    fn no_two_names_share_a_key_and_none_breaks_the_hash_tag() {
        let names = ["a", "{a}", "}a", "a}", "a{b", "%7Ba%7D", "a b", "a\n", "a\0", "%", "ü", "日本", "\u{7f}"];
        let mut seen = std::collections::HashSet::new();
        for name in names {
            let keys = Keys::new("p", Kind::Lock, name).unwrap();
            let tag = keys.main().strip_prefix("p:lock:{").unwrap().strip_suffix('}').unwrap();
            assert!(!tag.is_empty() && !tag.contains(['{', '}']), "{name:?} -> {tag:?}");
            assert!(!tag.chars().any(|c| c.is_ascii_control()));
            assert!(seen.insert(keys.main().to_owned()), "{name:?} collides");
        }
    }

    #[test]
    fn names_are_spelled_as_they_always_were() {
        let vectors = [
            ("orders:42", "orders:42"),
            ("a b/c?d=e&f#g", "a b/c?d=e&f#g"),
            ("{user}:7", "%7Buser%7D:7"),
            ("100%", "100%25"),
            ("%7B", "%257B"),
            ("\0\t\n\x1f \x7f", "%00%09%0A%1F %7F"),
            ("\"'`\\<>|^~[]*", "\"'`\\<>|^~[]*"),
            ("für {日本} 🔒", "für %7B日本%7D 🔒"),
            ("日本", "日本"),
            // A control character, but none of ASCII.
            ("a\u{85}b", "a\u{85}b"),
        ];
        for (name, spelled) in vectors {
            let keys = Keys::new("p", Kind::Lock, name).unwrap();
            assert_eq!(keys.main(), format!("p:lock:{{{spelled}}}"));
        }
        for byte in 0..128_u8 {
            let spelled = encode(&char::from(byte).to_string()).unwrap();
            let escaped = byte < 0x20 || matches!(byte, b'{' | b'}' | b'%' | 0x7f);
            let expected = if escaped { format!("%{byte:02X}") } else { char::from(byte).to_string() };
            assert_eq!(spelled, expected);
        }
    }

    #[test]
    fn bad_names_and_prefixes() {
        for name in ["", &"x".repeat(MAX_NAME + 1)] {
            assert_eq!(Keys::new("p", Kind::Lock, name).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(Keys::new("p", Kind::Lock, &"x".repeat(MAX_NAME)).is_ok());
        for prefix in ["", "a{b", "a}", "a b", "a*", "a\n", &"x".repeat(65)] {
            assert_eq!(check_prefix(prefix).unwrap_err().kind(), ErrorKind::InvalidInput, "{prefix:?}");
        }
        assert!(check_prefix("my-app:locks").is_ok());
    }
}
