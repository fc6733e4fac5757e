//! Which server is asked for names next, and from where. Pure.
//!
//! | the answer | then |
//! |---|---|
//! | comes from a server that was read to its end | it is asked no more |
//! | comes from another server than the page before | that server is read from its start |
//! | ends with the cursor 0 | the next server is asked |
//!
//! A round asks each server of the map once. The tour is over after a round in which the map did not change and as many
//! servers were read to their end as the map has. Otherwise a further round begins. A server whose slot is about to
//! move redirects calls about that slot to the server that gets it, so each further round of the same map asks by
//! another slot.

use std::collections::BTreeSet;

use crate::protocol::names::{Page, PageRead};
use crate::tuning::MOST_CHANGES;

#[derive(Clone, Debug, Default)]
pub(super) struct Tour {
    /// One slot of each server, with the server's number, when this round began.
    map: Option<Vec<(u16, u64)>>,
    /// The slots of the servers that are not asked yet in this round.
    left: Vec<u16>,
    at: Option<Place>,
    /// The servers that were asked in this round and are read to their end, by run id.
    reached: BTreeSet<Box<str>>,
    /// The servers that were read to their end.
    done: BTreeSet<Box<str>>,
    /// Which slot of each server is asked: the first, the second...
    nth: usize,
    changes: u32,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Place {
    slot: u16,
    /// The server to which the cursor belongs. `None`: nothing was read yet.
    run_id: Option<Box<str>>,
    cursor: Box<str>,
}

impl Place {
    fn start(slot: u16) -> Self {
        Self { slot, run_id: None, cursor: Page::START.into() }
    }
}

/// The servers have changed more often than is waited for, or too few of them have answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyChanges;

impl Tour {
    /// Whether the next step begins a round, which needs the present servers.
    pub(super) fn asks_for_servers(&self) -> bool {
        !self.is_over && self.at.is_none() && self.left.is_empty()
    }

    /// The slot whose server is asked next, and the cursor. `None`: all names were read. `servers` returns the n-th
    /// slot of each server, with the server's number.
    pub(super) fn next(
        &mut self,
        servers: impl Fn(usize) -> Vec<(u16, u64)>,
    ) -> Result<Option<(u16, Box<str>)>, TooManyChanges> {
        if self.is_over {
            return Ok(None);
        }
        if self.asks_for_servers() {
            let now = servers(0);
            let is_same = self.map.as_ref() == Some(&now);
            if is_same && self.reached.len() >= now.len() {
                self.is_over = true;
                return Ok(None);
            }
            self.nth += usize::from(is_same);
            if self.map.is_some() {
                self.change()?;
            }
            self.left = servers(self.nth).iter().rev().map(|(slot, _)| *slot).collect();
            self.reached.clear();
            self.map = Some(now);
        }
        if self.changes > MOST_CHANGES {
            return Err(TooManyChanges);
        }
        if self.at.is_none() {
            self.at = self.left.pop().map(Place::start);
        }
        Ok(self.at.as_ref().map(|at| (at.slot, at.cursor.clone())))
    }

    /// A server has answered. Returns whether the names in the answer count.
    pub(super) fn has_read(&mut self, page: &PageRead) -> bool {
        let Some(at) = &mut self.at else { return false };
        match &at.run_id {
            Some(run_id) if *run_id != page.run_id => {
                *at = Place::start(at.slot);
                self.changes += 1;
                return false;
            }
            None if self.done.contains(&page.run_id) => {
                self.reached.insert(page.run_id.clone());
                self.at = None;
                return false;
            }
            _ => {}
        }
        if *page.cursor == *Page::START {
            self.done.insert(page.run_id.clone());
            self.reached.insert(page.run_id.clone());
            self.at = None;
        } else {
            (at.run_id, at.cursor) = (Some(page.run_id.clone()), page.cursor.clone());
        }
        true
    }

    fn change(&mut self) -> Result<(), TooManyChanges> {
        self.changes += 1;
        if self.changes > MOST_CHANGES { Err(TooManyChanges) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [(u16, u64); 2] = [(0, 0), (9, 1)];

    fn page(run_id: &str, cursor: &str) -> PageRead {
        PageRead { run_id: run_id.into(), cursor: cursor.into(), names: Vec::new() }
    }

    /// The n-th slot of a server is n more than its first one.
    fn next(tour: &mut Tour, servers: &[(u16, u64)]) -> Option<(u16, String)> {
        let slots = |nth| servers.iter().map(|(slot, number)| (slot + u16::try_from(nth).unwrap(), *number)).collect();
        tour.next(slots).unwrap().map(|(slot, cursor)| (slot, cursor.into()))
    }

    #[test]
    fn each_server_is_read_to_its_end() {
        let mut tour = Tour::default();
        assert_eq!(next(&mut tour, &TWO), Some((0, "0".into())));
        // Asked again after an answer that was lost.
        assert_eq!(next(&mut tour, &TWO), Some((0, "0".into())));
        assert!(tour.has_read(&page("a", "5")));
        assert_eq!(next(&mut tour, &TWO), Some((0, "5".into())));
        assert!(tour.has_read(&page("a", "0")));
        assert_eq!(next(&mut tour, &TWO), Some((9, "0".into())));
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &TWO), None);
        // Over is over.
        assert_eq!(next(&mut tour, &TWO[..1]), None);
    }

