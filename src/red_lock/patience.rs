//! How long an acquisition continues while no majority of masters answers.
//!
//! | the acquisition | it fails |
//! |---|---|
//! | waits for others, in a queue that is served or with its turn | when there has been no majority for the retry timeout |
//! | asks: for its turn, or for votes | then, or when it has not got on for that long |
//!
//! Whatever is under way then is dropped.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use event_listener::Event;
use futures::future::select;

use crate::acquire::request::Request;
use crate::error::{Error, ErrorKind};
use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::red_lock::masters::Masters;

pub(super) struct Patience {
    began: Instant,
    state: Mutex<Waits>,
    /// Notified when the acquisition may end earlier than it would have.
    changed: Event,
}

struct Waits {
    /// The last time at which the acquisition got on.
    last: Instant,
    /// Since when it waits for others, as far as is known.
    waits: Option<Instant>,
}

impl Patience {
    pub(super) fn new(masters: &Masters) -> Self {
        let now = masters.now();
        let state = Mutex::new(Waits { last: now, waits: None });
        Self { began: now, state, changed: Event::new() }
    }

    /// The acquisition waits in a queue that is served. That is of no use without a majority.
    pub(super) fn wait(&self, now: Instant) {
        let Waits { last, waits } = *lock(&self.state);
        self.set(Waits { last, waits: waits.or(Some(now)) });
    }

    /// A majority has answered that others are in the way.
    pub(super) fn wait_for_votes(&self, now: Instant) {
        self.set(Waits { last: now, waits: Some(now) });
    }

    /// The acquisition asks the masters. If it has waited for others until now, its time begins now. Returns when it
    /// began.
    pub(super) fn ask(&self, now: Instant) -> Instant {
        let Waits { last, waits } = *lock(&self.state);
        if waits.is_none() {
            return last;
        }
        self.set(Waits { last: now, waits: None });
        now
    }

    fn set(&self, state: Waits) {
        *lock(&self.state) = state;
        self.changed.notify(usize::MAX);
    }

    /// When the acquisition fails, whatever it is doing. `None`: it waits for others, and a majority answers as far as
    /// is known. All that wait in one program fail at the same time, so the turn is no new beginning if there has been
    /// no majority since before. `votes` are the keys of the vote on each master.
    fn end(&self, masters: &Masters, votes: &[Arc<Keys>]) -> Option<Instant> {
        let Waits { last, waits } = *lock(&self.state);
        let retry_timeout = masters.retry_timeout();
        let gone = masters.majority_gone(votes, masters.now()).map(|gone| gone.max(self.began));
        if let Some(waits) = waits {
            // If there was no majority when the wait began, the acquisition has not got on.
            let since = |gone: Instant| if gone <= waits { gone.min(last) } else { gone };
            return gone.map(|gone| since(gone) + retry_timeout);
        }
        // Without retries, each request has its time all the same. A wait without a majority would have ended before.
        Some(gone.map_or(last, |gone| gone.min(last)) + masters.patience())
    }

    /// Resolves when the time is over.
    pub(super) async fn over(&self, masters: &Masters, votes: &[Arc<Keys>]) {
        loop {
            // Before the look, so that no change is missed after it.
            let changed = select(masters.changed.listen(), self.changed.listen());
            match self.end(masters, votes) {
                None => drop(changed.await),
                Some(end) => {
                    let left = end.saturating_duration_since(masters.now());
                    if left.is_zero() {
                        return;
                    }
                    select(changed, masters.executor().sleep(left)).await;
                }
            }
        }
    }

    /// No majority has answered. Fails if that is not tried again.
    pub(super) fn check(&self, masters: &Masters, request: &Request) -> Result<(), Error> {
        if masters.retry_timeout().is_zero() { Err(unavailable(masters, request)) } else { Ok(()) }
    }
}

/// The error of an acquisition whose time is over.
pub(super) fn unavailable(masters: &Masters, request: &Request) -> Error {
    request.error_because(ErrorKind::Unavailable, reason(masters, &request.keys.name))
}

/// What each master has to do with it that there is no majority.
pub(super) fn reason(masters: &Masters, name: &str) -> String {
    let (all, now) = (masters.all.len(), masters.now());
    let keys = [Kind::Vote, Kind::Turn].map(|kind| masters.keys(kind, name).unwrap_or_default());
    let (mut down, mut refuse, mut young) = (0, 0, 0);
    let mut told = String::new();
    for (n, master) in masters.all.iter().enumerate() {
        let mut asked = keys.iter().filter_map(|keys| keys.get(n));
        let refusal = asked.clone().find_map(|keys| master.refusal(keys, now));
        let is_silent = refusal.is_none() && asked.any(|keys| !master.serves(keys, now));
        if is_silent || (!master.is_up() && master.unusable().is_some()) {
            down += 1;
        } else if refusal.is_some() {
            refuse += 1;
        } else if masters.counts_from(n).is_some_and(|from| from > now) {
            young += 1;
        }
        if let Some((_, why)) = refusal {
            told += &format!("; master {}: {why}", n + 1);
        }
    }
    let refuse = if refuse == 0 { String::new() } else { format!(", {refuse} refuse") };
    format!("of {all} masters, {down} do not answer{refuse} and {young} have restarted too short a time ago{told}")
}

#[cfg(test)]
mod tests;
