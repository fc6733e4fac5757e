//! The only module that formats keys and channels.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::LazyLock;

use uuid::Uuid;

use super::facts::Facts;
use super::kind::Kind;
use super::limits::{MAX_PARTIES, WRITE};
use super::slot;
use crate::error::{Error, ErrorKind, Result};

mod named;

use named::{encode, invalid};

pub(super) use named::LIMITER;
pub(crate) use named::{Named, decode, encode_start};

/// What all keys and channels start with, unless a configuration says something else.
pub(crate) const DEFAULT_PREFIX: &str = "bowline";

static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The keys of one resource. The braces are the cluster hash tag: all of them live in one slot.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) kind: Kind,
    named: Named,
    /// The hash of the main key, computed once. It is keyed at random, because names come from users.
    hash: u64,
}

impl Keys {
    pub(crate) fn new(prefix: &str, kind: Kind, name: &str) -> Result<Self> {
        if let Kind::Semaphore { limit } = kind {
            check_limit(limit)?;
        }
        if let Kind::Barrier { parties, .. } | Kind::Entry { parties, .. } | Kind::Inside { parties, .. } = kind {
            check_parties(parties)?;
        }
        let main = format!("{prefix}:{}:{{{}}}", kind.facts().word, encode(name)?);
        Ok(Self::below(kind, name, &main))
    }

    fn below(kind: Kind, name: &str, main: &str) -> Self {
        let Facts { suffixes, others, .. } = kind.facts();
        let named = Named::new(name, main, suffixes.iter().chain(*others));
        Self { kind, named, hash: HASHER.hash_one(main) }
    }

    /// The keys on which this client tries its rights, in one slot. No name has these keys.
    pub(crate) fn scratch(prefix: &str, kind: Kind, client: Uuid) -> Self {
        let name = "bowline-check";
        Self::below(kind, name, &format!("{prefix}:{}:{{{name}}}:{client}", kind.facts().word))
    }

    /// The key with this suffix.
    pub(super) fn ending(&self, suffix: &str) -> &str {
        let Facts { suffixes, others, .. } = self.kind.facts();
        self.named.keys(suffixes.iter().chain(*others)).find(|key| key.ends_with(suffix)).unwrap_or_default()
    }

    /// The position of the resource in the order in which several are acquired: by kind, encoded name and prefix. It
    /// must not change, because versions of this crate that acquire in different orders could deadlock.
    pub(crate) fn rank(&self) -> (&str, &str, &str) {
        let word = self.kind.word();
        let (before, name) = self.main().split_at(self.main().find('{').unwrap_or_default());
        (word, name, before)
    }

    /// All keys, in the order of `KEYS` in the scripts.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.named.keys(self.kind.facts().suffixes.iter())
    }

    /// The keys that a renewal needs.
    pub(super) fn renewed(&self) -> impl Iterator<Item = &str> {
        self.kind.facts().renewed.iter().map(|suffix| self.ending(suffix))
    }
}

impl Deref for Keys {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.named
    }
}

impl Borrow<Named> for Keys {
    fn borrow(&self) -> &Named {
        self
    }
}

/// The main key contains prefix, kind and name. The same name with another limit counts as different.
impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.main() == other.main() && self.kind == other.kind
    }
}

impl Eq for Keys {}

impl Hash for Keys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What the scripts write to the key. Its last part is behind the name, which has no colon at its end.
pub(super) fn type_of(key: &str) -> &'static str {
    match key.rsplit(':').next() {
        Some("queue" | "changes") => "list",
        Some("tickets" | "leases" | "calls" | "watchers" | "ended") => "zset",
        Some("fence" | "tat") => "string",
        _ => "hash",
    }
}

/// The common prefix of all clients' inboxes. The client's UUID follows it.
pub(crate) fn inbox_prefix(prefix: &str) -> String {
    format!("{prefix}:inbox:")
}

/// The common prefix of a slot's inboxes if messages are sharded. `all` is the prefix of all inboxes.
pub(super) fn inbox_prefix_in(all: &str, slot: u16) -> String {
    format!("{all}{{{}}}:", slot::tag(slot))
}

/// The inbox of a client: for all messages, or for messages about keys of the given slot.
pub(crate) fn inbox(all: &str, slot: Option<u16>, client: Uuid) -> String {
    match slot {
        Some(slot) => format!("{}{client}", inbox_prefix_in(all, slot)),
        None => format!("{all}{client}"),
    }
}