    #[test]
    fn a_cursor_of_another_server_is_not_used() {
        let mut tour = Tour::default();
        next(&mut tour, &TWO[..1]);
        assert!(tour.has_read(&page("a", "5")));
        // A replica has taken its place.
        assert!(!tour.has_read(&page("b", "7")));
        assert_eq!(next(&mut tour, &TWO[..1]), Some((0, "0".into())));
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &TWO[..1]), None);
    }

    #[test]
    fn a_server_that_is_new_is_read_and_no_server_twice() {
        let mut tour = Tour::default();
        next(&mut tour, &TWO[..1]);
        assert!(tour.has_read(&page("a", "0")));
        let three = [(0, 0), (5, 2), (9, 1)];
        assert_eq!(next(&mut tour, &three), Some((0, "0".into())));
        assert!(!tour.has_read(&page("a", "5")));
        assert_eq!(next(&mut tour, &three), Some((5, "0".into())));
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &three), Some((9, "0".into())));
        assert!(tour.has_read(&page("c", "0")));
        assert_eq!(next(&mut tour, &three), None);
    }

    #[test]
    fn a_server_that_hands_calls_to_another_one_is_asked_by_another_slot() {
        let mut tour = Tour::default();
        next(&mut tour, &TWO);
        // The slot is about to move to the second server.
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &TWO), Some((9, "0".into())));
        assert!(!tour.has_read(&page("b", "5")));
        assert_eq!(next(&mut tour, &TWO), Some((1, "0".into())));
        assert!(tour.has_read(&page("a", "0")));
        assert_eq!(next(&mut tour, &TWO), Some((10, "0".into())));
        assert!(!tour.has_read(&page("b", "5")));
        assert_eq!(next(&mut tour, &TWO), None);
    }

    #[test]
    fn a_server_that_was_not_read_to_its_end_is_asked_by_another_slot() {
        let mut tour = Tour::default();
        next(&mut tour, &TWO);
        assert!(tour.has_read(&page("a", "5")));
        // From now on, the slot is about to move to the second server.
        assert!(!tour.has_read(&page("b", "7")));
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &TWO), Some((9, "0".into())));
        assert!(!tour.has_read(&page("b", "5")));
        assert_eq!(next(&mut tour, &TWO), Some((1, "0".into())));
        assert!(tour.has_read(&page("a", "0")));
        assert_eq!(next(&mut tour, &TWO), Some((10, "0".into())));
        assert!(!tour.has_read(&page("b", "5")));
        assert_eq!(next(&mut tour, &TWO), None);
    }

    #[test]
    fn a_server_that_is_gone_does_not_count_for_one_that_was_not_reached() {
        let mut tour = Tour::default();
        next(&mut tour, &TWO[..1]);
        assert!(tour.has_read(&page("a", "0")));
        // Another server has taken its place, and redirects calls about its first slot.
        let two = [(0, 7), (9, 1)];
        assert_eq!(next(&mut tour, &two), Some((0, "0".into())));
        assert!(tour.has_read(&page("b", "0")));
        assert_eq!(next(&mut tour, &two), Some((9, "0".into())));
        assert!(!tour.has_read(&page("b", "5")));
        assert_eq!(next(&mut tour, &two), Some((1, "0".into())));
        assert!(tour.has_read(&page("c", "0")));
    }

    #[test]
    fn changes_without_an_end_are_an_error() {
        let mut tour = Tour::default();
        for changes in 0..=MOST_CHANGES {
            let servers = |_| vec![(0, u64::from(changes))];
            assert_eq!(tour.next(servers).unwrap().map(|(slot, _)| slot), Some(0));
            assert_eq!(tour.has_read(&page("a", "0")), changes == 0);
        }
        assert_eq!(tour.next(|_| vec![(0, 99)]), Err(TooManyChanges));
        let mut tour = Tour::default();
        next(&mut tour, &TWO);
        for changes in 0..=2 * MOST_CHANGES + 1 {
            tour.has_read(&page(&changes.to_string(), "5"));
        }
        assert_eq!(tour.next(|_| TWO.to_vec()), Err(TooManyChanges));
    }
}
