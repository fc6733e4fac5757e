//! Lets calls through in the order of their first polls, and not too many at a time.
//!
//! redis-rs has a bounded queue. A call that finds it full is told when there is room, and enters at its next poll.
//! Before that poll, a later call can enter. So that bowline's own calls never fill the queue, they pass this gate
//! first, and no call overtakes another one here. In a cluster, only calls of one slot must not overtake each other.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use rustc_hash::FxHashMap;

use crate::mutex::lock;
use crate::protocol::slot;

/// Lets so many calls through that the queue of redis-rs, which has room for 50 by default, is never full.
const QUEUE: usize = 32;

pub(super) struct Gate(Mutex<State>);

struct State {
    /// How many calls may still enter.
    room: usize,
    /// A call has entered, and is not in the queue of redis-rs yet. On another thread, the next one could overtake it.
    is_entering: bool,
    next: u64,
    /// Those that wait, with the longest wait first.
    waiting: VecDeque<(u64, Waker)>,
}

impl State {
    fn may_enter(&self) -> bool {
        self.room > 0 && !self.is_entering
    }
}

/// The gates of a connection.
pub(super) enum Gates {
    /// One queue for all calls.
    One(Arc<Gate>),
    /// One call at a time for each slot: the tasks of redis-rs' connection to a cluster overtake each other. A call
    /// keeps its place while its node turns it away, so slots share no gate. A gate stays once it was needed.
    OfSlots(Mutex<FxHashMap<u16, Arc<Gate>>>),
}

impl Gates {
    pub(super) fn one() -> Self {
        Self::One(Arc::new(Gate::new(QUEUE)))
    }

    pub(super) fn of_a_cluster() -> Self {
        Self::OfSlots(Mutex::default())
    }

    /// Waits for the turn of a call with these keys.
    pub(super) fn enter(&self, keys: &[&str]) -> Enter {
        match self {
            Self::One(gate) => Enter::new(gate),
            Self::OfSlots(gates) => {
                let slot = keys.first().map_or(0, |key| slot::of(key));
                Enter::new(lock(gates).entry(slot).or_insert_with(|| Arc::new(Gate::new(1))))
            }
        }
    }
}

impl Gate {
    fn new(room: usize) -> Self {
        Self(Mutex::new(State { room, is_entering: false, next: 0, waiting: VecDeque::new() }))
    }

    /// Wakes the first one, if it may enter.
    fn changed(&self) {
        let first = {
            let state = lock(&self.0);
            state.waiting.front().filter(|_| state.may_enter()).map(|(_, waker)| waker.clone())
        };
        if let Some(first) = first {
            first.wake();
        }
    }
}

/// A call that waits for its turn. Dropping it gives the turn to the next one.
pub(super) struct Enter {
    gate: Arc<Gate>,
    /// Its number among those that wait.
    number: Option<u64>,
}

impl Enter {
    fn new(gate: &Arc<Gate>) -> Self {
        Self { gate: Arc::clone(gate), number: None }
    }
}

impl Future for Enter {
    type Output = Entered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Entered> {
        // Foreign code is not called while the lock is held.
        let waker = context.waker().clone();
        let replaced = {
            let mut state = lock(&self.gate.0);
            let first = state.waiting.front().map(|(number, _)| *number);
            if state.may_enter() && first == self.number {
                state.room -= 1;
                state.is_entering = true;
                let own = first.and_then(|_| state.waiting.pop_front());
                drop(state);
                drop(own);
                self.number = None;
                return Poll::Ready(Entered { gate: Arc::clone(&self.gate), is_queued: false });
            }
            match self.number {
                Some(number) => state
                    .waiting
                    .iter_mut()
                    .find(|(waiting, _)| *waiting == number)
                    .map(|(_, old)| std::mem::replace(old, waker)),
                None => {
                    let number = state.next;
                    state.next += 1;
                    state.waiting.push_back((number, waker));
                    drop(state);
                    self.number = Some(number);
                    None
                }
            }
        };
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let own = {
            let mut state = lock(&self.gate.0);
            let place = state.waiting.iter().position(|(waiting, _)| *waiting == number);
            place.and_then(|place| state.waiting.remove(place))
        };
        drop(own);
        self.gate.changed();
    }
}

