//! Releases whose replies are not read yet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::protocol::key::Keys;

/// After this time without a reply to a release, the client's waiters ask for themselves: the reply may be late, or its
/// future may not be polled.
pub(in crate::engine) const UNREAD: Duration = Duration::from_millis(50);

/// Names a release whose reply is not read yet.
pub(crate) type UnreadId = (Instant, u64);

/// For each name, the times at which a heartbeat must find out what the unread releases did.
#[derive(Debug, Default)]
pub(super) struct Unread {
    names: FxHashMap<Arc<Keys>, Releases>,
    last: u64,
}

/// Of one name. Most names have one at most, which needs no allocation.
#[derive(Debug, Default)]
struct Releases {
    one: Option<UnreadId>,
    more: BTreeSet<UnreadId>,
}

impl Releases {
    fn insert(&mut self, id: UnreadId) {
        if self.one.is_none() {
            self.one = Some(id);
        } else {
            self.more.insert(id);
        }
    }

    fn retain(&mut self, keeps: impl Fn(&UnreadId) -> bool) {
        self.one = self.one.filter(&keeps);
        self.more.retain(keeps);
    }

    fn is_empty(&self) -> bool {
        self.one.is_none() && self.more.is_empty()
    }

    fn first(&self) -> Option<Instant> {
        self.one.iter().chain(self.more.first()).min().map(|(at, _)| *at)
    }
}

impl Unread {
    pub(super) fn insert(&mut self, keys: &Arc<Keys>, look_at: Instant) -> UnreadId {
        self.last += 1;
        let id = (look_at, self.last);
        self.names.entry(keys.clone()).or_default().insert(id);
        id
    }

    pub(super) fn remove(&mut self, keys: &Arc<Keys>, id: UnreadId) {
        if let Some(name) = self.names.get_mut(keys) {
            if name.one == Some(id) {
                name.one = None;
            } else {
                name.more.remove(&id);
            }
            if name.is_empty() {
                self.names.remove(keys);
            }
        }
    }

    pub(super) fn first(&self, keys: &Arc<Keys>) -> Option<Instant> {
        self.names.get(keys)?.first()
    }

    /// Records that a heartbeat of the name begins. It serves every unread reply that is due by now.
    pub(super) fn looked(&mut self, keys: &Arc<Keys>, now: Instant) {
        if let Some(name) = self.names.get_mut(keys) {
            name.retain(|(at, _)| *at > now);
            if name.is_empty() {
                self.names.remove(keys);
            }
        }
    }
}
