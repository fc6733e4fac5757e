//! Which channels are wanted at which master, by the map of slots. Pure.
//!
//! A change looks only at the channels that it concerns, and wakes only their masters, because a program may wait in
//! all slots of a cluster, with a channel in each.

use std::sync::Arc;

use event_listener::{Event, EventListener};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::host::Host;
use super::super::map::SlotMap;

pub(in super::super) struct Places {
    map: Arc<SlotMap>,
    by_slot: FxHashMap<u16, FxHashSet<Arc<str>>>,
    masters: FxHashMap<Host, Master>,
    /// The events of the masters whose wanted channels have changed since the last look.
    woken: Vec<Arc<Event>>,
    /// Whether a channel has become wanted at a master at which none was wanted before.
    is_new: bool,
    /// The number of times that a change has looked at a channel.
    #[cfg(test)]
    pub(in super::super) looked: u64,
}

#[derive(Default)]
struct Master {
    wanted: FxHashSet<Arc<str>>,
    /// The channels that have become wanted or unwanted since the last look.
    changed: FxHashSet<Arc<str>>,
    /// The channels that are subscribed here.
    subscribed: FxHashSet<Arc<str>>,
    /// Notified when `changed` grows.
    event: Arc<Event>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            map: Arc::new(SlotMap::empty()),
            by_slot: FxHashMap::default(),
            masters: FxHashMap::default(),
            woken: Vec::new(),
            is_new: false,
            #[cfg(test)]
            looked: 0,
        }
    }
}

impl Places {
    pub(super) fn want(&mut self, channel: &Arc<str>, slot: u16) {
        self.by_slot.entry(slot).or_default().insert(Arc::clone(channel));
        if let Some(host) = self.map.owner(slot).cloned() {
            self.change(host, channel, true);
        }
    }

    pub(super) fn unwant(&mut self, channel: &Arc<str>, slot: u16) {
        if let Some(channels) = self.by_slot.get_mut(&slot) {
            channels.remove(channel);
            if channels.is_empty() {
                self.by_slot.remove(&slot);
            }
        }
        if let Some(host) = self.map.owner(slot).cloned() {
            self.change(host, channel, false);
        }
    }

    /// Uses this map from now on.
    pub(super) fn follow(&mut self, map: &Arc<SlotMap>) {
        if Arc::ptr_eq(&self.map, map) {
            return;
        }
        let old = std::mem::replace(&mut self.map, Arc::clone(map));
        let moved = self.by_slot.iter().filter(|(slot, _)| old.owner(**slot) != map.owner(**slot));
        let moved: Vec<_> = moved.map(|(slot, channels)| (*slot, channels.clone())).collect();
        for (slot, channels) in moved {
            #[cfg(test)]
            {
                self.looked += u64::try_from(channels.len()).unwrap();
            }
            for channel in &channels {
                for (owner, is_wanted) in [(old.owner(slot), false), (map.owner(slot), true)] {
                    owner.cloned().into_iter().for_each(|host| self.change(host, channel, is_wanted));
                }
            }
        }
    }

    fn change(&mut self, host: Host, channel: &Arc<str>, is_wanted: bool) {
        let master = self.masters.entry(host).or_default();
        self.is_new |= is_wanted && master.wanted.is_empty();
        match is_wanted {
            true => master.wanted.insert(Arc::clone(channel)),
            false => master.wanted.remove(channel),
        };
        // A master that has not looked since the last change needs no other wake: it is awake already, or has no socket
        // yet. When no channel is wanted any more, it is woken all the same, because its task ends.
        if master.changed.is_empty() || master.wanted.is_empty() {
            self.woken.push(Arc::clone(&master.event));
        }
        master.changed.insert(Arc::clone(channel));
    }

    /// Returns the events of the masters that were changed since the last call, and whether one of these masters is
    /// new, that is, no channel was wanted there before.
    pub(super) fn take_woken(&mut self) -> (Vec<Arc<Event>>, bool) {
        (std::mem::take(&mut self.woken), std::mem::take(&mut self.is_new))
    }

    /// Returns a listener for changes at this master.
    pub(super) fn listen(&mut self, host: &Host) -> EventListener {
        self.masters.entry(host.clone()).or_default().event.listen()
    }

    /// The masters at which channels are wanted.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Host> {
        self.masters.iter().filter(|(_, master)| !master.wanted.is_empty()).map(|(host, _)| host)
    }

    /// The channels that are wanted at this master. `None`: there is none.
    pub(super) fn wanted(&self, host: &Host) -> Option<&FxHashSet<Arc<str>>> {
        self.masters.get(host).map(|master| &master.wanted).filter(|wanted| !wanted.is_empty())
    }

    /// Returns the channels that have become wanted or unwanted at this master since the last call.
    pub(super) fn take_changed(&mut self, host: &Host) -> FxHashSet<Arc<str>> {
        let changed = self.masters.get_mut(host).map(|master| std::mem::take(&mut master.changed)).unwrap_or_default();
        #[cfg(test)]
        {
            self.looked += u64::try_from(changed.len()).unwrap();
        }
        changed
    }

    pub(super) fn subscribed(&mut self, host: &Host, channel: &Arc<str>) {
        self.masters.entry(host.clone()).or_default().subscribed.insert(Arc::clone(channel));
    }

    pub(super) fn left(&mut self, host: &Host, channel: &str) {
        if let Some(master) = self.masters.get_mut(host) {
            master.subscribed.remove(channel);
        }
    }

    /// Forgets what was subscribed at this master, and returns it.
    pub(super) fn left_all(&mut self, host: &Host) -> FxHashSet<Arc<str>> {
        self.masters.get_mut(host).map(|master| std::mem::take(&mut master.subscribed)).unwrap_or_default()
    }

    /// Removes a master whose task has ended, unless channels are wanted there again.
    pub(super) fn forget(&mut self, host: &Host) {
        if self.wanted(host).is_none() {
            self.masters.remove(host);
        }
    }

    /// The number of masters that are known.
    #[cfg(test)]
    pub(in super::super) fn masters(&self) -> usize {
        self.masters.len()
    }

    /// Forgets all channels.
    pub(super) fn clear(&mut self) {
        self.by_slot.clear();
        for master in self.masters.values_mut() {
            self.woken.push(Arc::clone(&master.event));
            *master = Master { event: Arc::clone(&master.event), ..Master::default() };
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
