//! The table of shard channels, shared by the subscriptions and the task that keeps them.

use std::sync::{Arc, Mutex};

use event_listener::{Event, EventListener};
use rustc_hash::FxHashSet;

use super::super::host::Host;
use super::table::Table;
use crate::mutex::lock;

#[derive(Default)]
pub(in super::super) struct Channels {
    table: Mutex<Table>,
    /// Notified when a channel has become wanted at a master at which none was wanted before.
    pub(super) new: Event,
}

impl Channels {
    /// Reads or changes the table. Wakes the masters whose wanted channels have changed.
    pub(in super::super) fn look<T>(&self, look: impl FnOnce(&mut Table) -> T) -> T {
        let (looked, (woken, is_new)) = {
            let mut table = lock(&self.table);
            (look(&mut table), table.places.take_woken())
        };
        woken.iter().for_each(|event| {
            event.notify(usize::MAX);
        });
        if is_new {
            self.new.notify(usize::MAX);
        }
        looked
    }

    /// Returns a listener for changes of the channels that are wanted at this master.
    pub(super) fn listen(&self, host: &Host) -> EventListener {
        self.look(|table| table.places.listen(host))
    }

    /// The channels that are wanted at this master.
    pub(super) fn wanted_at(&self, host: &Host) -> FxHashSet<Arc<str>> {
        self.look(|table| table.places.wanted(host).cloned().unwrap_or_default())
    }
}
