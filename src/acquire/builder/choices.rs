//! The options that both builders collect, and the requests that they make.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::request::Request;
use crate::config::{MIN_LEASE, check_lease, check_replicas};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::holder::Holder;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::runtime::Executor;
use crate::tuning::FOR_RETAINED;

/// One primitive to acquire, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) primitive: Primitive,
    /// The number of units, or of tokens to reserve.
    pub(crate) amount: u32,
}

/// Most acquisitions are of one part, which needs no allocation.
#[derive(Clone, Debug)]
enum Parts {
    One(Part),
    Several(Arc<[Part]>),
}

/// The primitives that a caller acquires, with the options. The sealed trait of the guards names this type, so it is
/// `pub`, but no other crate can reach it.
#[derive(Clone, Debug)]
pub struct Options {
    parts: Parts,
    pub(crate) operation: &'static str,
    pub(crate) choices: Choices,
}

/// The options that a caller has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    pub(super) non_fair: bool,
    pub(crate) timeout: Option<Duration>,
    lease: Option<Duration>,
    /// Whether the lease is fixed, and not renewed.
    is_fixed: bool,
    /// Whether both a fixed and a renewed lease were chosen.
    is_both: bool,
    pub(super) at_most: Option<Duration>,
    pub(super) replicas: Option<u32>,
    pub(super) holder: Option<Holder>,
    /// Whether the acquisition takes no notice of the caller's [`Holder`]. Its hold cannot be re-entered.
    pub(super) ignores_holder: bool,
    pub(super) denies_reentry: bool,
    /// Whether to take all permits that are free.
    pub(super) takes_all: bool,
    /// The attempt whose hold to take over.
    pub(super) resumes: Option<Arc<AttemptId>>,
    pub(super) max_waiters: Option<u32>,
    /// How long the hold is kept idle.
    pub(super) retained: Option<Duration>,
    /// How long a try waits for a hold that another client keeps.
    pub(super) for_retained: Option<Duration>,
}

impl Options {
    pub(crate) fn of_one(primitive: &Primitive, operation: &'static str, amount: u32) -> Self {
        let parts = Parts::One(Part { primitive: primitive.clone(), amount });
        Self { parts, operation, choices: Choices::default() }
    }

    pub(crate) fn of_several(parts: &[Part], operation: &'static str) -> Self {
        Self { parts: Parts::Several(parts.into()), operation, choices: Choices::default() }
    }

    /// The primitives to acquire, in the caller's order.
    pub(crate) fn parts(&self) -> &[Part] {
        match &self.parts {
            Parts::One(part) => slice::from_ref(part),
            Parts::Several(parts) => parts,
        }
    }

    /// The first primitive, which is the only one of most acquisitions.
    pub(crate) fn first(&self) -> Result<&Part> {
        self.parts().first().ok_or_else(|| nothing_to_acquire(self.operation))
    }

    pub(super) fn executor(&self) -> Result<Arc<dyn Executor>> {
        Ok(self.first()?.primitive.context().executor.clone())
    }

    /// The request for the only part, and who grants it.
    pub(crate) fn into_request(self, wait: bool) -> Result<(Arc<HoldSource>, Request)> {
        let Self { parts, operation, choices } = self;
        let Part { primitive, amount } = match parts {
            Parts::One(part) => part,
            Parts::Several(parts) => parts.first().cloned().ok_or_else(|| nothing_to_acquire(operation))?,
        };
        let (source, keys) = primitive.into_keys(operation)?;
        let request = choices.request(operation, keys, amount, wait, &source)?;
        Ok((source, request))
    }

    /// The request for one of the parts, with these options.
    pub(crate) fn request(&self, part: &Part, wait: bool) -> Result<Request> {
        let Part { primitive, amount } = part;
        let keys = primitive.keys(self.operation)?.clone();
        if self.choices.retained.is_some() {
            return Err(not_retained(self.operation).with_name(&keys.name));
        }
        self.choices.request(self.operation, keys, *amount, wait, &primitive.source)
    }
}

fn nothing_to_acquire(operation: &'static str) -> Error {
    Error::because(ErrorKind::InvalidInput, operation, "there is no name to acquire")
}

