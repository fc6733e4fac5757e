//! The arguments of a change of a hold.

use std::time::Duration;

use crate::protocol::attempt_id::AttemptId;
use crate::protocol::reply::ServerMillis;

/// Exchanges one hold for another with `units` units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeArgs {
    pub(crate) old: AttemptId,
    pub(crate) new: AttemptId,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) not_after: ServerMillis,
}
