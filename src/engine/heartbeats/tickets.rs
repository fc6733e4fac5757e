//! The tickets of one name, in the order in which they have to be refreshed.

use std::collections::BTreeSet;
use std::time::Instant;

use rustc_hash::FxHashMap;

/// Most names of a client that waits for very many have a single ticket, which is stored without an allocation of its
/// own.
#[derive(Debug, Default)]
pub(super) enum Tickets {
    #[default]
    None,
    One(Instant, u64),
    Many(Box<Many>),
}

#[derive(Debug, Default)]
pub(super) struct Many {
    order: BTreeSet<(Instant, u64)>,
    due_of: FxHashMap<u64, Instant>,
}

impl Tickets {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        match self {
            Self::None => false,
            Self::One(_, one) => *one == id,
            Self::Many(many) => many.due_of.contains_key(&id),
        }
    }

    /// When the first ticket is due.
    pub(super) fn first(&self) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::One(due, _) => Some(*due),
            Self::Many(many) => many.order.first().map(|(due, _)| *due),
        }
    }

    /// The tickets that are due first, at most `most` of them.
    pub(super) fn first_ids(&self, most: usize) -> Vec<u64> {
        match self {
            Self::None => Vec::new(),
            Self::One(_, id) => vec![*id],
            Self::Many(many) => many.order.iter().take(most).map(|(_, id)| *id).collect(),
        }
    }

    /// Adds the ticket, or changes when it is due.
    pub(super) fn put(&mut self, id: u64, due: Instant) {
        match self {
            Self::Many(many) => many.put(id, due),
            Self::One(its_due, its_id) if *its_id != id => {
                let mut many = Box::<Many>::default();
                many.put(*its_id, *its_due);
                many.put(id, due);
                *self = Self::Many(many);
            }
            Self::None | Self::One(..) => *self = Self::One(due, id),
        }
    }

    /// Removes the ticket. Returns whether it was there.
    pub(super) fn take(&mut self, id: u64) -> bool {
        let was_there = self.contains(id);
        match self {
            Self::Many(many) => {
                many.take(id);
                if many.order.is_empty() {
                    *self = Self::None;
                }
            }
            Self::One(..) if was_there => *self = Self::None,
            Self::None | Self::One(..) => {}
        }
        was_there
    }
}

impl Many {
    fn put(&mut self, id: u64, due: Instant) {
        if let Some(old) = self.due_of.insert(id, due) {
            self.order.remove(&(old, id));
        }
        self.order.insert((due, id));
    }

    fn take(&mut self, id: u64) {
        if let Some(due) = self.due_of.remove(&id) {
            self.order.remove(&(due, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::runtime::an_instant;

    #[test]
    fn one_ticket_or_many_are_kept_in_the_order_in_which_they_are_due() {
        let (start, mut tickets) = (an_instant(), Tickets::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tickets.is_empty() && tickets.first().is_none() && !tickets.take(1));
        tickets.put(1, at(5));
        tickets.put(1, at(6));
        assert_eq!((tickets.first(), tickets.first_ids(9)), (Some(at(6)), vec![1]));
        assert!(!tickets.contains(2) && !tickets.take(2));
        tickets.put(2, at(4));
        tickets.put(3, at(7));
        tickets.put(3, at(5));
        assert_eq!((tickets.first(), tickets.first_ids(2)), (Some(at(4)), vec![2, 3]));
        assert!(tickets.take(2) && !tickets.take(2) && tickets.contains(1));
        assert_eq!(tickets.first_ids(9), [3, 1]);
        assert!(tickets.take(1) && tickets.take(3) && tickets.is_empty());
        tickets.put(4, at(1));
        assert!(tickets.take(4) && tickets.is_empty());
    }
}
