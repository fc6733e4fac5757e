//! The copies of one call that changes a latch, a barrier or a counter that Java shares.

use std::time::Duration;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site};
use super::reply::ServerMillis;

/// One copy of a call that changes a latch, a barrier or a counter that Java shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallCopy {
    pub(crate) id: AttemptId,
    /// The server refuses this copy after that time.
    pub(crate) not_after: ServerMillis,
    /// After this time no copy of the call is executed. It is the same for all copies, and no `not_after` is later.
    pub(crate) known_until: ServerMillis,
    /// Whether another copy may have been executed.
    pub(crate) resent: bool,
}

impl CallCopy {
    /// The same copy, of a call that is remembered for so much longer.
    pub(crate) fn kept(self, longer: Duration) -> Self {
        let longer = u64::try_from(longer.as_millis()).unwrap_or(u64::MAX);
        // 0 means that the server's clock is not known.
        let known_until = if self.known_until == 0 { 0 } else { self.known_until.saturating_add(longer) };
        Self { known_until, ..self }
    }

    /// Adds these arguments in the order in which each script expects them. `more` follows the id.
    pub(super) fn put<'a, T>(
        self,
        call: ScriptCall<'a, T>,
        site: Site<'a>,
        more: impl FnOnce(ScriptCall<'a, T>) -> ScriptCall<'a, T>,
    ) -> ScriptCall<'a, T> {
        more(call.id(self.id)).number(self.not_after).number(self.known_until).number(self.resent).inbox(site)
    }
}
