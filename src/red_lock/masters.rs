//! The masters of a RedLock, and which of them answer.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event_listener::Event;

use crate::acquire::request::Request;
use crate::context::Context;
use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind, Result};
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::observe;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::vote::reply::Process;
use crate::red_lock::contended::Contended;
use crate::red_lock::count::majority;
use crate::red_lock::master::Master;
use crate::red_lock::master_set::{MasterSet, describe};
use crate::red_lock::settings::Settings;
use crate::red_lock::standing::Standing;
use crate::red_lock::stats::RedLockStats;
use crate::runtime::Executor;

pub(super) struct Masters {
    pub(super) all: Vec<Master>,
    pub(super) settings: Settings,
    stats: Mutex<RedLockStats>,
    pub(super) contended: Mutex<Contended>,
    /// How many holds have requests that their grant did not wait for.
    pub(super) late: AtomicUsize,
    /// Notified when a master is marked as down, and when it answers again.
    pub(super) changed: Event,
}

impl Masters {
    pub(super) fn new(all: Vec<Master>, settings: Settings) -> Self {
        Self {
            all,
            settings,
            stats: Mutex::default(),
            contended: Mutex::default(),
            late: AtomicUsize::new(0),
            changed: Event::new(),
        }
    }

    pub(super) fn executor(&self) -> &Arc<dyn Executor> {
        &self.all[0].context().executor
    }

