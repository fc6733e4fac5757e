//! The copies of one call.

use crate::protocol::attempt_id::AttemptId;
use crate::protocol::call::{ScriptCall, Site};
use crate::protocol::reply::ServerMillis;

/// One copy of a call that changes a latch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatchCall {
    pub(crate) id: AttemptId,
    /// This copy is refused later.
    pub(crate) not_after: ServerMillis,
    /// No copy of the call is executed later: the same for all of them, and not before any `not_after`.
    pub(crate) known_until: ServerMillis,
    /// Another copy may have been executed.
    pub(crate) resent: bool,
}

impl LatchCall {
    /// The order in which each script gets these; `more` come after the id.
    pub(super) fn put<'a, T>(
        self,
        call: ScriptCall<'a, T>,
        site: Site<'a>,
        more: impl FnOnce(ScriptCall<'a, T>) -> ScriptCall<'a, T>,
    ) -> ScriptCall<'a, T> {
        more(call.id(self.id))
            .number(self.not_after)
            .number(self.known_until)
            .number(self.resent)
            .text(site.inbox_prefix)
    }
}
