//! How programs go from one set of masters to another one: "Changing the masters" in `docs/quorum.md`.

use crate::master::Master;

/// What those who roll a set out keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The procedure: a program starts when the versions of all that run are next to its own or the same, and the
    /// longest lease has passed since the last one with another version has ended.
    Kept,
    /// The same, but for the lease.
    WithoutWaiting,
    /// Programs with all versions run side by side.
    TooFar,
}

/// The sets of masters, one version after the other. All clients begin with the first one.
#[derive(Clone, Copy, Debug)]
pub struct Rollout<const M: usize> {
    /// Which masters belong to the set of each version. Masters that belong to the same sets are neighbours.
    pub sets: &'static [[bool; M]],
    /// What the procedure is.
    pub order: Order,
}

/// All masters, which do not change.
pub const FIXED: Rollout<3> = Rollout { sets: &[[true; 3]], order: Order::Kept };

/// From the masters 1, 2, 3 to 1, 2, 3, 4.
pub const ADDED: Rollout<4> = Rollout { sets: &[[true, true, true, false], [true; 4]], order: Order::Kept };

/// The same, and then to 1, 2, 4.
pub const REPLACED: Rollout<4> =
    Rollout { sets: &[[true, true, true, false], [true; 4], [true, true, false, true]], order: Order::Kept };

/// From four masters to five.
pub const FOUR_TO_FIVE: Rollout<5> =
    Rollout { sets: &[[true, true, true, true, false], [true; 5]], order: Order::Kept };

/// From three masters to five.
pub const THREE_TO_FIVE: Rollout<5> = Rollout {
    sets: &[[true, true, true, false, false], [true, true, true, true, false], [true; 5]],
    order: Order::Kept,
};

impl<const M: usize> Rollout<M> {
    pub(crate) fn majority(&self, version: u8) -> usize {
        self.set(version).iter().filter(|knows| **knows).count() / 2 + 1
    }

    pub(crate) fn set(&self, version: u8) -> &'static [bool; M] {
        &self.sets[usize::from(version)]
    }

    /// What a request says of the set. Versions next to each other never get in each other's way, so with two of them
    /// nothing comes of it.
    pub(crate) fn named(&self, version: u8) -> Option<u8> {
        (self.sets.len() > 2).then_some(version)
    }

    pub(crate) fn is_last(&self, version: u8) -> bool {
        usize::from(version) + 1 == self.sets.len()
    }

    /// Sorts the masters, each among those that belong to the same sets.
    pub(crate) fn sort(&self, masters: &mut [Master; M]) {
        let alike = |a: usize, b: usize| self.sets.iter().all(|set| set[a] == set[b]);
        let mut from = 0;
        for to in 1..=M {
            if to == M || !alike(from, to) {
                masters[from..to].sort_unstable();
                from = to;
            }
        }
    }
}
