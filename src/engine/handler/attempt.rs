//! Attempts that are given up.

use std::time::Instant;

use crate::engine::attempts::Attempts;
use crate::engine::cleanup::Cleanup;
use crate::engine::cleanups::Cleanups;
use crate::protocol::attempt_id::AttemptId;

pub(in crate::engine) struct AttemptHandler<'a> {
    pub(in crate::engine) attempts: &'a mut Attempts,
    pub(in crate::engine) cleanups: &'a mut Cleanups,
}

impl AttemptHandler<'_> {
    /// Removes the attempt, and its ticket or hold from Redis.
    pub(in crate::engine) fn give_up(&mut self, id: AttemptId, now: Instant) {
        let from_tail = self.attempts.is_near_tail(id.n, now);
        self.give_up_from(id, from_tail, now);
    }

    /// Like [`give_up`](Self::give_up), with the end of the queue from which to search for the ticket. A hold that the
    /// attempt would have released is removed first. A late copy of the request then finds nothing to release and does
    /// not queue up.
    pub(in crate::engine) fn give_up_from(&mut self, id: AttemptId, from_tail: bool, now: Instant) {
        let Some(mut attempt) = self.attempts.remove(id.n) else { return };
        if let Some(before) = attempt.before.take() {
            self.attempts.set_reply_lost(&attempt.keys, now);
            self.cleanups.push(Cleanup::of(&before, now));
        }
        self.cleanups.push(attempt.into_cleanup(id, from_tail, now));
    }
}
