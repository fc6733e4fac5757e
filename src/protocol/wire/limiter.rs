//! A rate limiter.

use std::time::Duration;

use super::{Request, sent};
use crate::error::Result;
use crate::protocol::key::Named;
use crate::protocol::rate::{self, TakeArgs};

/// A rate limiter as its clients address it.
#[derive(Debug)]
pub struct Limiter(Named);

impl Limiter {
    /// The rate limiter of this name.
    pub fn new(prefix: &str, name: &str) -> Result<Self> {
        Named::limiter(prefix, name).map(Self)
    }

    /// Its key.
    pub fn key(&self) -> &str {
        self.0.main()
    }

    /// Takes permits that move the theoretical arrival time on by `cost`.
    pub fn take(&self, cost: Duration, burst: Duration, longest: Duration, not_after: u64) -> Request {
        sent(rate::take(&self.0, TakeArgs { cost, burst, longest, not_after }))
    }

    /// Forgets what was taken.
    pub fn reset(&self, not_after: u64) -> Request {
        sent(rate::reset(&self.0, not_after))
    }

    /// Reads how far ahead of the clock the theoretical arrival time is.
    pub fn inspect(&self) -> Request {
        sent(rate::inspect(&self.0))
    }
}