    /// Whether the client of any master was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.all.iter().any(|master| master.context().engine.is_closed())
    }

    /// Whether this is the client of the first master that serves these keys. A master that has denied them counts only
    /// after it has served them again. If a turn were given up for it earlier, the next request for a turn there would
    /// be denied as well.
    pub(super) fn is_first(&self, context: &Arc<Context>, keys: &[Arc<Keys>]) -> bool {
        let now = self.now();
        let mut serving = self.all.iter().zip(keys).filter(|(master, keys)| master.may_serve(keys, now));
        serving.next().is_none_or(|(first, _)| Arc::ptr_eq(first.context(), context))
    }

    /// Whether the master of this client answers.
    pub(super) fn answers_to(&self, context: &Arc<Context>) -> bool {
        self.all.iter().any(|master| Arc::ptr_eq(master.context(), context) && master.is_up())
    }

    pub(super) fn now(&self) -> Instant {
        self.executor().now()
    }

    pub(super) fn retry_timeout(&self) -> Duration {
        self.all[0].context().config.retry_timeout
    }

    /// For how long an operation continues while no majority answers.
    pub(super) fn patience(&self) -> Duration {
        self.all[0].context().patience()
    }

    /// The time limit for a request about a hold with that lease. An operation can pass over two silent masters and go
    /// on.
    pub(super) fn node_timeout(&self, lease: Duration) -> Duration {
        self.settings.node_timeout.min(lease / 4).min(self.patience() / 4)
    }

    pub(super) fn jitter(&self) -> Jitter {
        Jitter::new(self.all[0].context().engine.jitter_seed())
    }

    /// The keys of the name on each master. Masters with the same prefix share them.
    pub(super) fn keys(&self, kind: Kind, name: &str) -> Result<Vec<Arc<Keys>>> {
        let prefix = |n: usize| &*self.all[n].context().config.prefix;
        let mut all: Vec<Arc<Keys>> = Vec::with_capacity(self.all.len());
        for n in 0..self.all.len() {
            let of_last = all.last().filter(|_| prefix(n) == prefix(n - 1));
            let keys =
                of_last.map_or_else(|| Keys::new(prefix(n), kind, name).map(Arc::new), |keys| Ok(keys.clone()))?;
            all.push(keys);
        }
        Ok(all)
    }

    pub(super) fn change_stats(&self, change: impl FnOnce(&mut RedLockStats)) {
        change(&mut lock(&self.stats));
    }

    /// Counts and reports that a hold was lost.
    pub(super) fn count_loss(&self, hold: &Hold, loss: Loss) {
        self.change_stats(|stats| stats.lost += 1);
        observe::lost(&hold.keys.name, &loss, loss.word());
    }

    pub(super) fn stats(&self) -> RedLockStats {
        let down = self.all.iter().filter(|master| !master.is_up() || master.unusable().is_some()).count();
        RedLockStats { masters_down: down, ..*lock(&self.stats) }
    }

    /// The time from which the votes of a master count. `None`: at once.
    pub(super) fn counts_from(&self, master: usize) -> Option<Instant> {
        self.all[master].standing(|standing| self.counting(standing))
    }

    /// Records what an answer says about its master. Returns the time from which that vote counts. `None`: at once.
    pub(super) fn learn(
        &self,
        master: usize,
        process: &Process,
        known: u64,
        times: (Instant, Instant),
    ) -> Option<Instant> {
        self.all[master].learn(process, known, times, |standing| self.counting(standing))
    }

    fn counting(&self, standing: &Standing) -> Option<Instant> {
        let Settings { durable, new_masters, longest_lease, .. } = self.settings;
        if durable || (new_masters && standing.is_first()) || mutant::on(Mutant::UptimeIgnored) {
            return None;
        }
        standing.counts_from(longest_lease)
    }

    /// Fails if two masters are the same server, as far as the servers have identified themselves.
    pub(super) fn check_distinct(&self, operation: &'static str) -> Result<()> {
        (0..self.all.len()).try_for_each(|n| self.check_alone(n, operation))
    }

    /// Fails if an earlier master is the same server.
    pub(super) fn check_alone(&self, n: usize, operation: &'static str) -> Result<()> {
        let id = self.all[n].run_id();
        let Some(other) = self.all[..n].iter().position(|other| !id.is_empty() && other.run_id() == id) else {
            return Ok(());
        };
        let reason = format!("masters {} and {} of the RedLock are the same server", other + 1, n + 1);
        Err(Error::because(ErrorKind::InvalidInput, operation, reason))
    }

    /// The reason of the error if a master votes for programs with another set of masters.
    pub(super) fn other_set(&self, n: usize, other: &str) -> String {
        let own = self.settings.set.as_ref().map_or("", MasterSet::as_str);
        let (other, own) = (describe(other), describe(own));
        format!("master {} votes for programs with {other}; this program has {own}", n + 1)
    }

    /// Marks a master as down if its client has not connected yet, or is connected to something else than a single
    /// server.
    ///
    /// # Errors
    /// The answers of masters to requests with these keys, and the errors that keep clients from connecting, if they
    /// leave fewer than `needed` masters and time does not mend them.
    pub(super) fn check_usable(self: &Arc<Self>, request: &Request, keys: &[Arc<Keys>], needed: usize) -> Result<()> {
        if self.is_closed() {
            return Err(request.error(ErrorKind::Closed));
        }
        let now = self.now();
        let mut refused = Vec::new();
        for (n, master) in self.all.iter().enumerate() {
            if master.unusable().is_some() {
                self.set_down(n, None, now);
            }
            let Some((kind, reason)) = master.refusal(&keys[n], now) else { continue };
            if !kind.is_retryable() {
                refused.push((kind, format!("master {}: {reason}", n + 1)));
            }
        }
        if self.all.len() - refused.len() >= needed {
            return Ok(());
        }
        let (kinds, reasons): (Vec<_>, Vec<_>) = refused.into_iter().unzip();
        Err(request.error_because(kinds[0], reasons.join("; ")))
    }

    /// Since when there has been no majority for these keys. `None`: there is one, as far as is known.
    pub(super) fn majority_gone(&self, keys: &[Arc<Keys>], now: Instant) -> Option<Instant> {
        let unable = self.all.iter().enumerate().filter_map(|(n, master)| {
            let counts = self.counts_from(n).is_none_or(|from| from <= now);
            master.unable_since(&keys[n], counts, now)
        });
        let mut unable: Vec<_> = unable.collect();
        unable.sort_unstable();
        unable.get(self.all.len() - majority(self.all.len())).copied()
    }
}

impl fmt::Debug for Masters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masters")
            .field("settings", &self.settings)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(in crate::red_lock) mod tests;
