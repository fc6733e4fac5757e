//! Who stands in which line. Pure: what a turn means is the ledger's business.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::key::Keys;

/// The lines of a client by what they are for. A line is there as long as it has a first.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    lines: HashMap<Arc<Keys>, Line<T>>,
    last_place: u64,
}

#[derive(Debug)]
struct Line<T> {
    /// Whose turn it is: it leads, holds, or has not looked yet at what it was given.
    first: u64,
    given: Option<T>,
    /// In order of arrival, so that places grow.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    place: u64,
    waker: Option<Waker>,
}

impl<T> Lines<T> {
    pub(crate) fn new() -> Self {
        Self { lines: HashMap::new(), last_place: 0 }
    }

    /// A place at the end of the line. Whoever comes into an empty one is first and has been given nothing.
    pub(crate) fn join(&mut self, keys: &Arc<Keys>) -> u64 {
        self.last_place += 1;
        let place = self.last_place;
        match self.lines.get_mut(keys) {
            Some(line) => line.waiting.push_back(Waiting { place, waker: None }),
            None => {
                let line = Line { first: place, given: None, waiting: VecDeque::new() };
                self.lines.insert(keys.clone(), line);
            }
        }
        place
    }

    /// How many stand behind the first.
    pub(crate) fn waiting(&self, keys: &Arc<Keys>) -> usize {
        self.lines.get(keys).map_or(0, |line| line.waiting.len())
    }

    /// In all lines.
    pub(crate) fn all_waiting(&self) -> usize {
        self.lines.values().map(|line| line.waiting.len()).sum()
    }

    /// Who gets the next turn.
    pub(crate) fn second(&self, keys: &Arc<Keys>) -> Option<u64> {
        self.lines.get(keys)?.waiting.front().map(|next| next.place)
    }

    pub(crate) fn is_first(&self, keys: &Arc<Keys>, place: u64) -> bool {
        self.lines.get(keys).is_some_and(|line| line.first == place)
    }

    /// Waits to be first, for what was given. The waker comes back if it was replaced: to be dropped elsewhere.
    pub(crate) fn poll(
        &mut self,
        keys: &Arc<Keys>,
        place: u64,
        context: &Context<'_>,
    ) -> (Poll<Option<T>>, Option<Waker>) {
        let Some(line) = self.lines.get_mut(keys) else { return (Poll::Ready(None), None) };
        match line.waiting.binary_search_by_key(&place, |waiting| waiting.place) {
            Ok(at) => {
                let waker = line.waiting.get_mut(at).map(|waiting| &mut waiting.waker);
                (Poll::Pending, waker.and_then(|waker| waker.replace(context.waker().clone())))
            }
            Err(_) => (Poll::Ready(line.given.take()), None),
        }
    }

    /// The turn of the first is over: the next one gets this. It comes back if nobody waits; then the line is gone.
    pub(crate) fn give(&mut self, keys: &Arc<Keys>, turn: T, wakers: &mut Vec<Waker>) -> Result<(), T> {
        let Some(line) = self.lines.get_mut(keys) else { return Err(turn) };
        match line.waiting.pop_front() {
            Some(next) => {
                line.first = next.place;
                line.given = Some(turn);
                wakers.extend(next.waker);
                Ok(())
            }
            None => {
                self.lines.remove(keys);
                Err(turn)
            }
        }
    }

    /// What the first was given and has not looked at.
    pub(crate) fn take(&mut self, keys: &Arc<Keys>) -> Option<T> {
        self.lines.get_mut(keys)?.given.take()
    }

    /// Whoever waits there goes.
    pub(crate) fn leave(&mut self, keys: &Arc<Keys>, place: u64, wakers: &mut Vec<Waker>) {
        let Some(line) = self.lines.get_mut(keys) else { return };
        if let Ok(at) = line.waiting.binary_search_by_key(&place, |waiting| waiting.place) {
            wakers.extend(line.waiting.remove(at).and_then(|waiting| waiting.waker));
        }
    }

    /// Those of all who wait.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.lines.values_mut().flat_map(|line| &mut line.waiting).filter_map(|waiting| waiting.waker.take())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::key::Kind;

    struct Setup {
        lines: Lines<&'static str>,
        keys: Arc<Keys>,
    }

    fn setup() -> Setup {
        Setup { lines: Lines::new(), keys: Arc::new(Keys::new("p", Kind::Lock, "n").unwrap()) }
    }

    impl Setup {
        fn join(&mut self) -> u64 {
            self.lines.join(&self.keys)
        }

        fn poll(&mut self, place: u64) -> Poll<Option<&'static str>> {
            self.lines.poll(&self.keys, place, &Context::from_waker(Waker::noop())).0
        }

        fn give(&mut self, turn: &'static str) -> (Result<(), &'static str>, usize) {
            let mut wakers = Vec::new();
            (self.lines.give(&self.keys, turn, &mut wakers), wakers.len())
        }
    }

    #[test]
    fn turns_go_in_order_of_arrival() {
        let mut line = setup();
        let places = [line.join(), line.join(), line.join()];
        assert_eq!(line.poll(places[0]), Poll::Ready(None));
        assert_eq!((line.poll(places[1]), line.poll(places[2])), (Poll::Pending, Poll::Pending));
        assert_eq!(line.give("one"), (Ok(()), 1));
        assert_eq!((line.poll(places[1]), line.poll(places[2])), (Poll::Ready(Some("one")), Poll::Pending));
        assert_eq!(line.give("two"), (Ok(()), 1));
        assert_eq!(line.poll(places[2]), Poll::Ready(Some("two")));
        assert_eq!(line.give("three"), (Err("three"), 0));
        assert!(line.lines.lines.is_empty());
    }

    #[test]
    fn whoever_leaves_is_passed_over() {
        let mut line = setup();
        let places = [line.join(), line.join(), line.join(), line.join()];
        assert_eq!(line.poll(places[2]), Poll::Pending);
        let mut wakers = Vec::new();
        line.lines.leave(&line.keys, places[2], &mut wakers);
        assert_eq!((line.lines.waiting(&line.keys), wakers.len()), (2, 1));
        assert_eq!(line.give("one"), (Ok(()), 0));
        assert!(line.lines.is_first(&line.keys, places[1]));
        assert_eq!(line.lines.second(&line.keys), Some(places[3]));
        assert_eq!(line.give("two"), (Ok(()), 0));
        assert_eq!(line.poll(places[3]), Poll::Ready(Some("two")));
    }

    #[test]
    fn what_was_not_looked_at_can_be_taken_back() {
        let mut line = setup();
        let places = [line.join(), line.join()];
        assert_eq!(line.lines.take(&line.keys), None);
        line.give("one").0.unwrap();
        assert!(line.lines.is_first(&line.keys, places[1]));
        assert_eq!(line.lines.take(&line.keys), Some("one"));
        assert_eq!(line.poll(places[1]), Poll::Ready(None));
    }
}
