//! The masters of a RedLock, and which of them answer.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use event_listener::Event;
use futures::future::select;

use crate::acquire::request::Request;
use crate::backoff::Backoff;
use crate::context::Context;
use crate::driver::retry::PAUSES;
use crate::error::{Error, ErrorKind, Result};
use crate::jitter::Jitter;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::vote::reply::Process;
use crate::red_lock::count::majority;
use crate::red_lock::master::Master;
use crate::red_lock::settings::Settings;
use crate::red_lock::stats::RedLockStats;
use crate::runtime::{Executor, timeout};

/// A master that some acquisition waits for is looked at this often, and so are clients that have not connected yet.
const LOOK: Duration = Duration::from_secs(1);

pub(super) struct Masters {
    pub(super) all: Vec<Master>,
    pub(super) settings: Settings,
    stats: Mutex<RedLockStats>,
    /// Notified when a master answers again.
    up: Event,
}

impl Masters {
    pub(super) fn new(all: Vec<Master>, settings: Settings) -> Self {
        Self { all, settings, stats: Mutex::default(), up: Event::new() }
    }

    pub(super) fn executor(&self) -> &Arc<dyn Executor> {
        &self.all[0].context().executor
    }

    /// Whether the client of a master was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.all.iter().any(|master| master.context().engine.is_closed())
    }

    /// Whether this is the client of the first master that answers.
    pub(super) fn is_first(&self, context: &Arc<Context>) -> bool {
        self.all.iter().find(|master| master.is_up()).is_none_or(|first| Arc::ptr_eq(first.context(), context))
    }

    /// Whether the master of this client answers.
    pub(super) fn answers_to(&self, context: &Arc<Context>) -> bool {
        self.all.iter().any(|master| Arc::ptr_eq(master.context(), context) && master.is_up())
    }

    pub(super) fn now(&self) -> Instant {
        self.executor().now()
    }

    /// The time limit for a request about a hold with that lease.
    pub(super) fn node_timeout(&self, lease: Duration) -> Duration {
        self.settings.node_timeout.min(lease / 4)
    }

    pub(super) fn jitter(&self) -> Jitter {
        Jitter::new(self.all[0].context().engine.jitter_seed())
    }

    /// The keys of the name on each master.
    pub(super) fn keys(&self, kind: Kind, name: &str) -> Result<Vec<Arc<Keys>>> {
        self.all.iter().map(|master| Keys::new(&master.context().config.prefix, kind, name).map(Arc::new)).collect()
    }

    pub(super) fn change_stats(&self, change: impl FnOnce(&mut RedLockStats)) {
        change(&mut lock(&self.stats));
    }

    pub(super) fn stats(&self) -> RedLockStats {
        let down = self.all.iter().filter(|master| !master.is_up() || master.unusable().is_some()).count();
        RedLockStats { masters_down: down, ..*lock(&self.stats) }
    }

    /// The time from which the votes of a master count. `None`: at once.
    pub(super) fn counts_from(&self, master: usize) -> Option<Instant> {
        self.unless_durable(self.all[master].counts_from(self.settings.longest_lease))
    }

    /// Remembers what an answer says of its master. Returns from when on that vote counts, if not at once.
    pub(super) fn learn(&self, master: usize, process: &Process, now: Instant) -> Option<Instant> {
        self.unless_durable(self.all[master].learn(process, now, self.settings.longest_lease))
    }

    fn unless_durable(&self, from: Option<Instant>) -> Option<Instant> {
        from.filter(|_| !self.settings.durable && !mutant::on(Mutant::UptimeIgnored))
    }

    /// Fails if two masters are the same server, as far as the servers have identified themselves.
    pub(super) fn check_distinct(&self, operation: &'static str) -> Result<()> {
        (0..self.all.len()).try_for_each(|n| self.check_alone(n, operation))
    }

    /// No master before this one is the same server.
    pub(super) fn check_alone(&self, n: usize, operation: &'static str) -> Result<()> {
        let id = self.all[n].run_id();
        let Some(other) = self.all[..n].iter().position(|other| !id.is_empty() && other.run_id() == id) else {
            return Ok(());
        };
        let reason = format!("masters {} and {} of the RedLock are the same server", other + 1, n + 1);
        Err(Error::because(ErrorKind::InvalidInput, operation, reason))
    }

    /// Asks nothing of masters whose clients have not connected yet, or to something else than a single server.
    ///
    /// # Errors
    /// What keeps the clients from connecting, if it leaves no majority and time does not mend it.
    pub(super) fn check_usable(self: &Arc<Self>, request: &Request) -> Result<()> {
        if self.is_closed() {
            return Err(request.error(ErrorKind::Closed));
        }
        let mut refused = Vec::new();
        for (n, master) in self.all.iter().enumerate() {
            let Some((kind, reason)) = master.unusable() else { continue };
            self.set_down(n);
            if !kind.is_retryable() {
                refused.push((kind, format!("master {}: {reason}", n + 1)));
            }
        }
        if self.all.len() - refused.len() >= majority(self.all.len()) {
            return Ok(());
        }
        let (kinds, reasons): (Vec<_>, Vec<_>) = refused.into_iter().unzip();
        Err(request.error_because(kinds[0], reasons.join("; ")))
    }

    /// Marks a master as down, because it gave no usable answer. It is not asked again until it has answered a probe in the
    /// background.
    pub(super) fn set_down(self: &Arc<Self>, n: usize) {
        if !self.all[n].set_down() {
            return;
        }
        let (executor, seed) = (self.executor().clone(), self.all[n].context().engine.jitter_seed());
        let (masters, clock) = (Arc::downgrade(self), executor.clone());
        executor.spawn(Box::pin(async move {
            let mut backoff = Backoff::new(PAUSES, seed);
            loop {
                clock.sleep(backoff.pause()).await;
                let Some(masters) = masters.upgrade() else { return };
                if masters.all[n].context().engine.is_closed() {
                    return;
                }
                if masters.answers(n, masters.settings.node_timeout).await {
                    masters.all[n].set_up();
                    masters.up.notify(usize::MAX);
                    return;
                }
            }
        }));
    }

    /// Resolves when a master is up again, or after the pause, or when it is time to look at the clients again.
    pub(super) async fn up_again(&self, pause: Duration) {
        let up = self.up.listen();
        select(up, self.executor().sleep(pause.min(LOOK))).await;
    }

    /// Resolves when the master leaves a question unanswered for `limit`. While it has answered other requests lately, it is
    /// not asked.
    pub(super) async fn silent(&self, n: usize, limit: Duration) {
        let mut pause = limit / 2;
        loop {
            let since = self.now();
            self.executor().sleep(pause).await;
            if !self.all[n].is_up() || !(self.all[n].is_heard_since(since) || self.answers(n, limit / 2).await) {
                return;
            }
            // Many acquisitions may wait for the same master, and one of them asks for all.
            pause = self.jitter().spread(LOOK);
        }
    }

    /// Whether the master answers within that time and accepts writes.
    async fn answers(&self, n: usize, within: Duration) -> bool {
        if self.all[n].unusable().is_some() {
            return false;
        }
        let context = self.all[n].context();
        let keys = Keys::scratch(&context.config.prefix, Kind::Lock, context.client);
        // No attempt has this id. The server must accept writes to say that.
        let nothing = AttemptId { client: context.client, n: u64::MAX };
        let answered = timeout(self.executor(), within, context.scripts().release(&keys, nothing)).await;
        let answers = matches!(answered, Some(Ok(_)));
        if answers {
            self.all[n].set_heard(self.now());
        }
        answers
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
