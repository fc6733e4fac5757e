//! The options that both builders collect, and the request that they make.

use std::time::Duration;

use crate::acquire::request::Request;
use crate::config::{MIN_LEASE, check_lease, check_replicas};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::holder::Holder;

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) primitive: Primitive,
    operation: &'static str,
    amount: u32,
    pub(super) fair: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) lease: Option<Duration>,
    pub(super) expires_after: Option<Duration>,
    pub(super) at_most: Option<Duration>,
    pub(super) replicas: Option<u32>,
    pub(super) holder: Option<Holder>,
    pub(super) max_waiters: Option<u32>,
}

impl Options {
    pub(super) fn new(primitive: &Primitive, operation: &'static str, amount: u32) -> Self {
        Self {
            primitive: primitive.clone(),
            operation,
            amount,
            fair: true,
            timeout: None,
            lease: None,
            expires_after: None,
            at_most: None,
            replicas: None,
            holder: None,
            max_waiters: None,
        }
    }

    pub(super) fn request(&self, wait: bool) -> Result<Request> {
        let Self { primitive, operation, .. } = self;
        let operation = *operation;
        let keys = primitive.keys(operation)?;
        self.check(operation).map_err(|error| error.with_name(&keys.name))?;
        let config = &primitive.context.config;
        let own = config.lease;
        let replicas = self.replicas.unwrap_or(config.replicas);
        let renewed = self.expires_after.is_none();
        let lease = self.expires_after.or(self.lease).unwrap_or(own);
        let as_others = lease == own && replicas == config.replicas && self.at_most.is_none();
        let joins_cohort = wait && !self.fair && renewed && as_others;
        let holder = self.holder.or_else(Holder::current).filter(|_| keys.kind.is_reentrant());
        Ok(Request {
            operation,
            keys: keys.clone(),
            amount: self.amount,
            wait,
            lease: self.at_most.map_or(lease, |limit| lease.min(limit)),
            renewed,
            at_most: self.at_most,
            replicas,
            max_waiters: self.max_waiters.unwrap_or(0),
            fair: self.fair,
            joins_cohort: joins_cohort && keys.kind.joins_cohort(self.amount),
            timeout: self.timeout,
            holder,
        })
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        let invalid = |reason: String| Err(Error::because(ErrorKind::InvalidInput, operation, reason));
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return invalid("timeout is zero; use the try_ method to acquire without waiting".to_owned());
        }
        if self.max_waiters == Some(0) {
            return invalid("max_waiters is zero; use the try_ method to acquire without waiting".to_owned());
        }
        if self.amount == 0 {
            return invalid("the number of permits is zero".to_owned());
        }
        if self.expires_after.is_some() && (self.lease.is_some() || self.at_most.is_some()) {
            return invalid(
                "expires_after sets a fixed lease; lease and hold_at_most apply to renewed leases only".to_owned(),
            );
        }
        for lease in self.lease.iter().chain(&self.expires_after) {
            check_lease(operation, *lease)?;
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