fn not_retained(operation: &'static str) -> Error {
    let reason = "only a Lock, or an RwLock that is acquired to write, can be retained";
    Error::because(ErrorKind::InvalidInput, operation, reason)
}

fn retained_as_others(operation: &'static str) -> Error {
    let reason = "a retained hold has the client's own renewed lease, no limit, and waits for no replicas";
    Error::because(ErrorKind::InvalidInput, operation, reason)
}

fn check_retained(operation: &'static str, time: Duration, lease: Duration) -> Result<()> {
    if time.is_zero() || time > lease / 3 {
        let reason = format!("a hold is retained for more than 0 and at most {:?}, a third of the lease", lease / 3);
        return Err(Error::because(ErrorKind::InvalidInput, operation, reason));
    }
    Ok(())
}

impl Choices {
    pub(super) fn with_lease(self, lease: Duration, is_fixed: bool) -> Self {
        let is_both = self.is_both || (self.lease.is_some() && self.is_fixed != is_fixed);
        Self { lease: Some(lease), is_fixed, is_both, ..self }
    }

    fn request(
        &self,
        operation: &'static str,
        keys: Arc<Keys>,
        amount: u32,
        wait: bool,
        source: &HoldSource,
    ) -> Result<Request> {
        let config = &source.context.config;
        self.check(operation, amount).map_err(|error| error.with_name(&keys.name))?;
        if !keys.kind.has_queue() && (!self.non_fair || self.max_waiters.is_some()) {
            let reason = "the lock has no queue, so there is no order, and no number of waiters";
            return Err(Error::because(ErrorKind::InvalidInput, operation, reason).with_name(&keys.name));
        }
        let own = config.lease;
        let replicas = self.replicas.unwrap_or(config.replicas);
        let (fair, renewed) = (!self.non_fair, !self.is_fixed);
        let lease = self.lease.unwrap_or(own);
        let as_others = lease == own && replicas == config.replicas && self.at_most.is_none();
        let joins_cohort = !fair && renewed && as_others && keys.kind.joins_cohort(amount);
        if let Some(time) = self.retained {
            let may_retain = keys.kind.retains(amount) && source.quorum.is_none();
            let may_retain = if may_retain { Ok(()) } else { Err(not_retained(operation)) };
            may_retain
                .and_then(|()| check_retained(operation, time, own))
                .and_then(|()| if joins_cohort && replicas == 0 { Ok(()) } else { Err(retained_as_others(operation)) })
                .map_err(|error| error.with_name(&keys.name))?;
        }
        Ok(Request {
            operation,
            keys,
            amount,
            wait,
            lease: self.at_most.map_or(lease, |limit| lease.min(limit)),
            renewed,
            at_most: self.at_most,
            replicas,
            max_waiters: self.max_waiters.unwrap_or(0),
            fair,
            joins_cohort: joins_cohort && (wait || self.retained.is_some()),
            retained: self.retained,
            for_retained: self.for_retained.unwrap_or(FOR_RETAINED),
            timeout: self.timeout,
            holder: self.holder,
            ignores_holder: self.ignores_holder,
            denies_reentry: self.denies_reentry,
            takes_all: self.takes_all,
            resumes: self.resumes.clone(),
        })
    }

    fn check(&self, operation: &'static str, amount: u32) -> Result<()> {
        let invalid = |reason: String| Err(Error::because(ErrorKind::InvalidInput, operation, reason));
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return invalid("timeout is zero; a try_ method acquires without waiting".to_owned());
        }
        if self.max_waiters == Some(0) {
            return invalid("max_waiters is zero; a try_ method acquires without waiting".to_owned());
        }
        if amount == 0 {
            return invalid("the number of permits is zero".to_owned());
        }
        if self.is_both || (self.is_fixed && self.at_most.is_some()) {
            return invalid(
                "expires_after sets a fixed lease; lease and hold_at_most apply to renewed leases only".to_owned(),
            );
        }
        if let Some(lease) = self.lease {
            check_lease(operation, lease)?;
        }
        if let Some(replicas) = self.replicas {
            check_replicas(operation, replicas)?;
        }
        match self.at_most {
            Some(limit) if limit < MIN_LEASE => {
                invalid(format!("hold_at_most must be at least {MIN_LEASE:?}, not {limit:?}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
