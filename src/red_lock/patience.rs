//! How long an acquisition continues while no majority of masters answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::request::Request;
use crate::error::{Error, ErrorKind};
use crate::protocol::key::Keys;
use crate::red_lock::masters::Masters;

pub(super) struct Patience {
    retry_timeout: Duration,
    began: Instant,
    /// The last time at which the acquisition got on.
    last: Instant,
}

impl Patience {
    pub(super) fn new(masters: &Masters) -> Self {
        let (retry_timeout, now) = (masters.all[0].context().config.retry_timeout, masters.now());
        Self { retry_timeout, began: now, last: now }
    }

    /// The acquisition gets on: its queue is served, or a majority has answered.
    pub(super) fn renew(&mut self, now: Instant) {
        self.last = now;
    }

    /// When the acquisition fails. All that wait in one program fail at the same time, so the turn is no new beginning
    /// if there has been no majority since before. `votes` are the keys of the vote on each master.
    fn give_up(&self, masters: &Masters, votes: &[Arc<Keys>]) -> Instant {
        self.without_majority(masters, votes).unwrap_or(self.last + self.retry_timeout)
    }

    /// When the acquisition fails because no majority answers. `None`: one does, as far as is known.
    pub(super) fn without_majority(&self, masters: &Masters, votes: &[Arc<Keys>]) -> Option<Instant> {
        let gone = masters.majority_gone(votes, masters.now())?;
        Some(gone.max(self.began) + self.retry_timeout)
    }

    pub(super) fn left(&self, masters: &Masters, votes: &[Arc<Keys>]) -> Duration {
        self.give_up(masters, votes).saturating_duration_since(masters.now())
    }

    /// Fails if the time is over.
    pub(super) fn check(&self, masters: &Masters, request: &Request, votes: &[Arc<Keys>]) -> Result<(), Error> {
        if masters.now() < self.give_up(masters, votes) {
            return Ok(());
        }
        Err(request.error_because(ErrorKind::Unavailable, reason(masters, votes)))
    }
}

/// What each master has to do with it that there is no majority.
pub(super) fn reason(masters: &Masters, votes: &[Arc<Keys>]) -> String {
    let (all, now) = (masters.all.len(), masters.now());
    let (mut down, mut refuse, mut young) = (0, 0, 0);
    let mut told = String::new();
    for (n, master) in masters.all.iter().enumerate() {
        let refusal = master.refusal(&votes[n], now);
        if !master.is_up() && (refusal.is_none() || master.unusable().is_some()) {
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
