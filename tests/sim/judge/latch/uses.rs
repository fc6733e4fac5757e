//! What an operation of an actor must be told, what must be gone after it, and how it may end.

use std::time::Duration;

use bowline::ErrorKind;

use super::{Due, Use};
use crate::judge::waits::{BACKOFF, Client, Moment, PAUSE};
use crate::judge::{Clock, Judge};

impl Use {
    /// I3: it was to be told long ago.
    pub(super) fn overdue(&self, id: &str, moment: &Moment, client: Option<Client>) -> Option<String> {
        let (Due { since, by_message }, client) = (self.due.as_ref()?, client?);
        if self.ended.is_some() {
            return None;
        }
        let undisturbed = client.calm.max(client.listens) <= *since;
        let bound = if *by_message && undisturbed && self.knows {
            moment.messages(2)
        } else {
            // A waiter that has no answer yet learns of it from its next answer, whatever messages arrive.
            let asks_again = if self.knows { Duration::ZERO } else { BACKOFF };
            self.ticket / 3 + self.ticket / 500 + PAUSE + asks_again + moment.messages(6)
        };
        let waited = moment.over([*since, client.calm, client.listens].into_iter().max()?, bound)?;
        Some(format!("I3 {} is open or gone, and {id} waits for {waited:?}, longer than {bound:?}", self.key))
    }

    /// I7: it waits no more, and its ticket stands. A late copy of its request may have brought it back.
    pub(super) fn left(&self, id: &str, moment: &Moment, client: Option<Client>) -> Option<String> {
        let ended = self.ended.filter(|ended| self.asked <= *ended)?;
        if moment.now > ended + self.ticket - self.ticket / 500 {
            return None;
        }
        let waited = moment.over(ended.max(client?.calm), BACKOFF + PAUSE + moment.messages(6))?;
        Some(format!("I7 {id} was given up {waited:?} ago, and is still there"))
    }
}

impl Judge {
    /// Of many who wait for a latch, one call tells the first only.
    pub fn one_is_told(&self) {
        self.lock().latches.one_is_told = true;
    }

    /// An actor begins an operation on a latch.
    pub fn latch_used(&self, key: &str) -> u64 {
        let latches = &mut self.lock().latches;
        let began = self.machine.now();
        latches.names.entry(key.to_owned()).or_default();
        let n = latches.uses.len() as u64;
        let used = Use {
            key: key.to_owned(),
            began,
            ended: None,
            ticket: Duration::ZERO,
            queued: None,
            knows: false,
            asked: began,
            changes: 0,
            answered: false,
            due: None,
        };
        latches.uses.insert(n, used);
        n
    }

    /// What is called from now on is called by that one.
    pub fn latch_polled(&self, by: Option<u64>) {
        self.lock().latches.polled = by;
    }

    /// It came to an end, with an answer or not. A wait ended so; `None`: it was dropped, or it was no wait.
    pub fn latch_left(&self, n: u64, answered: bool, waited: Option<Result<(), ErrorKind>>, clock: Clock<'_>) {
        self.look(clock);
        let now = self.machine.now();
        let mut state = self.lock();
        let latches = &mut state.latches;
        let damaged = latches.damaged;
        let Some(used) = latches.uses.get_mut(&n) else { return };
        (used.ended, used.answered) = (Some(now), answered);
        let latch = &latches.names[&used.key];
        let since = |moment: Option<Duration>, began| moment.is_some_and(|moment| moment >= began);
        let right = match (waited, used.queued) {
            (Some(Ok(())), Some(queued)) => since(latch.open, queued),
            (Some(Ok(())), None) => since(latch.open, used.began) || since(latch.none, used.began),
            (Some(Err(ErrorKind::Lost)), _) => {
                [latch.open, latch.none, damaged].into_iter().any(|moment| since(moment, used.began))
            }
            _ => true,
        };
        let (key, began) = (used.key.clone(), now - used.began);
        drop(state);
        self.found(
            (!right).then(|| format!("I13 {key}: a wait of {began:?} ended with {waited:?}, and never was it so")),
        );
    }
}