/// A call that is under way until this is dropped. The next one may enter when this one is in the queue of redis-rs.
pub(super) struct Entered {
    gate: Arc<Gate>,
    is_queued: bool,
}

impl Entered {
    /// The call is in the queue of redis-rs.
    pub(super) fn queued(&mut self) {
        self.is_queued = true;
        lock(&self.gate.0).is_entering = false;
        self.gate.changed();
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.gate.0);
            state.room += 1;
            state.is_entering &= self.is_queued;
        }
        self.gate.changed();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, poll};

    use super::*;

    /// As many calls as may be under way.
    fn fill(gate: &Arc<Gate>) -> Vec<Entered> {
        let enter = |_| {
            let mut entered = Enter::new(gate).now_or_never()?;
            entered.queued();
            Some(entered)
        };
        (0..QUEUE).filter_map(enter).collect()
    }

    #[test]
    fn one_enters_at_a_time() {
        let gate = Arc::new(Gate::new(QUEUE));
        futures::executor::block_on(async {
            let (mut first, mut second, mut third) = (Enter::new(&gate), Enter::new(&gate), Enter::new(&gate));
            let Poll::Ready(mut entered) = poll!(&mut first) else { panic!("there is room") };
            assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
            entered.queued();
            let Poll::Ready(given_up) = poll!(&mut second) else { panic!("the first one is queued") };
            // The first one ends while the second one enters.
            drop(entered);
            assert!(poll!(&mut third).is_pending());
            drop(given_up);
            assert!(poll!(&mut third).is_ready());
            assert_eq!(lock(&gate.0).room, QUEUE);
        });
    }

    /// A node that turns calls away for a while, such as one that loads its data, holds up no names of others.
    #[test]
    fn slots_do_not_wait_for_each_other() {
        let gates = Gates::of_a_cluster();
        let slots = || (0..200).map(|n| format!("{{{n}}}"));
        let mut entered: Vec<_> = slots().filter_map(|key| gates.enter(&[&key]).now_or_never()).collect();
        assert_eq!(entered.len(), 200);
        entered.iter_mut().for_each(Entered::queued);
        let again = slots().filter_map(|key| gates.enter(&[&key, "b"]).now_or_never()).count();
        assert_eq!(again, 0, "one call at a time of each");
        drop(entered);
        assert!(gates.enter(&["{7}"]).now_or_never().is_some());
    }

    #[test]
    fn nobody_overtakes() {
        let gate = Arc::new(Gate::new(QUEUE));
        futures::executor::block_on(async {
            let mut inside = fill(&gate);
            assert_eq!(inside.len(), QUEUE);
            let (mut first, mut second, mut third) = (Enter::new(&gate), Enter::new(&gate), Enter::new(&gate));
            assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
            inside.pop();
            // There is room, but it belongs to the first one.
            assert!(poll!(&mut third).is_pending() && poll!(&mut second).is_pending());
            let Poll::Ready(entered) = poll!(&mut first) else { panic!("it is its turn") };
            assert!(poll!(&mut second).is_pending());
            drop((entered, second));
            // The second one has given up.
            assert!(poll!(&mut third).is_ready());
        });
    }

    #[test]
    fn the_next_one_is_woken() {
        let gate = Arc::new(Gate::new(QUEUE));
        let mut inside = fill(&gate);
        let waiting: Vec<_> = (0..2 * QUEUE).map(|_| Enter::new(&gate).map(drop)).collect();
        futures::executor::block_on(async {
            let mut all = futures::future::join_all(waiting);
            assert!(poll!(&mut all).is_pending());
            inside.pop();
            all.await;
        });
    }
}
