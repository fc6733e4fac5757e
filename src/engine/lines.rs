//! Who stands in which line, who of them asks the server, and what they have there. Pure: what a turn means is the
//! ledger's business.
//!
//! | place | becomes, on |
//! |---|---|
//! | waits | asks or holds, with its turn |
//! | asks | waits, once its ticket is queued; holds; gone |
//! | holds | gone, and the hold is passed on, or not |
//!
//! A queued ticket is the line's, for whoever is first when it is granted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::protocol::key::{Keys, Kind};
use crate::protocol::ticket::WireId;

/// What a line is for: whoever stands there can do with what the others have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineId {
    keys: Arc<Keys>,
    units: u32,
}

impl LineId {
    /// `amount` is the last part of a ticket: a span, of a lock. Of a read-write lock, writers stand in a line, who take
    /// all of it.
    pub(crate) fn of(keys: &Arc<Keys>, amount: u32) -> Self {
        let units = if let Kind::Semaphore { .. } = keys.kind { amount } else { 1 };
        Self { keys: keys.clone(), units }
    }

    /// How many may hold at a time, as the call sites know; an operator may have set another limit.
    fn room(&self) -> usize {
        let units =
            if let Kind::Semaphore { limit } = self.keys.kind { limit.checked_div(self.units) } else { Some(1) };
        usize::try_from(units.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    /// Whether nothing can be free as long as somebody holds.
    fn is_exclusive(&self) -> bool {
        !matches!(self.keys.kind, Kind::Semaphore { .. })
    }
}

/// The lines of a client. A line is there as long as there is something of it.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    lines: HashMap<LineId, Line<T>>,
    last_place: u64,
}

#[derive(Debug)]
struct Line<T> {
    /// By place, so in order of arrival.
    waiting: BTreeMap<u64, Option<Waker>>,
    /// What those have not looked at whose turn has come.
    given: HashMap<u64, T>,
    /// Places that ask the server, or are to.
    asking: HashSet<u64>,
    /// Numbers of wire ids that are held.
    holding: HashSet<u64>,
    /// Wire ids that wait at the server for whoever is first by then, never more than wait here.
    tickets: Vec<WireId>,
}

impl<T> Line<T> {
    fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            given: HashMap::new(),
            asking: HashSet::new(),
            holding: HashSet::new(),
            tickets: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        let Self { waiting, given, asking, holding, tickets } = self;
        waiting.is_empty() && given.is_empty() && asking.is_empty() && holding.is_empty() && tickets.is_empty()
    }

    /// The turn of whoever has waited for longest.
    fn next(&mut self, wakers: &mut Vec<Waker>) -> Option<u64> {
        let (place, waker) = self.waiting.pop_first()?;
        wakers.extend(waker);
        Some(place)
    }
}

impl<T> Lines<T> {
    pub(crate) fn new() -> Self {
        Self { lines: HashMap::new(), last_place: 0 }
    }

    fn line(&mut self, id: &LineId) -> &mut Line<T> {
        self.lines.entry(id.clone()).or_insert_with(Line::new)
    }

    /// A place at the end of the line. If nobody waits there and it may find room, it asks at once, whoever else asks.
    pub(crate) fn join(&mut self, id: &LineId) -> u64 {
        self.last_place += 1;
        let place = self.last_place;
        let line = self.line(id);
        if line.waiting.is_empty() && line.asking.len() + line.holding.len() < id.room() {
            line.asking.insert(place);
        } else {
            line.waiting.insert(place, None);
        }
        place
    }

    /// How many wait in the line.
    pub(crate) fn waiting(&self, id: &LineId) -> usize {
        self.lines.get(id).map_or(0, |line| line.waiting.len())
    }

    /// In all lines: how many wait, and how many tickets they have at the server.
    pub(crate) fn all_waiting(&self) -> (usize, usize) {
        let lines = self.lines.values();
        lines.fold((0, 0), |(waiting, tickets), line| (waiting + line.waiting.len(), tickets + line.tickets.len()))
    }

