//! Releases whose replies are not read yet.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use crate::protocol::key::Keys;

/// Names a release whose reply is not read yet.
pub(crate) type UnreadId = (Instant, u64);

/// By name, when a heartbeat is to find out what each of them did.
#[derive(Debug, Default)]
pub(super) struct Unread {
    names: HashMap<Arc<Keys>, BTreeSet<UnreadId>>,
    last: u64,
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
            name.remove(&id);
            if name.is_empty() {
                self.names.remove(keys);
            }
        }
    }

    pub(super) fn first(&self, keys: &Arc<Keys>) -> Option<Instant> {
        self.names.get(keys)?.first().map(|(at, _)| *at)
    }

    /// A heartbeat of the name begins, which serves every reply that is due by now.
    pub(super) fn looked(&mut self, keys: &Arc<Keys>, now: Instant) {
        if let Some(name) = self.names.get_mut(keys) {
            name.retain(|(at, _)| *at > now);
            if name.is_empty() {
                self.names.remove(keys);
            }
        }
    }
}
