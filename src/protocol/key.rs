//! The only module that formats keys and channels.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::sync::LazyLock;

use uuid::Uuid;

use super::facts::{Facts, Form};
use super::failure::Failure;
use super::kind::Kind;
use super::limits::{MAX_PARTIES, WRITE};
use super::slot;
use crate::connection::Topology;
use crate::error::{Error, ErrorKind, Result};

mod counter;
mod named;
mod satellites;

use named::{encode, invalid};
use satellites::{Satellites, check_mapped, is_counter};

pub(crate) use counter::SharedCounter;

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
    /// For a name in the format of Redisson, what it is not the beginning of.
    satellites: Option<Box<Satellites>>,
}

impl Keys {
    pub(crate) fn new(prefix: &str, kind: Kind, name: &str) -> Result<Self> {
        if let Kind::Semaphore { limit } = kind {
            check_limit(limit)?;
        }
        if let Kind::Barrier { parties, .. } | Kind::Entry { parties, .. } | Kind::Inside { parties, .. } = kind {
            check_parties(parties)?;
        }
        if kind.is_redissons() {
            return Self::redisson(prefix, name, name, kind);
        }
        let main = format!("{prefix}:{}:{{{}}}", kind.facts().word, encode(name)?);
        Ok(Self::below(kind, name, &main))
    }

    fn below(kind: Kind, name: &str, main: &str) -> Self {
        let Facts { suffixes, others, .. } = kind.facts();
        let named = Named::new(name, main, suffixes.iter().chain(*others));
        Self { kind, named, hash: HASHER.hash_one(main), satellites: None }
    }

    /// A lock or a permit in the format of Redisson, whose key is `mapped`.
    pub(crate) fn redisson(prefix: &str, name: &str, mapped: &str, kind: Kind) -> Result<Self> {
        check_mapped(prefix, mapped)?;
        let satellites = match kind {
            Kind::TimedPermit { .. } => Satellites::of_permits(prefix, mapped),
            _ => Satellites::of_lock(mapped),
        };
        Ok(Self { satellites: Some(Box::new(satellites)), ..Self::below(kind, name, mapped) })
    }

    /// The channel of a lock or a permit in the format of Redisson.
    pub(crate) fn channel(&self) -> &str {
        self.satellites.as_ref().map_or("", |satellites| &satellites.channel)
    }

    /// The other key in the format of Redisson: the counter of a lock, or the leases of permits.
    pub(super) fn beside(&self) -> Option<&str> {
        self.satellites.as_ref().map(|satellites| &*satellites.beside)
    }

    /// The mark of a permit in the format of Redisson, or of a call about permits.
    pub(super) fn mark(&self, id: &str) -> String {
        let marks = self.satellites.as_ref().map_or("", |satellites| &satellites.marks);
        format!("{marks}{id}")
    }

    /// Fails if the server is a cluster in which the keys and the channel of the name belong to different nodes.
    pub(super) fn check_slots(&self, topology: Topology) -> Result<(), Failure> {
        let Some(satellites) = self.satellites.as_ref().filter(|_| topology.one_name_per_call) else { return Ok(()) };
        let Satellites { channel, beside, marks } = &**satellites;
        if [channel, beside, marks].iter().all(|key| key.is_empty() || slot::of(key) == self.slot()) {
            return Ok(());
        }
        Err(Failure::OtherSlots(self.main().into()))
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

    /// The keys that a renewal of a hold in that form needs.
    pub(super) fn renewed(&self, form: Form) -> impl Iterator<Item = &str> {
        let Facts { renewed, .. } = self.kind.facts();
        let needed = if form == Form::Short { &renewed[..1] } else { renewed };
        needed.iter().map(|suffix| self.ending(suffix))
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
    if is_counter(key) {
        return "string";
    }
    // A name that Redisson uses is a key by itself, and may end like one.
    match key.rsplit_once(':').filter(|(before, _)| before.contains('}')) {
        Some((_, "queue" | "changes")) => "list",
        Some((_, "tickets" | "leases" | "calls" | "watchers" | "ended" | "timeout")) => "zset",
        Some((_, "fence" | "tat")) => "string",
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
mod tests;
