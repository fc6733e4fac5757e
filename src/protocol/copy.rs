//! The copies of one call that changes a latch or a barrier.

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site};
use super::reply::ServerMillis;

/// One copy of a call that changes a latch or a barrier.
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
