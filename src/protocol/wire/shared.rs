//! Values that scripts and tests share.

use std::time::Duration;

use crate::protocol::{key, limits};

/// The prefix of clients whose configuration names no other.
pub const PREFIX: &str = key::DEFAULT_PREFIX;

/// A reader that has to extend the life of a counter extends it by so much more.
pub const COUNTER_SLACK: Duration = limits::COUNTER_SLACK;
