//! The waiting members of a cohort, in order of arrival.

use std::collections::VecDeque;
use std::task::Waker;

/// With fewer gaps than this, the queue is not compacted.
const FEW: usize = 32;

/// A queue whose members are found by number. A member that leaves from the middle leaves a gap. Gaps are removed when
/// they are the majority, so a member that comes and goes behind one that waits for long does not move the others each
/// time.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Sorted by the members' numbers.
    places: VecDeque<Place>,
    gaps: usize,
}

#[derive(Debug)]
struct Place {
    member: u64,
    is_gap: bool,
    waker: Option<Waker>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    pub(super) fn capacity(&self) -> usize {
        self.places.capacity()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the member in the order of its number: a new one comes last, and one that has asked returns to its place.
    pub(super) fn insert(&mut self, member: u64, waker: Option<Waker>) {
        let place = Place { member, is_gap: false, waker };
        if self.places.back().is_none_or(|last| last.member < member) {
            self.places.push_back(place);
            return;
        }
        match self.find(member) {
            Ok(at) => {
                let is_gap = self.places.get(at).is_some_and(|place| place.is_gap);
                self.gaps -= usize::from(is_gap);
                self.places[at] = place;
            }
            Err(at) => self.places.insert(at, place),
        }
    }

    /// The waker of a member that waits.
    pub(super) fn waker(&mut self, member: u64) -> Option<&mut Option<Waker>> {
        let at = self.find(member).ok()?;
        self.places.get_mut(at).filter(|place| !place.is_gap).map(|place| &mut place.waker)
    }

    /// The wakers of all members.
    pub(super) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.places.iter_mut().filter_map(|place| place.waker.take())
    }

    /// Removes the member from any place in the queue, and returns its waker.
    pub(super) fn remove(&mut self, member: u64) -> Option<Waker> {
        let at = self.find(member).ok()?;
        let place = self.places.get_mut(at).filter(|place| !place.is_gap)?;
        place.is_gap = true;
        let waker = place.waker.take();
        self.gaps += 1;
        self.drop_gaps();
        waker
    }

    /// Removes the member that has waited longest, and returns it with its waker.
    pub(super) fn pop_first(&mut self) -> Option<(u64, Option<Waker>)> {
        // The first place is never a gap.
        let Place { member, waker, .. } = self.places.pop_front()?;
        self.drop_gaps();
        Some((member, waker))
    }

    fn drop_gaps(&mut self) {
        while self.places.front().is_some_and(|place| place.is_gap) {
            self.places.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > FEW && self.gaps > self.places.len() / 2 {
            self.places.retain(|place| !place.is_gap);
            self.gaps = 0;
        }
    }

    fn find(&self, member: u64) -> Result<usize, usize> {
        self.places.binary_search_by_key(&member, |place| place.member)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Waiting {
        fn members(&self) -> Vec<u64> {
            self.places.iter().filter(|place| !place.is_gap).map(|place| place.member).collect()
        }
    }

    #[test]
    fn members_stand_in_the_order_of_their_numbers() {
        let mut waiting = Waiting::default();
        [1, 2, 3, 5].into_iter().for_each(|member| waiting.insert(member, None));
        assert!(waiting.remove(2).is_none() && waiting.waker(2).is_none());
        waiting.insert(4, None);
        waiting.insert(2, None);
        assert_eq!(waiting.members(), [1, 2, 3, 4, 5]);
        assert_eq!(waiting.pop_first().map(|(member, _)| member), Some(1));
        waiting.insert(1, None);
        assert_eq!((waiting.members(), waiting.len()), (vec![1, 2, 3, 4, 5], 5));
    }

    #[test]
    fn a_waker_is_returned_once() {
        let mut waiting = Waiting::default();
        waiting.insert(1, None);
        waiting.insert(2, None);
        for member in [1, 2] {
            *waiting.waker(member).unwrap() = Some(Waker::noop().clone());
        }
        assert!(waiting.remove(2).is_some() && waiting.remove(2).is_none());
        assert!(matches!(waiting.pop_first(), Some((1, Some(_)))));
        assert!(waiting.pop_first().is_none() && waiting.is_empty());
    }

    #[test]
    fn members_that_come_and_go_behind_one_that_waits_leave_few_gaps() {
        let mut waiting = Waiting::default();
        waiting.insert(0, None);
        for member in 1..10_000 {
            waiting.insert(member, None);
            waiting.remove(member);
            assert!(waiting.places.len() <= 2 * FEW + 2);
        }
        assert_eq!(waiting.members(), [0]);
    }

    #[test]
    fn any_order_of_changes_is_that_of_a_sorted_set() {
        let (mut waiting, mut sorted, mut random) = (Waiting::default(), BTreeSet::new(), 7_u64);
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let member = (random >> 33) % 200;
            match (random >> 60) % 4 {
                0 | 1 => {
                    waiting.insert(member, None);
                    sorted.insert(member);
                }
                2 => {
                    waiting.remove(member);
                    sorted.remove(&member);
                }
                _ => assert_eq!(waiting.pop_first().map(|(member, _)| member), sorted.pop_first()),
            }
            assert_eq!((waiting.len(), waiting.is_empty()), (sorted.len(), sorted.is_empty()));
        }
        assert_eq!(waiting.members(), sorted.into_iter().collect::<Vec<_>>());
    }
}
