//! How long an acquisition continues while no majority of masters answers.

use std::time::{Duration, Instant};

use crate::acquire::request::Request;
use crate::error::{Error, ErrorKind};
use crate::red_lock::master::Master;
use crate::red_lock::masters::Masters;

pub(super) struct Patience {
    retry_timeout: Duration,
    give_up: Instant,
}

impl Patience {
    pub(super) fn new(masters: &Masters) -> Self {
        let retry_timeout = masters.all[0].context().config.retry_timeout;
        Self { retry_timeout, give_up: masters.now() + retry_timeout }
    }

    /// Starts the time again, because a majority has answered.
    pub(super) fn renew(&mut self, now: Instant) {
        self.give_up = now + self.retry_timeout;
    }

    pub(super) fn left(&self, now: Instant) -> Duration {
        self.give_up.saturating_duration_since(now)
    }

    /// Fails if the time is over.
    pub(super) fn check(&self, masters: &Masters, request: &Request) -> Result<(), Error> {
        let now = masters.now();
        if now < self.give_up {
            return Ok(());
        }
        let all = masters.all.len();
        let down = masters.all.iter().filter(|master| !Master::is_up(master)).count();
        let is_young = |n: &usize| masters.counts_from(*n).is_some_and(|from| from > now);
        let young = (0..all).filter(|n| masters.all[*n].is_up()).filter(is_young).count();
        let mut reason =
            format!("of {all} masters, {down} do not answer and {young} have restarted too short a time ago");
        for (n, master) in masters.all.iter().enumerate() {
            if let Some((_, why)) = master.unusable() {
                reason += &format!("; master {}: {why}", n + 1);
            }
        }
        Err(request.error_because(ErrorKind::Unavailable, reason))
    }
}
