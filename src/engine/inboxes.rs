//! The slots of a cluster in which the client reads an inbox, where messages are sharded. Pure: time comes in as an
//! argument.
//!
//! | a slot is | becomes |
//! |---|---|
//! | closed, and in no table | open with the first attempt that waits in it |
//! | open | idle when a look finds that no attempt waits in it |
//! | idle | open with the next attempt that waits in it; closed [`LINGER`] later |
//!
//! The slots are looked at every [`LOOK`], so that an attempt that waits no more costs nothing here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::protocol::key::Keys;

/// A slot without a waiter stays open for this long, because a name that was waited for is often waited for again.
const LINGER: Duration = Duration::from_secs(60);

/// The time between two searches for idle slots.
const LOOK: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Inboxes {
    /// Whether messages are sharded. If not, the client has one inbox, and this table stays empty.
    sharded: bool,
    open: BTreeMap<u16, Slot>,
    /// Slots that are open but have no reader yet.
    added: Vec<u16>,
    next_look: Option<Instant>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The numbers of the attempts that wait in the slot.
    waiting: BTreeSet<u64>,
    idle_since: Option<Instant>,
    last_gap: Option<Instant>,
}

/// Inboxes of slots to open or close.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InboxWork {
    pub(crate) open: Vec<u16>,
    pub(crate) close: Vec<u16>,
    /// When to ask for work again.
    pub(crate) next: Option<Instant>,
}

impl Inboxes {
    pub(super) fn new(sharded: bool) -> Self {
        Self { sharded, ..Self::default() }
    }

    /// The client is connected, and messages are sharded. No attempt waits yet.
    pub(super) fn set_sharded(&mut self) {
        self.sharded = true;
    }

    fn slot_of(&self, keys: &Keys) -> Option<u16> {
        self.sharded.then(|| keys.slot())
    }

    /// Records that the attempt waits.
    pub(super) fn add(&mut self, keys: &Keys, n: u64) {
        let Some(slot) = self.slot_of(keys) else { return };
        if !self.open.contains_key(&slot) {
            self.added.push(slot);
        }
        let slot = self.open.entry(slot).or_default();
        slot.waiting.insert(n);
        slot.idle_since = None;
    }

    /// Records that the attempt waits no more.
    pub(super) fn remove(&mut self, keys: &Keys, n: u64) {
        if let Some(slot) = self.slot_of(keys).and_then(|slot| self.open.get_mut(&slot)) {
            slot.waiting.remove(&n);
        }
    }

    /// Records that messages about keys of the slot may have been missed. Returns the attempts that wait in the slot.
    pub(super) fn set_gap(&mut self, slot: u16, now: Instant) -> Vec<u64> {
        let Some(slot) = self.open.get_mut(&slot) else { return Vec::new() };
        slot.last_gap = Some(now);
        slot.waiting.iter().copied().collect()
    }

    /// The last time at which a message about these keys may have been missed.
    pub(super) fn last_gap(&self, keys: &Keys) -> Option<Instant> {
        self.open.get(&self.slot_of(keys)?)?.last_gap
    }

    /// Whether there are slots whose inbox is to be opened.
    pub(super) fn is_added(&self) -> bool {
        !self.added.is_empty()
    }

    pub(super) fn work(&mut self, now: Instant) -> InboxWork {
        let open = std::mem::take(&mut self.added);
        let close = if self.next_look.is_some_and(|at| at <= now) { self.close_idle(now) } else { Vec::new() };
        if self.open.is_empty() {
            self.next_look = None;
        } else if self.next_look.is_none_or(|at| at <= now) {
            self.next_look = Some(now + LOOK);
        }
        InboxWork { open, close, next: self.next_look }
    }

    fn close_idle(&mut self, now: Instant) -> Vec<u16> {
        let mut close = Vec::new();
        self.open.retain(|number, slot| {
            if !slot.waiting.is_empty() {
                return true;
            }
            let idle_since = *slot.idle_since.get_or_insert(now);
            let lingers = now.saturating_duration_since(idle_since) < LINGER;
            if !lingers {
                close.push(*number);
            }
            lingers
        });
        close
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.open.values().map(|slot| slot.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests;
