//! The table of shard channels, shared by the subscriptions and the task that keeps them.

use std::fmt;
use std::sync::{Arc, Mutex};

use event_listener::{Event, EventListener};
use rustc_hash::FxHashSet;

use super::super::host::Host;
use super::super::router::Router;
use super::table::Table;
use crate::mutex::lock;

#[derive(Default)]
pub(in super::super) struct Channels {
    table: Mutex<Table>,
    changed: Event,
}

impl Channels {
    /// Changes which channels are wanted, and announces that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let changed = self.look(change);
        self.changed.notify(usize::MAX);
        changed
    }

    /// Records changes in the state of channels.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut Table) -> T) -> T {
        look(&mut lock(&self.table))
    }

    /// Returns a listener for changes of the wanted channels.
    pub(super) fn listen(&self) -> EventListener {
        self.changed.listen()
    }

    /// The masters of all channels.
    pub(super) fn owners(&self, router: &Router) -> FxHashSet<Host> {
        let map = router.map();
        self.look(|table| table.wanted().filter_map(|(_, slot)| map.owner(slot)).cloned().collect())
    }

    /// The channels whose slots this master serves.
    pub(super) fn wanted_at(&self, router: &Router, host: &Host) -> FxHashSet<Arc<str>> {
        let map = router.map();
        let here = |slot| map.owner(slot) == Some(host);
        self.look(|table| table.wanted().filter(|(_, slot)| here(*slot)).map(|(channel, _)| channel.clone()).collect())
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").finish_non_exhaustive()
    }
}
