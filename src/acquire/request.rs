//! What one acquisition asks for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::lease::Term;
use crate::error::{Error, ErrorKind};
use crate::holder::Holder;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;

/// The checked options of an acquisition.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) operation: &'static str,
    pub(crate) keys: Arc<Keys>,
    /// The number of units, or of tokens to reserve.
    pub(crate) amount: u32,
    /// Whether to take all units that are free. `amount` is 1 then.
    pub(crate) takes_all: bool,
    /// The attempt whose hold is taken over. On the heap, because each acquisition has room for it.
    pub(crate) resumes: Option<Arc<AttemptId>>,
    /// Whether to wait while others hold it.
    pub(crate) wait: bool,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    /// For a renewed lease: how long after the grant the hold ends.
    pub(crate) at_most: Option<Duration>,
    /// How many replicas must acknowledge the grant and each renewal.
    pub(crate) replicas: u32,
    pub(crate) max_waiters: u32,
    pub(crate) timeout: Option<Duration>,
    /// The holder that can re-enter the hold, if there is one. Before [`choose_holder`](Self::choose_holder), the one
    /// that the caller has named.
    pub(crate) holder: Option<Holder>,
    /// Whether the acquisition takes no notice of the caller's [`Holder`]. Its hold cannot be re-entered.
    pub(crate) ignores_holder: bool,
    /// Whether the acquisition fails if the holder has the hold already.
    pub(crate) denies_reentry: bool,
    /// Whether the caller chose a fair acquisition. Only the log shows it.
    pub(crate) fair: bool,
    /// How long the hold is kept idle after its last guard. Such an acquisition joins a cohort, also if it does not
    /// wait.
    pub(crate) retained: Option<Duration>,
    /// How long a request that does not wait does so for a hold that another client keeps idle.
    pub(crate) for_retained: Duration,
    /// Whether the acquisition joins the client's cohort for the name.
    pub(crate) joins_cohort: bool,
}

impl Request {
    /// A fair acquisition that waits, for a renewed lease and no holder, without any option.
    pub(crate) fn plain(operation: &'static str, keys: Arc<Keys>, amount: u32, lease: Duration) -> Self {
        Self {
            operation,
            keys,
            amount,
            takes_all: false,
            resumes: None,
            wait: true,
            lease,
            renewed: true,
            at_most: None,
            replicas: 0,
            max_waiters: 0,
            timeout: None,
            holder: None,
            ignores_holder: false,
            denies_reentry: false,
            fair: true,
            retained: None,
            for_retained: Duration::ZERO,
            joins_cohort: false,
        }
    }

    /// Takes the holder of the innermost [`Holder::scope`] around this call, unless the caller has named one. Called at
    /// the first poll, because a task that is spawned in a scope does not belong to the scope. No other hold of the
    /// holder can stand for one that is taken over.
    pub(crate) fn choose_holder(&mut self) {
        let may_re_enter = self.keys.kind.is_reentrant() && self.resumes.is_none() && !self.ignores_holder;
        self.holder = self.holder.or_else(Holder::current).filter(|_| may_re_enter);
    }

    /// The term of a hold whose [limit](crate::Acquire::hold_at_most) counts from then on.
    pub(crate) fn term(&self, from: Instant) -> Term {
        if self.renewed { Term::capped(from, self.at_most) } else { Term::Fixed }
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation).with_name(&self.keys.name)
    }

    pub(crate) fn error_because(&self, kind: ErrorKind, reason: String) -> Error {
        Error::because(kind, self.operation, reason).with_name(&self.keys.name)
    }
}
