//! The keys of the server: values of four types, with their expiry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::time::Duration;

use super::answer::Failure;
use super::channels::Channels;
use super::identity::Identity;
use super::values::{Hash, SortedSet};
use super::watches::Watches;

/// The value of one key, as returned by [`Server::dump`](super::Server::dump).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The value.
    pub content: Content,
    /// When the key expires, since the Unix epoch. `None` if it does not expire.
    pub expires: Option<Duration>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A string.
    String(Vec<u8>),
    /// The elements of a list, starting at the head.
    List(Vec<Vec<u8>>),
    /// The fields of a hash and their values, in the order of insertion.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// The members of a sorted set and their scores, in ascending order.
    SortedSet(Vec<(Vec<u8>, f64)>),
}

#[derive(Default)]
pub(super) struct Database {
    keys: BTreeMap<Vec<u8>, Stored>,
    /// The keys that expire, in the order of their expiry in milliseconds.
    expiries: BTreeSet<(i64, Vec<u8>)>,
    /// The time at which the current script started.
    now: Duration,
    pub(super) channels: Channels,
    pub(super) watches: Watches,
    /// The error line that answers every write, if writes are refused.
    pub(super) refusal: Option<String>,
    pub(super) identity: Identity,
}

struct Stored {
    value: Value,
    expires: Option<i64>,
}

pub(super) enum Value {
    String(Vec<u8>),
    List(VecDeque<Vec<u8>>),
    Hash(Hash),
    SortedSet(SortedSet),
}

/// A type of values.
pub(super) trait Kind: Default {
    fn of(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

macro_rules! kinds {
    ($($kind:ty => $variant:ident),+) => {
        $(impl Kind for $kind {
            fn of(value: &mut Value) -> Option<&mut Self> {
                if let Value::$variant(value) = value { Some(value) } else { None }
            }

            fn into_value(self) -> Value {
                Value::$variant(self)
            }
        })+
    };
}

kinds! { Vec<u8> => String, VecDeque<Vec<u8>> => List, Hash => Hash, SortedSet => SortedSet }

/// The place of a key among all keys. It is never 0, the cursor that begins and ends.
fn place(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish().max(1)
}

impl Database {
    /// Sets the time and removes the keys that have expired. Called before each script: time stands still during a
    /// script, so no key expires in the middle of it.
    pub(super) fn begin(&mut self, now: Duration) {
        self.now = now;
        let now = self.now_ms();
        // As in Redis, a key still exists in the millisecond of its expiry.
        while self.expiries.first().is_some_and(|(expires, _)| *expires < now) {
            if let Some((_, key)) = self.expiries.pop_first() {
                self.keys.remove(&key);
                self.watches.changed(&key);
            }
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.now.as_millis()).unwrap_or(i64::MAX)
    }

    pub(super) fn exists(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    /// The value of the key, or an error if it has another type than `K`.
    pub(super) fn get<K: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut K>, Failure> {
        match self.keys.get_mut(key) {
            Some(stored) => K::of(&mut stored.value).map(Some).ok_or(Failure::WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// The value of the key, which is created without expiry if it does not exist.
    pub(super) fn get_or_new<K: Kind>(&mut self, key: &[u8]) -> Result<&mut K, Failure> {
        let new = || Stored { value: K::default().into_value(), expires: None };
        let stored = self.keys.entry(key.to_vec()).or_insert_with(new);
        K::of(&mut stored.value).ok_or(Failure::WRONG_TYPE)
    }

    /// Replaces the value and the expiry of the key.
    pub(super) fn set(&mut self, key: &[u8], value: Value, expires: Option<i64>) {
        self.remove(key);
        self.keys.insert(key.to_vec(), Stored { value, expires: None });
        if let Some(expires) = expires {
            self.expire(key, expires);
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let Some(stored) = self.keys.remove(key) else { return false };
        if let Some(expires) = stored.expires {
            self.expiries.remove(&(expires, key.to_vec()));
        }
        true
    }

    /// Some keys, and the cursor of those that follow. Keys are in the order of their hashes, and a cursor is the hash
    /// of the next key. A key that comes or goes therefore moves no other one.
    pub(super) fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<Vec<u8>>) {
        let mut rest: Vec<_> = self.keys.keys().map(|key| (place(key), key)).filter(|(at, _)| *at >= cursor).collect();
        rest.sort_unstable();
        // Keys with the same hash are on the same page.
        let last = rest.get(count - 1).map(|(at, _)| *at);
        let end = last.map_or(rest.len(), |last| rest.partition_point(|(at, _)| *at <= last));
        let next = rest.get(end).map_or(0, |(at, _)| *at);
        (next, rest.drain(..end).map(|(_, key)| key.clone()).collect())
    }

    /// When the key expires: `None` if it does not exist, `Some(None)` if it does not expire.
    pub(super) fn expiry(&self, key: &[u8]) -> Option<Option<i64>> {
        self.keys.get(key).map(|stored| stored.expires)
    }

    /// Sets when the key expires, if it exists.
    pub(super) fn expire(&mut self, key: &[u8], expires: i64) {
        let Some(stored) = self.keys.get_mut(key) else { return };
        if let Some(old) = stored.expires.replace(expires) {
            self.expiries.remove(&(old, key.to_vec()));
        }
        self.expiries.insert((expires, key.to_vec()));
    }

    pub(super) fn flush(&mut self) {
        self.watches.flushed();
        self.keys.clear();
        self.expiries.clear();
    }

    pub(super) fn dump(&self) -> BTreeMap<Vec<u8>, Entry> {
        let entry = |stored: &Stored| Entry {
            content: match &stored.value {
                Value::String(text) => Content::String(text.clone()),
                Value::List(items) => Content::List(items.iter().cloned().collect()),
                Value::Hash(hash) => Content::Hash(hash.iter().map(|(f, v)| (f.clone(), v.clone())).collect()),
                Value::SortedSet(set) => Content::SortedSet(set.iter().map(|(m, s)| (m.clone(), s)).collect()),
            },
            expires: stored.expires.map(|ms| Duration::from_millis(ms.try_into().unwrap_or(0))),
        };
        self.keys.iter().map(|(key, stored)| (key.clone(), entry(stored))).collect()
    }
}