    /// Whether anybody waits for whom there is no ticket.
    pub(crate) fn is_short(&self, id: &LineId) -> bool {
        self.lines.get(id).is_some_and(|line| line.waiting.len() > line.tickets.len())
    }

    /// Waits for its turn, and what was given with it. If it waits, `waker` becomes the one before.
    pub(crate) fn poll(&mut self, id: &LineId, place: u64, waker: &mut Option<Waker>) -> Poll<Option<T>> {
        let Some(line) = self.lines.get_mut(id) else { return Poll::Ready(None) };
        match line.waiting.get_mut(&place) {
            Some(waits) => {
                std::mem::swap(waits, waker);
                Poll::Pending
            }
            None => Poll::Ready(line.given.remove(&place)),
        }
    }

    /// The first of those who wait has its turn, with this. It comes back if there are no more of them than tickets.
    pub(crate) fn give(&mut self, id: &LineId, turn: T, wakers: &mut Vec<Waker>) -> Result<u64, T> {
        let short = self.is_short(id);
        let Some(line) = self.lines.get_mut(id).filter(|_| short) else { return Err(turn) };
        let Some(place) = line.next(wakers) else { return Err(turn) };
        line.given.insert(place, turn);
        Ok(place)
    }

    pub(crate) fn asks(&mut self, id: &LineId, place: u64) {
        self.line(id).asking.insert(place);
    }

    /// What the place has asked for is held.
    pub(crate) fn holds(&mut self, id: &LineId, place: u64, hold: u64) {
        let line = self.line(id);
        line.asking.remove(&place);
        line.holding.insert(hold);
    }

    pub(crate) fn is_held(&self, id: &LineId, hold: u64) -> bool {
        self.lines.get(id).is_some_and(|line| line.holding.contains(&hold))
    }

    /// It is not held any more, by nobody in the line.
    pub(crate) fn ends(&mut self, id: &LineId, hold: u64) {
        if let Some(line) = self.lines.get_mut(id) {
            line.holding.remove(&hold);
        }
    }

    /// What the place has asked for is queued, and it waits again, where it was.
    pub(crate) fn queues(&mut self, id: &LineId, place: u64, ticket: WireId) {
        let line = self.line(id);
        line.asking.remove(&place);
        line.waiting.insert(place, None);
        line.tickets.push(ticket);
    }

    /// The ticket is the line's no more. `false`: it was not.
    pub(crate) fn takes(&mut self, id: &LineId, ticket: WireId) -> bool {
        let Some(line) = self.lines.get_mut(id) else { return false };
        let at = line.tickets.iter().position(|other| *other == ticket);
        at.map(|at| line.tickets.remove(at)).is_some()
    }

    /// A ticket that nobody waits for any more, the youngest.
    pub(crate) fn surplus(&mut self, id: &LineId) -> Option<WireId> {
        let line = self.lines.get_mut(id)?;
        if line.tickets.len() > line.waiting.len() { line.tickets.pop() } else { None }
    }

    /// Whoever has the place goes. Comes back: what it was given and has not looked at.
    pub(crate) fn leave(&mut self, id: &LineId, place: u64, wakers: &mut Vec<Waker>) -> Option<T> {
        let line = self.lines.get_mut(id)?;
        wakers.extend(line.waiting.remove(&place).flatten());
        line.asking.remove(&place);
        line.given.remove(&place)
    }

    /// Nobody waits for what will not come: if nothing is under way at the server, the first of those who wait is to ask.
    pub(crate) fn settle(&mut self, id: &LineId, wakers: &mut Vec<Waker>) {
        let Some(line) = self.lines.get_mut(id) else { return };
        let kept = id.is_exclusive() && !line.holding.is_empty();
        if !kept && line.asking.is_empty() && line.tickets.is_empty() {
            let leader = line.next(wakers);
            line.asking.extend(leader);
        }
        if line.is_empty() {
            self.lines.remove(id);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Those of all who wait.
    pub(crate) fn wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.lines.values_mut().flat_map(|line| line.waiting.values_mut()).filter_map(Option::take)
    }
}

#[cfg(test)]
mod tests;