/// A semaphore has fewer units than a read-write lock, which is how scripts tell them apart.
pub(crate) fn check_limit(limit: u32) -> Result<()> {
    if (1..WRITE).contains(&limit) {
        return Ok(());
    }
    let reason = format!("a limit of {limit} permits; it must be 1 to {}", WRITE - 1);
    Err(Error::because(ErrorKind::InvalidInput, "limit", reason))
}

fn check_parties(parties: u32) -> Result<()> {
    if (1..=MAX_PARTIES).contains(&parties) {
        return Ok(());
    }
    let reason = format!("a barrier of {parties} parties; it must have 1 to {MAX_PARTIES}");
    Err(Error::because(ErrorKind::InvalidInput, "parties", reason))
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

#[cfg(test)]
mod tests {
    use super::named::MAX_NAME;
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
        let keys = Keys::new("bowline", Kind::Barrier { parties: 2, keep: 0 }, "a").unwrap();
        assert_eq!(listed(&keys), ["bowline:barrier:{a}", "bowline:barrier:{a}:tickets", "bowline:barrier:{a}:ended"]);
        assert_eq!(inbox_prefix("bowline"), "bowline:inbox:");
        let client = Uuid::from_u128(1);
        let inbox = |slot| super::inbox("p:inbox:", slot, client);
        assert_eq!(inbox(None), "p:inbox:00000000-0000-0000-0000-000000000001");
        // The answer of `CLUSTER KEYSLOT 3`.
        assert_eq!(inbox(Some(1584)), "p:inbox:{3}:00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn ranks() {
        let rank = |prefix, kind, name| {
            let keys = Keys::new(prefix, kind, name).unwrap();
            let (word, name, before) = keys.rank();
            (word.to_owned(), name.to_owned(), before.to_owned())
        };
        let expected = ("lock", "{a%7Bb}", "x:y:lock:");
        assert_eq!(rank("x:y", Kind::Lock, "a{b"), (expected.0.into(), expected.1.into(), expected.2.into()));
        let ascending = [
            rank("z", Kind::Lock, "a"),
            rank("a", Kind::Lock, "b"),
            rank("b", Kind::Lock, "b"),
            rank("a", Kind::ReadWrite, "a"),
            rank("a", Kind::Semaphore { limit: 3 }, "a"),
        ];
        assert!(ascending.is_sorted(), "{ascending:?}");
    }

    #[test]
    fn scratch_keys_are_of_one_client() {
        let [one, other] = [1, 2].map(|n| Keys::scratch("bowline", Kind::Lock, Uuid::from_u128(n)));
        let named = Keys::new("bowline", Kind::Lock, "bowline-check").unwrap();
        assert_eq!(one.main(), "bowline:lock:{bowline-check}:00000000-0000-0000-0000-000000000001");
        for keys in [&other, &named] {
            assert!(listed(&one).iter().all(|key| !listed(keys).contains(key)));
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
            // A control character outside ASCII.
            ("a\u{85}b", "a\u{85}b"),
        ];
        for (name, spelled) in vectors {
            let keys = Keys::new("p", Kind::Lock, name).unwrap();
            assert_eq!(keys.main(), format!("p:lock:{{{spelled}}}"));
            assert_eq!(decode(spelled).as_deref(), Some(name));
        }
        // What another program has written.
        for foreign in ["", "a%7b", "a%", "%FF", "%41", "a{"] {
            assert_eq!(decode(foreign), None, "{foreign:?}");
        }
        for byte in 0..128_u8 {
            let spelled = encode(&char::from(byte).to_string()).unwrap();
            let escaped = byte < 0x20 || matches!(byte, b'{' | b'}' | b'%' | 0x7f);
            let expected = if escaped { format!("%{byte:02X}") } else { char::from(byte).to_string() };
            assert_eq!(spelled, expected);
        }
    }

    #[test]
    fn a_barrier_has_up_to_a_thousand_parties() {
        let barrier = |parties| Keys::new("p", Kind::Barrier { parties, keep: 0 }, "a");
        for parties in [0, MAX_PARTIES + 1] {
            assert_eq!(barrier(parties).unwrap_err().kind(), ErrorKind::InvalidInput, "{parties}");
        }
        assert!(barrier(1).is_ok() && barrier(MAX_PARTIES).is_ok());
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
